//! Disks as `iostat -x` computes them, and interfaces.

use network::nic::{DirectionCounters, LinkCounters};
use observe::io::DiskCounters;
use units::number::real;

use super::figures::{Entry, Figure, Interval, Look, Unit};

/// Disks that were there at both looks.
pub(super) fn disks(interval: Option<Interval<'_>>, now: &Look) -> Vec<Entry> {
    let Some(interval) = interval else { return Vec::new() };
    let entry = |(device, (name, counters)): (_, &(String, DiskCounters))| {
        // A device that had done nothing then was not listed.
        let before = interval.before.disks.get(device).map(|(_, before)| *before);
        let figures = disk(&counters.since(&before.unwrap_or_default()), interval.seconds);
        Entry { name: name.clone(), figures }
    };
    now.disks.iter().map(entry).collect()
}

fn disk(gained: &DiskCounters, seconds: f64) -> Vec<Figure> {
    let figure = |name, value, unit, source, meaning| Figure { name, value, unit, source, meaning };
    let rate = |name, count: u64, source, meaning| {
        figure(name, real(count) / seconds, Unit::PerSecond, source, meaning)
    };
    let speed = |name, bytes: u64, source, meaning| {
        figure(name, real(bytes) / 1024.0 / seconds, Unit::KibibytesPerSecond, source, meaning)
    };
    // Of nothing that ended it is 0, as iostat has it.
    let wait = |name, ms: u64, count: u64, source, meaning| {
        figure(name, real(ms) / real(count.max(1)), Unit::Milliseconds, source, meaning)
    };
    let DiskCounters { reads, read_bytes, read_ms, writes, written_bytes, write_ms, .. } = *gained;
    let DiskCounters { discards, discarded_bytes, flushes, flush_ms, .. } = *gained;
    let source = "field 1 of /proc/diskstats";
    let mut figures = vec![rate("r/s", reads, source, "reads that ended")];
    let source = "field 3 of /proc/diskstats, sectors of 512 bytes";
    figures.push(speed("rkB/s", read_bytes, source, "what they read"));
    let source = "field 4 / field 1 of /proc/diskstats";
    figures.push(wait("r_await", read_ms, reads, source, "how long a read took, queues and all"));
    let source = "field 5 of /proc/diskstats";
    figures.push(rate("w/s", writes, source, "writes that ended"));
    let source = "field 7 of /proc/diskstats, sectors of 512 bytes";
    figures.push(speed("wkB/s", written_bytes, source, "what they wrote"));
    let source = "field 8 / field 5 of /proc/diskstats";
    figures.push(wait(
        "w_await",
        write_ms,
        writes,
        source,
        "how long a write took, queues and all",
    ));
    let source = "field 12 of /proc/diskstats";
    figures.push(rate("d/s", discards, source, "discards that ended"));
    let source = "field 14 of /proc/diskstats, sectors of 512 bytes";
    figures.push(speed("dkB/s", discarded_bytes, source, "what they gave up"));
    let source = "field 16 of /proc/diskstats";
    figures.push(rate("f/s", flushes, source, "flushes that ended"));
    let source = "field 17 / field 16 of /proc/diskstats";
    figures.push(wait("f_await", flush_ms, flushes, source, "how long a flush took"));
    let interval_ms = seconds * 1e3;
    figures.push(figure(
        "aqu-sz",
        real(gained.weighted_ms) / interval_ms,
        Unit::Count,
        "field 11 of /proc/diskstats / time that went by",
        "requests that were under way in the mean",
    ));
    figures.push(figure(
        "%util",
        100.0 * real(gained.busy_ms) / interval_ms,
        Unit::Percent,
        "field 10 of /proc/diskstats / time that went by",
        "time in which any request was under way; many disks can do several at once",
    ));
    figures
}

/// Interfaces that were there at both looks.
pub(super) fn links(interval: Option<Interval<'_>>, now: &Look) -> Vec<Entry> {
    let Some(interval) = interval else { return Vec::new() };
    let entry = |(name, counters): (&String, &LinkCounters)| {
        let before = interval.before.links.get(name)?;
        let received = direction(interval, &before.received, &counters.received, &RECEIVED);
        let sent = direction(interval, &before.sent, &counters.sent, &SENT);
        Some(Entry { name: name.clone(), figures: [received, sent].concat() })
    };
    now.links.iter().filter_map(entry).collect()
}

