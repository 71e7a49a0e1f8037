//! What decoding and the session table cost a packet, and a row its place in the index, on one
//! core.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use format::head::{StripeId, VolumeId};
use host::TemporaryDirectory;
use index::SegmentMeta;
use serde_json::json;
use session::{Config, PacketView, SessionRow, Table};
use units::number::real;
use units::{Epoch, Random, Sequence, Timestamp};
use wire::{Decoded, LinkType, decode_into};

use crate::mix::{self, Flow};
use crate::outcome::Outcome;
use crate::packets::Packets;
use crate::program::now_seconds;
use crate::statistics::Sample;

const REPETITIONS: usize = 5;
const FRAME_BYTES: usize = 64;
/// Of TCP in such a frame: less 14, 20 and 20 of headers.
const PAYLOAD_BYTES: u32 = 10;
/// 10 million packets a second at 64 bytes.
const GOAL_NS: f64 = 100.0;
/// Names may cost 30 % of the throughput.
const NAMES_GOAL: f64 = 0.7;
const NANOS: f64 = 1e9;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// A capture file, or a directory of captures, to measure too
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// Whole conversations too: 1.5 million packets of 100 000, made in a temporary folder
    #[arg(long)]
    traffic: bool,
    /// Sessions that the packets of 64 bytes belong to
    #[arg(long, default_value_t = 100_000)]
    sessions: u32,
    /// Packets of 64 bytes
    #[arg(long, default_value_t = 2_000_000)]
    packets: u32,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let mut outcome = Outcome::new("sessions: decoding and the session table on one core");
    ensure!(options.sessions > 0, "packets belong to sessions");
    let (opening, packets) = small_packets(options);
    let label = format!("64 B, {} sessions alive", options.sessions);
    let table = measure(&mut outcome, &label, Some(&opening), &packets)?;
    let ten_millions = table.map(|ns| GOAL_NS / ns)?;
    let what = "64 B, decoding and table: packets a second, in units of 10 M";
    outcome.judge(what, &ten_millions, 1.0);
    if let Some(path) = &options.corpus {
        let packets = Packets::read(path)?;
        ensure!(packets.count() > 0, "no packets below {}", path.display());
        measure(&mut outcome, "captures, new sessions included", None, &packets)?;
        encode(&mut outcome, ("captures", "encode_row_of_captures_ns"), &[&packets])?;
        if packets.broken_off > 0 {
            outcome
                .line(format!("{} inputs broke off and were taken that far", packets.broken_off));
        }
    }
    if options.traffic {
        let packets = conversations()?;
        measure(&mut outcome, "conversations", None, &packets)?;
        encode(&mut outcome, ("conversations", "encode_row_of_conversations_ns"), &[&packets])?;
    }
    encode(&mut outcome, ("64 B", "encode_row_ns"), &[&opening, &packets])?;
    outcome.not_proven("reading packets out of pieces");
    outcome.not_proven("more than one core, or a core that shares its caches with a busy one");
    Ok(outcome)
}

fn conversations() -> Result<Packets> {
    let folder = TemporaryDirectory::new("wirespool-bench")?;
    let path = folder.path().join("traffic.pcap");
    mix::write(&path, mix::Amount { packets: 1_500_000, flows: 100_000, traffic: true })?;
    Packets::read(&path)
}

/// One packet of every session, and then packets of any of them.
fn small_packets(options: &Options) -> (Packets, Packets) {
    let mut random = Random::new(2);
    let flows: Vec<Flow> = (0..options.sessions).map(|_| Flow::random(&mut random)).collect();
    let (mut opening, mut packets) = (Packets::default(), Packets::default());
    let mut frame = Vec::with_capacity(FRAME_BYTES);
    let mut push = |into: &mut Packets, flow: &Flow, tcp: [u32; 2], number: u32| {
        frame.clear();
        flow.packet(tcp, FRAME_BYTES, &[0; FRAME_BYTES], &mut frame);
        let original_len = u32::try_from(frame.len()).expect("64 fits");
        let time = Timestamp(i64::from(number) * 1000);
        into.push((time, original_len), LinkType::ETHERNET, &[&frame]);
    };
    for (number, flow) in (0..).zip(&flows) {
        push(&mut opening, flow, [0; 2], number);
    }
    // What each end has sent so far: connections without loss.
    let mut sent: Vec<[u32; 2]> = vec![[PAYLOAD_BYTES, 0]; flows.len()];
    for number in options.sessions..options.sessions + options.packets {
        let place = usize::try_from(random.below(options.sessions.into())).expect("32 bits fit");
        let flow = *flows.get(place).expect("below the number of flows");
        let [orig, resp] = sent.get_mut(place).expect("as many as flows");
        let is_orig = random.below(2) == 0;
        let flow = if is_orig { flow } else { flow.reversed() };
        let (mine, other) = if is_orig { (orig, resp) } else { (resp, orig) };
        push(&mut packets, &flow, [*mine, *other], number);
        *mine += PAYLOAD_BYTES;
    }
    (opening, packets)
}

