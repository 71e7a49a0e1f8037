//! Tracepoints of all processors: one event for each tracepoint and processor, of all threads or of
//! some and what they start, those of a processor with one ring.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::vec::Drain;

use host::native::{u32_of, u64_of};

use super::not_traced::NotTraced;
use crate::perf::{
    self, Attributes, HEADER, PERF_RECORD_LOST, PERF_RECORD_SAMPLE, Ring, checked, lost, next,
};

const PERF_TYPE_TRACEPOINT: u32 = 2;
/// Which parts a sample has: `PERF_SAMPLE_TID`, `_TIME` and `_RAW`.
pub(super) const SAMPLE: u64 = 1 << 1 | 1 << 2 | 1 << 10;
/// `disabled` and `use_clockid`, bits of the flags.
pub(super) const FLAGS: u64 = 1 | 1 << 25;
/// `inherit`
const INHERIT: u64 = 1 << 1;
/// `_IOW('$', 6, char *)`.
const SET_FILTER: libc::Ioctl = 0x4008_2406;
/// Of a sample: process, thread, time, and the length of what follows.
const SAMPLE_HEADER: usize = HEADER + 8 + 8 + 4;

/// A record of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traced<H> {
    /// Time by `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The process that ran.
    pub process: u32,
    /// Thread id.
    pub thread: u32,
    /// What the tracepoint reports.
    pub happened: H,
}

/// Takes those of `waiting` that happened up to a time, in the order of time.
pub(super) fn up_to<H>(waiting: &mut Vec<Traced<H>>, until_ns: u64) -> Drain<'_, Traced<H>> {
    // Each ring is in order already, so that this is a merge.
    waiting.sort_by_key(|event| event.time_ns);
    let ready = waiting.partition_point(|event| event.time_ns <= until_ns);
    waiting.drain(..ready)
}

/// Reads the records of one kind.
pub(super) trait Decode {
    /// What such a record says.
    type Happened;
    /// The number that stands first in each of them.
    fn id(&self) -> u16;
    /// Which of them are wanted, in the kernel's words, where that differs from what the others of
    /// its set are filtered by.
    fn filter(&self) -> Option<&str> {
        None
    }
    /// Of a record behind its header, of a processor by its place among those that are online;
    /// `None` where it is not whole, or says nothing here.
    fn decode(&self, record: &[u8], processor: usize) -> Option<Self::Happened>;
}

/// Whose records are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose<'a> {
    /// Those of all threads.
    All,
    /// Those of these threads, and of the threads and processes that they start from now on.
    Of(&'a [i32]),
}

/// Tracepoints of all processors.
#[derive(Debug)]
pub(super) struct Set<D> {
    decoders: Vec<D>,
    rings: Vec<Ring>,
    events: Vec<OwnedFd>,
    scratch: Vec<u8>,
    /// Records that came.
    seen: u64,
    /// Those that the kernel says it had no space for.
    lost: u64,
}

impl<D: Decode> Set<D> {
    /// Listens to all these on every processor, through a ring of `size` bytes each.
    pub(super) fn open(decoders: Vec<D>, filter: &str, size: usize) -> Result<Self, NotTraced> {
        Self::open_of(Whose::All, decoders, filter, size)
    }

    /// The same of some threads. One that has ended meanwhile has no records.
    pub(super) fn open_of(
        whose: Whose<'_>,
        decoders: Vec<D>,
        filter: &str,
        size: usize,
    ) -> Result<Self, NotTraced> {
        let (threads, flags) = match whose {
            Whose::All => (&[perf::ALL_PROCESSES][..], FLAGS),
            Whose::Of(threads) => (threads, FLAGS | INHERIT),
        };
        let (mut rings, mut events) = (Vec::new(), Vec::<OwnedFd>::new());
        for processor in perf::online() {
            let mut leader: Option<usize> = None;
            for (thread, decoder) in
                threads.iter().flat_map(|thread| decoders.iter().map(move |it| (*thread, it)))
            {
                let event = match open(decoder.id(), (thread, processor), flags) {
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                    opened => opened.map_err(refused)?,
                };
                let filter = decoder.filter().unwrap_or(filter);
                if !filter.is_empty() {
                    set_filter(&event, filter).map_err(refused)?;
                }
                match leader.and_then(|at| events.get(at)) {
                    None => {
                        rings.push(Ring::map(event.as_fd(), size).map_err(refused)?);
                        leader = Some(events.len());
                    }
                    Some(first) => perf::share_ring(&event, first).map_err(refused)?,
                }
                events.push(event);
            }
        }
        Self::started(decoders, rings, events)
    }

