//! Processors and tasks, as vmstat computes them.

use observe::ProcessorTimes;
use units::number::real;

use super::figures::{Entry, Figure, Interval, Look, Unit};

/// Tasks, interrupts and load.
pub(super) fn system(interval: Option<Interval<'_>>, now: &Look) -> Vec<Figure> {
    let mut figures = Vec::new();
    if let Some(counters) = &now.processors {
        let count = |name, value: u64, source, meaning| {
            let value = real(value);
            Figure { name, value, unit: Unit::Count, source, meaning }
        };
        figures.push(count(
            "r",
            // The one that asks.
            counters.runnable.saturating_sub(1),
            "procs_running - 1 of /proc/stat",
            "tasks that run or wait for a processor, without the one that asks",
        ));
        figures.push(count(
            "b",
            counters.blocked,
            "procs_blocked of /proc/stat",
            "tasks that wait for a disk",
        ));
        figures.extend(rates(interval, now));
    }
    for (name, field, source, meaning) in [
        ("load 1 min", "load.1", "first of /proc/loadavg", "tasks that ran or waited, a minute"),
        ("load 5 min", "load.5", "second of /proc/loadavg", "the same over five minutes"),
        ("load 15 min", "load.15", "third of /proc/loadavg", "the same over a quarter of an hour"),
    ] {
        if let Some(value) = now.number(field) {
            figures.push(Figure { name, value, unit: Unit::Count, source, meaning });
        }
    }
    figures
}

fn rates(interval: Option<Interval<'_>>, now: &Look) -> Vec<Figure> {
    let counters = |interval: Interval<'_>| {
        let (before, after) = (interval.before.processors.as_ref()?, now.processors.as_ref()?);
        let rate = |name, of: [u64; 2], source, meaning| {
            let [before, after] = of;
            let value = interval.rate(before, after);
            Figure { name, value, unit: Unit::PerSecond, source, meaning }
        };
        Some(vec![
            rate(
                "in",
                [before.interrupts, after.interrupts],
                "intr of /proc/stat",
                "interrupts, those of the clock among them",
            ),
            rate(
                "cs",
                [before.switches, after.switches],
                "ctxt of /proc/stat",
                "changes from one task to another",
            ),
            rate(
                "forks",
                [before.forks, after.forks],
                "processes of /proc/stat",
                "processes and threads that began",
            ),
        ])
    };
    interval.and_then(counters).unwrap_or_default()
}

/// All processors together, then each that was there at both looks.
pub(super) fn entries(interval: Option<Interval<'_>>, now: &Look) -> Vec<Entry> {
    let pair = interval.and_then(|it| it.before.processors.as_ref()).zip(now.processors.as_ref());
    let Some((before, after)) = pair else { return Vec::new() };
    let all = Entry { name: "all".to_owned(), figures: figures(&after.all.since(&before.all)) };
    let each = after.each.iter().filter_map(|(number, times)| {
        let figures = figures(&times.since(before.each.get(number)?));
        Some(Entry { name: number.to_string(), figures })
    });
    core::iter::once(all).chain(each).collect()
}

/// Of the time that went by for this processor. Guests count as user, too, and are taken out.
fn figures(times: &ProcessorTimes) -> Vec<Figure> {
    let ProcessorTimes { user_ns, nice_ns, system_ns, idle_ns, io_wait_ns, .. } = *times;
    let ProcessorTimes { irq_ns, softirq_ns, stolen_ns, guest_ns, guest_nice_ns, .. } = *times;
    let whole_ns = times.busy_ns() + idle_ns + io_wait_ns + stolen_ns;
    let guests_ns = guest_ns + guest_nice_ns;
    let figure = |name, part_ns: u64, source, meaning| {
        // No tick went by: it was idle, as vmstat has it.
        let value = match whole_ns {
            0 if name == "id" => 100.0,
            0 => 0.0,
            _ => 100.0 * real(part_ns) / real(whole_ns),
        };
        Figure { name, value, unit: Unit::Percent, source, meaning }
    };
    vec![
        figure(
            "us",
            (user_ns + nice_ns).saturating_sub(guests_ns),
            "user + nice - guest - guest_nice of /proc/stat",
            "in programs",
        ),
        figure(
            "sy",
            system_ns + irq_ns + softirq_ns,
            "system + irq + softirq of /proc/stat",
            "in the kernel",
        ),
        figure("id", idle_ns, "idle of /proc/stat", "nothing to do"),
        figure(
            "wa",
            io_wait_ns,
            "iowait of /proc/stat",
            "nothing to do while tasks wait for disks",
        ),
        figure("st", stolen_ns, "steal of /proc/stat", "given to others by the host of this guest"),
        figure("gu", guests_ns, "guest + guest_nice of /proc/stat", "in guests of this host"),
        figure("irq", irq_ns, "irq of /proc/stat", "in interrupts; sy has it, too"),
        figure(
            "soft",
            softirq_ns,
            "softirq of /proc/stat",
            "in what interrupts left for later, packets as a rule; sy has it, too",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use observe::ProcessorCounters;

    use super::super::tests::are;
    use super::super::vitals;
    use super::*;

    fn look(seconds: i64, times: ProcessorTimes, counters: &ProcessorCounters) -> Look {
        let each = [(0, times)].into();
        let processors = Some(ProcessorCounters { all: times, each, ..counters.clone() });
        Look { boottime_ns: seconds * 1_000_000_000, processors, ..Look::default() }
    }

    #[test]
    fn shares_are_of_the_time_that_went_by_and_guests_are_no_users() {
        let before = look(0, ProcessorTimes::default(), &ProcessorCounters::default());
        let times = ProcessorTimes {
            user_ns: 20,
            nice_ns: 10,
            system_ns: 5,
            idle_ns: 40,
            io_wait_ns: 10,
            irq_ns: 1,
            softirq_ns: 4,
            stolen_ns: 10,
            guest_ns: 8,
            guest_nice_ns: 2,
        };
        let found = vitals(Some(&before), &look(1, times, &ProcessorCounters::default()));
        let names: Vec<&str> = found.processors.iter().map(|entry| &*entry.name).collect();
        assert_eq!(names, ["all", "0"]);
        for entry in &found.processors {
            let shares = [
                ("us", 20.0),
                ("sy", 10.0),
                ("id", 40.0),
                ("wa", 10.0),
                ("st", 10.0),
                ("gu", 10.0),
                ("irq", 1.0),
                ("soft", 4.0),
            ];
            are(&entry.figures, &shares);
        }
        // Without a tick.
        let still = vitals(Some(&before), &before.clone());
        are(&still.processors[0].figures, &[("us", 0.0), ("id", 100.0)]);
    }

    #[test]
    fn tasks_are_counted_without_us_and_rates_are_a_second() {
        let of = |interrupts, switches, forks| ProcessorCounters {
            interrupts,
            switches,
            forks,
            runnable: 4,
            blocked: 2,
            ..ProcessorCounters::default()
        };
        let before = look(0, ProcessorTimes::default(), &of(10, 100, 1));
        let now = look(2, ProcessorTimes::default(), &of(50, 300, 2));
        let found = vitals(Some(&before), &now).system;
        are(&found, &[("r", 3.0), ("b", 2.0), ("in", 20.0), ("cs", 100.0), ("forks", 0.5)]);
        assert_eq!(vitals(None, &now).system.len(), 2, "no rates");
    }
}
