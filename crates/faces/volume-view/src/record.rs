//! A recording that has ended, and how one is going.

use ::record::{Account, Change, GaveWay, HandOver, Loss, MemberChange, Progress, Report};
use core::time::Duration;
use format::directory::{Gap, GapCause};
use page::safe::{json_pretty, printable};
use page::table::{Column, render};
use page::text::{duration, grouped, plural, rate, took};
use serde::Serialize;
use units::{ByteSize, Timestamp};

use crate::disks;

const ACCOUNT_COLUMNS: [Column; 9] = [
    Column { title: "INTERFACE", is_number: false, least: 10, rank: 0 },
    Column::whole("OFFERED", true),
    Column::whole("STORED", true),
    Column { title: "CUT", is_number: true, least: 0, rank: 3 },
    Column::whole("KERNEL DROPS", true),
    Column::whole("WRITER DROPS", true),
    Column { title: "NIC DROPS", is_number: true, least: 0, rank: 2 },
    Column { title: "FILTERED", is_number: true, least: 0, rank: 4 },
    Column { title: "TOO LONG", is_number: true, least: 0, rank: 5 },
];

/// Interfaces listed one by one; the JSON has them all.
const INTERFACES_SHOWN: usize = 20;
/// Losses listed one by one.
const LOSSES_SHOWN: usize = 10;

/// A recording, in words and a table of its accounts.
pub fn recording(report: &Report, width: Option<usize>) -> String {
    let total = &report.total;
    let mut lines = vec![verdict(report)];
    lines.push(format!(
        "{} in {}: {} to the disk with heads and index, {}, {} of CPU time; \
         {} to open, {} to close",
        plural(total.stored, "packet"),
        duration(report.elapsed_ns),
        ByteSize(report.writer.bytes),
        rate(report.writer.bytes, report.elapsed_ns),
        took(report.cpu),
        duration(report.opening_ns),
        duration(report.closing_ns),
    ));
    let late = match report.indexed_late {
        0 => String::new(),
        late => format!(", {} indexed late", plural(late, "packet")),
    };
    let unread = match report.unread {
        0 => String::new(),
        unread => format!(", {} not looked at for names", plural(unread, "packet")),
    };
    let deaths = match report.indexer_deaths {
        0 => String::new(),
        deaths => format!("; the indexer died {}", plural(deaths, "time")),
    };
    lines.push(format!(
        "{} in {}, {} of index, {} without a row{late}{unread}{deaths}",
        plural(report.rows, "session row"),
        plural(report.segments, "segment"),
        ByteSize(report.index_bytes),
        plural(report.unindexed, "packet"),
    ));
    lines.extend(gave_way(&report.gave_way));
    let (columns, used) = (report.pool_columns, report.pool_columns_used_max);
    lines.push(format!(
        "at most {used} of {columns} columns of the pool in use; slowest write {}",
        took(Duration::from_nanos(report.writer.write_latency_ns_max)),
    ));
    lines.extend(disks::lines(&report.disks));
    lines.extend(left_out(total));
    lines.push(format!("durable up to stripe {}", report.acknowledged));
    if report.writer.discarded_bytes > 0 {
        let bytes = ByteSize(report.writer.discarded_bytes);
        lines.push(format!("discarded {bytes} on the disks ahead of the head"));
    }
    lines.extend(earlier(report));
    lines.extend(report.changes.iter().map(|change| printable(&change.to_string())));
    lines.extend(report.broken_off.iter().map(|line| format!("broken off: {}", printable(line))));
    lines.extend(report.notes.iter().map(|line| format!("note: {}", printable(line))));
    lines.extend(losses(report));
    let table = if report.interfaces.is_empty() { String::new() } else { accounts(report, width) };
    format!("{}\n\n{table}", lines.join("\n")).trim_end().to_owned() + "\n"
}

