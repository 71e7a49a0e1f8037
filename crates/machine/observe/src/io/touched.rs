//! Who touches which file: `fanotify(7)` on whole file systems.
//!
//! Names come from the kernel as the folder's handle and the name in it. File systems that have no
//! such handles are watched by mount, with less detail. Not seen: what is done through mappings,
//! and what the kernel does itself. Events are only reported; no process is held up.

#![expect(unsafe_code, reason = "fanotify and open_by_handle_at have no safe wrappers")]

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use host::Error;
use host::native::{i32_of, u32_of, u64_of};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use serde::{Serialize, Serializer};

use super::counters::process;

/// What a process did to a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TouchKind {
    /// The file was opened.
    Opened,
    /// Something was read.
    Read,
    /// Something was written, or its length changed.
    Written,
    /// It was closed by a process that could write to it.
    Closed,
    /// Its owner, rights or times were changed.
    Attributes,
    /// The file was made.
    Created,
    /// The file was removed.
    Removed,
    /// It got another name.
    Moved,
}

impl TouchKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Opened,
        Self::Read,
        Self::Written,
        Self::Closed,
        Self::Attributes,
        Self::Created,
        Self::Removed,
        Self::Moved,
    ];

    /// The kind in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Opened => "open",
            Self::Read => "read",
            Self::Written => "write",
            Self::Closed => "close",
            Self::Attributes => "attributes",
            Self::Created => "create",
            Self::Removed => "remove",
            Self::Moved => "move",
        }
    }

    /// Bits of `linux/fanotify.h`.
    fn mask(self) -> u64 {
        match self {
            Self::Opened => 0x20,
            Self::Read => 0x1,
            Self::Written => 0x2,
            Self::Closed => 0x8,
            Self::Attributes => 0x4,
            Self::Created => 0x100,
            Self::Removed => 0x200,
            Self::Moved => 0x40 | 0x80,
        }
    }

    /// Whether mounts know it, too.
    fn is_of_mounts(self) -> bool {
        matches!(self, Self::Opened | Self::Read | Self::Written | Self::Closed)
    }
}

/// A file was touched; the kernel puts several times of one process into one where it can.
/// Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Touch {
    /// Process that did it.
    pub process: u32,
    /// Its name; empty where it has ended already.
    pub name: String,
    /// What was done.
    pub kinds: Vec<TouchKind>,
    /// Path of the file.
    #[serde(serialize_with = "serialize_path")]
    pub path: PathBuf,
}

impl Serialize for TouchKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// A path of any bytes is text in JSON.
fn serialize_path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

/// File systems that are watched.
#[derive(Debug)]
pub struct Watched {
    /// By handles.
    handles: Option<Group>,
    /// By mounts.
    mounts: Group,
    /// A folder of each file system, by the file system's number.
    roots: BTreeMap<u64, OwnedFd>,
    /// Paths of folders by their handles.
    folders: BTreeMap<Vec<u8>, PathBuf>,
    /// Names of processes that touched something before.
    names: BTreeMap<u32, String>,
    overflows: u64,
    own: u32,
}

#[derive(Debug)]
struct Group(OwnedFd);

/// `FAN_CLOEXEC`, `FAN_NONBLOCK`; `FAN_REPORT_DIR_FID`, `FAN_REPORT_NAME`.
const INIT: libc::c_uint = 0x1 | 0x2;
const WITH_NAMES: libc::c_uint = 0x400 | 0x800;
/// `FAN_MARK_ADD` with `FAN_MARK_FILESYSTEM`, or with `FAN_MARK_MOUNT`.
const MARK_FILESYSTEM: libc::c_uint = 0x1 | 0x100;
const MARK_MOUNT: libc::c_uint = 0x1 | 0x10;
/// `FAN_ONDIR` and `FAN_Q_OVERFLOW`.
const ON_FOLDER: u64 = 0x4000_0000;
const OVERFLOW: u64 = 0x4000;
/// `FAN_EVENT_INFO_TYPE_DFID_NAME` and `_DFID`.
const INFO_FOLDER_AND_NAME: u8 = 2;
const INFO_FOLDER: u8 = 3;
/// struct `fanotify_event_metadata`.
const METADATA: usize = 24;
/// Type, padding and length of an information, and the number of its file system.
const INFO: usize = 4 + 8;
/// Length and type of a handle.
const HANDLE: usize = 8;
const READ_BYTES: usize = 64 << 10;
const READS_MAX: usize = 64;
/// Paths of folders that are kept.
const FOLDERS_MAX: usize = 16_384;
/// Names of processes that are kept; numbers of processes come round after 32 768 at least.
const NAMES_MAX: usize = 4096;

