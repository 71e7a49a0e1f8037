//! What processors do: the kernel notes so many times a second which instruction of which thread
//! each of them is at (`perf_event_open(2)`).
//!
//! A processor's cycles are counted where it can; else the software clock rings, which does not
//! ring while interrupts are off: what happens then is noted at the next place where they are on.
//! Each processor has a ring for samples and one for what processes do, so that a storm of
//! processes takes no space from samples; rings are bounded, and what did not fit is counted. Whose
//! place an instruction is: [`crate::symbols`].

mod record;

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

pub use record::{Mapping, Noted, Record, Sample};

use host::processes::{place, processes, threads};

use crate::perf::{self, Attributes, PERF_RECORD_LOST, Ring, lost, next, ring_size, settled_ns};

/// At 997 samples a second of 48 bytes: five seconds.
const SAMPLE_RING: usize = 256 << 10;
/// At a thousand programs a second that begin and end on one processor, 1.5 KiB each: 0.7 s.
const NOTE_RING: usize = 1 << 20;
/// The same for those who may not lock as much memory (`kernel.perf_event_mlock_kb`).
const SMALL_NOTE_RING: usize = 128 << 10;
/// With one event for each thread of ours on each processor: no more than this many, a quarter of
/// the descriptors that a process may have by default.
const OWN_EVENTS_MAX: usize = 256;
/// `PERF_TYPE_HARDWARE` with `PERF_COUNT_HW_CPU_CYCLES`, `PERF_TYPE_SOFTWARE` with
/// `PERF_COUNT_SW_CPU_CLOCK` and `PERF_COUNT_SW_DUMMY`.
const CYCLES: (u32, u64) = (0, 0);
const CLOCK: (u32, u64) = (1, 0);
const NOTHING: (u32, u64) = (1, 9);
/// Bits of the flags: `disabled`, `sample_id_all` and `use_clockid`.
const FLAGS: u64 = 1 | 1 << 18 | 1 << 25;
/// `freq`
const SAMPLES: u64 = 1 << 10;
/// `mmap`, `comm`, `task`, `mmap2` and `comm_exec`.
const NOTES: u64 = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 23 | 1 << 24;
/// `inherit`, `exclude_kernel` and `exclude_hv`.
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5 | 1 << 6;
/// `PERF_RECORD_THROTTLE` and `PERF_RECORD_LOST_SAMPLES`
const THROTTLE: u32 = 5;
const LOST_SAMPLES: u32 = 13;

/// Why there is no sampling.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotSampled {
    /// Not even what is one's own.
    #[error(
        "CAP_PERFMON, or sysctl kernel.perf_event_paranoid=2 for own processes: root, outside of a \
         container"
    )]
    Forbidden,
    /// Anything else.
    #[error("a kernel that grants it ({0})")]
    Failed(io::Error),
}

/// What makes a processor note what it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ticker {
    /// Its cycles; a sample's weight is in cycles.
    Cycles,
    /// The kernel's clock; a sample's weight is in nanoseconds.
    Clock,
}

/// Whose work is noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// That of all processes.
    All,
    /// That of processes of this user, or of one process, and of those that they start.
    Own {
        /// Threads that are looked at.
        threads: usize,
        /// Threads of them that are not, because descriptors or rights were missing.
        left_out: usize,
    },
}

/// Processors that note what they do.
#[derive(Debug)]
pub struct Sampler {
    sample_rings: Vec<Ring>,
    note_rings: Vec<Ring>,
    events: Vec<OwnedFd>,
    ticker: Ticker,
    scope: Scope,
    has_kernel: bool,
    hz: u32,
    lost_samples: u64,
    lost_notes: u64,
    throttled: u64,
    scratch: Vec<u8>,
    /// Read, and not yet handed out.
    waiting: Vec<Record>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
struct Wish {
    ticker: Ticker,
    has_kernel: bool,
    hz: u32,
}

impl Sampler {
    /// So many samples a second of each processor, as far as this process may see: everything, else
    /// processes of this user, with the kernel or without. No more samples a second than the kernel
    /// gives out (`kernel.perf_event_max_sample_rate`).
    pub fn open(hz: u32) -> Result<Self, NotSampled> {
        Self::open_all(hz).or_else(|_| Self::open_own(hz))
    }