/// What is to be said of the recordings before this one.
fn earlier(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if report.recovery.damaged > 0 {
        let stripes = plural(report.recovery.damaged, "stripe");
        lines.push(format!(
            "{stripes} at the end of the earlier recording cannot be read: verify lists them, and \
             this recording went on behind them"
        ));
    }
    if report.unreadable > 0 {
        let parts = plural(report.unreadable, "part");
        lines.push(format!(
            "{parts} of earlier recordings cannot be read and stay without an index: verify lists \
             the damage, and answers that lack these packets say so"
        ));
    }
    if let (false, Some(alive)) = (report.recovery.clean, report.recovery.last_alive) {
        let (kept, voided) = (report.recovery.kept, report.recovery.voided);
        lines.push(format!(
            "the recorder before this one did not stop in order (last sign of life {alive}): \
             {} behind the last acknowledgement kept, {} closed",
            plural(kept, "stripe"),
            plural(voided, "slot"),
        ));
    }
    lines
}

/// Whether nothing was lost, now or of what was there before, every input was read to its end and
/// held something, and what was stored is given out.
pub fn is_clean(report: &Report) -> bool {
    let is_bad = |change: &MemberChange| change.what.is_bad();
    report.total.is_lossless()
        && !has_read_nothing(report)
        && report.broken_off.is_empty()
        && report.clock_doubt.is_none()
        && report.withheld == 0
        && report.recovery.damaged == 0
        && report.unreadable == 0
        && !report.changes.iter().any(is_bad)
}

/// Files were to be read, and no packet was in them.
fn has_read_nothing(report: &Report) -> bool {
    let Account { offered, filter_rejects, .. } = report.total;
    report.is_of_files && offered == 0 && filter_rejects.unwrap_or(0) == 0
}

/// What was lost when, and what stood in the way.
fn losses(report: &Report) -> Vec<String> {
    let columns = report.pool_columns;
    let line = |loss: &Loss| {
        let Gap { cause, packets, from, to, .. } = &loss.gap;
        let cause = match cause {
            GapCause::InterfaceDrops => "in the card or its driver",
            GapCause::KernelDrops => "because the kernel ring was full",
            _ => "because the pool was exhausted",
        };
        format!(
            "lost: {} of {} (queue {}) {cause}, {from} to {to}; {} of {columns} columns were free, \
             {} unfinished",
            packets.map_or_else(|| "packets".to_owned(), |count| plural(count, "packet")),
            printable(&loss.interface),
            loss.queue,
            loss.pool_free,
            plural(u64::try_from(loss.unfinished_slots).unwrap_or(u64::MAX), "slot"),
        )
    };
    let left = report.losses.len().saturating_sub(LOSSES_SHOWN);
    let left = (left > 0).then(|| format!("lost: {left} further losses; --json has them"));
    report.losses.iter().take(LOSSES_SHOWN).map(line).chain(left).collect()
}

/// What was lost, what is missing besides, and what is not known; only where there is none of it,
/// nothing was lost.
fn verdict(report: &Report) -> String {
    let total = &report.total;
    let lost = total.kernel_drops + total.writer_drops + total.interface_drops.unwrap_or_default();
    let (missing, unknown) = (missing(report), unknown(report));
    let mut parts = Vec::new();
    if report.withheld > 0 {
        let stripes = plural(report.withheld, "stripe");
        parts.push(format!("not given out: packets of {stripes} beyond the maximum age"));
    }
    if lost > 0 {
        parts.push(format!("lost: {}; each loss is stored as a gap", plural(lost, "packet")));
    }
    if !missing.is_empty() {
        parts.push(format!("missing: {}", missing.join(", ")));
    }
    if !unknown.is_empty() {
        parts.push(format!("not known: {}", unknown.join(", ")));
    }
    if has_read_nothing(report) {
        parts.insert(0, "no packet was read".to_owned());
        return parts.join("; ");
    }
    match (lost, parts.is_empty()) {
        (_, true) if report.is_of_files => "every packet that arrived is stored".to_owned(),
        (_, true) => "nothing was lost".to_owned(),
        (0, false) => format!("every packet that arrived is stored; {}", parts.join("; ")),
        _ => parts.join("; "),
    }
}

