//! The host's vital signs: memory as `free` computes it, processors, swap and blocks as vmstat
//! does, disks as `iostat -x` does, pressure, interfaces. Each figure says what it is made of.
//!
//! Everything is computed from one look at the machine, or from two where it is a rate. What the
//! tools call a figure, and where ours differ: `docs/diagnosis.md`. Beside them, what a measurement
//! of one's own needs: how latencies divide and drift, and what else the machine did meanwhile.

mod devices;
mod eighths;
mod figures;
mod latencies;
mod meanwhile;
mod memory;
mod pressure;
mod processors;
pub mod profile;

use findings::Unseen;
use units::number::{between, real};

pub use eighths::{Eighth, Eighths, SHARES};
pub use figures::{Entry, Figure, Look, Unit, Vitals};
pub use latencies::Latencies;
pub use meanwhile::{Disturbance, MachineCounters, Meanwhile};

use figures::Interval;

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

#[cfg(test)]
mod tests {
    use observe::facts::Facts;
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