impl Watched {
    /// Watches the file systems that these paths are on.
    ///
    /// # Errors
    ///
    /// This process may watch nothing, which takes `CAP_SYS_ADMIN`; or none of these file systems
    /// can be watched.
    pub fn open(places: &[PathBuf]) -> Result<Self, Error> {
        let cannot = |error| Error::system("watch files; run as root (CAP_SYS_ADMIN)", error);
        let mut watched = Self {
            handles: Group::new(INIT | WITH_NAMES).ok(),
            mounts: Group::new(INIT).map_err(cannot)?,
            roots: BTreeMap::new(),
            folders: BTreeMap::new(),
            names: BTreeMap::new(),
            overflows: 0,
            own: std::process::id(),
        };
        let mut refused = None;
        let mut count = 0;
        for place in places {
            match watched.mark(place) {
                Ok(()) => count += 1,
                Err(error) => refused = Some(Error::path("watch", place, error)),
            }
        }
        refused.filter(|_| count == 0).map_or(Ok(watched), Err)
    }

    fn mark(&mut self, place: &Path) -> io::Result<()> {
        let all: u64 = TouchKind::ALL.iter().map(|kind| kind.mask()).sum();
        if let Some(group) = &self.handles
            && group.mark(MARK_FILESYSTEM, all | ON_FOLDER, place).is_ok()
        {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let root = openat(CWD, place, flags, Mode::empty())?;
            self.roots.insert(number_of_filesystem(&root)?, root);
            return Ok(());
        }
        let of_mounts = TouchKind::ALL.iter().filter(|kind| kind.is_of_mounts());
        let mask = of_mounts.map(|kind| kind.mask()).sum();
        self.mounts.mark(MARK_MOUNT, mask, place)
    }

    /// Waits until something has happened, so long at most. Who reads at once still finds the
    /// processes that did it: most that touch a file end soon. False where the kernel does not let
    /// us wait.
    pub fn wait(&self, duration: Duration) -> bool {
        let groups = self.handles.iter().chain(core::iter::once(&self.mounts));
        let mut all: Vec<PollFd<'_>> =
            groups.map(|group| PollFd::new(&group.0, PollFlags::IN)).collect();
        let timeout = Timespec::try_from(duration).ok();
        // A signal ends the wait early, which does no harm.
        !poll(&mut all, timeout.as_ref()).is_err_and(|error| error != Errno::INTR)
    }

    /// What has happened since the last time; what this process did itself is left out.
    pub fn read(&mut self, into: &mut Vec<Touch>) {
        let mut told = Told::default();
        if let Some(group) = &self.handles {
            group.read(&mut told);
        }
        self.mounts.read(&mut told);
        // Names first: looking for paths takes longer than some processes live.
        let numbers = events(&told.bytes).filter_map(|event| u32::try_from(event.process).ok());
        let numbers: BTreeSet<u32> = numbers.filter(|&number| number != self.own).collect();
        if self.names.len() >= NAMES_MAX {
            self.names.clear();
        }
        for number in numbers {
            // Of one that has ended meanwhile the name at an earlier touch: of its libraries, say.
            let found = process(number).map(|found| found.name).filter(|name| !name.is_empty());
            if let Some(name) = found {
                self.names.insert(number, name);
            }
        }
        for (event, file) in events(&told.bytes).zip(told.files) {
            into.extend(self.touch(&event, file));
        }
    }

    /// How often the kernel's queue was full: what came then is not known.
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Of a mount, the file comes open.
    fn touch(&mut self, event: &Event<'_>, open: Option<OwnedFd>) -> Option<Touch> {
        if event.mask & OVERFLOW != 0 {
            self.overflows += 1;
            return None;
        }
        let number = u32::try_from(event.process).ok().filter(|&number| number != self.own)?;
        // Folders move with all their paths.
        if event.mask & ON_FOLDER != 0 {
            if event.mask & TouchKind::Moved.mask() != 0 {
                self.folders.clear();
            }
            return None;
        }
        let path = match open {
            Some(file) => fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?,
            None => self.path(event.information)?,
        };
        let name = self.names.get(&number).cloned().unwrap_or_default();
        let kinds = TouchKind::ALL.into_iter().filter(|kind| event.mask & kind.mask() != 0);
        Some(Touch { process: number, name, kinds: kinds.collect(), path })
    }