    fn open_all(hz: u32) -> Result<Self, NotSampled> {
        let all = |wish| {
            let (counters, sample_rings) = open_all(wish)?;
            let notes = open_notes(NOTE_RING).or_else(|_| open_notes(SMALL_NOTE_RING));
            let (notes, note_rings) = notes?;
            let mut sampler = Self::started(counters, sample_rings, wish, Scope::All)?;
            notes.iter().try_for_each(perf::enable)?;
            sampler.events.extend(notes);
            sampler.note_rings = note_rings;
            Ok(sampler)
        };
        Self::first_granted(hz, &all)
    }

    /// The same of this user's processes only.
    pub fn open_own(hz: u32) -> Result<Self, NotSampled> {
        Self::open_threads(hz, &own_threads())
    }

    /// Everything, if that may be seen, else at least this process.
    pub fn open_for(hz: u32, process: u32) -> Result<Self, NotSampled> {
        Self::open_all(hz).or_else(|_| Self::open_threads(hz, &threads_of(process)))
    }

    fn open_threads(hz: u32, threads: &[i32]) -> Result<Self, NotSampled> {
        let own = |wish| {
            let (events, rings, scope) = open_threads(wish, threads)?;
            Self::started(events, rings, wish, scope)
        };
        Self::first_granted(hz, &own)
    }

    /// The setting that says most about what is granted.
    fn first_granted(hz: u32, open: &dyn Fn(Wish) -> io::Result<Self>) -> Result<Self, NotSampled> {
        let hz = hz.clamp(1, max_hz());
        let mut refused = None;
        for has_kernel in [true, false] {
            for ticker in [Ticker::Cycles, Ticker::Clock] {
                match open(Wish { ticker, has_kernel, hz }) {
                    Ok(sampler) => return Ok(sampler),
                    Err(error) => refused = Some(error),
                }
            }
        }
        Err(match refused {
            Some(error) if error.kind() != io::ErrorKind::PermissionDenied => {
                NotSampled::Failed(error)
            }
            _ => NotSampled::Forbidden,
        })
    }

    fn started(
        events: Vec<OwnedFd>,
        sample_rings: Vec<Ring>,
        wish: Wish,
        scope: Scope,
    ) -> io::Result<Self> {
        events.iter().try_for_each(perf::enable)?;
        let Wish { ticker, has_kernel, hz } = wish;
        Ok(Self {
            sample_rings,
            note_rings: Vec::new(),
            events,
            ticker,
            scope,
            has_kernel,
            hz,
            lost_samples: 0,
            lost_notes: 0,
            throttled: 0,
            scratch: Vec::new(),
            waiting: Vec::new(),
        })
    }

    /// What was noted until a few milliseconds ago, in the order of time.
    pub fn read(&mut self, into: &mut Vec<Record>) {
        self.take(settled_ns(), into);
    }

    /// Ends it: everything that has been read or waits in the rings.
    pub fn finish(&mut self, into: &mut Vec<Record>) {
        // One that cannot be ended has ended.
        self.events.iter().for_each(|event| perf::disable(event).unwrap_or_default());
        self.take(u64::MAX, into);
    }

    fn take(&mut self, until_ns: u64, into: &mut Vec<Record>) {
        for (rings, lost_records) in
            [(&self.sample_rings, &mut self.lost_samples), (&self.note_rings, &mut self.lost_notes)]
        {
            for ring in rings {
                ring.take(&mut self.scratch);
                let mut rest = &*self.scratch;
                while let Some((kind, record)) = next(&mut rest) {
                    match kind {
                        PERF_RECORD_LOST => *lost_records += lost(record).unwrap_or(0),
                        LOST_SAMPLES => *lost_records += lost_samples(record).unwrap_or(0),
                        THROTTLE => self.throttled += 1,
                        _ => self.waiting.extend(record::decode(kind, record)),
                    }
                }
            }
        }
        // Each ring is in order already, so that this is a merge.
        self.waiting.sort_by_key(|record| record.time_ns);
        let ready = self.waiting.partition_point(|record| record.time_ns <= until_ns);
        into.extend(self.waiting.drain(..ready));
    }

