//! Files, directories and pipes: order, bounds, filters, and bytes that are no capture at all.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use capture::{Damage, Error, FileOptions, FileSource, Next, Source};
use format::pcapng::{
    EnhancedPacketFields, OptionCode, put_block, put_enhanced_packet, put_interface_description,
    put_interface_statistics, put_option, put_section_header,
};
use proptest::prelude::*;
use units::Timestamp;
use wire::LinkType;

/// What a source gave: packets as (interface, time, bytes), blocks, and errors as text.
#[derive(Default, PartialEq, Eq, Debug)]
struct Seen {
    packets: Vec<(u32, Timestamp, Vec<u8>)>,
    blocks: Vec<Vec<u8>>,
    errors: Vec<String>,
    idle: usize,
}

fn drain(source: &mut FileSource) -> Seen {
    let mut seen = Seen::default();
    loop {
        match source.next_batch(Duration::from_millis(10)) {
            Ok(Next::Packets(batch)) => {
                assert!(batch.len() > 0);
                seen.packets.extend(
                    batch.map(|packet| (packet.interface, packet.timestamp, packet.head.to_vec())),
                );
            }
            Ok(Next::Block(block)) => seen.blocks.push(block),
            Ok(Next::Idle) => seen.idle += 1,
            Ok(Next::End) => return seen,
            Err(error) => seen.errors.push(error.to_string()),
        }
    }
}

fn open(path: &Path, filter: Option<&str>, snaplen: u32) -> FileSource {
    FileSource::open(path, FileOptions { filter: filter.map(str::to_owned), snaplen }).unwrap()
}

fn pcap(link_type: u32, packets: &[(u32, &[u8])]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, link_type] {
        file.extend(u32::to_le_bytes(word));
    }
    for (second, bytes) in packets {
        let len = u32::try_from(bytes.len()).unwrap();
        for word in [*second, 0, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(*bytes);
    }
    file
}

fn at(second: i64) -> Timestamp {
    Timestamp(second * 1_000_000_000)
}

#[test]
fn a_directory_is_read_in_the_order_of_its_paths_without_what_is_no_capture() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::create_dir(path.join("b")).unwrap();
    fs::write(path.join("c.pcap"), pcap(1, &[(3, b"c")])).unwrap();
    fs::write(path.join("b/2"), pcap(101, &[(2, b"b2")])).unwrap();
    fs::write(path.join("b/1"), &pcap(1, &[(1, b"b1"), (9, b"cut")])[..57]).unwrap();
    fs::write(path.join("README"), "not a capture").unwrap();
    let mut source = open(path, None, 0);
    let seen = drain(&mut source);
    // Both Ethernet files are alike, so that they share an interface.
    let expect = [(0, 1, &b"b1"[..]), (1, 2, b"b2"), (0, 3, b"c")];
    assert_eq!(seen.packets, expect.map(|(i, second, bytes)| (i, at(second), bytes.to_vec())));
    let name = path.join("b/1");
    let damage =
        "damaged at byte 42: the file ends inside a record header: 15 of 16 bytes are there";
    assert_eq!(seen.errors, [format!("{}: {damage}", name.display())]);
    let name = path.join("README");
    assert_eq!(source.notes(), [format!("{}: passed over, not a capture", name.display())]);
}