/// Name, source and meaning of packets, bytes, errors and drops.
type Words = [(&'static str, &'static str, &'static str); 4];

const RECEIVED: Words = [
    ("rx packets/s", "receive packets of /proc/net/dev", "packets received"),
    ("rx B/s", "receive bytes of /proc/net/dev", "their bytes"),
    ("rx errors/s", "receive errs of /proc/net/dev", "packets that arrived broken"),
    ("rx drops/s", "receive drop of /proc/net/dev", "no buffer in card or kernel, or not wanted"),
];
const SENT: Words = [
    ("tx packets/s", "transmit packets of /proc/net/dev", "packets sent"),
    ("tx B/s", "transmit bytes of /proc/net/dev", "their bytes"),
    ("tx errors/s", "transmit errs of /proc/net/dev", "packets that could not be sent"),
    ("tx drops/s", "transmit drop of /proc/net/dev", "packets that found the queue full"),
];

fn direction(
    interval: Interval<'_>,
    before: &DirectionCounters,
    now: &DirectionCounters,
    words: &Words,
) -> Vec<Figure> {
    let counts = [
        (Unit::PerSecond, before.packets, now.packets),
        (Unit::BytesPerSecond, before.bytes, now.bytes),
        (Unit::PerSecond, before.errors, now.errors),
        (Unit::PerSecond, before.drops, now.drops),
    ];
    let parts = counts.into_iter().zip(words);
    let figures = parts.map(|((unit, before, now), &(name, source, meaning))| {
        let value = interval.rate(before, now);
        Figure { name, value, unit, source, meaning }
    });
    figures.collect()
}

#[cfg(test)]
mod tests {
    use host::DeviceNumber;

    use super::super::tests::are;
    use super::super::vitals;
    use super::*;

    #[test]
    fn disks_are_computed_as_iostat_does() {
        let of = |seconds: i64, counters: DiskCounters| {
            let device = DeviceNumber { major: 8, minor: 0 };
            let disks = [(device, ("sda".to_owned(), counters))].into();
            Look { boottime_ns: seconds * 1_000_000_000, disks, ..Look::default() }
        };
        let counters = DiskCounters {
            reads: 10,
            read_bytes: 40_960,
            read_ms: 25,
            writes: 4,
            written_bytes: 8192,
            write_ms: 6,
            busy_ms: 500,
            weighted_ms: 3000,
            flushes: 2,
            flush_ms: 9,
            ..DiskCounters::default()
        };
        let before = of(0, DiskCounters { reads: 4, ..DiskCounters::default() });
        let found = vitals(Some(&before), &of(2, counters)).disks;
        assert_eq!(found[0].name, "sda");
        let expected = [
            ("r/s", 3.0),
            ("rkB/s", 20.0),
            ("r_await", 25.0 / 6.0),
            ("w/s", 2.0),
            ("wkB/s", 4.0),
            ("w_await", 1.5),
            ("d/s", 0.0),
            ("f/s", 1.0),
            ("f_await", 4.5),
            ("aqu-sz", 1.5),
            ("%util", 25.0),
        ];
        are(&found[0].figures, &expected);
    }

    #[test]
    fn interfaces_have_rates_in_both_directions() {
        let of = |seconds: i64, by: u64| {
            let received = DirectionCounters { bytes: 100 * by, packets: by, errors: 0, drops: by };
            let sent = DirectionCounters { bytes: 50 * by, packets: 2 * by, errors: by, drops: 0 };
            let links = [("eth0".to_owned(), LinkCounters { received, sent })].into();
            Look { boottime_ns: seconds * 1_000_000_000, links, ..Look::default() }
        };
        let found = vitals(Some(&of(0, 2)), &of(2, 6)).links;
        let received =
            [("rx packets/s", 2.0), ("rx B/s", 200.0), ("rx errors/s", 0.0), ("rx drops/s", 2.0)];
        are(&found[0].figures, &received);
        let sent =
            [("tx packets/s", 4.0), ("tx B/s", 100.0), ("tx errors/s", 2.0), ("tx drops/s", 0.0)];
        are(&found[0].figures, &sent);
        let new = Look { links: [].into(), ..of(0, 2) };
        assert!(vitals(Some(&new), &of(2, 6)).links.is_empty(), "it was not there before");
    }
}
