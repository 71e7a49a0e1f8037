//! Volumes salvaged.

use extract::{Loss, SalvageReport, Unopened};
use page::safe::json_pretty;
use page::text::{grouped, plural, times};
use units::MemberId;
use units::number::to_u64;

/// Losses that are shown; the JSON has them all.
const LOSSES_SHOWN: usize = 20;

/// A salvage, in words: what was found, what was written, then what is lost.
pub fn salvaged(report: &SalvageReport) -> String {
    let geometry = &report.geometry;
    let shape = match geometry.parity_columns {
        0 => plural(u64::from(geometry.columns()), "member"),
        parity => format!("{} members, {parity} of them parity", geometry.columns()),
    };
    let mut lines = vec![format!("volume {} of {shape}", report.volume_id)];
    lines.push(if report.has_key {
        "a superblock is left, and so the key of its heads".to_owned()
    } else {
        "no superblock is left: heads were checked by place and chain, not by a key".to_owned()
    });
    if !report.absent.is_empty() {
        lines.push(format!("not found: member {}", numbers(&report.absent)));
    }
    for place in &report.strangers {
        lines.push(format!("the device in place {} holds nothing of it", place + 1));
    }
    for Unopened { place, error } in &report.unopened {
        lines.push(format!("the device in place {} is left out: {error}", place + 1));
    }
    let above = if report.through > report.acknowledged {
        format!("; whole stripes up to {} were above the watermark", report.through)
    } else {
        String::new()
    };
    lines.push(format!("watermark {}{above}", report.acknowledged));
    lines.push(format!("{} written", plural(report.extract.packets, "packet")));
    lines.extend(losses(report));
    lines.join("\n") + "\n"
}

fn losses(report: &SalvageReport) -> Vec<String> {
    let SalvageReport { losses, sums, .. } = report;
    let (packets, unknown) = (sums.lost_packets, sums.unknown_stripes);
    let stripes = to_u64(losses.len());
    let mut lines = Vec::new();
    if losses.is_empty() {
        lines.push("nothing is lost".to_owned());
    }
    if stripes > unknown {
        let of = plural(stripes - unknown, "stripe");
        lines.push(format!("lost: {} of {of}", plural(packets, "packet")));
    }
    if unknown > 0 {
        let most = grouped(sums.unknown_packets_at_most);
        lines.push(format!(
            "lost: {} without a readable head; how many packets they held is unknown, at most \
             {most}",
            plural(unknown, "stripe")
        ));
    }
    lines.extend(losses.iter().take(LOSSES_SHOWN).map(line));
    if losses.len() > LOSSES_SHOWN {
        let more = stripes - to_u64(LOSSES_SHOWN);
        lines.push(format!("and {} more; --json lists them all", grouped(more)));
    }
    lines
}

fn line(loss: &Loss) -> String {
    let when = loss.times.map_or_else(String::new, |(from, to)| format!(", {}", times((from, to))));
    match (loss.packets, loss.of_packets) {
        (Some(packets), Some(all)) => {
            format!(
                "stripe {}: {} of {}{when}",
                loss.stripe,
                grouped(packets),
                plural(all, "packet")
            )
        }
        _ => format!("stripe {}: all of it, an unknown number of packets", loss.stripe),
    }
}

fn numbers(members: &[MemberId]) -> String {
    members.iter().map(MemberId::to_string).collect::<Vec<_>>().join(", ")
}

/// A salvage as a JSON object.
pub fn salvaged_json(report: &SalvageReport) -> String {
    json_pretty(report)
}
