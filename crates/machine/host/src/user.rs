//! Users of this machine: whom a program runs as, and who lent us root's rights.

#![expect(unsafe_code, reason = "the C library knows users, and a child becomes one")]

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;

use rustix::process::geteuid;

use crate::Error;

/// Space for what the system keeps of a user.
const USER_BYTES: usize = 16 << 10;
const GROUPS_MAX: usize = 1 << 10;
/// Where it is said by name who called a program as root: sudo(8), pkexec(1).
const CALLERS: [&str; 2] = ["SUDO_UID", "PKEXEC_UID"];
const CALLING_GROUP: &str = "SUDO_GID";

/// A user to run as.
#[derive(Clone, Debug)]
pub struct User {
    uid: libc::uid_t,
    gid: libc::gid_t,
    groups: Vec<libc::gid_t>,
    /// Its name and home; `None` of a number without a user.
    entry: Option<(OsString, OsString)>,
}

impl User {
    /// The user of this name, with all of its groups.
    pub fn named(name: &str) -> Result<Self, Error> {
        let unknown = || Error::NoUser { name: name.to_owned() };
        let text = CString::new(name).map_err(|_| unknown())?;
        look_up(&Key::Name(text)).ok_or_else(unknown)
    }

    /// Who called this program as root, as far as sudo or pkexec say so; `None` where no other user
    /// did.
    pub fn caller() -> Option<Self> {
        let uid = calling_user()?;
        let known = look_up(&Key::Number(uid));
        // A number without a name has no group but the one that is said.
        let group = || std::env::var(CALLING_GROUP).ok()?.parse().ok();
        known.or_else(|| {
            let gid = group().unwrap_or(uid);
            Some(Self { uid, gid, groups: vec![gid], entry: None })
        })
    }

    /// Gives it a file or folder.
    ///
    /// # Errors
    /// Only root may.
    pub fn give(&self, path: &Path) -> Result<(), Error> {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
            .map_err(|error| Error::path("change the owner of", path, error))
    }

    /// What a program of this user finds in its environment.
    pub(crate) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let Some((name, home)) = &self.entry else { return Vec::new() };
        let variables = [("HOME", home), ("USER", name), ("LOGNAME", name)];
        variables.map(|(variable, value)| (variable, value.clone())).into()
    }

    /// This process becomes that user for good. System calls and nothing else: between fork and
    /// exec. Not by the functions of the C library, which have all threads do it by a signal, and
    /// take locks for that.
    pub(crate) fn take_on(&self) -> io::Result<()> {
        let done = |answer| if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        let (count, list) = (self.groups.len(), self.groups.as_ptr());
        // SAFETY: the list has the length that is given.
        done(unsafe { libc::syscall(libc::SYS_setgroups, count, list) })?;
        // SAFETY: a number.
        done(unsafe { libc::syscall(libc::SYS_setgid, self.gid) })?;
        // SAFETY: a number.
        done(unsafe { libc::syscall(libc::SYS_setuid, self.uid) })
    }
}

/// By what a user is looked for.
enum Key {
    Name(CString),
    Number(libc::uid_t),
}

fn look_up(key: &Key) -> Option<User> {
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut room = vec![0; USER_BYTES];
    let mut found = ptr::null_mut();
    let (place, start, len) = (entry.as_mut_ptr(), room.as_mut_ptr(), room.len());
    let failed = match key {
        Key::Name(name) => {
            // SAFETY: the name ends with 0; all pointers are to values that live as long as the
            // call, with their true length.
            unsafe { libc::getpwnam_r(name.as_ptr(), place, start, len, &raw mut found) }
        }
        Key::Number(uid) => {
            // SAFETY: as above.
            unsafe { libc::getpwuid_r(*uid, place, start, len, &raw mut found) }
        }
    };
    if failed != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the call succeeded and filled it.
    let entry = unsafe { entry.assume_init() };
    // SAFETY: a name is a text that ends with 0, in the buffer, which is still there.
    let name = unsafe { CStr::from_ptr(entry.pw_name) };
    // SAFETY: the same of the home.
    let home = unsafe { CStr::from_ptr(entry.pw_dir) };
    let mut groups = vec![0; GROUPS_MAX];
    let mut count = libc::c_int::try_from(GROUPS_MAX).expect("few groups");
    // SAFETY: the name ends with 0; the count is that of the buffer.
    let filled = unsafe {
        libc::getgrouplist(name.as_ptr(), entry.pw_gid, groups.as_mut_ptr(), &raw mut count)
    };
    groups.truncate(usize::try_from(filled).unwrap_or(0));
    let text = |text: &CStr| OsStr::from_bytes(text.to_bytes()).to_owned();
    let entry_texts = Some((text(name), text(home)));
    Some(User { uid: entry.pw_uid, gid: entry.pw_gid, groups, entry: entry_texts })
}

/// The user that this process runs as, by name where it has one, and who called it as root.
pub fn this_user() -> (String, Option<String>) {
    let named = |uid: libc::uid_t| match look_up(&Key::Number(uid)) {
        Some(User { entry: Some((name, _)), .. }) => name.to_string_lossy().into_owned(),
        _ => uid.to_string(),
    };
    (named(geteuid().as_raw()), calling_user().map(named))
}

/// The number of the user who called this program as root; `None` where no other user did.
pub(crate) fn calling_user() -> Option<libc::uid_t> {
    if !geteuid().is_root() {
        return None;
    }
    said(|name| std::env::var(name).ok())
}

fn said(variable: impl Fn(&str) -> Option<String>) -> Option<libc::uid_t> {
    let number = CALLERS.into_iter().find_map(variable)?.parse().ok()?;
    (number != 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_user_has_a_name_or_a_number() {
        let (user, _) = this_user();
        assert!(!user.is_empty());
        assert_eq!(user == "root", geteuid().is_root(), "{user}");
    }

    #[test]
    fn the_caller_is_who_was_lent_the_rights_of_root() {
        let of = |given: &'static [(&str, &str)]| {
            said(|name| given.iter().find(|(known, _)| *known == name).map(|it| it.1.to_owned()))
        };
        assert_eq!(of(&[("SUDO_UID", "1000")]), Some(1000));
        assert_eq!(of(&[("PKEXEC_UID", "1001")]), Some(1001));
        assert_eq!(of(&[("SUDO_UID", "0")]), None);
        assert_eq!(of(&[("SUDO_UID", "-1")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_user_has_its_number_groups_and_home() {
        let root = User::named("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert!(root.groups.contains(&0));
        assert!(root.environment().contains(&("USER", "root".into())), "{root:?}");
        let error = User::named("nobody-of-this-name").unwrap_err();
        assert_eq!(error.to_string(), "there is no user \"nobody-of-this-name\"");
    }
}