/// What is missing from the volume although no counter has it.
fn missing(report: &Report) -> Vec<String> {
    let mut missing = Vec::new();
    if !report.broken_off.is_empty() {
        let count = u64::try_from(report.broken_off.len()).unwrap_or(u64::MAX);
        missing.push(format!("the rest of {} that broke off", plural(count, "input")));
    }
    let pieces = report.changes.iter().map(|change| match change.what {
        Change::Resilvered { lost, .. } => u64::try_from(lost).unwrap_or(u64::MAX),
        _ => 0,
    });
    match pieces.fold(0, u64::saturating_add) {
        0 => {}
        lost => missing.push(format!("{} that no member could give", plural(lost, "piece"))),
    }
    if report.recovery.damaged > 0 {
        let stripes = plural(report.recovery.damaged, "stripe");
        missing.push(format!("{stripes} of the earlier recording that cannot be read"));
    }
    if report.unreadable > 0 {
        let parts = plural(report.unreadable, "part");
        missing.push(format!("{parts} of earlier recordings that cannot be read"));
    }
    missing
}

/// What no counter has.
fn unknown(report: &Report) -> Vec<String> {
    let mut unknown = Vec::new();
    for account in report.interfaces.iter().take(INTERFACES_SHOWN) {
        let name = printable(&account.name);
        if account.times_down > 0 {
            let times = plural(account.times_down, "time");
            unknown.push(format!("what passed {name}, which was down {times}"));
        } else if account.is_away {
            unknown.push(format!("what passed {name} since it was gone"));
        }
    }
    let mut further = report.interfaces.iter().skip(INTERFACES_SHOWN);
    if further.any(|account| account.times_down > 0 || account.is_away) {
        unknown.push("what passed further interfaces that were down or gone".to_owned());
    }
    let crash = report.recovery.last_alive.filter(|_| !report.recovery.clean);
    if let Some(alive) = crash {
        unknown.push(format!("what passed after {alive}, when the earlier recorder ended"));
    }
    if report.clock_doubt.is_some() {
        unknown.push("whether the clock is right".to_owned());
    }
    // A file has no NIC; its notes say what was lost when it was captured.
    if report.total.interface_drops.is_none() && !report.is_of_files {
        unknown.push("drops in the NIC".to_owned());
    }
    unknown
}

/// What was not stored on purpose.
fn left_out(total: &Account) -> Option<String> {
    let Account { cut, copies, headers_only, .. } = *total;
    (cut + copies + headers_only > 0).then(|| {
        format!(
            "left out on purpose: {} by class, {copies} as copies; {headers_only} stored without \
             payload",
            plural(cut, "packet"),
        )
    })
}

fn accounts(report: &Report, width: Option<usize>) -> String {
    let shown = report.interfaces.iter().take(INTERFACES_SHOWN);
    // What comes from files may have no interface.
    let name = |account: &Account| match &*account.name {
        "" => "(files)".to_owned(),
        name => printable(name),
    };
    let mut rows: Vec<Vec<String>> = shown.map(|account| cells(&name(account), account)).collect();
    let left = report.interfaces.len().saturating_sub(INTERFACES_SHOWN);
    if left > 0 {
        rows.push(vec![format!("({left} more)")]);
    }
    if report.interfaces.len() > 1 {
        rows.push(cells("all", &report.total));
    }
    render(&ACCOUNT_COLUMNS, &rows, width)
}

fn cells(name: &str, account: &Account) -> Vec<String> {
    let known = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), grouped);
    vec![
        name.to_owned(),
        grouped(account.offered),
        grouped(account.stored),
        grouped(account.cut + account.copies),
        grouped(account.kernel_drops),
        grouped(account.writer_drops),
        known(account.interface_drops),
        known(account.filter_rejects),
        grouped(account.too_long),
    ]
}

/// How a recording is going, in one line.
pub fn recording_progress(progress: &Progress) -> String {
    let total = &progress.total;
    let lost = total.kernel_drops + total.writer_drops;
    let used = progress.pool_columns.saturating_sub(progress.pool_columns_free) * 100;
    format!(
        "{} offered, {} stored, {} lost; {} at {}; pool {} % used{}; {}",
        plural(total.offered, "packet"),
        grouped(total.stored),
        grouped(lost),
        ByteSize(progress.member_bytes),
        rate(progress.member_bytes, progress.elapsed_ns),
        used / progress.pool_columns.max(1),
        behind(progress),
        duration(progress.elapsed_ns),
    ) + &holds(progress)
}

