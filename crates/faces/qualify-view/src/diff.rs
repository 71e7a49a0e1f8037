//! Two qualifications side by side, as a table and as JSON.

use ::qualify::{Change, Compared, Diff, Disturbance, Order, Part, Subject};
use page::add;
use page::safe::{json_pretty, printable};
use page::table::{self, Column};
use page::text::disk_rate as rate;
use page::text::{grouped, nanos, permille, wrapped};
use serde::Serialize;
use units::ByteSize;

/// Columns where there is no terminal.
const WIDTH: usize = 100;
/// On a terminal that is narrower a table has no space for its names.
const TABLE_WIDTH: usize = 80;

/// What changed; `width` is that of the terminal, if there is one.
pub fn qualification_diff(diff: &Diff, width: Option<usize>) -> String {
    let mut text = String::new();
    let lines = |text: &mut String, line: &str| {
        for line in wrapped(line, width.unwrap_or(WIDTH), 2) {
            add(text, format_args!("{line}\n"));
        }
    };
    for (name, old, new) in &diff.facts {
        lines(&mut text, &format!("{name}: {} before, {} now", printable(old), printable(new)));
    }
    if width.is_some_and(|width| width < TABLE_WIDTH) {
        diff.compared.iter().for_each(|compared| lines(&mut text, &sentence(compared)));
    } else if !diff.compared.is_empty() {
        let column = |title, is_number, rank| Column { title, is_number, least: 0, rank };
        let columns = [
            column("what", false, 0),
            column("before", true, 0),
            column("now", true, 0),
            column("change", true, 0),
            column("interval", true, 1),
            column("", false, 0),
        ];
        let rows: Vec<Vec<String>> = diff.compared.iter().map(row).collect();
        text.push_str(&table::render(&columns, &rows, width));
    }
    for words in &diff.unmatched {
        lines(&mut text, &format!("not compared: {words}"));
    }
    for (which, found) in ["before", "now"].into_iter().zip(&diff.disturbed) {
        for disturbance in found {
            lines(&mut text, &format!("disturbed {which}: {}", disturbed(disturbance)));
        }
    }
    lines(&mut text, &answer(diff));
    text
}

fn answer(diff: &Diff) -> String {
    let tolerance = permille(diff.tolerance_permille);
    match diff.has_fallen() {
        Some(true) => format!("the guarantee fell by more than {tolerance}"),
        Some(false) => match lower_by_chance(diff) {
            None => format!("the guarantee did not fall by more than {tolerance}"),
            Some(by) => {
                format!("the guarantee is {by} lower, and such runs differ by as much by chance")
            }
        },
        None if diff.disturbed.iter().any(|found| !found.is_empty()) => {
            "cannot tell whether the guarantee fell: the machine was busy; measure again when it \
             is quiet"
                .to_owned()
        }
        None => "the guarantees cannot be compared".to_owned(),
    }
}

/// By how much the guarantee is lower, where that is more than the tolerance.
fn lower_by_chance(diff: &Diff) -> Option<String> {
    let is_it = |it: &&Compared| matches!(it.subject, Subject::Guaranteed(..));
    let lower = 1000_u64.saturating_sub(diff.compared.iter().find(is_it)?.ratio_permille);
    (lower > diff.tolerance_permille).then(|| permille(lower))
}

/// What else the machine did, in words.
pub(crate) fn disturbed(by: &Disturbance) -> String {
    match by {
        Disturbance::Processors { waited, others } => format!(
            "other programs had {} of a processor, and work waited for one {} of the time",
            permille(*others),
            permille(*waited)
        ),
        Disturbance::Stolen(share) => {
            format!(
                "the host of this machine gave {} of its processors to others",
                permille(*share)
            )
        }
        Disturbance::Disk(bytes) => {
            format!("other programs read and wrote {} on the disk", ByteSize(*bytes))
        }
    }
}

/// A row as a line.
fn sentence(compared: &Compared) -> String {
    let mut cells = row(compared).into_iter();
    let mut next = || cells.next().unwrap_or_default();
    let (what, before, now, change, interval, verdict) =
        (next(), next(), next(), next(), next(), next());
    let interval = if interval.is_empty() { interval } else { format!(" ({interval})") };
    let gap = if verdict.is_empty() { "" } else { ": " };
    format!("{what}: {before} before, {now} now, {change}{interval}{gap}{verdict}")
}

fn row(compared: &Compared) -> Vec<String> {
    let value = |value: u64| match compared.subject {
        Subject::Jump | Subject::WriteLatency(_) | Subject::ReadLatency(_) | Subject::Cpu(_) => {
            nanos(value)
        }
        Subject::Iops(_) => format!("{}/s", grouped(value)),
        _ => rate(value),
    };
    let interval = compared.interval_permille;
    let interval = interval.map(|(low, high)| format!("{} to {}", off(low), off(high)));
    vec![
        name(compared.subject),
        value(compared.old),
        value(compared.new),
        off(compared.ratio_permille),
        interval.unwrap_or_default(),
        match compared.change {
            Change::Same => "",
            Change::Better => "better",
            Change::Worse => "WORSE",
            Change::Unclear => "cannot tell",
        }
        .to_owned(),
    ]
}

