//! A replay that has ended, and how one is going.

use core::time::Duration;

use ::replay::{Progress, Report, Skipped, Timing};
use page::safe::{json_pretty, printable};
use page::text::{bits, duration, grouped, plural, took};
use serde::Serialize;
use units::ByteSize;
use units::number::{between, per_second};

/// A replay, in words.
pub fn replayed(report: &Report) -> String {
    let mut lines = vec![verdict(report).to_owned()];
    let sent = (report.packets > 0).then(|| {
        format!(
            "{}, {} in {}: {}, {} of frames; {}{}",
            plural(report.packets, "packet"),
            ByteSize(report.bytes),
            duration(report.elapsed_ns),
            report.packets_per_second().map_or_else(unknown, |rate| plural(rate, "packet") + "/s"),
            report.bits_per_second().map_or_else(unknown, bits),
            plural(report.loops(), "loop"),
            if report.is_streamed { ", read while they were sent" } else { "" },
        )
    });
    lines.extend(sent);
    if let Some(timing) = report.timing {
        let late = |nanos: u64| took(Duration::from_nanos(nanos));
        lines.push(format!(
            "behind the schedule: half of the packets at most {}, 99 % {}, all {}",
            late(timing.p50_ns),
            late(timing.p99_ns),
            late(timing.max_ns),
        ));
    }
    lines.extend(not_sent(report));
    if report.refusals > 0 {
        let times = plural(report.refusals, "time");
        let what = "the queue of the interface was full, and packets were offered again";
        lines.push(format!("{times} {what}"));
    }
    lines.extend(report.broken_off.iter().map(|line| format!("broken off: {}", printable(line))));
    lines.extend(report.notes.iter().map(|line| format!("note: {}", printable(line))));
    lines.join("\n") + "\n"
}

fn verdict(report: &Report) -> &'static str {
    match (report.is_clean(), report.is_stopped) {
        (true, _) if report.interface_drops.is_none() => {
            "all packets were sent (drops of the interface are not known)"
        }
        (true, _) => "all packets were sent",
        (false, true) => "stopped before the end",
        _ if report.packets == 0 && report.skipped.total() == 0 => "there was no packet to send",
        (false, false) => "not all packets were sent as asked",
    }
}

/// What was left out, or changed less than asked, by reason.
fn not_sent(report: &Report) -> Vec<String> {
    let skipped = &report.skipped;
    let reasons = [
        (skipped.truncated, "not whole in the capture (--pad fills them up)"),
        (skipped.too_long, "longer than the MTU of the interface allows"),
        (skipped.too_short, "shorter than an Ethernet header"),
        (skipped.link_type, "no Ethernet frame"),
    ];
    let there = reasons.iter().filter(|(count, _)| *count > 0);
    let mut lines: Vec<String> = there
        .map(|(count, why)| format!("left out of each loop: {}, {why}", plural(*count, "packet")))
        .collect();
    if report.unchanged > 0 {
        let packets = plural(report.unchanged, "packet");
        lines.push(format!(
            "{packets} of later loops are as they were: no IP address that may change, or a route \
             that the sender chose"
        ));
    }
    if let Some(drops @ 1..) = report.interface_drops {
        let packets = plural(drops, "packet");
        lines.push(format!("{packets} dropped by the interface meanwhile, of whatever sender"));
    }
    lines
}

fn unknown() -> String {
    "at once".to_owned()
}

/// How a replay is going, in one line.
pub fn replay_progress(progress: &Progress) -> String {
    if progress.packets == 0 && progress.loaded_packets > 0 {
        return format!("{} read", plural(progress.loaded_packets, "packet"));
    }
    let rate = |count: u64| per_second(count, between(0, progress.elapsed_ns));
    format!(
        "{} sent, {} packets/s, {}",
        plural(progress.packets, "packet"),
        grouped(rate(progress.packets)),
        bits(rate(progress.bytes.saturating_mul(8))),
    )
}

#[derive(Serialize)]
struct Replayed<'a> {
    clean: bool,
    stopped: bool,
    packets: u64,
    frame_bytes: u64,
    loops: u64,
    loop_packets: u64,
    elapsed_ns: i64,
    packets_per_s: Option<u64>,
    bits_per_s: Option<u64>,
    lateness: Option<Timing>,
    skipped: Skipped,
    not_unique: u64,
    refusals: u64,
    interface_drops: Option<u64>,
    streamed: bool,
    broken_off: &'a [String],
    notes: &'a [String],
}

/// A replay, as JSON.
pub fn replayed_json(report: &Report) -> String {
    json_pretty(&Replayed {
        clean: report.is_clean(),
        stopped: report.is_stopped,
        packets: report.packets,
        frame_bytes: report.bytes,
        loops: report.loops(),
        loop_packets: report.loop_packets,
        elapsed_ns: report.elapsed_ns,
        packets_per_s: report.packets_per_second(),
        bits_per_s: report.bits_per_second(),
        lateness: report.timing,
        skipped: report.skipped,
        not_unique: report.unchanged,
        refusals: report.refusals,
        interface_drops: report.interface_drops,
        streamed: report.is_streamed,
        broken_off: &report.broken_off,
        notes: &report.notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_tells_rates_lateness_and_what_was_left_out() {
        let report = Report {
            packets: 3000,
            bytes: 4_500_000,
            elapsed_ns: 2_000_000_000,
            loop_packets: 1000,
            skipped: Skipped { too_long: 2, ..Skipped::default() },
            interface_drops: Some(0),
            timing: Some(Timing { p50_ns: 1500, p99_ns: 9000, max_ns: 2_500_000 }),
            ..Report::default()
        };
        assert_eq!(
            replayed(&report),
            "not all packets were sent as asked\n\
             3 000 packets, 4.29 MiB in 2.0 s: 1 500 packets/s, 18.00 Mbit/s of frames; 3 loops\n\
             behind the schedule: half of the packets at most 1.5 us, 99 % 9.0 us, all 2.5 ms\n\
             left out of each loop: 2 packets, longer than the MTU of the interface allows\n"
        );
        let clean = Report { skipped: Skipped::default(), ..report };
        assert!(replayed(&clean).starts_with("all packets were sent\n"));
        let unknown = Report { interface_drops: None, ..clean };
        assert!(replayed(&unknown).starts_with("all packets were sent (drops of the interface"));
        let told = Report {
            broken_off: vec!["broken".to_owned()],
            notes: vec!["a note".to_owned()],
            unchanged: 4,
            refusals: 5,
            ..unknown
        };
        assert_eq!(replayed_json(&told), include_str!("replay_frozen.json"));
    }
}