/// What the indexer has had no time for.
fn behind(progress: &Progress) -> String {
    let waiting = match progress.unindexed.saturating_sub(progress.left_out) {
        0 => String::new(),
        packets => format!(", {} wait for the index", plural(packets, "packet")),
    };
    let left_out = match progress.left_out {
        0 => String::new(),
        packets => format!(", {} stay without one", plural(packets, "packet")),
    };
    let deaths = match progress.indexer_deaths {
        0 => String::new(),
        deaths => format!(", the indexer died {}", plural(deaths, "time")),
    };
    let long_waits = progress.long_waits.iter().map(|wait| format!(", {wait}"));
    let handed = progress.hand_over.as_ref().map_or(String::new(), handed_over);
    waiting + &left_out + &deaths + &long_waits.collect::<String>() + &handed
}

/// Who was to take over, and why it did not.
fn handed_over(of: &HandOver) -> String {
    let who = of.process.map_or("a recorder".to_owned(), |process| format!("process {process}"));
    let from = Timestamp(of.from_ns);
    match &of.taken_back {
        None => format!(", {who} takes over from {from} on"),
        Some(why) => {
            let times = plural(of.times_taken_back, "time");
            let why = printable(why);
            format!(
                ", {who} was to take over from {from} on, but {why}: this one went on ({times})"
            )
        }
    }
}

/// How far back the ring reaches when full.
fn holds(progress: &Progress) -> String {
    progress
        .holds_ns
        .map_or_else(String::new, |holds| format!("; holds {} at this rate", duration(holds)))
}

/// What the indexer left out for lack of memory, if it left out anything.
fn gave_way(gave_way: &GaveWay) -> Option<String> {
    let GaveWay { names, heads, pieces, sessions } = *gave_way;
    let parts = [
        (names, "payload", "not looked at for names"),
        (heads, "part of a message|parts of messages", "not kept for names"),
        (pieces, "row", "written early for long lists of pieces"),
        (sessions, "row", "written early for other sessions"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, noun, what)| {
            let noun = match noun.split_once('|') {
                Some((one, _)) if count == 1 => format!("1 {one}"),
                Some((_, many)) => format!("{} {many}", grouped(count)),
                None => plural(count, noun),
            };
            format!("{noun} {what}")
        })
        .collect();
    (!parts.is_empty()).then(|| format!("memory for sessions was used up: {}", parts.join(", ")))
}

/// A recording that goes on, of a process, and the same in a line, and a line for each disk.
#[derive(Serialize)]
struct Going<'a> {
    process: u32,
    #[serde(flatten)]
    progress: &'a Progress,
    recording: String,
    disk_lines: Vec<String>,
}

/// How the recording of this process is going, as a JSON object.
pub fn going_json(process: u32, progress: &Progress) -> String {
    let recording = recording_progress(progress);
    json_pretty(&Going { process, progress, recording, disk_lines: disks::lines(&progress.disks) })
}