#[test]
fn a_file_that_is_no_capture_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let twice = gzip(&gzip(&pcap(1, &[(1, b"first")])));
    for (bytes, hint) in [
        (&b"text"[..], ""),
        (&gzip(b"text"), ""),
        (&twice, ", but compressed twice"),
        (b"snooping about, 2", ", although it begins like snoop's"),
    ] {
        fs::write(&path, bytes).unwrap();
        let seen = drain(&mut open(&path, None, 0));
        assert_eq!(
            seen.errors,
            [format!("{}: not a pcap, pcapng or snoop file{hint}", path.display())]
        );
    }
    let error = FileSource::open(&directory.path().join("none"), FileOptions::default());
    assert!(matches!(error, Err(Error::Read { .. })));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compressed_files_are_read_as_what_they_hold() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let large = vec![7; 200_000];
    let plain = pcap(1, &[(1, b"first"), (2, &large), (3, b"third")]);
    fs::write(&path, &plain).unwrap();
    let expected = drain(&mut open(&path, None, 0));
    assert_eq!(expected.packets.len(), 3);
    let (one, other) = plain.split_at(60_000);
    for packed in [
        gzip(&plain),
        // Several members, as files that were appended to have them.
        [gzip(one), gzip(other)].concat(),
        zstd::encode_all(&plain[..], 3).unwrap(),
        [zstd::encode_all(one, 1).unwrap(), zstd::encode_all(other, 19).unwrap()].concat(),
    ] {
        fs::write(&path, &packed).unwrap();
        let seen = drain(&mut open(&path, None, 0));
        assert_eq!((&seen.packets, &seen.errors), (&expected.packets, &expected.errors));
        // What was cut gives what is whole, and says so.
        fs::write(&path, &packed[..packed.len() - 20]).unwrap();
        let cut = drain(&mut open(&path, None, 0));
        assert_eq!(cut.errors.len(), 1, "{:?}", cut.errors);
        assert!(expected.packets.starts_with(&cut.packets));
    }
}

#[test]
fn a_small_file_that_unpacks_to_gigabytes_takes_no_memory_and_can_be_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    // One member after the other, each of 64 MiB of zeros: 64 GiB in 64 MiB.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..64 {
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let member = encoder.finish().unwrap();
    let mut bomb = gzip(&pcap(1, &[(1, b"first")]));
    for _ in 0..1024 {
        bomb.extend(&member);
    }
    fs::write(&path, bomb).unwrap();
    let mut source = open(&path, None, 0);
    for _ in 0..100 {
        assert!(matches!(source.next_batch(Duration::ZERO), Ok(Next::Packets(_) | Next::Idle)));
    }
    source.begin_stop();
    assert_is_cut(&mut source, &path);
}

/// The source says once that it was stopped in front of the end of `path`.
#[track_caller]
fn assert_is_cut(source: &mut FileSource, path: &Path) {
    let said = source.next_batch(Duration::ZERO).expect_err("it is not at its end").to_string();
    assert_eq!(said, format!("{}: stopped before its end", path.display()));
    assert!(matches!(source.next_batch(Duration::ZERO), Ok(Next::End)));
}

#[test]
fn a_stop_before_the_end_is_said_and_one_at_the_end_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["a", "b"].map(|name| directory.path().join(name));
    // More than is read at once.
    let packet = vec![7; 60_000];
    let packets = (1..=20).map(|second| (second, &packet[..])).collect::<Vec<_>>();
    fs::write(&first, pcap(1, &packets)).unwrap();
    fs::write(&second, pcap(1, &[(1, b"one")])).unwrap();

    let mut source = open(&first, None, 0);
    source.begin_stop();
    assert_is_cut(&mut source, &first);

    let mut source = open(&first, None, 0);
    while !matches!(source.next_batch(Duration::ZERO), Ok(Next::Packets(_))) {}
    source.begin_stop();
    assert_is_cut(&mut source, &first);

    // All of it was handed out, whether the end has been looked for or not.
    let mut source = open(&second, None, 0);
    while !matches!(source.next_batch(Duration::ZERO), Ok(Next::Packets(_))) {}
    source.begin_stop();
    assert!(matches!(source.next_batch(Duration::ZERO), Ok(Next::End)));

    // Of a directory the next file is missing.
    let mut source = open(directory.path(), None, 0);
    let mut seen = 0;
    while seen < packets.len() {
        if let Ok(Next::Packets(batch)) = source.next_batch(Duration::ZERO) {
            seen += batch.count();
        }
    }
    source.begin_stop();
    assert_is_cut(&mut source, &second);
}

#[test]
fn a_pipe_that_is_stopped_has_no_end_to_be_missed() {
    let (reader, mut writer) = io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
    let mut source = open(Path::new(&path), None, 0);
    writer.write_all(&pcap(1, &[(1, b"first")])).unwrap();
    while !matches!(source.next_batch(Duration::from_secs(10)), Ok(Next::Packets(_))) {}
    source.begin_stop();
    assert!(matches!(source.next_batch(Duration::ZERO), Ok(Next::End)));
}

