//! Who talks.

use page::sparkline;
use page::text::plural;
use talkers::{Grouping, Held, Talker, WINDOWS, Who};
use units::NANOS_PER_SECOND;

use super::{Cell, Sheet, SheetColumn, SheetLine};

const RATES: [SheetColumn; 3] = [
    SheetColumn::number("bits_per_s_2s", "2 S", 2),
    SheetColumn::number("bits_per_s_10s", "10 S", 0),
    SheetColumn::number("bits_per_s_40s", "40 S", 1),
];

/// Lines of who talks, by the column of ten seconds. Rates are over what was seen of each of
/// [`WINDOWS`].
pub fn talkers_sheet(talkers: &[Talker], grouping: Grouping, seen_ns: [i64; 3]) -> Sheet {
    let (title, least, has_name) = match grouping {
        Grouping::Session => ("SESSION", 42, true),
        Grouping::Pair => ("HOSTS", 24, false),
        Grouping::Host => ("HOST", 15, true),
        Grouping::Port => ("PORT", 9, true),
        Grouping::Protocol => ("PROTOCOL", 8, false),
    };
    let mut columns = vec![SheetColumn::words("who", title, least, 0)];
    if has_name {
        columns.push(SheetColumn::words("name", "NAME", 12, 5));
    }
    match grouping {
        Grouping::Session => columns.push(SheetColumn::words("app", "APP", 6, 6)),
        _ => columns.push(SheetColumn::number("sessions", "SESSIONS", 6)),
    }
    columns.extend(RATES);
    columns.extend([
        SheetColumn::number("sent_bits_per_s_10s", "SENT", 4),
        SheetColumn::number("received_bits_per_s_10s", "RECEIVED", 4),
        SheetColumn::number("packets_per_s_10s", "RATE", 3),
        SheetColumn::number("bytes_40s", "BYTES", 7),
        SheetColumn::number("packets_40s", "PACKETS", 8),
    ]);
    let lines = talkers.iter().map(|talker| line(talker, grouping, has_name, seen_ns)).collect();
    let notes = short_of(seen_ns).into_iter().collect();
    Sheet { columns, lines, notes, rates_over_ns: Some(seen_ns) }
}

/// That windows are longer than what was seen of them.
fn short_of(seen_ns: [i64; 3]) -> Option<String> {
    let short = WINDOWS.into_iter().zip(seen_ns);
    let short = short.filter(|(window, seen_ns)| *seen_ns < window * NANOS_PER_SECOND);
    let seen = short.map(|(window, seen_ns)| {
        format!("{} of {window} s", page::text::nanos(seen_ns.unsigned_abs()))
    });
    let seen: Vec<String> = seen.collect();
    (!seen.is_empty())
        .then(|| format!("seen so far: {}; the rates are over that time", seen.join(", ")))
}

/// Seconds that the head shows.
pub const HEAD_SECONDS: usize = 60;

/// All traffic in words, and as a line of the last [`HEAD_SECONDS`], from their bytes.
pub fn traffic_head(held: &Held, by_second: &[u64]) -> Vec<String> {
    let now = by_second.last().copied().unwrap_or(0).saturating_mul(8);
    let most = by_second.iter().copied().max().unwrap_or(0).saturating_mul(8);
    let rates = [now, most].map(|bits| Cell::BitsPerSecond(bits).shown());
    let [now, most] = rates;
    let sessions = u64::try_from(held.sessions).unwrap_or(u64::MAX);
    vec![
        format!(
            "{now} now, at most {most}; {}, {}",
            plural(held.packets, "packet"),
            plural(sessions, "session"),
        ),
        sparkline(by_second, HEAD_SECONDS, true),
    ]
}

fn line(talker: &Talker, grouping: Grouping, has_name: bool, seen_ns: [i64; 3]) -> SheetLine {
    let Talker { who, sums, .. } = talker;
    let per_second = |count: u64, window: usize| {
        let seen_ns = seen_ns.get(window).map_or(1, |ns| ns.unsigned_abs().max(1));
        units::number::per_second(count, seen_ns)
    };
    let bits = |bytes: [u64; 3], window: usize| {
        let bytes = bytes.get(window).copied().unwrap_or(0);
        Cell::BitsPerSecond(per_second(bytes.saturating_mul(8), window))
    };
    let bytes = sums.bytes();
    let mut cells = vec![Cell::Text(who.to_string())];
    if has_name {
        let service = match who {
            Who::Port(proto, port) if proto.has_ports() => query::service_name(*port),
            _ => None,
        };
        cells.push(Cell::text(talker.name.as_deref().or(service)));
    }
    match grouping {
        Grouping::Session => cells.push(Cell::text(talker.app)),
        _ => cells.push(Cell::Count(u64::try_from(talker.sessions).unwrap_or(u64::MAX))),
    }
    let [_, packets, all_packets] = sums.packets;
    let [_, _, all] = bytes;
    cells.extend((0..WINDOWS.len()).map(|window| bits(bytes, window)));
    cells.extend([
        bits(sums.sent, 1),
        bits(sums.received, 1),
        Cell::PerSecond(per_second(packets, 1)),
        Cell::Bytes(all),
        Cell::Count(all_packets),
    ]);
    SheetLine { cells, query: Some(who.query()) }
}