/// A ratio as what it is off from 1, in percent; from ten times on as the number of times.
fn off(ratio_permille: u64) -> String {
    if ratio_permille >= 10_000 {
        return format!("{} times", grouped(ratio_permille / 1000));
    }
    let sign = if ratio_permille < 1000 { '-' } else { '+' };
    format!("{sign}{}", permille(ratio_permille.abs_diff(1000)))
}

fn name(subject: Subject) -> String {
    let of = |what: &str, part: Part, order: Order| {
        let order = match order {
            Order::FirstToLast => "first to last",
            Order::ZoneLevelled => "zones levelled",
        };
        format!("{what}, {part}, {order}")
    };
    match subject {
        Subject::Guaranteed(part, order) => of("guaranteed", part, order),
        Subject::Mean(part, order) => of("mean", part, order),
        Subject::Slowest(part, order) => of("slowest", part, order),
        Subject::ByPlace(part) => format!("at the same places, {part}"),
        Subject::Jump => "a jump".to_owned(),
        Subject::WriteLatency(share) => format!("{} of writes", percentile(share)),
        Subject::ReadLatency(share) => format!("{} of reads", percentile(share)),
        Subject::BesideReaders => "guaranteed beside readers".to_owned(),
        Subject::Iops(depth) => format!("random writes, {depth} under way"),
        Subject::LastLap => "last lap of the files".to_owned(),
        Subject::Cpu(0) => "processor for a gigabyte".to_owned(),
        Subject::Cpu(parity) => format!("the same with {parity} of parity"),
    }
}

/// `p50`, `p99.99`.
fn percentile(share: u32) -> String {
    let (whole, part) = (share / 10_000, share % 10_000);
    let digits = format!("{part:04}");
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() { format!("p{whole}") } else { format!("p{whole}.{digits}") }
}

#[derive(Serialize)]
struct Fact<'a> {
    name: &'a str,
    old: &'a str,
    new: &'a str,
}

#[derive(Serialize)]
struct Value {
    what: &'static str,
    part: Option<&'static str>,
    order: Option<&'static str>,
    percentile: Option<String>,
    /// Writes under way, or columns of parity.
    count: Option<u32>,
    old: u64,
    new: u64,
    ratio_permille: u64,
    low_permille: Option<u64>,
    high_permille: Option<u64>,
    change: &'static str,
}

#[derive(Serialize)]
struct Told<'a> {
    has_fallen: Option<bool>,
    tolerance_permille: u64,
    facts: Vec<Fact<'a>>,
    compared: Vec<Value>,
    not_compared: &'a [String],
    /// What disturbed the measurement before, and now.
    disturbed: [Vec<String>; 2],
}

/// The same as JSON: rates in bytes a second, times in ns.
pub fn qualification_diff_json(diff: &Diff) -> String {
    let facts = diff.facts.iter().map(|(name, old, new)| Fact { name, old, new });
    json_pretty(&Told {
        has_fallen: diff.has_fallen(),
        tolerance_permille: diff.tolerance_permille,
        facts: facts.collect(),
        compared: diff.compared.iter().map(compared_json).collect(),
        not_compared: &diff.unmatched,
        disturbed: diff.disturbed.each_ref().map(|found| found.iter().map(disturbed).collect()),
    })
}

fn compared_json(compared: &Compared) -> Value {
    let order_name = |order: Order| match order {
        Order::FirstToLast => "first_to_last",
        Order::ZoneLevelled => "zone_levelled",
    };
    let (what, part, order, share) = match compared.subject {
        Subject::Guaranteed(part, order) => ("guaranteed", Some(part), Some(order), None),
        Subject::Mean(part, order) => ("mean", Some(part), Some(order), None),
        Subject::Slowest(part, order) => ("minimum", Some(part), Some(order), None),
        Subject::ByPlace(part) => ("by_place", Some(part), None, None),
        Subject::Jump => ("jump", Some(Part::Extents), None, None),
        Subject::WriteLatency(share) => ("latency", Some(Part::Latency), None, Some(share)),
        Subject::ReadLatency(share) => ("latency", Some(Part::Reads), None, Some(share)),
        Subject::BesideReaders => ("guaranteed", Some(Part::Mixed), None, None),
        Subject::Iops(_) => ("writes_per_s", Some(Part::Iops), None, None),
        Subject::LastLap => ("last_lap", Some(Part::Files), None, None),
        Subject::Cpu(_) => ("ns_per_gb", Some(Part::Cpu), None, None),
    };
    let count = match compared.subject {
        Subject::Iops(count) | Subject::Cpu(count) => Some(count),
        _ => None,
    };
    Value {
        what,
        part: part.map(Part::name),
        order: order.map(order_name),
        percentile: share.map(percentile),
        count,
        old: compared.old,
        new: compared.new,
        ratio_permille: compared.ratio_permille,
        low_permille: compared.interval_permille.map(|(low, _)| low),
        high_permille: compared.interval_permille.map(|(_, high)| high),
        change: match compared.change {
            Change::Same => "same",
            Change::Better => "better",
            Change::Worse => "worse",
            Change::Unclear => "unclear",
        },
    }
}
