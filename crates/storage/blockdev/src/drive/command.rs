//! A command to a drive.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

/// An ioctl that fills memory which the caller keeps.
///
/// # Safety
/// `argument` is what `request` takes, and every pointer in it is to memory of the length said
/// beside it that outlives the call.
pub(super) unsafe fn ioctl<T>(
    fd: &OwnedFd,
    request: libc::c_ulong,
    argument: &mut T,
) -> Result<i32, Errno> {
    let argument: *mut T = argument;
    // The type of the request differs between C libraries.
    #[expect(clippy::as_conversions, reason = "c_ulong or c_int, whatever libc says")]
    let request = request as _;
    // SAFETY: the caller's promise.
    let answer = unsafe { libc::ioctl(fd.as_raw_fd(), request, argument) };
    if answer < 0 {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
    } else {
        Ok(answer)
    }
}