/// Reads a pipe that gives a packet, nothing for a while, and another packet.
#[track_caller]
fn reads_as_it_fills(first: &[u8], second: &[u8]) {
    let (reader, mut writer) = io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
    let mut source = open(Path::new(&path), None, 0);
    drop(reader);
    writer.write_all(first).unwrap();
    let read = loop {
        match source.next_batch(Duration::from_secs(10)).unwrap() {
            Next::Packets(batch) => {
                break batch.map(|packet| packet.head.to_vec()).collect::<Vec<_>>();
            }
            Next::Idle => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read, [b"first"]);
    // Nothing is there, and no caller waits for it, however often it is asked for.
    for _ in 0..100 {
        let next = source.next_batch(Duration::from_millis(1));
        assert!(matches!(next, Ok(Next::Idle)), "{next:?}");
    }
    writer.write_all(second).unwrap();
    drop(writer);
    let seen = drain(&mut source);
    assert_eq!(seen.packets, [(0, at(2), b"second".to_vec())]);
    assert!(seen.errors.is_empty(), "{:?}", seen.errors);
}

#[test]
fn a_compressed_pipe_is_read_as_it_fills() {
    let (first, second) = (pcap(1, &[(1, b"first")]), &pcap(1, &[(2, b"second")])[24..]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&first).unwrap();
    gzip.flush().unwrap();
    let begin = std::mem::take(gzip.get_mut());
    gzip.write_all(second).unwrap();
    reads_as_it_fills(&begin, &gzip.finish().unwrap());
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
    zstd.write_all(&first).unwrap();
    zstd.flush().unwrap();
    let begin = std::mem::take(zstd.get_mut());
    zstd.write_all(second).unwrap();
    reads_as_it_fills(&begin, &zstd.finish().unwrap());
}

fn snoop(link: u32, packets: &[(u32, &[u8])]) -> Vec<u8> {
    let mut file = b"snoop\0\0\0".to_vec();
    file.extend([2, link].map(u32::to_be_bytes).concat());
    for (second, bytes) in packets {
        let len = u32::try_from(bytes.len()).unwrap();
        let record = (24 + len).next_multiple_of(4);
        file.extend([len + 1, len, record, 0, *second, 5].map(u32::to_be_bytes).concat());
        file.extend(*bytes);
        file.resize(file.len() + usize::try_from(record - 24 - len).unwrap(), 0);
    }
    file
}

#[test]
fn snoop_files_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let whole = snoop(4, &[(1, b"first"), (2, b"four")]);
    fs::write(&path, &whole).unwrap();
    let mut source = open(&path, None, 0);
    let seen = drain(&mut source);
    let expected = [(1, &b"first"[..]), (2, b"four")];
    let expected = expected
        .map(|(second, bytes)| (0, Timestamp(second * 1_000_000_000 + 5_000), bytes.to_vec()));
    assert_eq!((&seen.packets[..], seen.errors.len()), (&expected[..], 0));
    assert_eq!(source.interfaces()[0].link_type, LinkType(1));
    // Every cut is said, and what is in front of it is handed out.
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let seen = drain(&mut open(&path, None, 0));
        assert!(expected.starts_with(&seen.packets), "{len}");
        assert_eq!(
            seen.errors.len(),
            usize::from(len != 16 && len != 48),
            "{len}: {:?}",
            seen.errors
        );
    }
    for (at, value) in [(15, 99), (11, 3), (24, 9), (20, 9)] {
        let mut damaged = whole.clone();
        damaged[at] = value;
        fs::write(&path, &damaged).unwrap();
        assert_eq!(drain(&mut open(&path, None, 0)).errors.len(), 1, "{at}");
    }
}

#[test]
fn a_pipe_is_read_as_it_fills() {
    let (reader, mut writer) = io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
    let mut source = open(Path::new(&path), None, 0);
    drop(reader);
    let file = pcap(1, &[(1, b"first"), (2, b"second")]);
    assert!(matches!(source.next_batch(Duration::ZERO), Ok(Next::Idle)));
    // The file header, the first packet, and a part of the second one's header.
    writer.write_all(&file[..50]).unwrap();
    let Ok(Next::Packets(batch)) = source.next_batch(Duration::from_secs(10)) else {
        panic!("the first packet is there");
    };
    assert_eq!(batch.map(|packet| packet.head.to_vec()).collect::<Vec<_>>(), [b"first"]);
    assert!(matches!(source.next_batch(Duration::from_millis(1)), Ok(Next::Idle)));
    writer.write_all(&file[50..]).unwrap();
    drop(writer);
    let seen = drain(&mut source);
    assert_eq!(seen.packets, [(0, at(2), b"second".to_vec())]);
    assert!(seen.errors.is_empty());
}

