//! Every capture of the corpus gives the packets, sizes and times that independent readers found in it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use capture::{Error, FileOptions, FileSource, Next, Source};
use units::{NANOS_PER_SECOND, Timestamp};

/// What a source handed out, until it ended.
#[derive(Default, Debug)]
struct Seen {
    packets: u64,
    wire_bytes: u64,
    captured_bytes: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    times: Vec<Timestamp>,
    link_types: Vec<u16>,
    interfaces: usize,
    kept_blocks: usize,
    error: Option<Error>,
}

fn read(source: &mut FileSource) -> Seen {
    let mut seen = Seen::default();
    loop {
        match source.next_batch(Duration::from_millis(100)) {
            Ok(Next::Packets(batch)) => {
                for packet in batch {
                    assert!(packet.tag.is_none() && packet.tail.is_empty());
                    seen.packets += 1;
                    seen.wire_bytes += u64::from(packet.original_len);
                    seen.captured_bytes += u64::try_from(packet.captured_len()).unwrap();
                    seen.times.push(packet.timestamp);
                }
            }
            Ok(Next::Block(_)) => seen.kept_blocks += 1,
            Ok(Next::Idle) => {}
            Ok(Next::End) => break,
            Err(error) => assert!(seen.error.replace(error).is_none(), "one file, one error"),
        }
    }
    seen.first = seen.times.iter().min().copied();
    seen.last = seen.times.iter().max().copied();
    seen.link_types = source.interfaces().iter().map(|interface| interface.link_type.0).collect();
    seen.interfaces = source.interfaces().len();
    let counters = source.counters();
    let delivered: u64 = counters.iter().map(|counters| counters.delivered).sum();
    assert_eq!(delivered, seen.packets);
    assert!(counters.iter().all(|counters| counters.received == counters.delivered));
    seen
}

fn read_file(path: &Path) -> Seen {
    read(&mut FileSource::open(path, FileOptions::default()).unwrap())
}

fn corpus() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/corpus");
    if !path.is_dir() {
        println!("not run: the corpus is not there ({})", path.display());
        return None;
    }
    Some(path)
}

/// Rows of a table by the name in their first column.
fn table(path: &Path) -> Vec<HashMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split('\t').collect();
    lines
        .map(|line| {
            names.iter().zip(line.split('\t')).map(|(&k, v)| (k.to_owned(), v.to_owned())).collect()
        })
        .collect()
}

/// Seconds with decimals, as capinfos prints them.
fn capinfos_time(text: &str) -> Option<Timestamp> {
    let (seconds, fraction) = text.split_once('.')?;
    if fraction.starts_with('-') || seconds.starts_with('-') {
        return None;
    }
    let nanos: i64 = format!("{fraction:0<9}").parse().ok()?;
    Some(Timestamp(seconds.parse::<i64>().ok()? * NANOS_PER_SECOND + nanos))
}