    /// The folder's handle and the name in it.
    fn path(&mut self, information: &[u8]) -> Option<PathBuf> {
        let Named { filesystem, handle, name } = Named::in_information(information)?;
        let key = [information.get(4..INFO)?, handle].concat();
        let folder = if let Some(folder) = self.folders.get(&key) {
            folder.clone()
        } else {
            let folder = open_by_handle(self.roots.get(&filesystem)?, handle)?;
            if self.folders.len() >= FOLDERS_MAX {
                self.folders.clear();
            }
            self.folders.insert(key, folder.clone());
            folder
        };
        let name = std::ffi::OsStr::from_bytes(name);
        Some(if name.is_empty() || name == "." { folder } else { folder.join(name) })
    }
}

impl Group {
    fn new(flags: libc::c_uint) -> io::Result<Self> {
        let event_flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_LARGEFILE;
        let event_flags = libc::c_uint::try_from(event_flags).map_err(io::Error::other)?;
        // SAFETY: takes two numbers.
        let group = unsafe { libc::fanotify_init(flags, event_flags) };
        if group < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given it to no other code.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(group) }))
    }

    /// Appends what waits; at most so much that a storm does not keep us here.
    fn read(&self, into: &mut Told) {
        let mut bytes = vec![0; READ_BYTES];
        for _ in 0..READS_MAX {
            let len = rustix::io::read(&self.0, &mut *bytes).unwrap_or(0);
            let Some(new) = bytes.get(..len).filter(|new| !new.is_empty()) else { break };
            for event in events(new) {
                into.bytes.extend_from_slice(event.whole);
                into.files.push((event.fd >= 0).then(|| {
                    // SAFETY: the bytes have just come from a fanotify group, which a `Group` is:
                    // the kernel has opened this file for us alone, and names it in one event.
                    unsafe { OwnedFd::from_raw_fd(event.fd) }
                }));
            }
        }
    }

    fn mark(&self, flags: libc::c_uint, mask: u64, place: &Path) -> io::Result<()> {
        let path = CString::new(place.as_os_str().as_bytes()).map_err(io::Error::other)?;
        let group = self.0.as_raw_fd();
        // SAFETY: the kernel reads a path up to its zero, which lives through the call.
        let done =
            unsafe { libc::fanotify_mark(group, flags, mask, libc::AT_FDCWD, path.as_ptr()) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// The number that events have of a file system: `f_fsid` of statfs(2).
fn number_of_filesystem(root: &OwnedFd) -> io::Result<u64> {
    let mut found = core::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: statfs writes one structure to the address given.
    let done = unsafe { libc::fstatfs(root.as_raw_fd(), found.as_mut_ptr()) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was all zeros, and fstatfs has filled it.
    let number = unsafe { found.assume_init() }.f_fsid;
    // SAFETY: two numbers of 32 bits, without padding; they have no names in Rust.
    let bytes: [u8; 8] = unsafe { core::mem::transmute(number) };
    Ok(u64_of(bytes))
}

/// The path of a folder by its handle (`open_by_handle_at(2)`).
fn open_by_handle(root: &OwnedFd, handle: &[u8]) -> Option<PathBuf> {
    // The first word is the length of what stands behind the handle's head.
    let len = usize::try_from(u32_of(*handle.first_chunk()?)).ok()?;
    if handle.len() != HANDLE.checked_add(len)? {
        return None;
    }
    // The kernel wants it aligned to four bytes.
    let mut words = vec![0_u64; handle.len().div_ceil(8)];
    for (word, bytes) in words.iter_mut().zip(handle.chunks(8)) {
        let mut whole = [0; 8];
        whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
        *word = u64_of(whole);
    }
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: the kernel reads a handle as long as its first word says, which was compared above.
    let folder = unsafe {
        libc::syscall(libc::SYS_open_by_handle_at, root.as_raw_fd(), words.as_ptr(), flags)
    };
    let folder = i32::try_from(folder).ok().filter(|&folder| folder >= 0)?;
    // SAFETY: the kernel has just given it to no other code.
    let folder = unsafe { OwnedFd::from_raw_fd(folder) };
    fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd())).ok()
}

/// What the kernel has reported, and the files that it opened for it.
#[derive(Debug, Default)]
struct Told {
    /// Whole events.
    bytes: Vec<u8>,
    /// One for each event.
    files: Vec<Option<OwnedFd>>,
}

/// A name in a folder, as an event has it.
struct Named<'a> {
    filesystem: u64,
    handle: &'a [u8],
    name: &'a [u8],
}