#[test]
fn blocks_and_packets_larger_than_the_buffer_are_read_whole() {
    let secrets: Vec<u8> = [0x4b, 0x53, 0x4c, 0x54, 0, 0, 0x30, 0]
        .into_iter()
        .chain((0_u8..=255).cycle().take(3 << 20))
        .collect();
    let mut file = Vec::new();
    put_section_header(&mut file, &[]);
    // D-Bus messages may be that long.
    put_interface_description(&mut file, LinkType(231), 0, &[]);
    let large = vec![7; 5 << 20];
    let small = vec![8; 100];
    let packet = |file: &mut Vec<u8>, bytes: &[u8]| {
        let original_len = u32::try_from(bytes.len()).unwrap();
        let fields = EnhancedPacketFields { interface: 0, time: 0, original_len, options: &[] };
        put_enhanced_packet(file, &fields, [bytes, &[], &[]]);
    };
    packet(&mut file, &small);
    let block_start = file.len();
    put_block(&mut file, 10, |body| body.extend_from_slice(&secrets));
    let block = file[block_start..].to_vec();
    packet(&mut file, &large);
    packet(&mut file, &small);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large.pcapng");
    fs::write(&path, &file).unwrap();
    let seen = drain(&mut open(&path, None, 0));
    assert_eq!(seen.errors, Vec::<String>::new());
    assert!(seen.blocks == [block]);
    let lengths: Vec<_> = seen.packets.iter().map(|(_, _, bytes)| bytes.len()).collect();
    assert_eq!(lengths, [100, 5 << 20, 100]);
    assert!(seen.packets[1].2 == large);
}

#[test]
fn a_file_for_which_a_filter_means_nothing_stops_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let mut frame = [0_u8; 60];
    (frame[12], frame[14], frame[23]) = (8, 0x45, 6);
    // LINKTYPE_IEEE802_15_4_WITHFCS, for which libpcap compiles no filter.
    for (name, link_type) in [("a.pcap", 195), ("b.pcap", 1)] {
        fs::write(directory.path().join(name), pcap(link_type, &[(1, &frame)])).unwrap();
    }
    let options = FileOptions { filter: Some("tcp".to_owned()), snaplen: 0 };
    let mut source = match FileSource::open(directory.path(), options) {
        Err(error @ Error::Filter(filters::Error::Library { .. })) => {
            return println!("not run: {error}");
        }
        source => source.unwrap(),
    };
    let seen = drain(&mut source);
    assert_eq!(seen.packets.len(), 1, "{seen:?}");
    assert_eq!(seen.errors.len(), 1, "{seen:?}");
    assert!(seen.errors[0].ends_with("a.pcap"), "{seen:?}");
}