    /// What a sample's weight counts.
    pub fn ticker(&self) -> Ticker {
        self.ticker
    }

    /// Whose work is noted.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Whether work in the kernel is noted.
    pub fn has_kernel(&self) -> bool {
        self.has_kernel
    }

    /// Samples a second of each processor.
    pub fn hz(&self) -> u32 {
        self.hz
    }

    /// How many processors are looked at.
    pub fn processors(&self) -> usize {
        self.sample_rings.len()
    }

    /// Samples that had no space in their ring.
    pub fn lost_samples(&self) -> u64 {
        self.lost_samples
    }

    /// Names, mappings, beginnings and ends of processes that had no space in their ring. Names of
    /// processes that have ended by then are missing, or wrong.
    pub fn lost_notes(&self) -> u64 {
        self.lost_notes
    }

    /// How many times the kernel stopped sampling for the rest of a tick, because it took too long
    /// (`kernel.perf_cpu_time_max_percent`).
    pub fn throttled(&self) -> u64 {
        self.throttled
    }
}

/// The count behind the header.
fn lost_samples(record: &[u8]) -> Option<u64> {
    Some(host::native::u64_of(*record.get(perf::HEADER..)?.first_chunk()?))
}

fn max_hz() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(u32::MAX).max(1)
}

fn attributes((kind, config): (u32, u64), flags: u64) -> Attributes {
    Attributes {
        kind,
        config,
        sample_type: record::PARTS,
        flags: FLAGS | flags,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    }
}

fn sampling(wish: Wish, more_flags: u64) -> Attributes {
    let counted = match wish.ticker {
        Ticker::Cycles => CYCLES,
        Ticker::Clock => CLOCK,
    };
    let without = if wish.has_kernel { 0 } else { EXCLUDE_KERNEL };
    let attributes = attributes(counted, SAMPLES | without | more_flags);
    Attributes { sample_period: wish.hz.into(), ..attributes }
}

/// One event and one ring for each processor.
fn open_each(attributes: &Attributes, size: usize) -> io::Result<(Vec<OwnedFd>, Vec<Ring>)> {
    let open = |processor| {
        let event = perf::open(attributes, perf::ALL_PROCESSES, processor)?;
        let ring = Ring::map(event.as_fd(), ring_size(size))?;
        Ok((event, ring))
    };
    perf::online().into_iter().map(open).collect()
}

fn open_all(wish: Wish) -> io::Result<(Vec<OwnedFd>, Vec<Ring>)> {
    open_each(&sampling(wish, 0), SAMPLE_RING)
}

fn open_notes(size: usize) -> io::Result<(Vec<OwnedFd>, Vec<Ring>)> {
    // Without leave for the kernel it would be refused, although it counts nothing there.
    open_each(&attributes(NOTHING, NOTES | EXCLUDE_KERNEL), size)
}