impl<'a> Named<'a> {
    fn in_information(information: &'a [u8]) -> Option<Self> {
        let kind = *information.first()?;
        if ![INFO_FOLDER_AND_NAME, INFO_FOLDER].contains(&kind) {
            return None;
        }
        let filesystem = u64_of(*information.get(4..)?.first_chunk()?);
        let handle_len = usize::try_from(u32_of(*information.get(INFO..)?.first_chunk()?)).ok()?;
        let behind = handle_len.checked_add(INFO + HANDLE)?;
        let handle = information.get(INFO..behind)?;
        let name = information.get(behind..)?;
        Some(Self { filesystem, handle, name: name.split(|&byte| byte == 0).next()? })
    }
}

/// For tests that give any bytes: the events of a read, and how many of them have a name.
pub(crate) fn read_any_events(bytes: &[u8]) -> (usize, usize) {
    let named = |event: &Event<'_>| {
        let named = Named::in_information(event.information);
        named.is_some_and(|named| named.handle.len() >= HANDLE && named.filesystem != 0)
    };
    (events(bytes).count(), events(bytes).filter(named).count())
}

struct Event<'a> {
    /// All of it.
    whole: &'a [u8],
    mask: u64,
    fd: i32,
    process: i32,
    information: &'a [u8],
}

/// The events of a read; what is no whole event ends them.
fn events(mut rest: &[u8]) -> impl Iterator<Item = Event<'_>> {
    core::iter::from_fn(move || {
        let len = usize::try_from(u32_of(*rest.first_chunk()?)).ok()?;
        let (event, behind) = rest.split_at_checked(len).filter(|_| len >= METADATA)?;
        rest = behind;
        Some(Event {
            whole: event,
            mask: u64_of(*event.get(8..)?.first_chunk()?),
            fd: i32_of(*event.get(16..)?.first_chunk()?),
            process: i32_of(*event.get(20..)?.first_chunk()?),
            information: event.get(METADATA..)?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_process_does_to_a_file_is_seen_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(folder.path()).unwrap();
        let mut watched = match Watched::open(core::slice::from_ref(&place)) {
            Ok(watched) => watched,
            Err(error) => return println!("not run: watching files takes root ({error})"),
        };
        let path = place.join("file");
        let script = format!("echo one > {0}; cat {0}; rm {0}", path.display());
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success());
        fs::write(place.join("own"), "x").unwrap();
        let mut touches = Vec::new();
        watched.read(&mut touches);
        let kinds = |path: &Path| -> Vec<TouchKind> {
            let of = touches.iter().filter(|touch| touch.path == path);
            let mut kinds: Vec<_> = of.flat_map(|touch| touch.kinds.clone()).collect();
            kinds.sort_unstable();
            kinds.dedup();
            kinds
        };
        let found = kinds(&path);
        for kind in [TouchKind::Opened, TouchKind::Read, TouchKind::Written, TouchKind::Closed] {
            assert!(found.contains(&kind), "{kind:?} in {touches:?}");
        }
        assert!(kinds(&place.join("own")).is_empty(), "what we do ourselves is left out");
        assert_eq!(watched.overflows(), 0);
    }

    #[test]
    fn an_event_that_is_cut_ends_them() {
        let mut one = vec![0; 24];
        one[0] = 24;
        one[8] = 0x20;
        let two = [one.clone(), one].concat();
        assert_eq!(events(&two).count(), 2);
        assert_eq!(events(&two[..40]).count(), 1);
        assert_eq!(events(&[0; 24]).count(), 0, "an event has at least its metadata");
    }
}
