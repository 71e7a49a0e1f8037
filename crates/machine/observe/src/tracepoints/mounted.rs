//! A tracefs of our own where none is mounted: one that has no place in the tree of files, which
//! nobody else sees, and which is gone when this process ends (`fsopen(2)`, `fsmount(2)`).

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::OnceLock;

/// `FSOPEN_CLOEXEC`, `FSCONFIG_CMD_CREATE`, `FSMOUNT_CLOEXEC` of `include/uapi/linux/mount.h`.
const OPEN_CLOSE_ON_EXEC: libc::c_uint = 1;
const CREATE: libc::c_uint = 6;
const MOUNT_CLOSE_ON_EXEC: libc::c_uint = 1;

/// The way to it; `None` where it may not be had.
pub(super) fn place() -> Option<PathBuf> {
    static MOUNTED: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let mounted = MOUNTED.get_or_init(|| mount().ok()).as_ref()?;
    let place = PathBuf::from(format!("/proc/self/fd/{}", mounted.as_raw_fd()));
    fs::read_dir(place.join("events")).is_ok().then_some(place)
}

fn mount() -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads a text up to its zero, and takes a number.
    let context =
        unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), OPEN_CLOSE_ON_EXEC) };
    let context = owned(context)?;
    let null = core::ptr::null::<libc::c_void>();
    // SAFETY: takes a descriptor that is ours and numbers; this command reads nothing else.
    let done =
        unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, null, null, 0) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: takes a descriptor that is ours and numbers.
    let mounted =
        unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), MOUNT_CLOSE_ON_EXEC, 0) };
    owned(mounted)
}

/// The descriptor that a call has given.
fn owned(given: libc::c_long) -> io::Result<OwnedFd> {
    match RawFd::try_from(given) {
        // SAFETY: the kernel has just given it to no other code.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}