/// Adds lines and returns the nanoseconds a packet of decoding and table together, without names.
fn measure(
    outcome: &mut Outcome,
    label: &str,
    opening: Option<&Packets>,
    packets: &Packets,
) -> Result<Sample> {
    let views = packets.views_from(opening.map_or(0, Packets::piece_count));
    let opening = opening.map(Packets::views).unwrap_or_default();
    let count = real(u64::try_from(views.len())?);
    let mut rows = Vec::new();
    let decoding = Sample::new((0..REPETITIONS).map(|_| decode(&views) * NANOS / count))?;
    let mut run = |finds_names: bool| {
        rows.clear();
        let mut table = Table::new(Config::default(), 1);
        table.find_names(finds_names);
        table.push_all(opening.iter().copied(), &mut rows);
        let start = now_seconds();
        table.push_all(views.iter().copied(), &mut rows);
        (now_seconds() - start) * NANOS / count
    };
    // One after the other, so that a change of the machine falls on both.
    let pairs: Vec<[f64; 2]> = (0..REPETITIONS).map(|_| [run(true), run(false)]).collect();
    let with_table = Sample::new(pairs.iter().map(|[with, _]| *with))?;
    let nameless = Sample::new(pairs.iter().map(|[_, without]| *without))?;
    let throughput = Sample::new(pairs.iter().map(|[with, without]| without / with))?;
    outcome.line(format!(
        "{label}: {} packets; decoding {:.1} ns a packet (spread {:.0} %)",
        views.len(),
        decoding.median(),
        decoding.spread() * 100.0,
    ));
    for (what, sample) in [("table", &nameless), ("table and names", &with_table)] {
        outcome.line(format!(
            "{label}: decoding, {what} {:.1} ns a packet (spread {:.0} %) = {:.1} M packets/s",
            sample.median(),
            sample.spread() * 100.0,
            1e3 / sample.median(),
        ));
    }
    outcome.judge("the same: throughput with names, of that without", &throughput, NAMES_GOAL);
    outcome.push_json(
        "runs",
        json!({
            "traffic": label,
            "packets": views.len(),
            "decode_ns": decoding.median(),
            "decode_spread": decoding.spread(),
            "decode_and_table_ns": with_table.median(),
            "decode_and_table_spread": with_table.spread(),
            "without_names_ns": nameless.median(),
            "throughput_with_names": throughput.median(),
        }),
    );
    Ok(nameless)
}

/// What it costs to turn the sessions' rows into a segment's file.
fn encode(outcome: &mut Outcome, (label, key): (&str, &str), packets: &[&Packets]) -> Result<()> {
    let (mut table, mut rows): (Table, Vec<SessionRow>) =
        (Table::new(Config::default(), 1), Vec::new());
    let mut pieces = 0;
    for packets in packets {
        table.push_all(packets.views_from(pieces), &mut rows);
        pieces += packets.piece_count();
    }
    table.finish(&mut rows);
    let stripe = |sequence| StripeId { sequence: Sequence(sequence), sub: 0 };
    let meta = SegmentMeta::new(VolumeId([1; 16]), Epoch(1), stripe(1), stripe(2));
    let count = real(u64::try_from(rows.len())?);
    let mut bytes = 0;
    let times = (0..REPETITIONS).map(|_| {
        let start = now_seconds();
        bytes = index::encode(&meta, &rows)?.parquet.len();
        Ok((now_seconds() - start) * NANOS / count)
    });
    let row = Sample::new(times.collect::<Result<Vec<f64>>>()?)?;
    outcome.line(format!(
        "{label}: index file of {} rows, {bytes} bytes: {:.0} ns a row (spread {:.0} %)",
        rows.len(),
        row.median(),
        row.spread() * 100.0,
    ));
    outcome.json(key, row.median());
    Ok(())
}

/// Seconds to decode all packets.
fn decode(views: &[PacketView<'_>]) -> f64 {
    let mut decoded = Decoded::default();
    let start = now_seconds();
    for packet in views {
        decode_into(&mut decoded, packet.link_type, packet.data, packet.original_len);
        core::hint::black_box(&decoded);
    }
    now_seconds() - start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_packets_belong_to_as_many_sessions_as_said() {
        let options = Options { corpus: None, traffic: false, sessions: 500, packets: 3000 };
        let (opening, packets) = small_packets(&options);
        let (mut table, mut rows) = (Table::new(Config::default(), 1), Vec::new());
        table.push_all(opening.views(), &mut rows);
        assert!(rows.is_empty());
        // Two flows in 500 of 2^22 x 2^16 x ... are hardly ever the same.
        assert_eq!(table.session_count(), 500);
        table.push_all(packets.views(), &mut rows);
        assert_eq!((table.session_count(), rows.len()), (500, 0));
        table.finish(&mut rows);
        let counted: u64 = rows.iter().map(|row| row.orig.packets + row.resp.packets).sum();
        assert_eq!(counted, 3500);
        let lost: u64 = rows.iter().map(|row| row.orig.missed_bytes + row.resp.missed_bytes).sum();
        assert_eq!(lost, 0, "connections without loss");
    }
}