/// A recording as a JSON object.
pub fn recording_json(report: &Report) -> String {
    json_pretty(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Epoch;

    #[test]
    fn nothing_was_lost_stands_only_where_nothing_is_missing_or_unknown() {
        use units::Timestamp;
        let heading = |report: &Report| {
            let text = recording(report, None);
            let line = text.lines().next().unwrap();
            line.strip_prefix("every packet that arrived is stored; ").unwrap_or(line).to_owned()
        };
        let account = |account: Account| {
            let account = Account { name: "eth0".to_owned(), ..account };
            let total = Account { interface_drops: account.interface_drops, ..<_>::default() };
            Report { interfaces: vec![account], total, ..Report::default() }
        };
        let known = Account { interface_drops: Some(0), ..Account::default() };
        assert_eq!(heading(&account(known.clone())), "nothing was lost");
        let down = Account { times_down: 2, ..known.clone() };
        let line = "not known: what passed eth0, which was down 2 times";
        assert_eq!(heading(&account(down)), line);
        let gone = Account { is_away: true, ..known.clone() };
        assert_eq!(heading(&account(gone)), "not known: what passed eth0 since it was gone");
        let unknown = Account { interface_drops: None, ..known.clone() };
        let mut of_a_nic = account(unknown);
        assert_eq!(heading(&of_a_nic), "not known: drops in the NIC");
        of_a_nic.is_of_files = true;
        assert_eq!(heading(&of_a_nic), "no packet was read");
        assert!(!is_clean(&of_a_nic));
        of_a_nic.total.filter_rejects = Some(1);
        assert_eq!(heading(&of_a_nic), "every packet that arrived is stored");
        of_a_nic.total = Account { offered: 1, stored: 1, ..Account::default() };
        assert_eq!(heading(&of_a_nic), "every packet that arrived is stored");
        assert!(is_clean(&of_a_nic));
        let withheld = Report { withheld: 2, ..of_a_nic };
        assert!(!is_clean(&withheld));
        assert_eq!(
            heading(&withheld),
            "not given out: packets of 2 stripes beyond the maximum age"
        );
        let mut broken = account(known.clone());
        broken.broken_off = vec!["a.pcap: cut".to_owned()];
        assert_eq!(heading(&broken), "missing: the rest of 1 input that broke off");
        let mut crashed = account(known.clone());
        (crashed.recovery.clean, crashed.recovery.last_alive) = (false, Some(Timestamp(0)));
        assert!(heading(&crashed).starts_with("not known: what passed after 1970"));
        let mut damaged = account(known.clone());
        damaged.recovery.damaged = 1;
        assert!(heading(&damaged).starts_with("missing: 1 stripe of the earlier recording"));
        let mut lossy = account(known);
        lossy.total.writer_drops = 3;
        assert_eq!(heading(&lossy), "lost: 3 packets; each loss is stored as a gap");
    }

    #[test]
    fn what_had_no_room_is_told_in_one_line_and_only_then() {
        let told = |gave_way| recording(&Report { gave_way, ..Report::default() }, None);
        assert!(!told(GaveWay::default()).contains("used up"));
        let all = GaveWay { names: 1000, heads: 1, pieces: 2, sessions: 1 };
        let line = "memory for sessions was used up: 1 000 payloads not looked at for names, 1 \
                    part of a message not kept for names, 2 rows written early for long lists of \
                    pieces, 1 row written early for other sessions";
        assert!(told(all).contains(line), "{}", told(all));
        let json = recording_json(&Report { gave_way: all, ..Report::default() });
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["gave_way"]["names"], 1000);
    }

    #[test]
    fn what_recorders_say_is_read_again() {
        use diagnose::recorder::parse_recorder;
        let mut progress = Progress { pool_columns: 128, unindexed: 3, ..Progress::default() };
        progress.disks.slow_writes = 7;
        let state = parse_recorder(&going_json(77, &progress)).unwrap();
        assert_eq!((state.process, &state.now), (Some(77), &progress));

        let report = Report { unread: 5, pool_columns: 64, ..Report::default() };
        let state = parse_recorder(&recording_json(&report)).unwrap();
        assert_eq!((state.process, state.unread, state.now.pool_columns), (None, 5, 64));
        assert!(parse_recorder("{}").is_err());
    }

    #[test]
    fn the_report_of_a_recording_is_read_as_it_was_written() {
        use ::prove::parse_recording;
        let report = Report {
            pool_columns: 9,
            pool_columns_used_max: 3,
            epoch: Epoch(4),
            ..Report::default()
        };
        let read = parse_recording(&recording_json(&report), Duration::from_secs(1)).unwrap();
        assert_eq!((read.pool_columns, read.epoch, read.cpu.as_secs()), (9, Epoch(4), 1));
        let error = parse_recording("{}", Duration::ZERO).unwrap_err().to_string();
        assert!(error.starts_with("not the report of a recording: missing field"), "{error}");
    }
}