/// One event for each thread on each processor, because only events of one processor can share a
/// ring; what the threads start is noted by the same event. Samples and notes have one ring.
fn open_threads(wish: Wish, own: &[i32]) -> io::Result<(Vec<OwnedFd>, Vec<Ring>, Scope)> {
    let attributes = sampling(wish, INHERIT | NOTES);
    let processors = perf::online();
    let (mut events, mut rings) = (Vec::<OwnedFd>::new(), Vec::new());
    let (mut threads, mut refused) = (0, None);
    for thread in own {
        if (threads + 1) * processors.len() > OWN_EVENTS_MAX {
            break;
        }
        let open = |&processor| perf::open(&attributes, *thread, processor);
        match processors.iter().map(open).collect::<io::Result<Vec<_>>>() {
            Ok(of_thread) if events.is_empty() => {
                for event in of_thread {
                    rings.push(Ring::map(event.as_fd(), ring_size(SAMPLE_RING))?);
                    events.push(event);
                }
                threads += 1;
            }
            Ok(of_thread) => {
                // The first thread's events have the rings, in the order of processors.
                let mut shared = of_thread.iter().zip(&events);
                shared.try_for_each(|(event, leader)| perf::share_ring(event, leader))?;
                events.extend(of_thread);
                threads += 1;
            }
            // It may have ended, or be another user's by now.
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        Some(error) if threads == 0 => Err(error),
        _ => Ok((events, rings, Scope::Own { threads, left_out: own.len() - threads })),
    }
}

/// Threads of this user: the calling one, then those of this process, then the others.
fn own_threads() -> Vec<i32> {
    let user = rustix::process::geteuid().as_raw();
    let is_own =
        |process: &u32| fs::metadata(place(*process)).is_ok_and(|found| found.uid() == user);
    let mut processes: Vec<u32> = processes().into_iter().filter(is_own).collect();
    // The others stay in the order of their numbers.
    processes.sort_by_key(|&process| process != std::process::id());
    let threads = processes.into_iter().flat_map(threads_of);
    let calling = rustix::thread::gettid().as_raw_nonzero().get();
    let others = threads.filter(|&thread| thread != calling);
    core::iter::once(calling).chain(others).collect()
}

fn threads_of(process: u32) -> Vec<i32> {
    threads(process).into_iter().filter_map(|thread| i32::try_from(thread).ok()).collect()
}

/// For tests that give any bytes: records of the kernel.
pub(crate) fn read_any_records(mut rest: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while let Some((kind, record)) = next(&mut rest) {
        lost(record);
        records.extend(record::decode(kind, record));
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs until the sampler has seen so many samples of this thread, and checks them.
    fn burn(mut sampler: Sampler) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let process = std::process::id();
        let mut records = Vec::new();
        let is_ours = |record: &Record| match record.noted {
            Noted::Sample(sample) => sample.thread == thread && sample.process == process,
            _ => false,
        };
        while records.iter().filter(|record| is_ours(record)).count() < 20 {
            sampler.read(&mut records);
        }
        sampler.finish(&mut records);
        assert!(records.is_sorted_by_key(|record| record.time_ns));
        for record in records.iter().filter(|record| is_ours(record)) {
            let Noted::Sample(sample) = record.noted else { continue };
            assert!(sample.weight > 0 && sample.address > 0, "{sample:?}");
            assert!(sampler.has_kernel() || !sample.is_kernel, "{sample:?}");
        }
    }

    #[test]
    fn a_thread_that_works_is_seen_to_work() {
        match Sampler::open(997) {
            Ok(sampler) => burn(sampler),
            Err(error) => println!("not run: sampling takes {error}"),
        }
    }

    #[test]
    fn what_is_ones_own_is_seen_without_privileges() {
        match Sampler::open_own(997) {
            Ok(sampler) => {
                assert!(matches!(sampler.scope(), Scope::Own { threads: 1.., .. }));
                burn(sampler);
            }
            Err(error) => println!("not run: sampling takes {error}"),
        }
    }

    #[test]
    fn a_process_that_has_ended_has_left_its_name_and_mappings() {
        let mut sampler = match Sampler::open(99) {
            Ok(sampler) if sampler.scope() == Scope::All => sampler,
            Ok(_) => return println!("not run: only own processes can be seen"),
            Err(error) => return println!("not run: sampling takes {error}"),
        };
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let number = child.id();
        child.wait().unwrap();
        let mut records = Vec::new();
        sampler.finish(&mut records);
        let of_child = |noted: &Noted| match noted {
            Noted::Named { process, .. }
            | Noted::Forked { process, .. }
            | Noted::Ended { process }
            | Noted::Mapped { process, .. } => *process == number,
            Noted::Sample(_) => false,
        };
        let notes: Vec<Noted> =
            records.into_iter().map(|record| record.noted).filter(of_child).collect();
        let named = Noted::Named { process: number, name: "true".to_owned(), is_new_program: true };
        assert!(notes.contains(&named), "{notes:?}");
        assert!(matches!(notes.first(), Some(Noted::Forked { .. })), "{notes:?}");
        assert!(matches!(notes.last(), Some(Noted::Ended { .. })), "{notes:?}");
        let is_program = |noted: &Noted| {
            matches!(noted, Noted::Mapped { mapping, .. }
            if mapping.name.ends_with("true") && mapping.inode > 0)
        };
        assert!(notes.iter().any(is_program), "{notes:?}");
        assert_eq!((sampler.lost_samples(), sampler.lost_notes()), (0, 0));
    }
}
