//! Every capture gives the packets, sizes and times that independent readers found in it, or its
//! maker put there.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking and says why it did not run"
)]

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use capture::{Error, FileOptions, FileSource, Interface, Next, Source};
use format::pcapng::{ByteOrder, OptionScope, Options, normalize_options_where};
use testdata::Corpus;
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
    /// Interface, bytes and options of each packet.
    contents: Vec<(u32, Vec<u8>, Vec<u8>)>,
    interfaces: Vec<Interface>,
    kept_blocks: Vec<Vec<u8>>,
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
                    let bytes = packet.head.to_vec();
                    seen.contents.push((packet.interface, bytes, packet.options.to_vec()));
                }
            }
            Ok(Next::Block(block)) => seen.kept_blocks.push(block),
            Ok(Next::Idle) => {}
            Ok(Next::End) => break,
            Err(error) => assert!(seen.error.replace(error).is_none(), "one file, one error"),
        }
    }
    seen.first = seen.times.iter().min().copied();
    seen.last = seen.times.iter().max().copied();
    seen.interfaces = source.interfaces().to_vec();
    let counters = source.counters();
    let delivered: u64 = counters.iter().map(|counters| counters.delivered).sum();
    assert_eq!(delivered, seen.packets);
    assert!(counters.iter().all(|counters| counters.received == counters.delivered));
    seen
}

fn read_file(path: &Path) -> Seen {
    read(&mut FileSource::open(path, FileOptions::default()).unwrap())
}

/// The real captures, for claims about single ones of them.
fn large() -> Option<Corpus> {
    let large = Corpus::large();
    if large.is_none() {
        println!("not run: {}", testdata::lacks_large());
    }
    large
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
    Corpus::all().iter().for_each(check_containers);
}