#[test]
fn a_filter_keeps_what_it_accepts_and_counts_the_rest() {
    let frame = |protocol: u8| {
        let mut frame = [0_u8; 60];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[23] = protocol;
        frame
    };
    let (tcp, udp) = (frame(6), frame(17));
    let file = pcap(1, &[(1, &tcp), (2, &udp), (3, &udp), (4, &tcp[..20])]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.pcap");
    fs::write(&path, file).unwrap();
    let wrong = FileOptions { filter: Some("tcp or".to_owned()), snaplen: 0 };
    let wrong = FileSource::open(&path, wrong).unwrap_err().to_string();
    if wrong.contains("not installed") {
        println!("not run: libpcap is not installed");
        return;
    }
    assert!(wrong.starts_with("filter \"tcp or\": "), "{wrong}");
    let mut source = open(&path, Some("tcp"), 30);
    let seen = drain(&mut source);
    assert_eq!(seen.packets, [(0, at(1), tcp[..30].to_vec())]);
    let counters = source.counters()[0];
    assert_eq!((counters.received, counters.delivered), (1, 1));
    assert_eq!((counters.filter_rejects, counters.interface_drops), (Some(3), None));
    let interface = &source.interfaces()[0];
    assert_eq!((interface.filter.as_deref(), interface.snaplen), (Some("tcp"), 30));
}

#[test]
fn interface_options_are_told_apart_from_those_to_be_kept() {
    let mut options = Vec::new();
    put_option(&mut options, OptionCode::INTERFACE_NAME, b"eth0");
    put_option(&mut options, OptionCode::INTERFACE_DESCRIPTION, b"uplink");
    put_option(&mut options, OptionCode::INTERFACE_RESOLUTION, &[9]);
    put_option(&mut options, OptionCode::INTERFACE_FILTER, b"\0tcp");
    let mut kept = Vec::new();
    put_option(&mut kept, OptionCode::INTERFACE_OS, b"Linux");
    put_option(&mut kept, OptionCode::COMMENT, b"hello");
    options.extend_from_slice(&kept);
    let mut file = Vec::new();
    put_section_header(&mut file, &[]);
    put_interface_description(&mut file, LinkType(113), 96, &options);
    let flags = [2, 0, 4, 0, 2, 0, 0, 0];
    let fields = EnhancedPacketFields { interface: 0, time: 77, original_len: 5, options: &flags };
    put_enhanced_packet(&mut file, &fields, [b"abc", &[], &[]]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.pcapng");
    fs::write(&path, file).unwrap();
    let mut source = open(&path, None, 0);
    let packet = loop {
        if let Next::Packets(mut batch) = source.next_batch(Duration::ZERO).unwrap() {
            let packet = batch.next().unwrap();
            assert_eq!((packet.head, packet.options), (&b"abc"[..], &flags[..]));
            break (packet.timestamp, packet.original_len, packet.outbound);
        }
    };
    assert_eq!(packet, (Timestamp(77), 5, Some(true)));
    let interface = &source.interfaces()[0];
    assert_eq!(
        (interface.name.as_str(), interface.description.as_deref()),
        ("eth0", Some("uplink"))
    );
    assert_eq!((interface.link_type, interface.snaplen), (LinkType(113), 96));
    assert_eq!((interface.filter.as_deref(), &interface.options), (Some("tcp"), &kept));
}

#[test]
fn losses_that_a_capture_tells_of_are_passed_on() {
    let mut file = Vec::new();
    put_section_header(&mut file, &[]);
    put_interface_description(&mut file, LinkType::ETHERNET, 0, &[]);
    // A Packet Block: interface 0, five packets lost, no time, no bytes.
    put_block(&mut file, 2, |body| {
        body.extend_from_slice(&[0, 0, 5, 0]);
        body.extend_from_slice(&[0; 16]);
    });
    let mut counts = Vec::new();
    put_option(&mut counts, OptionCode::STATISTICS_KERNEL_DROPS, &7_u64.to_le_bytes());
    put_option(&mut counts, OptionCode::STATISTICS_INTERFACE_DROPS, &2_u64.to_le_bytes());
    put_interface_statistics(&mut file, 0, 0, &counts);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.pcapng");
    fs::write(&path, file).unwrap();
    let mut source = open(&path, None, 0);
    let mut options = Vec::new();
    loop {
        match source.next_batch(Duration::ZERO).unwrap() {
            Next::Packets(batch) => options.extend(batch.map(|packet| packet.options.to_vec())),
            Next::End => break,
            _ => {}
        }
    }
    // epb_dropcount
    assert_eq!(options, [[4, 0, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0]]);
    let lost = "by its own count, 9 packets of its interface 0 were lost when it was captured";
    assert_eq!(source.notes(), [format!("{}: {lost}", path.display())]);
}

#[test]
fn damage_is_typed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mut file = Vec::new();
    put_section_header(&mut file, &[]);
    let fields = EnhancedPacketFields { interface: 3, time: 0, original_len: 0, options: &[] };
    put_enhanced_packet(&mut file, &fields, [&[]; 3]);
    fs::write(&path, file).unwrap();
    let mut source = open(&path, None, 0);
    let error = (0..5).find_map(|_| source.next_batch(Duration::ZERO).err()).unwrap();
    let Error::Damaged { offset, damage, .. } = error else { panic!("{error}") };
    assert_eq!((offset, damage), (28, Damage::UnknownInterface { interface: 3, described: 0 }));
}

/// A small capture of each form, to be damaged.
fn seeds() -> Vec<Vec<u8>> {
    let mut pcapng = Vec::new();
    put_section_header(&mut pcapng, &[]);
    let mut options = Vec::new();
    put_option(&mut options, OptionCode::INTERFACE_RESOLUTION, &[0x94]);
    put_option(&mut options, OptionCode::INTERFACE_NAME, b"eth0");
    put_interface_description(&mut pcapng, LinkType::ETHERNET, 64, &options);
    let mut options = Vec::new();
    put_option(&mut options, OptionCode::COMMENT, b"a comment");
    let fields =
        EnhancedPacketFields { interface: 0, time: 1 << 40, original_len: 60, options: &options };
    put_enhanced_packet(&mut pcapng, &fields, [&[1; 33], &[], &[]]);
    put_block(&mut pcapng, 3, |body| body.extend_from_slice(&[4, 0, 0, 0, 1, 2, 3, 4]));
    put_block(&mut pcapng, 4, |body| {
        body.extend_from_slice(&[1, 0, 6, 0, 10, 0, 0, 1, b'a', 0, 0, 0, 0, 0, 0, 0]);
    });
    put_block(&mut pcapng, 10, |body| {
        body.extend_from_slice(&[1, 0, 0, 0, 4, 0, 0, 0, 9, 9, 9, 9]);
    });
    put_block(&mut pcapng, 2, |body| body.extend_from_slice(&[0; 20]));
    let mut modified = pcap(1, &[]);
    modified.splice(..4, 0xa1b2_cd34_u32.to_le_bytes());
    for len in [40_u8, 10] {
        modified.extend([1, 0, 0, 0, 2, 0, 0, 0, len, 0, 0, 0, 60, 0, 0, 0]);
        // Interface index, protocol, packet type, padding.
        modified.extend([3, 0, 0, 0, 8, 0, 4, 0]);
        modified.extend(vec![len; usize::from(len)]);
    }
    vec![pcapng, pcap(1, &[(1, &[5; 40]), (2, &[]), (3, &[7; 90])]), modified]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_damage_makes_the_reader_panic_or_run_on(
        seed in 0_usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
        tail in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut bytes = seeds()[seed].clone();
        for (index, value) in &changes {
            let at = index.index(bytes.len());
            bytes[at] = *value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        bytes.extend(&tail);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, &bytes).unwrap();
        let seen = drain(&mut open(&path, None, 0));
        let captured: usize = seen.packets.iter().map(|(_, _, bytes)| bytes.len()).sum();
        prop_assert!(captured <= bytes.len());
        prop_assert!(seen.errors.len() <= 1);
        prop_assert!(seen.errors.iter().all(|line| line.lines().count() == 1));
    }
}

#[test]
fn a_cut_anywhere_keeps_the_packets_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for whole in seeds() {
        fs::write(&path, &whole).unwrap();
        let Seen { packets: all, errors, .. } = drain(&mut open(&path, None, 0));
        assert!(all.len() >= 2 && errors.is_empty(), "{errors:?}");
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            let seen = drain(&mut open(&path, None, 0));
            assert!(all.starts_with(&seen.packets), "cut at {len}");
            assert!(seen.errors.len() <= 1);
        }
    }
}

