//! Events of `perf_event_open(2)`: one for each tracepoint and processor, those of a processor with
//! one ring.

use core::mem::size_of;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use super::NotTraced;
use super::event::{Decoder, TraceEvent};
use super::ring::Ring;
use crate::netlink::{from_bytes, u32_of};

/// `struct perf_event_attr` of `linux/perf_event.h`, as far as `PERF_ATTR_SIZE_VER3`.
#[repr(C)]
#[derive(Clone, Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config_1: u64,
    config_2: u64,
    branch_sample_type: u64,
    sample_registers: u64,
    sample_stack: u32,
    clock: i32,
}

const _: () = assert!(size_of::<Attributes>() == 96);

const PERF_TYPE_TRACEPOINT: u32 = 2;
/// Which parts a sample has: `PERF_SAMPLE_TID`, `_TIME` and `_RAW`.
const SAMPLE: u64 = 1 << 1 | 1 << 2 | 1 << 10;
/// `disabled` and `use_clockid`, bits of the flags.
const FLAGS: u64 = 1 | 1 << 25;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// `_IO('$', 0)`, `_IO('$', 1)`, `_IO('$', 5)` and `_IOW('$', 6, char *)`.
const ENABLE: libc::Ioctl = 0x2400;
const DISABLE: libc::Ioctl = 0x2401;
const SET_OUTPUT: libc::Ioctl = 0x2405;
const SET_FILTER: libc::Ioctl = 0x4008_2406;
/// `enum perf_event_type`
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
/// `struct perf_event_header`: type, flags, length.
const HEADER: usize = 8;
/// Of a sample: process, thread, time, and the length of what follows.
const SAMPLE_HEADER: usize = HEADER + 8 + 8 + 4;

/// Tracepoints of all processors.
#[derive(Debug)]
pub(super) struct Set {
    decoders: Vec<Decoder>,
    rings: Vec<Ring>,
    events: Vec<OwnedFd>,
    scratch: Vec<u8>,
    /// Records that came.
    seen: u64,
    /// Those that the kernel says it had no room for.
    lost: u64,
}

impl Set {
    /// Listens to all these on every processor, through a ring of `size` bytes each.
    pub(super) fn open(
        decoders: Vec<Decoder>,
        filter: &str,
        size: usize,
    ) -> Result<Self, NotTraced> {
        let (mut rings, mut events) = (Vec::new(), Vec::<OwnedFd>::new());
        for processor in online() {
            let mut leader: Option<usize> = None;
            for decoder in &decoders {
                let event = open(decoder.id, processor).map_err(refused)?;
                if !filter.is_empty() {
                    set_filter(&event, filter).map_err(refused)?;
                }
                match leader.and_then(|at| events.get(at)) {
                    None => {
                        rings.push(Ring::map(event.as_fd(), size).map_err(refused)?);
                        leader = Some(events.len());
                    }
                    Some(first) => {
                        // SAFETY: the argument is the descriptor of an event that is open.
                        let done = unsafe {
                            libc::ioctl(event.as_raw_fd(), SET_OUTPUT, first.as_raw_fd())
                        };
                        checked(done).map_err(refused)?;
                    }
                }
                events.push(event);
            }
        }
        for event in &events {
            switch(event, ENABLE).map_err(refused)?;
        }
        Ok(Self { decoders, rings, events, scratch: Vec::new(), seen: 0, lost: 0 })
    }

    /// Ends it: nothing comes any more. What the rings still have can be read.
    pub(super) fn stop(&self) {
        // One that cannot be ended has ended.
        self.events.iter().for_each(|event| switch(event, DISABLE).unwrap_or_default());
    }