fn check_containers(corpus: &Corpus) {
    let capinfos: HashMap<String, HashMap<String, String>> =
        table(&corpus.path().join("ref/capinfos.tsv"))
            .into_iter()
            .map(|row| (row["File name"].clone(), row))
            .collect();
    let rows = table(&corpus.path().join("ref/container.tsv"));
    let (mut packets, mut times_compared) = (0, 0);
    let mut wrong = Vec::new();
    for row in &rows {
        let name = &row["file"];
        let number = |column: &str| row[column].parse::<u64>().unwrap_or(0);
        let seen = read_file(&corpus.path().join("pcap").join(name));
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
        // Interfaces that several sections describe alike count once here.
        if row["sections"] == "1"
            && u64::try_from(seen.interfaces.len()).unwrap() != number("interfaces")
        {
            wrong.push(format!("{name}: {} interfaces, {row:?}", seen.interfaces.len()));
        }
        let kept = block_count(row, "NRB") + block_count(row, "DSB");
        if u64::try_from(seen.kept_blocks.len()).unwrap() != kept {
            wrong.push(format!("{name}: {} blocks to keep, {row:?}", seen.kept_blocks.len()));
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
    let least = if corpus.is_large { 500 } else { 15 };
    assert!(rows.len() > least && times_compared > least);
}

/// Options without the custom ones: those of these captures do not start with an enterprise number,
/// as they should, but with text, which does not change with the byte order.
fn standard_options(options: &[u8]) -> Vec<u8> {
    let is_standard = |code| !matches!(code, 2988 | 2989 | 19372 | 19373);
    let options = Options::new(options, ByteOrder::Little);
    let mut out = Vec::new();
    normalize_options_where(OptionScope::Interface, options, &mut out, is_standard);
    out
}

/// Blocks of a type in a capture, by a row of container.tsv: `{"SHB": 1, "NRB": 5}`.
fn block_count(row: &HashMap<String, String>, name: &str) -> u64 {
    let Some((_, rest)) = row["blocks"].split_once(&format!("\"{name}\": ")) else { return 0 };
    rest.split([',', '}']).next().unwrap().parse().unwrap()
}

#[test]
fn captures_that_differ_only_in_byte_order_give_the_same_packets_and_blocks() {
    Corpus::all().iter().for_each(check_twins);
}

fn check_twins(corpus: &Corpus) {
    let mut twins = 0;
    for entry in fs::read_dir(corpus.path().join("pcap/pcapng-gen")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(rest) = name.strip_prefix("le-") else { continue };
        let twin = path.with_file_name(format!("be-{rest}"));
        if !twin.exists() {
            continue;
        }
        twins += 1;
        let (little, big) = (read_file(&path), read_file(&twin));
        assert_eq!(little.times, big.times, "{name}");
        for (little, big) in little.contents.iter().zip(&big.contents) {
            assert_eq!((little.0, &little.1), (big.0, &big.1), "{name}");
            assert_eq!(standard_options(&little.2), standard_options(&big.2), "{name}");
        }
        let interfaces = |seen: Seen| -> Vec<Interface> {
            let standard =
                |it: Interface| Interface { options: standard_options(&it.options), ..it };
            seen.interfaces.into_iter().map(standard).collect()
        };
        assert_eq!(little.kept_blocks, big.kept_blocks, "{name}");
        assert_eq!(interfaces(little), interfaces(big), "{name}");
    }
    assert!(twins >= if corpus.is_large { 10 } else { 2 }, "only {twins} pairs");
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
fn made_captures_give_every_packet_before_their_damage_and_name_its_place() {
    let small = Corpus::small();
    let rows = table(&small.path().join("derived/DERIVED.tsv"));
    for row in &rows {
        let name = row["file"].as_str();
        let seen = read_file(&small.path().join("derived").join(name));
        assert_eq!(seen.packets, row["packets_expected"].parse::<u64>().unwrap(), "{name}");
        let line = seen.error.map(|error| error.to_string());
        let place = line.as_deref().and_then(|line| line.split_once(": damaged at byte "));
        let at = place.and_then(|(_, rest)| rest.split_once(": ")).map_or("", |(at, _)| at);
        assert_eq!(at, row["damaged_at"], "{name}: {line:?}");
        assert_eq!(line.is_some(), !row["damaged_at"].is_empty(), "{name}: {line:?}");
    }
    assert_eq!(rows.len(), 10);
}

#[test]
fn derived_captures_give_every_packet_before_their_damage_and_name_it() {
    let Some(corpus) = large() else { return };
    let rows = table(&corpus.path().join("derived/DERIVED.tsv"));
    for row in &rows {
        let name = row["file"].as_str();
        let seen = read_file(&corpus.path().join("derived").join(name));
        assert_eq!(seen.packets, row["packets_expected"].parse::<u64>().unwrap(), "{name}");
        let line = seen.error.map(|error| error.to_string()).unwrap_or_default();
        let told = line.split_once(".pcap").map_or("", |(_, rest)| rest);
        let expect = match name {
            "cut-mid-record.pcap" => {
                ": damaged at byte 9548: the file ends inside a packet: \
                 69 of 76 bytes are there"
            }
            "cut-mid-record-header.pcap" => {
                ": damaged at byte 9548: the file ends inside a record header: \
                 9 of 16 bytes are there"
            }
            "cut-file-header.pcap" => {
                ": damaged at byte 0: the file ends inside the file header: \
                 10 of 24 bytes are there"
            }
            "zero-bytes.pcap" => ": damaged at byte 0: the file is empty",
            "bad-caplen.pcap" => {
                ": damaged at byte 6202: a packet of 4294967295 bytes is larger than the 262144 \
                 that are allowed"
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
    let Some(corpus) = large() else { return };
    let original = read_file(&corpus.path().join("pcap/arkime/http-post-upload.pcap"));
    let derived = |name: &str| read_file(&corpus.path().join("derived").join(name));
    assert_eq!(derived("us-be.pcap").times, original.times);
    assert_eq!(derived("us-be.pcap").contents, original.contents);
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
        let link_types: Vec<u16> = seen.interfaces.iter().map(|it| it.link_type.0).collect();
        assert_eq!(link_types, [1, 101], "{name}");
    }
}

#[test]
fn damaged_captures_end_in_at_most_one_error() {
    Corpus::all().iter().for_each(damage_captures);
}

fn damage_captures(corpus: &Corpus) {
    // So that a few captures are damaged as often as many.
    let (rounds, least) = if corpus.is_large { (3, [500, 200]) } else { (30, [200, 100]) };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("damaged");
    // A linear congruential generator, so that a failure can be repeated.
    let mut state = 1_usize;
    let mut random = |limit: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let (mut damaged, mut errors) = (0, 0);
    for row in table(&corpus.path().join("ref/container.tsv")) {
        let bytes = fs::read(corpus.path().join("pcap").join(&row["file"])).unwrap();
        if bytes.len() > 20_000 {
            continue;
        }
        for _ in 0..rounds {
            let mut bytes = bytes.clone();
            for _ in 0..random(20) {
                let at = random(bytes.len());
                bytes[at] = [0, 1, 0x7f, 0xff][random(4)];
            }
            bytes.truncate(bytes.len() - random(bytes.len()) * random(2));
            fs::write(&path, &bytes).unwrap();
            let seen = read_file(&path);
            assert!(seen.captured_bytes <= u64::try_from(bytes.len()).unwrap());
            damaged += 1;
            errors += usize::from(seen.error.is_some());
        }
    }
    println!("{damaged} damaged captures, {errors} errors");
    assert!(damaged > least[0] && errors > least[1]);
}