/// A block of stenotype with packets at these places: offset of the header, distance to the next
/// one, distance and length of the bytes.
fn kernel_block(packets: &[(usize, u32, u16, u32)]) -> Vec<u8> {
    let mut block = vec![0; 1 << 20];
    let mut put = |at: usize, bytes: &[u8]| {
        block.get_mut(at..at + bytes.len()).unwrap().copy_from_slice(bytes);
    };
    let count = u32::try_from(packets.len()).unwrap();
    for (at, word) in [(0, 2), (4, 48), (12, count), (16, 48)] {
        put(at, &u32::to_le_bytes(word));
    }
    for &(at, next, offset, len) in packets {
        for (field, word) in [(0, next), (12, len), (16, len)] {
            put(at + field, &word.to_le_bytes());
        }
        put(at + 24, &offset.to_le_bytes());
    }
    block
}

#[test]
fn packets_of_stenotype_do_not_lie_on_one_another() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("packets");
    let read = |packets: &[(usize, u32, u16, u32)]| {
        fs::write(&path, kernel_block(packets)).unwrap();
        let seen = drain(&mut open(&path, None, 0));
        (seen.packets.iter().map(|(_, _, bytes)| bytes.len()).sum::<usize>(), seen.errors.len())
    };
    assert_eq!(read(&[(48, 200, 80, 100), (248, 0, 80, 60)]), (160, 0));
    // Into the next one, into its own header, on itself, and each over all that follow.
    assert_eq!(read(&[(48, 200, 80, 121), (248, 0, 80, 60)]), (0, 1));
    assert_eq!(read(&[(48, 200, 47, 100), (248, 0, 80, 60)]), (0, 1));
    assert_eq!(read(&[(48, 0, 80, 100), (48, 0, 80, 100)]), (0, 1));
    let nested: Vec<_> = (0..10_000).map(|at| (48 + at * 48, 48, 48, 500_000)).collect();
    let (bytes, errors) = read(&nested);
    assert!(bytes <= 1 << 20 && errors == 1, "{bytes} bytes of one block");
}