    /// Switches events on that have their rings already.
    pub(super) fn started(
        decoders: Vec<D>,
        rings: Vec<Ring>,
        events: Vec<OwnedFd>,
    ) -> Result<Self, NotTraced> {
        for event in &events {
            perf::enable(event).map_err(refused)?;
        }
        Ok(Self { decoders, rings, events, scratch: Vec::new(), seen: 0, lost: 0 })
    }

    /// Ends it: nothing comes any more. What the rings still have can be read.
    pub(super) fn stop(&self) {
        // One that cannot be ended has ended.
        self.events.iter().for_each(|event| perf::disable(event).unwrap_or_default());
    }

    /// What has happened and did not come, once it is stopped and all is read. The kernel's records
    /// of losses are not all: samples that it does not take for reasons of its own are counted by
    /// the event, and in no such record.
    pub(super) fn count_missing(&mut self) {
        let count = |event: &OwnedFd| {
            let mut bytes = [0; 8];
            rustix::io::read(event, &mut bytes).map_or(0, |_| u64_of(bytes))
        };
        let happened: u64 = self.events.iter().map(count).sum();
        self.lost = self.lost.max(happened.saturating_sub(self.seen));
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Appends what has come since, ring after ring.
    pub(super) fn read(&mut self, into: &mut Vec<Traced<D::Happened>>) {
        for (processor, ring) in self.rings.iter().enumerate() {
            ring.take(&mut self.scratch);
            let (seen, lost) = take(&self.decoders, (processor, &self.scratch), into);
            self.seen += seen;
            self.lost = self.lost.saturating_add(lost);
        }
    }
}

/// Takes the events of records; gives how many samples there were, and how many were lost.
pub(super) fn take<D: Decode>(
    decoders: &[D],
    (processor, mut rest): (usize, &[u8]),
    into: &mut Vec<Traced<D::Happened>>,
) -> (u64, u64) {
    let (mut seen, mut missed) = (0, 0_u64);
    while let Some((kind, record)) = next(&mut rest) {
        match kind {
            PERF_RECORD_SAMPLE => {
                seen += 1;
                into.extend(sample(decoders, (processor, record)));
            }
            PERF_RECORD_LOST => missed = missed.saturating_add(lost(record).unwrap_or(0)),
            _ => {}
        }
    }
    (seen, missed)
}

fn sample<D: Decode>(
    decoders: &[D],
    (processor, record): (usize, &[u8]),
) -> Option<Traced<D::Happened>> {
    let word = |at: usize| Some(u32_of(*record.get(at..)?.first_chunk()?));
    let time_ns = u64_of(*record.get(HEADER + 8..)?.first_chunk()?);
    let raw = record.get(SAMPLE_HEADER..)?;
    // Every record of a tracepoint begins with the number of the tracepoint.
    let id = u16::try_from(u32_of(*raw.first_chunk()?) & 0xffff).ok()?;
    let decoder = decoders.iter().find(|decoder| decoder.id() == id)?;
    let (process, thread) = (word(HEADER)?, word(HEADER + 4)?);
    Some(Traced { time_ns, process, thread, happened: decoder.decode(raw, processor)? })
}

fn open(tracepoint: u16, (thread, processor): (i32, i32), flags: u64) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: PERF_TYPE_TRACEPOINT,
        config: tracepoint.into(),
        sample_period: 1,
        sample_type: SAMPLE,
        flags,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    perf::open(&attributes, thread, processor)
}

fn set_filter(event: &OwnedFd, filter: &str) -> io::Result<()> {
    let text = CString::new(filter).map_err(io::Error::other)?;
    // SAFETY: the kernel reads a text up to its zero, which lives through the call.
    checked(unsafe { libc::ioctl(event.as_raw_fd(), SET_FILTER, text.as_ptr()) })
}

pub(super) fn refused(error: io::Error) -> NotTraced {
    match error.kind() {
        io::ErrorKind::PermissionDenied => NotTraced::Forbidden,
        _ => NotTraced::Failed(error),
    }
}