    /// What has happened and did not come, once it is stopped and all is read. The kernel's records
    /// of losses are not all: samples that it does not take for reasons of its own are counted by
    /// the event, and in no such record.
    pub(super) fn count_missing(&mut self) {
        let count = |event: &OwnedFd| {
            let mut bytes = [0; 8];
            rustix::io::read(event, &mut bytes).map_or(0, |_| from_bytes(bytes))
        };
        let happened: u64 = self.events.iter().map(count).sum();
        self.lost = self.lost.max(happened.saturating_sub(self.seen));
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Appends what has come since, ring after ring.
    pub(super) fn read(&mut self, into: &mut Vec<TraceEvent>) {
        for ring in &self.rings {
            ring.take(&mut self.scratch);
            let mut rest = &*self.scratch;
            while let Some((kind, record)) = next(&mut rest) {
                match kind {
                    RECORD_SAMPLE => {
                        self.seen += 1;
                        into.extend(sample(&self.decoders, record));
                    }
                    RECORD_LOST => self.lost += lost(record).unwrap_or(0),
                    _ => {}
                }
            }
        }
    }
}

/// Splits a record off; one that is not whole ends them.
fn next<'a>(rest: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    let kind = u32_of(*rest.first_chunk()?);
    // Flags in the low half, the length in the high one.
    let len = usize::try_from(u32_of(*rest.get(4..)?.first_chunk()?) >> 16).ok()?;
    let (record, behind) = rest.split_at_checked(len).filter(|_| len >= HEADER)?;
    *rest = behind;
    Some((kind, record))
}

fn sample(decoders: &[Decoder], record: &[u8]) -> Option<TraceEvent> {
    let word = |at: usize| Some(u32_of(*record.get(at..)?.first_chunk()?));
    let time_ns = from_bytes(*record.get(HEADER + 8..)?.first_chunk()?);
    let raw = record.get(SAMPLE_HEADER..)?;
    // Every record of a tracepoint begins with the number of the tracepoint.
    let id = u16::try_from(u32_of(*raw.first_chunk()?) & 0xffff).ok()?;
    let decoder = decoders.iter().find(|decoder| decoder.id == id)?;
    let (process, thread) = (word(HEADER)?, word(HEADER + 4)?);
    Some(TraceEvent { time_ns, process, thread, happened: decoder.decode(raw)? })
}

/// The count behind the number of the event.
fn lost(record: &[u8]) -> Option<u64> {
    Some(from_bytes(*record.get(HEADER + 8..)?.first_chunk()?))
}

fn open(tracepoint: u16, processor: i32) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: PERF_TYPE_TRACEPOINT,
        size: u32::try_from(size_of::<Attributes>()).expect("96"),
        config: tracepoint.into(),
        sample_period: 1,
        sample_type: SAMPLE,
        flags: FLAGS,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads as many bytes as the structure says that it has.
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            -1_i32,
            processor,
            -1_i32,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    let event = i32::try_from(event).ok().filter(|&event| event >= 0);
    let event = event.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just given it to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(event) })
}

fn switch(event: &OwnedFd, to: libc::Ioctl) -> io::Result<()> {
    // SAFETY: switching an event on or off touches no memory of ours.
    checked(unsafe { libc::ioctl(event.as_raw_fd(), to, 0) })
}

fn set_filter(event: &OwnedFd, filter: &str) -> io::Result<()> {
    let text = std::ffi::CString::new(filter).map_err(io::Error::other)?;
    // SAFETY: the kernel reads a text up to its zero, which lives through the call.
    checked(unsafe { libc::ioctl(event.as_raw_fd(), SET_FILTER, text.as_ptr()) })
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn refused(error: io::Error) -> NotTraced {
    match error.kind() {
        io::ErrorKind::PermissionDenied => NotTraced::Forbidden,
        _ => NotTraced::Failed(error),
    }
}

/// Processors that are there: `0-3,6`.
pub(super) fn online() -> Vec<i32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    listed(&text)
}

fn listed(text: &str) -> Vec<i32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_have_ranges() {
        assert_eq!(listed("0-3,6\n"), [0, 1, 2, 3, 6]);
        assert_eq!(listed("0"), [0]);
        assert!(listed("").is_empty());
    }

    #[test]
    fn a_record_that_is_cut_ends_them() {
        let mut whole = [2_u8, 0, 0, 0, 0, 0, 24, 0].to_vec();
        whole.extend([0; 8]);
        whole.extend([7, 0, 0, 0, 0, 0, 0, 0]);
        let mut rest = &*whole;
        let (kind, record) = next(&mut rest).unwrap();
        assert_eq!((kind, lost(record)), (RECORD_LOST, Some(7)));
        assert!(next(&mut rest).is_none());
        let mut cut = whole.get(..20).unwrap();
        assert!(next(&mut cut).is_none());
        let mut endless = [9_u8, 0, 0, 0, 0, 0, 0, 0].as_slice();
        assert!(next(&mut endless).is_none(), "a record has at least its header");
    }
}