#[test]
fn a_call_takes_few_steps_whatever_it_is_given() {
    let directory = tempfile::tempdir().unwrap();
    for name in 0..2000 {
        fs::write(directory.path().join(format!("{name}")), b"no capture").unwrap();
    }
    let mut source = open(directory.path(), None, 0);
    let seen = drain(&mut source);
    assert!(seen.idle >= 50, "{} pauses", seen.idle);
    let notes = source.notes();
    assert_eq!(notes.len(), 101);
    assert_eq!(notes[100], "1900 further notes on the files are left out");
}

#[test]
fn a_directory_without_a_capture_says_so_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut source = open(directory.path(), None, 0);
    drain(&mut source);
    drain(&mut source);
    assert_eq!(source.notes(), ["no capture is in the directory that was to be read"]);
    fs::write(directory.path().join("a"), b"no capture").unwrap();
    let mut source = open(directory.path(), None, 0);
    drain(&mut source);
    assert_eq!(source.notes().len(), 2, "the file was passed over, too");
}

#[test]
fn a_file_that_cannot_be_read_says_so_once() {
    // Reading at its beginning is an error, for every caller.
    let seen = drain(&mut open(Path::new("/proc/self/mem"), None, 0));
    assert_eq!((seen.errors.len(), seen.packets.len()), (1, 0));
}

#[test]
fn interfaces_beyond_a_bound_share_one_for_each_link_type() {
    let mut file = Vec::new();
    put_section_header(&mut file, &[]);
    for number in 0..1500_u32 {
        let mut options = Vec::new();
        put_option(&mut options, OptionCode::INTERFACE_NAME, format!("if{number}").as_bytes());
        put_interface_description(&mut file, LinkType::ETHERNET, 0, &options);
        let fields =
            EnhancedPacketFields { interface: number, time: 0, original_len: 1, options: &[] };
        put_enhanced_packet(&mut file, &fields, [&[1], &[], &[]]);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.pcapng");
    fs::write(&path, &file).unwrap();
    let mut source = open(&path, None, 0);
    let seen = drain(&mut source);
    assert_eq!((seen.packets.len(), seen.errors.len()), (1500, 0));
    assert_eq!(source.interfaces().len(), 1025);
    let shared = source.interfaces().last().unwrap();
    assert_eq!((shared.name.as_str(), shared.link_type), ("", LinkType::ETHERNET));
    assert!(seen.packets[1024..].iter().all(|(interface, _, _)| *interface == 1024));
    assert!(source.notes()[0].contains("more interfaces than the limit"));
    // Link types are more than interfaces that are kept, and then it is no capture any more.
    let mut file = Vec::new();
    put_section_header(&mut file, &[]);
    (0..3000_u16).for_each(|kind| put_interface_description(&mut file, LinkType(kind), 0, &[]));
    fs::write(&path, &file).unwrap();
    let seen = drain(&mut open(&path, None, 0));
    assert!(seen.errors[0].contains("more than 1536 interfaces"), "{:?}", seen.errors);
}
