//! Volumes salvaged.

use extract::{Loss, SalvageReport, Unopened};
use format::geometry::{Geometry, ROW_BYTES};
use page::safe::json_pretty;
use page::text::{grouped, plural, times};
use serde::Serialize;
use units::number::to_u64;

/// Losses that are shown; the JSON has them all.
const LOSSES_SHOWN: usize = 20;

/// An Enhanced Packet Block without a packet's bytes: type, two lengths of the block, interface,
/// time, two lengths of the packet (draft-ietf-opsawg-pcapng, section 4.3).
const PACKET_BLOCK_BYTES_MIN: u64 = 32;

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
    let losses = &report.losses;
    let (packets, unknown) = (lost_packets(losses), unknown_stripes(losses));
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
        let most = grouped(unknown.saturating_mul(packets_max(&report.geometry)));
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

fn lost_packets(losses: &[Loss]) -> u64 {
    units::number::sum(losses.iter().filter_map(|loss| loss.packets))
}

/// Stripes of which nothing says how many packets they held.
fn unknown_stripes(losses: &[Loss]) -> u64 {
    to_u64(losses.iter().filter(|loss| loss.packets.is_none()).count())
}

/// As many as fit into a slot if none of them had a byte.
fn packets_max(geometry: &Geometry) -> u64 {
    let body_bytes = geometry.piece_bytes - ROW_BYTES;
    u64::from(geometry.data_columns) * u64::from(body_bytes) / PACKET_BLOCK_BYTES_MIN
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

fn numbers(members: &[u8]) -> String {
    members.iter().map(u8::to_string).collect::<Vec<_>>().join(", ")
}

#[derive(Serialize)]
struct SalvageJson<'a> {
    volume_id: String,
    data_columns: u8,
    parity_columns: u8,
    has_key: bool,
    members: &'a [u8],
    absent: &'a [u8],
    strangers: &'a [usize],
    unopened: Vec<UnopenedJson>,
    acknowledged: String,
    through: String,
    packets: u64,
    lost_packets: u64,
    unknown_stripes: u64,
    unknown_packets_at_most: u64,
    complete: bool,
    losses: Vec<LossJson>,
}

#[derive(Serialize)]
struct UnopenedJson {
    /// Among those named, from 0, as those of strangers.
    place: usize,
    error: String,
}

#[derive(Serialize)]
struct LossJson {
    stripe: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_ns: Option<i64>,
}

/// A salvage as a JSON object.
pub fn salvaged_json(report: &SalvageReport) -> String {
    let losses = report.losses.iter().map(|loss| LossJson {
        stripe: loss.stripe.to_string(),
        packets: loss.packets,
        of_packets: loss.of_packets,
        from_ns: loss.times.map(|(from, _)| from.0),
        to_ns: loss.times.map(|(_, to)| to.0),
    });
    let unopened = report
        .unopened
        .iter()
        .map(|Unopened { place, error }| UnopenedJson { place: *place, error: error.to_string() });
    let unknown = unknown_stripes(&report.losses);
    json_pretty(&SalvageJson {
        volume_id: report.volume_id.to_string(),
        data_columns: report.geometry.data_columns,
        parity_columns: report.geometry.parity_columns,
        has_key: report.has_key,
        members: &report.members,
        absent: &report.absent,
        strangers: &report.strangers,
        unopened: unopened.collect(),
        acknowledged: report.acknowledged.to_string(),
        through: report.through.to_string(),
        packets: report.extract.packets,
        lost_packets: lost_packets(&report.losses),
        unknown_stripes: unknown,
        unknown_packets_at_most: unknown.saturating_mul(packets_max(&report.geometry)),
        complete: report.losses.is_empty() && !report.extract.manifest.completeness.stopped,
        losses: losses.collect(),
    })
}
