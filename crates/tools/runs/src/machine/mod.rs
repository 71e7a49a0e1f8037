//! The machine itself: what its processors, its memory and a disk do in a fraction of a second.
//!
//! Each [`Figure`] is a short piece of work that is done again in every round, so that a minute
//! gives a series of each: with a spread, with modes and changes, and to be held against the series
//! of another day.

mod disk;
mod figure;
mod memory;
mod processor;
mod slice;

use units::number::between;
use units::{Clock, Random};

use crate::beside::Beside;
use crate::error::Error;
use crate::run::{Ran, Runner, Setting, Subject};
pub use disk::Disk;
pub use figure::Figure;
use memory::Memory;
use processor::Processor;
use slice::Slice;

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
