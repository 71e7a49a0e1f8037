//! Figures, and the looks that they are computed from.

use std::collections::BTreeMap;

use findings::Unseen;
use host::DeviceNumber;
use network::nic::LinkCounters;
use observe::ProcessorCounters;
use observe::facts::{Facts, moving_facts};
use observe::io::DiskCounters;
use units::Clock;
use units::number::real;

/// What a figure counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Units of 1024 bytes a second, which vmstat and iostat show.
    KibibytesPerSecond,
    /// Events a second.
    PerSecond,
    /// Hundredths, of the time as a rule.
    Percent,
    /// Milliseconds.
    Milliseconds,
    /// A number of things.
    Count,
}

/// A figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// What it is called; where a tool shows it, its name there.
    pub name: &'static str,
    /// How much it is.
    pub value: f64,
    /// Unit of the value.
    pub unit: Unit,
    /// What it is computed from.
    pub source: &'static str,
    /// What it means, in one line.
    pub meaning: &'static str,
}

/// Figures of one thing.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Its name: that of a processor, disk or interface.
    pub name: String,
    /// Figures of the processor, disk or interface.
    pub figures: Vec<Figure>,
}

/// A look at the machine.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Look {
    /// Nanoseconds since the machine began.
    pub boottime_ns: i64,
    /// What moves: memory, pressure, load.
    pub facts: Facts,
    /// Processors; `None` where they cannot be read.
    pub processors: Option<ProcessorCounters>,
    /// Whole disks that have done something, by number, with their names.
    pub disks: BTreeMap<DeviceNumber, (String, DiskCounters)>,
    /// Interfaces of this network namespace.
    pub links: BTreeMap<String, LinkCounters>,
    /// What swapping is counted in.
    pub page_bytes: u64,
}

/// All figures. What cannot be read is absent; rates need two looks.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Vitals {
    /// Memory and swap.
    pub memory: Vec<Figure>,
    /// Tasks, interrupts, load.
    pub system: Vec<Figure>,
    /// All processors together, then each.
    pub processors: Vec<Entry>,
    /// Swap and blocks of all disks together.
    pub paging: Vec<Figure>,
    /// Time lost to waiting for processors, memory, disks.
    pub pressure: Vec<Entry>,
    /// Figures of each disk.
    pub disks: Vec<Entry>,
    /// Figures of each interface.
    pub links: Vec<Entry>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}

impl Look {
    /// The vitals at this moment.
    pub fn now(clock: &dyn Clock) -> Self {
        let boottime_ns = clock.boottime_ns();
        let mut disks = observe::io::disks();
        disks.retain(|_, (name, _)| observe::io::is_whole_disk(name));
        Self {
            boottime_ns,
            facts: moving_facts(),
            processors: observe::processor_counters(),
            disks,
            links: network::nic::link_counters(),
            page_bytes: host::page_bytes(),
        }
    }

    /// A number among the facts.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.facts.get(name)?.parse().ok()
    }
}

/// An earlier look, and how long ago it was.
#[derive(Clone, Copy)]
pub(crate) struct Interval<'a> {
    pub(crate) before: &'a Look,
    pub(crate) seconds: f64,
}

impl Interval<'_> {
    /// What a counter gained, a second.
    pub(crate) fn rate(&self, before: u64, now: u64) -> f64 {
        real(now.saturating_sub(before)) / self.seconds
    }
}
