//! Locks on bytes of a file, which loop devices over it do not hide: `F_OFD_SETLK`, fcntl(2).
//!
//! They belong to the open file, so that writes in flight of a killed process hold them, too.

#![expect(unsafe_code, reason = "F_OFD_SETLK has no safe wrapper")]

use core::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

/// Takes a lock on `bytes` until the file is closed: alone, or shared with other readers.
///
/// # Errors
/// `EAGAIN` while another open file has it.
pub(crate) fn lock_range(
    file: impl AsFd,
    bytes: &Range<u64>,
    is_exclusive: bool,
) -> Result<(), Errno> {
    let kind = if is_exclusive { libc::F_WRLCK } else { libc::F_RDLCK };
    let begin = i64::try_from(bytes.start).map_err(|_| Errno::INVAL)?;
    // A length of 0 reaches to the end, wherever that will be.
    let len = i64::try_from(bytes.end).map_or(0, |end| end - begin);
    let lock = libc::flock {
        l_type: libc::c_short::try_from(kind).expect("a small constant"),
        l_whence: libc::c_short::try_from(libc::SEEK_SET).expect("a small constant"),
        l_start: begin,
        l_len: len,
        // Must be 0 for locks of this kind.
        l_pid: 0,
    };
    let file = file.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the kernel only reads the
    // structure, which lives beyond the call.
    let answer = unsafe { libc::fcntl(file, libc::F_OFD_SETLK, &raw const lock) };
    if answer == 0 { Ok(()) } else { Err(last_errno()) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_exclude_each_other_where_they_meet() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let [first, second, third] = [(); 3].map(|()| file.reopen().unwrap());
        lock_range(&first, &(0..4096), true).unwrap();
        lock_range(&second, &(4096..8192), true).unwrap();
        assert_eq!(lock_range(&third, &(4095..4096), false), Err(Errno::AGAIN));
        assert_eq!(lock_range(&third, &(0..u64::MAX), true), Err(Errno::AGAIN));
        drop((first, second));
        lock_range(&third, &(0..u64::MAX), true).unwrap();
    }
}
