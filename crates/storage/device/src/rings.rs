//! Rings of `io_uring` that can do what they are for and nothing else.
//!
//! What a process may do through a ring no filter of system calls sees, so the ring itself is
//! restricted before its first operation: `IORING_REGISTER_RESTRICTIONS`, from Linux 5.10. A
//! recorder that is confined cannot make rings any more, or the restriction would be worth nothing;
//! for members that come back it makes some ahead.

use std::io;
use std::sync::{Mutex, PoisonError};

use io_uring::register::Restriction;
use io_uring::{Builder, IoUring};

/// More writes than all members of a volume have in flight: 24 times 32.
const WORKERS_MAX: u32 = 1024;

/// Rings for writing that are free.
static RESERVE: Mutex<Reserve> = Mutex::new(Reserve { rings: Vec::new(), most: 0 });

struct Reserve {
    rings: Vec<IoUring>,
    most: usize,
}

/// Makes rings ahead, for devices that are opened when this process can make none any more. Those
/// of devices that are closed go back there.
pub fn reserve_rings(count: usize) {
    let mut reserve = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
    reserve.most = count;
    while reserve.rings.len() < count {
        // Without a ring threads write.
        let Ok(ring) = crate::uring::make_ring() else { return };
        reserve.rings.push(ring);
    }
}

/// A ring that was made ahead.
pub(crate) fn take() -> Option<IoUring> {
    RESERVE.lock().unwrap_or_else(PoisonError::into_inner).rings.pop()
}

/// Keeps a ring in which nothing is under way, if there is use for it.
pub(crate) fn put_back(ring: IoUring) {
    let mut reserve = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
    if reserve.rings.len() < reserve.most {
        reserve.rings.push(ring);
    }
}

/// Builds a ring that takes these operations only.
pub(crate) fn restricted(
    builder: &mut Builder,
    entries: u32,
    operations: &[u8],
) -> io::Result<IoUring> {
    let ring = builder.setup_r_disabled().build(entries)?;
    // What cannot be submitted without waiting is done by workers of the submitting thread, for all
    // of its rings. Those that a disk holds up must leave some to the others; from Linux 5.15.
    ring.submitter().register_iowq_max_workers(&mut [WORKERS_MAX, 0]).unwrap_or_default();
    let mut restrictions: Vec<_> =
        operations.iter().map(|&code| Restriction::sqe_op(code)).collect();
    ring.submitter().register_restrictions(&mut restrictions)?;
    ring.submitter().register_enable_rings()?;
    Ok(ring)
}