#[test]
fn every_capture_gives_the_packets_that_independent_readers_found() {
    let Some(corpus) = corpus() else { return };
    let capinfos: HashMap<String, HashMap<String, String>> =
        table(&corpus.join("ref/capinfos.tsv"))
            .into_iter()
            .map(|row| (row["File name"].clone(), row))
            .collect();
    let rows = table(&corpus.join("ref/container.tsv"));
    let (mut packets, mut times_compared) = (0, 0);
    let mut wrong = Vec::new();
    for row in &rows {
        let name = &row["file"];
        let number = |column: &str| row[column].parse::<u64>().unwrap_or(0);
        let seen = read_file(&corpus.join("pcap").join(name));
        packets += seen.packets;
        // container.tsv counts the padding of Simple Packet Blocks as captured.
        let captured = number("cap_bytes").checked_sub(simple_packet_padding(name));
        if (seen.packets, seen.wire_bytes, Some(seen.captured_bytes))
            != (number("packets"), number("wire_bytes"), captured)
        {
            wrong.push(format!(
                "{name}: {} {} {}, expected {row:?}",
                seen.packets, seen.wire_bytes, seen.captured_bytes
            ));
        }
        let damaged = !row["truncated"].is_empty() || !row["corrupt"].is_empty();
        if damaged != seen.error.is_some() {
            wrong.push(format!("{name}: damaged is {damaged}, found {:?}", seen.error));
        }
        let Some(info) = capinfos.get(name) else { continue };
        if number("bad_frac") > 0 {
            continue;
        }
        let expect = (capinfos_time(&info["Start time"]), capinfos_time(&info["End time"]));
        if expect.0.is_some() && expect.1.is_some() {
            times_compared += 1;
            if (seen.first, seen.last) != expect {
                wrong
                    .push(format!("{name}: {:?} {:?}, expected {expect:?}", seen.first, seen.last));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} captures differ:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
    println!("{} captures, {packets} packets, {times_compared} time ranges agree", rows.len());
    assert!(rows.len() > 500 && times_compared > 500);
}

fn simple_packet_padding(name: &str) -> u64 {
    match name.rsplit_once("test").map(|(_, number)| number) {
        Some("010.pcapng") => 8,
        Some("012.pcapng") => 3,
        Some("016.pcapng" | "018.pcapng" | "100.pcapng") => 4,
        _ => 0,
    }
}

#[test]
fn derived_captures_give_every_packet_before_their_damage_and_name_it() {
    let Some(corpus) = corpus() else { return };
    let rows = table(&corpus.join("derived/DERIVED.tsv"));
    for row in &rows {
        let name = row["file"].as_str();
        let seen = read_file(&corpus.join("derived").join(name));
        assert_eq!(seen.packets, row["packets_expected"].parse::<u64>().unwrap(), "{name}");
        let line = seen.error.map(|error| error.to_string()).unwrap_or_default();
        let told = line.split_once(".pcap").map_or("", |(_, rest)| rest);
        let expect = match name {
            "cut-mid-record.pcap" => {
                ": damaged at byte 9548: the file ends inside a packet: 69 of 76 bytes are there"
            }
            "cut-mid-record-header.pcap" => {
                ": damaged at byte 9548: the file ends inside a record header: 9 of 16 bytes are there"
            }
            "cut-file-header.pcap" => {
                ": damaged at byte 0: the file ends inside the file header: 10 of 24 bytes are there"
            }
            "zero-bytes.pcap" => ": damaged at byte 0: the file is empty",
            "bad-caplen.pcap" => {
                ": damaged at byte 6202: a packet of 4294967295 bytes is larger than the 262144 that \
                 are allowed"
            }
            "cut-block.pcapng" => {
                "ng: damaged at byte 10060: the file ends inside a block: 87 of 92 bytes are there"
            }
            "bad-trailer.pcapng" => {
                "ng: damaged at byte 10060: block length 92 is repeated as 4660 at the block's end"
            }
            _ => "",
        };
        assert_eq!(told, expect, "{name}: {line}");
    }
    assert_eq!(rows.len(), 16);
}

#[test]
fn derived_captures_keep_their_times_in_every_resolution_and_byte_order() {
    let Some(corpus) = corpus() else { return };
    let original = read_file(&corpus.join("pcap/arkime/http-post-upload.pcap"));
    let derived = |name: &str| read_file(&corpus.join("derived").join(name));
    assert_eq!(derived("us-be.pcap").times, original.times);
    for name in ["ns-le.pcap", "ns-be.pcap"] {
        let times = original.times.iter().zip(0_i64..);
        let expect: Vec<_> = times.map(|(time, at)| time.plus_nanos(at * 7 % 1000)).collect();
        assert_eq!(derived(name).times, expect, "{name}");
    }
    // The first four as tshark prints them; the third is of the interface in nanoseconds.
    let expect = [
        1_553_758_814_359_228_134,
        1_553_758_814_359_420_776,
        1_553_758_814_360_759_000,
        1_553_758_814_360_819_816,
    ];
    for name in ["tsoffset-tsres2-20.pcapng", "tsoffset-tsres2-20-be.pcapng"] {
        let seen = derived(name);
        assert_eq!(seen.times[..4], expect.map(Timestamp), "{name}");
        assert_eq!(seen.link_types, [1, 101], "{name}");
    }
}
