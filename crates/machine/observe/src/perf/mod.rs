//! What tracing and sampling share of `perf_event_open(2)`: opening of events, the ring that each
//! processor has, and how records stand in it.

#![expect(unsafe_code, reason = "perf_event_open(2) has no wrapper")]

mod ring;

use core::mem::size_of;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use host::native::{u32_of, u64_of};
use rustix::time::{ClockId, clock_gettime};

pub(crate) use ring::Ring;

/// `struct perf_event_attr` of `linux/perf_event.h`, as far as `PERF_ATTR_SIZE_VER3`.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) kind: u32,
    /// Set by [`open`].
    pub(crate) size: u32,
    pub(crate) config: u64,
    /// Or the frequency, as the flags say.
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup: u32,
    pub(crate) breakpoint: u32,
    pub(crate) config_1: u64,
    pub(crate) config_2: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) sample_registers: u64,
    pub(crate) sample_stack: u32,
    pub(crate) clock: i32,
}

const _: () = assert!(size_of::<Attributes>() == 96);

/// Instead of a process: all of them.
pub(crate) const ALL_PROCESSES: i32 = -1;
/// `enum perf_event_type`
pub(crate) const PERF_RECORD_LOST: u32 = 2;
pub(crate) const PERF_RECORD_SAMPLE: u32 = 9;
/// `struct perf_event_header`: type, flags, length.
pub(crate) const HEADER: usize = 8;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// `_IO('$', 0)`, `_IO('$', 1)` and `_IO('$', 5)`.
const ENABLE: libc::Ioctl = 0x2400;
const DISABLE: libc::Ioctl = 0x2401;
const SET_OUTPUT: libc::Ioctl = 0x2405;
/// A record is in its ring so long after its time: the kernel writes it with preemption off.
const LATE_NS: u64 = 5_000_000;
/// More than a kernel can be built for (`NR_CPUS`).
const PROCESSORS_MAX: usize = 1 << 14;
/// Of all rings of a kind together.
const RINGS_MAX: usize = 64 << 20;

/// An event on one processor, of one thread or of [`ALL_PROCESSES`].
pub(crate) fn open(attributes: &Attributes, thread: i32, processor: i32) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        size: u32::try_from(size_of::<Attributes>()).expect("96"),
        ..attributes.clone()
    };
    // SAFETY: the kernel reads as many bytes as the structure says that it has.
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            thread,
            processor,
            -1_i32,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    let event = i32::try_from(event).ok().filter(|&event| event >= 0);
    let event = event.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just given it to no other code.
    Ok(unsafe { OwnedFd::from_raw_fd(event) })
}

/// Lets an event write into the ring of another one of the same processor.
pub(crate) fn share_ring(event: &OwnedFd, leader: &OwnedFd) -> io::Result<()> {
    // SAFETY: the argument is the descriptor of an event that is open.
    checked(unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, leader.as_raw_fd()) })
}

pub(crate) fn enable(event: &OwnedFd) -> io::Result<()> {
    switch(event, ENABLE)
}

pub(crate) fn disable(event: &OwnedFd) -> io::Result<()> {
    switch(event, DISABLE)
}

fn switch(event: &OwnedFd, to: libc::Ioctl) -> io::Result<()> {
    // SAFETY: switching an event on or off touches no memory of ours.
    checked(unsafe { libc::ioctl(event.as_raw_fd(), to, 0) })
}

pub(crate) fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Splits a record off; one that is not whole ends them.
pub(crate) fn next<'a>(rest: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    let kind = u32_of(*rest.first_chunk()?);
    // Flags in the low half, the length in the high one.
    let len = usize::try_from(u32_of(*rest.get(4..)?.first_chunk()?) >> 16).ok()?;
    let (record, behind) = rest.split_at_checked(len).filter(|_| len >= HEADER)?;
    *rest = behind;
    Some((kind, record))
}

/// Of a record of losses: the count behind the number of the event.
pub(crate) fn lost(record: &[u8]) -> Option<u64> {
    Some(u64_of(*record.get(HEADER + 8..)?.first_chunk()?))
}

/// Records of until then have come (`CLOCK_MONOTONIC`).
pub(crate) fn settled_ns() -> u64 {
    monotonic_ns().saturating_sub(LATE_NS)
}

/// Now, by `CLOCK_MONOTONIC`, by which records have their times.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000)
        + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// As much as wished, as long as all processors together stay within bounds.
pub(crate) fn ring_size(wished: usize) -> usize {
    let processors = online().len().max(1);
    let share = (RINGS_MAX / processors).max(64 << 10);
    let bounded = wished.min(share);
    1 << bounded.ilog2()
}

/// How many processors there are.
pub fn processors() -> usize {
    online().len()
}

/// Processors that are there: `0-3,6`.
pub(crate) fn online() -> Vec<i32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    listed(&text).into_iter().filter_map(|number| i32::try_from(number).ok()).collect()
}

/// The numbers in a list of processors such as `0-3,8`; what is no number is left out.
pub fn listed(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().take(PROCESSORS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_have_ranges() {
        assert_eq!(listed("0-3,6\n"), [0, 1, 2, 3, 6]);
        assert_eq!(listed("0"), [0]);
        assert!(listed("").is_empty());
        assert_eq!(listed("0-2147483647").len(), PROCESSORS_MAX);
    }

    #[test]
    fn a_record_that_is_cut_ends_them() {
        let mut whole = [2_u8, 0, 0, 0, 0, 0, 24, 0].to_vec();
        whole.extend([0; 8]);
        whole.extend([7, 0, 0, 0, 0, 0, 0, 0]);
        let mut rest = &*whole;
        let (kind, record) = next(&mut rest).unwrap();
        assert_eq!((kind, lost(record)), (PERF_RECORD_LOST, Some(7)));
        assert!(next(&mut rest).is_none());
        let mut cut = whole.get(..20).unwrap();
        assert!(next(&mut cut).is_none());
        let mut endless = [9_u8, 0, 0, 0, 0, 0, 0, 0].as_slice();
        assert!(next(&mut endless).is_none(), "a record has at least its header");
    }

    #[test]
    fn rings_are_powers_of_two_within_bounds() {
        assert!(ring_size(2 << 20).is_power_of_two());
        assert!(ring_size(2 << 20) <= 2 << 20);
    }
}
