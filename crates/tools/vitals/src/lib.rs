//! The host's vital signs: memory as `free` computes it, processors, swap and blocks as vmstat
//! does, disks as `iostat -x` does, pressure, interfaces. Each figure says what it is made of.
//!
//! Everything is computed from one look at the machine, or from two where it is a rate. What the
//! tools call a figure, and where ours differ: `docs/diagnosis.md`.

mod devices;
mod memory;
mod pressure;
mod processors;
pub mod profile;

use std::collections::BTreeMap;

use host::DeviceNumber;
use network::nic::LinkCounters;
use observe::ProcessorCounters;
use observe::facts::{Facts, moving_facts};
use observe::io::DiskCounters;
use units::Clock;
use units::number::{between, real};

use findings::Unseen;

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
    fn number(&self, name: &str) -> Option<f64> {
        self.facts.get(name)?.parse().ok()
    }
}

/// What two looks show; with one there are no rates.
pub fn vitals(before: Option<&Look>, now: &Look) -> Vitals {
    let interval = before.map(|before| Interval {
        before,
        seconds: real(between(before.boottime_ns, now.boottime_ns).max(1)) / 1e9,
    });
    let mut vitals = Vitals {
        memory: memory::figures(now),
        system: processors::system(interval, now),
        processors: processors::entries(interval, now),
        paging: memory::paging(interval, now),
        pressure: pressure::entries(now),
        disks: devices::disks(interval, now),
        links: devices::links(interval, now),
        unseen: Vec::new(),
    };
    let mut miss = |is_missing: bool, what: &str, needs: &str| {
        if is_missing {
            vitals.unseen.push(Unseen { what: what.to_owned(), needs: needs.to_owned() });
        }
    };
    miss(
        vitals.pressure.is_empty(),
        "time lost to waiting (pressure)",
        "a kernel with CONFIG_PSI, and psi=1 on its command line",
    );
    miss(now.processors.is_none(), "processors", "a /proc/stat that can be read");
    miss(vitals.memory.is_empty(), "memory", "a /proc/meminfo that can be read");
    vitals
}

/// An earlier look, and how long ago it was.
#[derive(Clone, Copy)]
struct Interval<'a> {
    before: &'a Look,
    seconds: f64,
}

impl Interval<'_> {
    /// What a counter gained, a second.
    fn rate(&self, before: u64, now: u64) -> f64 {
        real(now.saturating_sub(before)) / self.seconds
    }
}

#[cfg(test)]
mod tests {
    use units::{ManualClock, Timestamp};

    use super::*;

    pub(super) fn facts(pairs: &[(&str, &str)]) -> Facts {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[track_caller]
    pub(super) fn are(figures: &[Figure], expected: &[(&str, f64)]) {
        for (name, value) in expected {
            let found = figures.iter().find(|figure| figure.name == *name).unwrap();
            assert!((found.value - value).abs() < 1e-9, "{name} is {value}: {found:?}");
        }
    }

    #[test]
    fn one_look_has_no_rates_and_says_what_it_misses() {
        let alone = vitals(None, &Look::default());
        assert_eq!((alone.memory.len(), alone.disks.len(), alone.paging.len()), (0, 0, 0));
        let missing: Vec<&str> = alone.unseen.iter().map(|it| &*it.what).collect();
        assert_eq!(missing, ["time lost to waiting (pressure)", "processors", "memory"]);
    }

    #[test]
    fn every_figure_of_this_machine_is_a_number_and_says_where_it_comes_from() {
        let clock = ManualClock::new(Timestamp(0));
        let before = Look::now(&clock);
        let now = Look { boottime_ns: before.boottime_ns + 1, ..Look::now(&clock) };
        let found = vitals(Some(&before), &now);
        let entries = [&found.processors, &found.pressure, &found.disks, &found.links];
        let of_entries = entries.into_iter().flatten().flat_map(|entry| &entry.figures);
        let figures = [&found.memory, &found.system, &found.paging];
        let all: Vec<&Figure> = figures.into_iter().flatten().chain(of_entries).collect();
        assert!(all.len() > 40, "{all:?}");
        for figure in all {
            assert!(figure.value.is_finite() && figure.value >= 0.0, "{figure:?}");
            assert!(!figure.source.is_empty() && figure.meaning.len() < 90, "{figure:?}");
        }
    }
}
