//! The machine itself: what its processors, its memory and a disk do in a fraction of a second.
//!
//! Each [`Figure`] is a short piece of work that is done again in every round, so that a minute
//! gives a series of each: with a spread, with modes and changes, and to be held against the series
//! of another day.

mod disk;
mod memory;
mod processor;

use units::number::{between, real};
use units::{Clock, Random};

use crate::beside::Beside;
use crate::contest::{Ran, Runner, Setting, Subject, Unit};
use crate::error::Error;
pub use disk::Disk;
use memory::Memory;
use processor::Processor;

/// Something that the machine does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// Random numbers, one after another: what a processor computes without memory.
    Integers,
    /// The same on all processors.
    IntegersAll,
    /// P and Q of six columns that stay in the cache: vector instructions.
    Parity,
    /// The same on all processors.
    ParityAll,
    /// Memory copied by one processor.
    Copy,
    /// The same by all processors.
    CopyAll,
    /// A read from memory whose place the read before gave.
    Latency,
    /// A disk written in order, 2 MiB at a time and 8 of them under way, with a flush at the end.
    Write,
    /// A disk read in order, 2 MiB at a time and 8 of them under way.
    Read,
    /// 4 KiB read anywhere, one after another: the time of one.
    RandomRead,
    /// 4 KiB read anywhere, 32 under way.
    RandomReads,
    /// 4 KiB written anywhere, 32 under way, with a flush at the end.
    RandomWrites,
}

impl Figure {
    /// Those that need no disk, in the order in which they are shown.
    const OF_MACHINE: [Self; 7] = [
        Self::Integers,
        Self::IntegersAll,
        Self::Parity,
        Self::ParityAll,
        Self::Copy,
        Self::CopyAll,
        Self::Latency,
    ];
    /// Those of a disk.
    const OF_DISK: [Self; 5] =
        [Self::Write, Self::Read, Self::RandomRead, Self::RandomReads, Self::RandomWrites];

    /// What it is called: in files, too.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integers => "integers, one processor",
            Self::IntegersAll => "integers, all processors",
            Self::Parity => "parity, one processor",
            Self::ParityAll => "parity, all processors",
            Self::Copy => "memory copied, one processor",
            Self::CopyAll => "memory copied, all processors",
            Self::Latency => "memory, one read after another",
            Self::Write => "disk, written in order",
            Self::Read => "disk, read in order",
            Self::RandomRead => "disk, one random read",
            Self::RandomReads => "disk, 32 random reads at a time",
            Self::RandomWrites => "disk, 32 random writes at a time",
        }
    }

    /// Unit of its result.
    pub fn unit(self) -> Unit {
        match self {
            Self::Latency | Self::RandomRead => Unit::Nanoseconds,
            Self::Integers | Self::IntegersAll | Self::RandomReads | Self::RandomWrites => {
                Unit::PerSecond
            }
            _ => Unit::BytesPerSecond,
        }
    }
}

/// Does the work of the machine benchmark.
pub struct Machine<'a> {
    clock: &'a dyn Clock,
    random: Random,
    slice_ns: u64,
    figures: Vec<Figure>,
    processor: Processor,
    memory: Memory,
    disk: Option<Disk<'a>>,
}

impl core::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Machine").field("figures", &self.figures).finish_non_exhaustive()
    }
}

impl<'a> Machine<'a> {
    /// A machine of so many processors, whose memory is tried with `memory_bytes` and whose disk is
    /// `disk`. Each piece of work takes `slice_ns`, or a little longer.
    pub fn new(
        (clock, random): (&'a dyn Clock, Random),
        (processors, memory_bytes): (usize, u64),
        disk: Option<Disk<'a>>,
        slice_ns: u64,
    ) -> Result<Self, Error> {
        let mut random = random;
        let of_disk = if disk.is_some() { &Figure::OF_DISK[..] } else { &[] };
        Ok(Self {
            clock,
            slice_ns,
            figures: Figure::OF_MACHINE.iter().chain(of_disk).copied().collect(),
            processor: Processor::new(processors, &mut random)?,
            memory: Memory::new(memory_bytes, &mut random),
            disk,
            random,
        })
    }

    /// What it does, in order.
    pub fn subjects(&self) -> Vec<Subject> {
        let subject = |figure: &Figure| Subject {
            name: figure.name().to_owned(),
            unit: figure.unit(),
            parameters: Vec::new(),
        };
        self.figures.iter().map(subject).collect()
    }
}

impl Runner for Machine<'_> {
    type Error = Error;

    fn run(&mut self, setting: Setting) -> Result<Option<Ran>, Error> {
        let figure = *self.figures.get(setting.subject).expect("each subject is a figure");
        let (beside, mut facts) = Beside::begin(None);
        let (begin_ns, used_ns) = (self.clock.boottime_ns(), used_ns());
        let slice = Slice { clock: self.clock, ns: self.slice_ns };
        let (processor, memory) = (&mut self.processor, &mut self.memory);
        let value = match figure {
            Figure::Integers => processor.integers(slice, false),
            Figure::IntegersAll => processor.integers(slice, true),
            Figure::Parity => processor.parity(slice, false),
            Figure::ParityAll => processor.parity(slice, true),
            Figure::Copy => memory.copied(slice, 1),
            Figure::CopyAll => memory.copied(slice, processor.count()),
            Figure::Latency => memory.latency_ns(slice),
            Figure::Write
            | Figure::Read
            | Figure::RandomRead
            | Figure::RandomReads
            | Figure::RandomWrites => {
                let disk = self.disk.as_mut().expect("figures of a disk come with a disk");
                disk.figure(figure, slice, &mut self.random)?
            }
        };
        let wall_ns = between(begin_ns, self.clock.boottime_ns());
        facts.extend(beside.end(wall_ns, self::used_ns() - used_ns));
        Ok(Some(Ran { value, taken: None, facts }))
    }
}

/// Time of processors that this process has had.
fn used_ns() -> f64 {
    host::cpu_time().map_or(0.0, |time| time.total().as_secs_f64() * 1e9)
}

/// A piece of time.
#[derive(Clone, Copy)]
struct Slice<'a> {
    clock: &'a dyn Clock,
    ns: u64,
}

impl Slice<'_> {
    fn now_ns(self) -> i64 {
        self.clock.boottime_ns()
    }

    /// Works until it is over; what the work gave, a second.
    fn rate(self, mut work: impl FnMut() -> f64) -> f64 {
        let begin_ns = self.now_ns();
        let mut done = 0.0;
        loop {
            done += work();
            let ns = between(begin_ns, self.now_ns());
            if ns >= self.ns {
                return per_second(done, ns);
            }
        }
    }
}

/// Of no time at all, as of a nanosecond.
fn per_second(done: f64, ns: u64) -> f64 {
    done * 1e9 / real(ns.max(1))
}
