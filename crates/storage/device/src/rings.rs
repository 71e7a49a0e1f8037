//! Rings of `io_uring` that can do what they are for and nothing else.
//!
//! What a process may do through a ring no filter of system calls sees, so the ring itself is
//! restricted before its first operation: `IORING_REGISTER_RESTRICTIONS`, from Linux 5.10. A
//! recorder that is confined cannot make rings any more, or the restriction would be worth nothing;
//! for members that come back it makes some ahead.

use std::io;
use std::sync::Mutex;

use io_uring::register::Restriction;
use io_uring::{Builder, IoUring, opcode};

/// More writes than all members of a volume have in flight: 24 times 32.
const WORKERS_MAX: u32 = 1024;

/// Submissions are handed over at once, so this bounds nothing.
pub(crate) const RING_ENTRIES: u32 = 64;

/// Space for the completion of everything in flight: 2 GiB of 2 MiB writes. The ring is locked
/// memory too, and 16 KiB fit into the smallest limit in use, 64 KiB.
pub(crate) const COMPLETION_ENTRIES: u32 = 1024;

/// Rings for writing that are free.
static RESERVE: Mutex<Reserve> = Mutex::new(Reserve { rings: Vec::new(), most: 0 });

struct Reserve {
    rings: Vec<IoUring>,
    most: usize,
}

/// Makes rings ahead, for devices that are opened when this process can make none any more. Those
/// of devices that are closed go back there.
pub fn reserve_rings(count: usize) {
    let mut reserve = stage::lock(&RESERVE);
    reserve.most = count;
    while reserve.rings.len() < count {
        // Without a ring threads write.
        let Ok(ring) = make_ring() else { return };
        reserve.rings.push(ring);
    }
}

/// A ring that was made ahead.
pub(crate) fn take() -> Option<IoUring> {
    stage::lock(&RESERVE).rings.pop()
}

/// Keeps a ring in which nothing is under way, if there is use for it.
pub(crate) fn put_back(ring: IoUring) {
    let mut reserve = stage::lock(&RESERVE);
    if reserve.rings.len() < reserve.most {
        reserve.rings.push(ring);
    }
}

/// A ring that writes, flushes and reads; fails where `io_uring` is missing, forbidden, or older
/// than Linux 5.11.
pub(crate) fn make_ring() -> io::Result<IoUring> {
    // COOP_TASKRUN spares interrupts of the submitting thread, from Linux 5.19.
    let mut plain = IoUring::builder();
    plain.setup_cqsize(COMPLETION_ENTRIES);
    let mut newer = plain.clone();
    newer.setup_coop_taskrun().setup_taskrun_flag();
    let operations = [opcode::Write::CODE, opcode::Fsync::CODE, opcode::Read::CODE];
    let ring = restricted(&mut newer, RING_ENTRIES, &operations).or_else(|error| {
        match error.raw_os_error() {
            Some(libc::EINVAL) => restricted(&mut plain, RING_ENTRIES, &operations),
            _ => Err(error),
        }
    })?;
    if ring.params().is_feature_ext_arg() {
        Ok(ring)
    } else {
        Err(io::Error::from_raw_os_error(libc::ENOSYS))
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
