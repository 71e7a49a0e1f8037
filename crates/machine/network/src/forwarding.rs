//! Whether an interface passes on what comes by it, turned on while a program needs it.
//!
//! Several may need it at the same time. Who comes first notes how it was, who goes last restores
//! it; a lock on the note distinguishes them, and the kernel releases it for who is killed.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use host::{SYSTEM_FOLDER, make_system_folder};
use rustix::fs::{FlockOperation, flock};

/// Where notes lie.
const NOTES: &str = SYSTEM_FOLDER;

/// A version of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    Four,
    Six,
}

/// An interface of the namespace that this thread is in, which forwards.
#[derive(Debug)]
pub(crate) struct Forwarding {
    setting: PathBuf,
    note_path: PathBuf,
    note: File,
    /// It did not before.
    is_changed: bool,
}

impl Forwarding {
    /// Turns it on where it is not.
    pub(crate) fn turn_on(interface: &str, family: Family) -> io::Result<Self> {
        let namespace = fs::metadata("/proc/thread-self/ns/net")?.ino();
        make_system_folder().map_err(io::Error::other)?;
        let of = match family {
            Family::Four => "forwarding",
            Family::Six => "forwarding6",
        };
        let note_path = PathBuf::from(format!("{NOTES}/{of}-{namespace}-{interface}"));
        let setting = setting(interface, family);
        let (note, is_first) = lock(&note_path)?;
        let before = if is_first { fs::read_to_string(&setting)? } else { read(&note)? };
        let is_changed = before.trim() == "0";
        if is_first {
            (&note).write_all(before.as_bytes())?;
            if is_changed {
                fs::write(&setting, "1")?;
            }
            flock(&note, FlockOperation::LockShared)?;
        }
        Ok(Self { setting, note_path, note, is_changed })
    }

    /// Whether it forwards only for the sake of those who turned it on.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Restores what was before, unless somebody else still needs it. To be called in the namespace
    /// in which it was turned on.
    pub(crate) fn restore(&self) {
        if flock(&self.note, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        if self.is_changed {
            // An interface that is gone needs nothing.
            fs::write(&self.setting, "0").unwrap_or_default();
        }
        fs::remove_file(&self.note_path).unwrap_or_default();
    }
}

/// The setting of an interface that is our own and goes away with us.
pub(crate) fn turn_on_for_good(interface: &str, family: Family) -> io::Result<()> {
    fs::write(setting(interface, family), "1")
}

/// Whether an interface can forward by itself.
pub(crate) fn can_forward(interface: &str, family: Family) -> bool {
    setting(interface, family).exists()
}

fn setting(interface: &str, family: Family) -> PathBuf {
    // The kernel writes the dot of a VLAN's name as a slash where settings are separated by dots,
    // not so in its folders.
    PathBuf::from(match family {
        Family::Four => format!("/proc/sys/net/ipv4/conf/{interface}/forwarding"),
        Family::Six => format!("/proc/sys/net/ipv6/conf/{interface}/force_forwarding"),
    })
}

/// The note, and whether no other process has it.
fn lock(path: &PathBuf) -> io::Result<(File, bool)> {
    loop {
        let mut options = OpenOptions::new();
        let note = options.read(true).write(true).create(true).truncate(false).open(path)?;
        let is_first = flock(&note, FlockOperation::NonBlockingLockExclusive).is_ok();
        if !is_first {
            flock(&note, FlockOperation::LockShared)?;
        }
        // Who went last may have removed it between the opening and the lock.
        let same = fs::metadata(path).is_ok_and(|now| {
            note.metadata().is_ok_and(|ours| (ours.ino(), ours.dev()) == (now.ino(), now.dev()))
        });
        if same {
            note.set_len(if is_first { 0 } else { note.metadata()?.len() })?;
            return Ok((note, is_first));
        }
    }
}

fn read(mut note: &File) -> io::Result<String> {
    let mut text = String::new();
    note.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{enter_namespace, make_pair};

    #[test]
    fn who_goes_last_restores_what_was_before() {
        if let Err(error) = enter_namespace() {
            println!("not run: {error}");
            return;
        }
        if make_system_folder().is_err() {
            println!("not run: nobody but root writes to {NOTES}");
            return;
        }
        make_pair(["left", "right"], 1500).unwrap();
        let setting = || setting("left", Family::Four);
        fs::write(setting(), "0").unwrap();
        let is_on = || fs::read_to_string(setting()).unwrap().trim() == "1";
        let first = Forwarding::turn_on("left", Family::Four).unwrap();
        let second = Forwarding::turn_on("left", Family::Four).unwrap();
        assert!(first.is_changed() && second.is_changed() && is_on());
        first.restore();
        assert!(is_on(), "a process needs it");
        drop(first);
        let path = second.note_path.clone();
        second.restore();
        assert!(!is_on() && !path.exists());
        drop(second);

        fs::write(setting(), "1").unwrap();
        let other = Forwarding::turn_on("left", Family::Four).unwrap();
        assert!(!other.is_changed());
        other.restore();
        assert!(is_on(), "it was on before");
    }
}
