//! What a trickle of packets costs: bytes written to the members for each byte of packets.
//!
//! Packets come at a constant rate through a pipe, as from a link. At each time cut what there is
//! becomes a stripe of whole rows, one head a member, and parity, and after silence a head follows
//! with the watermark.

#![expect(clippy::disallowed_methods, reason = "packets come at a pace")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use core::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use units::number::real;

use crate::outcome::Outcome;
use crate::program::{self, now_seconds};

/// Bytes of a packet and of the header that pcap puts in front.
const PACKET_BYTES: usize = 1000;
const PCAP_HEADER_BYTES: usize = 16;
/// Packets go out in batches at most so often.
const TICK: Duration = Duration::from_millis(5);
/// Bytes of packets a second.
const RATES: [u64; 3] = [1_000, 1_000_000, 50_000_000];
/// Data and parity columns.
const SHAPES: [(usize, usize); 2] = [(1, 0), (4, 2)];

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// An empty directory for the volumes
    directory: PathBuf,
    /// The recorder; else the one built beside this program
    #[arg(long)]
    wirespool: Option<PathBuf>,
    /// Seconds of each recording
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// How long packets may wait for others
    #[arg(long, default_value = "1s")]
    flush_interval: String,
    /// Size of each member
    #[arg(long, default_value = "1G")]
    size: String,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let program = program::wirespool(options.wirespool.as_deref())?;
    std::fs::create_dir_all(&options.directory)?;
    let mut outcome = Outcome::new("low rate: bytes written to the members a byte of packets");
    outcome.line(format!(
        "packets of {PACKET_BYTES} bytes for {} s, flush interval {}",
        options.seconds, options.flush_interval
    ));
    for (data, parity) in SHAPES {
        for rate in RATES {
            let report = one(&program, options, (data, parity), rate)?;
            let count = |name: &str| report.get(name).and_then(Value::as_u64).context("no count");
            let (packets, written) = (count("stored")?, count("member_bytes")?);
            ensure!(count("offered")? == packets, "packets were lost: nothing was measured");
            let bytes = packets * u64::try_from(PACKET_BYTES)?;
            let index = count("index_bytes")?;
            let ratio = real(written) / real(bytes);
            outcome.line(format!(
                "{data}+{parity} at {:>6} kB/s: {ratio:7.3} ({written} of {bytes} bytes; index \
                 {index} bytes before parity)",
                rate / 1000
            ));
            outcome.push_json(
                "runs",
                json!({ "data_columns": data, "parity_columns": parity, "rate": rate,
                        "packet_bytes": bytes, "member_bytes": written, "ratio": ratio,
                        "index_bytes": index }),
            );
        }
    }
    outcome.not_proven("what a device writes inside for each byte that it is given");
    outcome.not_proven("traffic with other sizes of packets, or with more sessions");
    Ok(outcome)
}

/// Makes a volume, records at the rate, and gives the recorder's report.
fn one(
    program: &PathBuf,
    options: &Options,
    (data, parity): (usize, usize),
    rate: u64,
) -> Result<Value> {
    let member = |number: usize| options.directory.join(format!("member-{number}"));
    let mut create = Command::new(program);
    create.arg("create").arg(member(0)).args(["--size", &options.size, "--sparse", "--force"]);
    create.args(["--parity", &parity.to_string()]);
    for number in 1..data + parity {
        create.arg("--member").arg(member(number));
    }
    program::run(&mut create)?;
    let mut record = Command::new(program);
    record.arg("record").arg(member(0)).args(["--read", "-", "--json", "--pool", "64M"]);
    record.args(["--flush-interval", &options.flush_interval]);
    record.arg("--index-dir").arg(options.directory.join("index"));
    let mut recorder = record
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("the recorder cannot be started")?;
    let mut input = recorder.stdin.take().context("the recorder has no input")?;
    feed(&mut input, rate, options.seconds)?;
    drop(input);
    let ended = recorder.wait_with_output()?;
    ensure!(ended.status.success(), "the recorder failed: {}", ended.status);
    for number in 0..data + parity {
        std::fs::remove_file(member(number))?;
    }
    Ok(serde_json::from_slice(&ended.stdout)?)
}

/// A pcap stream of one conversation, at a constant rate.
fn feed(out: &mut dyn Write, rate: u64, seconds: u32) -> Result<()> {
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        out.write_all(&word.to_le_bytes())?;
    }
    let packet_bytes = u64::try_from(PACKET_BYTES)?;
    let (start, mut sent) = (now_seconds(), 0_u64);
    loop {
        let elapsed = now_seconds() - start;
        if elapsed >= f64::from(seconds) {
            return Ok(());
        }
        let mut batch = Vec::new();
        while real(sent * packet_bytes) < elapsed * real(rate) {
            batch.extend(packet(sent)?);
            sent += 1;
        }
        out.write_all(&batch)?;
        // Without a sleep the pace would take a core from the recorder.
        std::thread::sleep(TICK);
    }
}

/// UDP between two hosts, a millisecond after the one before.
fn packet(number: u64) -> Result<Vec<u8>> {
    let mut packet = Vec::with_capacity(PCAP_HEADER_BYTES + PACKET_BYTES);
    let (seconds, micros) = (1_700_000_000 + number / 1000, number % 1000 * 1000);
    let length = u32::try_from(PACKET_BYTES)?;
    for word in [u32::try_from(seconds)?, u32::try_from(micros)?, length, length] {
        packet.extend(word.to_le_bytes());
    }
    let ip_length = u16::try_from(PACKET_BYTES - 14)?;
    packet.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0]);
    packet.extend(ip_length.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x10, 0, 0x20, 0]);
    packet.extend((ip_length - 20).to_be_bytes());
    packet.extend([0, 0]);
    // No two payloads are alike, as in traffic that is encrypted.
    let mut state = number;
    while packet.len() < PCAP_HEADER_BYTES + PACKET_BYTES {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        let [.., last] = state.to_be_bytes();
        packet.push(last);
    }
    Ok(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_keeps_its_rate_and_is_whole_packets() {
        let mut out = Vec::new();
        feed(&mut out, 200_000, 1).unwrap();
        let records = out.len() - 24;
        assert!(records.is_multiple_of(PCAP_HEADER_BYTES + PACKET_BYTES));
        let packets = records / (PCAP_HEADER_BYTES + PACKET_BYTES);
        assert!((190..=200).contains(&packets), "{packets}");
    }
}
