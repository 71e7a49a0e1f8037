//! What the jobs say: order, limits, completeness, damage, formats.

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU32, Ordering};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use completeness::{Completeness, DamageKind};
use extract::{
    Error, ExtractReport, FindReport, Request, Sought, extract, find, find_columns, packets,
};
use format::head::StripeId;
use found::{Event, Found, Held};
use manifest::verify_extract;
use packet_output::Target;
use query::Query;
use session::Config;
use units::{EachSequence, ManualClock, NANOS_PER_SECOND, Timestamp, plural};
use wire::LinkType;

use crate::reader::{Capture, read};
use crate::recorder::{How, Packet, Traffic, Volume, ethernet};

/// A UDP datagram over Ethernet from 10.0.0.1:`port` to 10.0.0.2:53, or back, `len` bytes of
/// payload.
fn datagram(port: u16, back: bool, len: usize) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(u16::try_from(28 + len).unwrap().to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    frame.extend(if back { [b, a] } else { [a, b] }.concat());
    let ports = if back { [53, port] } else { [port, 53] };
    frame.extend(ports.map(u16::to_be_bytes).concat());
    frame.extend(u16::try_from(8 + len).unwrap().to_be_bytes());
    frame.extend([0, 0]);
    frame.resize(frame.len() + len, 7);
    frame
}

fn packet(interface: u32, time: i64, data: Vec<u8>) -> Packet {
    let original_len = u32::try_from(data.len()).unwrap();
    Packet { interface, timestamp: Timestamp(time), original_len, data, options: Vec::new() }
}

/// `sessions` sessions on one interface, `rounds` exchanges each, one packet a second, about 1 KiB
/// long.
fn traffic(sessions: u16, rounds: u16) -> Traffic {
    let mut traffic = Traffic { interfaces: vec![ethernet("eth0")], ..Traffic::default() };
    for round in 0..rounds {
        for session in 0..sessions {
            let time = i64::try_from(traffic.packets.len()).unwrap() * NANOS_PER_SECOND;
            let data = datagram(1000 + session, round % 2 == 1, 1000);
            traffic.packets.push(packet(0, time, data));
        }
    }
    traffic
}

fn find_all(volume: &Volume, query: &str, limit: Option<u64>) -> (Vec<Found>, FindReport) {
    find_with(&volume.options(), query, limit)
}

fn find_with(
    options: &extract::Options,
    query: &str,
    limit: Option<u64>,
) -> (Vec<Found>, FindReport) {
    let query = Query::parse(query, Timestamp(0)).unwrap();
    let mut all = Vec::new();
    let clock = ManualClock::new(Timestamp(0));
    let report = find(options, &query, limit, &clock, &mut |event| {
        if let Event::Found(found) = event {
            all.push(found.clone());
        }
        ControlFlow::Continue(())
    });
    (all, report.unwrap())
}

fn extract_to(
    volume: &Volume,
    query: &str,
    whole_sessions: bool,
    target: Target<'_>,
) -> Result<ExtractReport, Error> {
    let parsed = Query::parse(query, Timestamp(0)).unwrap();
    let request = Request { whole_sessions, ..Request::new(&parsed, query) };
    let clock = ManualClock::new(Timestamp(0));
    extract(&volume.options(), &request, target, &clock, &mut |_| ControlFlow::Continue(()))
}

fn pcapng(volume: &Volume, query: &str) -> (Capture, ExtractReport, Vec<u8>) {
    let mut out = Vec::new();
    let report = extract_to(volume, query, false, Target::Pcapng(&mut out)).unwrap();
    (read(&out), report, out)
}

#[test]
fn slices_of_a_session_are_shown_as_one_with_their_sums() {
    let how = How { config: Config::default(), segment_pieces: Some(2), ..How::default() };
    let volume = Volume::of(&traffic(3, 100), how);
    let (found, report) = find_all(&volume, "", None);
    assert_eq!(found.len(), 3);
    assert!(report.explain.segments > 1 && found[0].rows.len() > 3, "{report:?}");
    assert!(found.iter().all(|found| found.id == found.rows[0] && found.packets == Held::Held));
    assert!(found.iter().all(|found| found.session.orig.packets == 50));
    assert!(found.iter().all(|found| found.session.resp.frame_bytes == 50 * 1042));
    assert!(found.is_sorted_by_key(|found| found.session.start));
    assert!(found.iter().all(|found| found.session.pieces.is_sorted() && !found.is_provisional));
    let community = found[0].community_id.clone().unwrap();
    assert_eq!(find_all(&volume, &format!("community_id = {community}"), None).0.len(), 1);
}

#[test]
fn a_limit_stops_early_and_says_so() {
    let volume = Volume::of(&traffic(10, 2), How::default());
    let (found, report) = find_all(&volume, "", Some(4));
    assert!(found.len() == 4 && report.completeness.limited && !report.completeness.is_complete());
    let (found, report) = find_all(&volume, "", Some(10));
    assert!(found.len() == 10 && !report.completeness.limited);
}

#[test]
fn a_limit_leaves_most_of_the_ring_unread_from_both_ends() {
    let how = How { segment_pieces: Some(1), ..How::default() };
    let volume = Volume::of(&traffic(2000, 1), how);
    let (all, report) = find_all(&volume, "", None);
    let segments = report.explain.segments;
    assert!(all.len() == 2000 && segments > 30, "{report:?}");
    let query = Query::parse("udp and not port 999", Timestamp(0)).unwrap();
    for newest_first in [false, true] {
        let sought = Sought { limit: Some(10), newest_first, ..Sought::new(&query) };
        let mut found = Vec::new();
        let clock = ManualClock::new(Timestamp(0));
        let report = find_columns(&volume.options(), &sought, &clock, &mut |event| {
            if let Event::Found(session) = event {
                found.push(session.clone());
            }
            ControlFlow::Continue(())
        });
        let explain = report.unwrap().explain;
        // A few more, to know whether there is an eleventh.
        assert!(explain.segments <= segments / 2, "{explain:?} of {segments}");
        let newest = all.iter().rev().take(10).cloned();
        let expected = if newest_first { newest.collect() } else { all[..10].to_vec() };
        assert_eq!(found, expected);
    }
}

#[test]
fn without_an_index_files_that_go_back_in_time_are_searched_whole() {
    // Of two captures the later one was read first, and no index has them.
    let how = How { segment_pieces: None, ..How::default() };
    let (early, late) = (traffic(3, 20), traffic(3, 20));
    let hour = |mut traffic: Traffic| {
        for packet in &mut traffic.packets {
            packet.timestamp = packet.timestamp.plus_nanos(3600 * NANOS_PER_SECOND);
        }
        traffic
    };
    let mut volume = Volume::new(how.piece_bytes, 32 << 20);
    volume.record(&hour(late), how);
    volume.record(&early, how);
    let (found, _) = find_all(&volume, "before 1970-01-01T00:30:00Z", None);
    assert_eq!(found.len(), 3);
    let (capture, ..) = pcapng(&volume, "before 1970-01-01T00:30:00Z");
    assert_eq!(capture.frames.len(), 60);
    let (found, report) = find_all(&volume, "before 1960-01-01T00:00:00Z", None);
    assert!(found.is_empty() && report.explain.stripes_indexed == 0, "{report:?}");
}

#[test]
fn times_cut_packets_unless_whole_sessions_are_asked_for() {
    let volume = Volume::of(&traffic(2, 50), How::default());
    let query = "port 1001 and after 1970-01-01T00:00:20Z and before 1970-01-01T00:00:30Z";
    let (capture, report, _) = pcapng(&volume, query);
    let times: Vec<i128> =
        capture.frames.iter().map(|frame| frame.time_ns / 1_000_000_000).collect();
    assert_eq!(times, [21, 23, 25, 27, 29]);
    assert_eq!(report.packets, 5);
    let mut out = Vec::new();
    let report = extract_to(&volume, query, true, Target::Pcapng(&mut out)).unwrap();
    assert_eq!((report.packets, read(&out).frames.len()), (50, 50));
}

#[test]
fn an_extract_says_what_it_is_and_verifies_against_its_manifest() {
    let mut recorded = traffic(4, 40);
    let comment = [1, 0, 5, 0, b'h', b'e', b'l', b'l', b'o', 0, 0, 0];
    recorded.packets[0].options = comment.to_vec();
    recorded.interfaces[0].snaplen = 2000;
    let volume = Volume::of(&recorded, How::default());
    let (capture, report, bytes) = pcapng(&volume, "port 1000");
    assert_eq!(capture.frames.len(), 40);
    assert_eq!(capture.frames[0].comment.as_deref(), Some("hello"));
    assert_eq!(capture.interfaces.len(), 1);
    assert_eq!(
        (capture.interfaces[0].name.as_str(), capture.interfaces[0].snaplen),
        ("eth0", 2000)
    );
    assert!(capture.section_options.contains(&(1, b"port 1000".to_vec())));
    assert_eq!(capture.statements, ["complete"]);
    assert_eq!(capture.other_blocks, Vec::<u32>::new());
    let manifest = &report.manifest;
    assert_eq!((manifest.query.as_str(), manifest.rows), ("port 1000", 1));
    assert!(manifest.pieces.is_sorted_by_key(|read| read.piece) && manifest.pieces.len() > 1);
    let output = &manifest.outputs[0];
    verify_extract(output, &mut bytes.as_slice()).unwrap();
    let mut changed = bytes.clone();
    changed[100] ^= 1;
    assert!(verify_extract(output, &mut changed.as_slice()).is_err());
    assert!(verify_extract(output, &mut &bytes[1..]).is_err());
}

#[test]
fn a_session_of_few_packets_is_read_by_rows() {
    let recorded = traffic(900, 4);
    let volume = Volume::of(&recorded, How { piece_bytes: 1 << 20, ..How::default() });
    let (capture, report, _) = pcapng(&volume, "port 1321");
    assert!(capture.frames.iter().all(|frame| frame.data.len() == 1042));
    assert_eq!((capture.frames.len(), report.manifest.completeness.missing_packets), (4, 0));
    // The head, the first row, and one or two rows of each packet.
    let cost = report.explain;
    assert!(cost.pieces_read > 1 && cost.bytes_read <= 4 * 4 * 4096, "{cost:?}");
    assert_eq!(cost.packets_seen, 4, "{cost:?}");
    // Most of the packets, so that whole pieces are read.
    let (all, report, _) = pcapng(&volume, "udp and portrange 1100-1800");
    assert_eq!(all.frames.len(), 4 * 701);
    assert!(report.explain.bytes_read >= report.explain.pieces_read << 19, "{report:?}");
    assert!(capture.frames.iter().all(|frame| all.frames.contains(frame)));
}

#[test]
fn secrets_come_with_the_sessions_that_they_open_and_with_no_others() {
    let mut recorded = traffic(50, 4);
    // The first packet of each session is a ClientHello, whose random is its port.
    let random = |port: u16| [port.to_be_bytes(); 16].concat();
    for (port, packet) in (1000_u16..1050).zip(&mut recorded.packets) {
        let hello = [&[22, 3, 1, 0, 60, 1, 0, 0, 56, 3, 3][..], &random(port)].concat();
        packet.data[42..42 + hello.len()].copy_from_slice(&hello);
    }
    let line = |port: u16| format!("CLIENT_RANDOM {} 00\n", units::hex(&random(port)));
    recorded.blocks.push(key_log(&(1000..1060).map(line).collect::<String>()));
    let volume = Volume::of(&recorded, How { piece_bytes: 1 << 20, ..How::default() });
    let (bytes, completeness) = raw_pcapng(&volume, "port 1021", |_| ());
    let text = String::from_utf8_lossy(&bytes);
    assert_eq!(text.matches("CLIENT_RANDOM").count(), 1);
    assert!(text.contains(&line(1021)));
    assert_eq!(completeness.secrets_left_out, 59);
    assert!(completeness.to_string().contains("not given: 59 secrets and names of no packet"));
    let count = |query: &str, change: &dyn Fn(&mut Request<'_>)| {
        let (bytes, of) = raw_pcapng(&volume, query, change);
        (String::from_utf8_lossy(&bytes).matches("CLIENT_RANDOM").count(), of.secrets_left_out)
    };
    assert_eq!(count("", &|_| ()), (60, 0), "everything was asked for");
    assert_eq!(count("tcp", &|_| ()).0, 0);
    assert_eq!(count("portrange 1010-1012", &|_| ()), (3, 57));
    // Of sessions the ClientHello of which is not in the answer nothing is known.
    assert_eq!(count("", &|request| request.payload = Some("none".parse().unwrap())).0, 0);
    let filtered = |request: &mut Request<'_>| {
        request.packet_filter = Some(filters::PacketFilter::new("port 1003").unwrap());
    };
    assert_eq!(count("", &filtered), (1, 59));
    assert_eq!(count("", &|request| request.comments = true).0, 60);
    assert_eq!(
        count("port 1021", &|request| request.anonymiser =
            Some(anonymise::Anonymiser::new(&[7; 32])))
        .0,
        0
    );
    assert_eq!(
        count("", &|request| request.anonymiser = Some(anonymise::Anonymiser::new(&[7; 32]))),
        (0, 60)
    );
}

/// A Decryption Secrets Block (pcapng 4.7) of type TLS.
fn key_log(lines: &str) -> Vec<u8> {
    let mut block = Vec::new();
    format::pcapng::put_block(&mut block, 10, |out| {
        out.extend(0x544c_534b_u32.to_le_bytes());
        out.extend(u32::try_from(lines.len()).unwrap().to_le_bytes());
        out.extend(lines.as_bytes());
    });
    block
}

/// The bytes of an extract, and what is said of them.
fn raw_pcapng(
    volume: &Volume,
    query: &str,
    change: impl Fn(&mut Request<'_>),
) -> (Vec<u8>, Completeness) {
    let (parsed, mut out) = (Query::parse(query, Timestamp(0)).unwrap(), Vec::new());
    let mut request = Request::new(&parsed, query);
    change(&mut request);
    let clock = ManualClock::new(Timestamp(0));
    let report =
        extract(&volume.options(), &request, Target::Pcapng(&mut out), &clock, &mut |_| {
            ControlFlow::Continue(())
        });
    (out, report.unwrap().manifest.completeness)
}

#[test]
fn the_id_of_a_row_names_its_session() {
    let volume = Volume::of(&traffic(200, 20), How::default());
    let found = find_all(&volume, "port 1100", None).0;
    assert!(found[0].rows.len() > 2, "{found:?}");
    for id in &found[0].rows {
        assert_eq!(find_all(&volume, &format!("session_id {id}"), None).0, found);
    }
}

#[test]
fn a_session_id_names_its_segment() {
    // One after the other, so that most are over when their segment ends.
    let mut recorded = traffic(1, 1000);
    for (place, packet) in (0..).zip(&mut recorded.packets) {
        packet.data = datagram(1000 + place / 4, false, 1000);
    }
    let volume = Volume::of(&recorded, How { config: Config::default(), ..How::default() });
    let (all, report) = find_all(&volume, "", None);
    let found = all.iter().find(|found| found.rows.len() == 1 && !found.session.continues);
    let (by_id, of_id) = find_all(&volume, &format!("session_id {}", found.unwrap().id), None);
    assert_eq!(by_id, [found.unwrap().clone()]);
    let explain = of_id.explain;
    assert_eq!(explain.pruned_by_id, report.explain.segments - 1, "{explain:?}");
}

#[test]
fn an_index_knows_whether_vlan_ids_tell_sessions_apart() {
    let mut recorded = Traffic { interfaces: vec![ethernet("eth0")], ..Traffic::default() };
    for time in 0..40 {
        let mut data = datagram(1000, false, 30);
        // An 802.1Q tag with VLAN 1 or 2 behind the addresses.
        data.splice(12..12, [0x81, 0, 0, 1 + u8::try_from(time % 2).unwrap()]);
        recorded.packets.push(packet(0, time, data));
    }
    let config = Config { vlan_in_key: true, ..crate::recorder::endless() };
    let apart = Volume::of(&recorded, How { config, ..How::default() });
    assert_eq!(pcapng(&apart, "vlan 2").0.frames.len(), 20);
    let together = Volume::of(&recorded, How::default());
    assert_eq!(pcapng(&together, "vlan 1").0.frames.len(), 40);
}

#[test]
fn several_interfaces_are_merged_by_time() {
    let interfaces = vec![ethernet("a"), ethernet("b"), ethernet("b")];
    let mut recorded = Traffic { interfaces, ..Traffic::default() };
    // Each interface arrives as a run of its own.
    for interface in 0..3 {
        for number in 0..20 {
            let data = datagram(1000, false, 10);
            recorded.packets.push(packet(interface, number * 10 + i64::from(interface), data));
        }
    }
    let volume = Volume::of(&recorded, How::default());
    let (capture, ..) = pcapng(&volume, "port 1000");
    assert!(capture.frames.is_sorted_by_key(|frame| frame.time_ns));
    assert_eq!((capture.frames.len(), capture.interfaces.len()), (60, 3));
    let (all, ..) = pcapng(&volume, "");
    assert_eq!(all.frames, capture.frames, "everything is merged alike");
}

#[test]
fn an_empty_match_gives_an_empty_capture() {
    let volume = Volume::of(&traffic(1, 4), How::default());
    let (capture, report, bytes) = pcapng(&volume, "port 9");
    assert!(
        capture.frames.is_empty()
            && !bytes.is_empty()
            && report.manifest.completeness.is_complete()
    );
    let mut out = Vec::new();
    extract_to(&volume, "port 9", false, Target::Pcap(&mut out)).unwrap();
    assert_eq!(out.len(), 24);
    let never_written = Volume::new(64 << 10, 16 << 20);
    assert_eq!(find_all(&never_written, "", None).0, []);
    assert!(pcapng(&never_written, "").0.frames.is_empty());
}

#[test]
fn pcap_holds_one_link_type_or_a_file_for_each() {
    let mut recorded = traffic(2, 4);
    let raw = capture::Interface { link_type: LinkType::RAW, ..ethernet("tun0") };
    recorded.interfaces.push(raw);
    let data = datagram(1000, false, 5)[14..].to_vec();
    recorded.packets.push(packet(1, 5, data.clone()));
    let volume = Volume::of(&recorded, How::default());
    let mut out = Vec::new();
    let report = extract_to(&volume, "port 1000", false, Target::Pcap(&mut out)).unwrap();
    let frames = read(&out).frames;
    assert_eq!((report.packets, report.rewritten_packets), (5, 1));
    // The packet of the other link type has an Ethernet header made for it.
    let made = [&[0; 12][..], &[8, 0], &data].concat();
    assert_eq!(frames.iter().filter(|frame| frame.data == made).count(), 1);
    let expected: Vec<_> = frames.iter().filter(|frame| frame.data != made).collect();
    assert_eq!(expected.len(), 4);
    let mut out = Vec::new();
    let report = extract_to(&volume, "port 1001", false, Target::Pcap(&mut out)).unwrap();
    let capture = read(&out);
    assert_eq!((capture.frames.len(), report.packets), (4, 4));
    assert_eq!(capture.frames[1].data, recorded.packets[3].data);
    assert_eq!(capture.frames[1].time_ns, 3_000_000_000);
    let folder = tempfile::tempdir().unwrap();
    let mut open = |link_type: LinkType| {
        let path = folder.path().join(link_type.to_string());
        let file: Box<dyn Write> = Box::new(std::fs::File::create(path)?);
        Ok(file)
    };
    extract_to(&volume, "port 1000", false, Target::PcapByLinkType(&mut open)).unwrap();
    let frames_of = |name| read(&std::fs::read(folder.path().join(name)).unwrap()).frames;
    assert_eq!(frames_of("EN10MB").len(), 4);
    assert_eq!(frames_of("RAW")[0].data, data);
}

#[test]
fn what_no_index_covers_is_indexed_from_the_packets() {
    let recorded = traffic(5, 200);
    let reference = Volume::of(&recorded, How { segment_pieces: None, ..How::default() });
    let (found, report) = find_all(&reference, "", None);
    // One packet of a session every five seconds: no timeout, but slices of a minute.
    assert_eq!((found.len(), report.completeness.unindexed_packets), (5, 1000));
    assert!(found.iter().all(|found| found.is_provisional));
    assert_eq!(find_all(&reference, "", None).0, found, "ids stay");
    let id = &found[2].rows[1];
    assert_eq!(find_all(&reference, &format!("session_id = {id}"), None).0.len(), 1);
    assert_eq!(pcapng(&reference, "port 1003").0.frames.len(), 200);

    let crashed = Volume::of(&recorded, How { crash: true, ..How::default() });
    let (found, report) = find_all(&crashed, "", None);
    let unindexed = report.completeness.unindexed_packets;
    assert!((1..1000).contains(&unindexed), "{unindexed}");
    let packets: u64 =
        found.iter().map(|found| found.session.orig.packets + found.session.resp.packets).sum();
    assert_eq!(packets, 1000);
    assert_eq!(pcapng(&crashed, "port 1003").0.frames.len(), 200);
}

#[test]
fn pieces_that_the_indexer_missed_are_indexed_on_the_way() {
    let volume = Volume::of(&traffic(5, 200), How { late: true, ..How::default() });
    let (found, report) = find_all(&volume, "", None);
    let packets: u64 =
        found.iter().map(|found| found.session.orig.packets + found.session.resp.packets).sum();
    assert_eq!(packets, 1000);
    assert!((200..500).contains(&report.completeness.unindexed_packets), "{report:?}");
    assert!(report.completeness.is_complete());
    let (capture, report, _) = pcapng(&volume, "port 1004");
    assert_eq!((capture.frames.len(), report.manifest.completeness.missing_packets), (200, 0));
}

#[test]
fn what_was_not_looked_at_is_said_where_names_are_asked_for() {
    let volume = Volume::of(&traffic(5, 200), How { unread: 7, ..How::default() });
    let (found, report) = find_all(&volume, "port 1001", None);
    assert!(!found.is_empty() && report.completeness.is_complete());
    for query in ["sni = example.org", "not app = tls", "port 1001 and dns.name = example.org"] {
        let (_, report) = find_all(&volume, query, None);
        let unread = report.completeness.unread_packets;
        assert!(unread > 7 && unread.is_multiple_of(7), "{query}: {unread}");
        assert!(!report.completeness.is_complete());
        let text = format!("{} not looked at", plural(unread, "packet"));
        assert!(report.completeness.to_string().contains(&text), "{}", report.completeness);
    }
}

#[test]
fn answers_do_not_depend_on_the_cache() {
    let volume = Volume::of(&traffic(5, 200), How::default());
    let (first, report) = find_all(&volume, "port 1001", None);
    assert!(report.explain.segments_rebuilt == 0 && report.explain.segments > 2);
    assert_eq!(find_all(&volume, "port 1001", None).0, first, "from the cache");
    let cache = volume.folder.path().join("index");
    for file in std::fs::read_dir(&cache).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[30] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
    assert_eq!(find_all(&volume, "port 1001", None).0, first, "from a damaged cache");
    volume.forget_cache();
    assert_eq!(find_all(&volume, "port 1001", None).0, first, "from the ring");
    let in_vain = extract::Options { index_dir: Some("/proc/none".into()), ..volume.options() };
    assert_eq!(find_with(&in_vain, "port 1001", None).0, first, "without a cache");
}

/// The places of the stripes of a kind in the volume's file: (stripe, offset of its body).
fn stripes(volume: &Volume, kind: format::head::Kind) -> Vec<(StripeId, u64)> {
    let reader = volume::open_reader(&volume.path, &[]).unwrap();
    let span = reader.span().unwrap();
    let mut buffer = vec![0; reader.piece_bytes()];
    let mut found = Vec::new();
    for sequence in (span.tail..=span.acknowledged.sequence).each() {
        let slot = reader.slot(sequence, 0, &mut buffer).unwrap();
        for stripe in slot.stripes.iter().filter(|stripe| stripe.head.stripe.kind == kind) {
            let row = u64::from(stripe.head.stripe.first_row) + 1;
            let offset = reader.geometry().slot_offset(sequence) + row * 4096;
            found.push((stripe.head.stripe.stripe, offset));
        }
    }
    found
}

fn damage(volume: &Volume, offset: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(&volume.path).unwrap();
    file.write_all_at(b"damage", offset).unwrap();
}

#[test]
fn damaged_rows_end_a_piece_and_are_named() {
    let volume = Volume::of(&traffic(1, 200), How::default());
    let whole = pcapng(&volume, "port 1000").0;
    let data = stripes(&volume, format::head::Kind::Data);
    let (stripe, body) = data[1];
    damage(&volume, body + 3 * 4096 + 17);
    let (capture, report, _) = pcapng(&volume, "port 1000");
    let completeness = &report.manifest.completeness;
    assert_eq!(completeness.damage.len(), 1);
    assert_eq!(completeness.damage[0].stripe, stripe);
    assert_eq!(completeness.damage[0].kind, DamageKind::Rows(vec![3]));
    assert!(!completeness.is_complete() && completeness.missing_packets == 0);
    assert!(capture.statements[0].contains("damage: 1 row of stripe"), "{:?}", capture.statements);
    // About 12 KiB of packets are in front of the bad row, and all that is there is right.
    let lost = whole.frames.len() - capture.frames.len();
    assert!((1..60).contains(&lost), "{lost}");
    assert!(capture.frames.iter().all(|frame| whole.frames.contains(frame)));
    let report =
        packets(&volume.options(), &ManualClock::new(Timestamp(0)), |_| ControlFlow::Continue(()))
            .unwrap();
    assert_eq!(report.packets, u64::try_from(capture.frames.len()).unwrap());
    assert_eq!(report.completeness.damage.len(), 1);

    damage(&volume, body - 4096 + 100);
    let completeness = pcapng(&volume, "port 1000").1.manifest.completeness;
    assert_eq!(completeness.damage[0].kind, DamageKind::Missing);
}

#[test]
fn a_damaged_index_is_made_again_from_the_packets_and_kept() {
    let volume = Volume::of(&traffic(5, 200), How::default());
    let (whole, _) = find_all(&volume, "", None);
    for (_, body) in stripes(&volume, format::head::Kind::Index) {
        damage(&volume, body + 200);
    }
    // The cache has them all.
    assert_eq!(find_all(&volume, "", None).0, whole);
    volume.forget_cache();
    let (found, report) = find_all(&volume, "", None);
    assert_eq!((packets_of(&found), report.completeness.unindexed_packets), (1000, 1000));
    assert_eq!(pcapng(&volume, "port 1002").0.frames.len(), 200);

    // With the newest INDEX readable, the segments are known: rebuilt, and stored again.
    let volume = Volume::of(&traffic(5, 200), How::default());
    let index = stripes(&volume, format::head::Kind::Index);
    let (_, body) = index[0];
    damage(&volume, body + 4000);
    let (found, report) = find_all(&volume, "", None);
    assert_eq!((packets_of(&found), report.explain.segments_rebuilt), (1000, 1));
    assert_eq!(report.completeness.unindexed_packets, 0);
    assert_eq!(find_all(&volume, "", None).1.explain.segments_rebuilt, 0);
}

#[test]
fn overwritten_packets_leave_the_answers_unless_rows_are_kept() {
    let mut volume = Volume::new(64 << 10, 8 << 20);
    let how = How { segment_pieces: Some(8), ..How::default() };
    let ring = {
        let reader = volume::open_reader(&volume.path, &[]).unwrap();
        reader.geometry().slots
    };
    let rounds = u16::try_from(ring * 45).unwrap();
    volume.record(&traffic(2, rounds / 2), how);
    // One session lives through the whole recording, its first rows are overwritten by the next
    // one.
    let before = find_all(&volume, "", None).0;
    assert_eq!(before.len(), 2);
    volume.record(&traffic(2, rounds / 2), how);
    let (found, _) = find_all(&volume, "port 1000", None);
    assert!(found.iter().all(|found| found.packets != Held::Retired));
    let kept =
        extract::Options { keep_sessions: Some(core::time::Duration::MAX), ..volume.options() };
    let (with_kept, _) = find_with(&kept, "port 1000", None);
    assert!(packets_of(&with_kept) > packets_of(&found));
    assert!(with_kept.iter().any(|found| found.packets != Held::Held));
    let (capture, report, _) = pcapng(&volume, "port 1000");
    let wanted: u64 = packets_of(&found);
    let got = u64::try_from(capture.frames.len()).unwrap();
    assert_eq!(report.manifest.completeness.missing_packets, 0);
    assert!(got <= wanted && (got == wanted || report.manifest.completeness.retired_pieces > 0));
}

#[test]
fn losses_in_the_time_asked_for_are_in_the_statement() {
    let volume = Volume::of(&traffic(2, 10), How { lossy: true, ..How::default() });
    let (_, report) = find_all(&volume, "", None);
    assert_eq!(report.completeness.gaps.len(), 1);
    assert!(report.completeness.to_string().starts_with("incomplete\ngap: kernel drops between"));
    let (_, report) = find_all(&volume, "after 1970-01-01T00:00:01Z", None);
    assert_eq!(report.completeness, Completeness::default());
}

/// What is lost where no session of the answer is may have been of one: whatever a query asks
/// for, and by whichever way it is answered.
#[test]
fn find_and_extract_say_the_same_of_losses_whatever_is_asked_for() {
    let lossy = How { lossy: true, ..How::default() };
    let mut late = How { late: true, ..lossy };
    late.config.slice_ns = Some(3 * NANOS_PER_SECOND);
    for how in [lossy, late] {
        let volume = Volume::of(&traffic(6, 20), how);
        let mut asked: Vec<String> = query::FIELDS
            .iter()
            .map(|field| format!("has {}", field.name))
            .filter(|text| Query::parse(text, Timestamp(0)).is_ok())
            .collect();
        assert!(asked.len() > 50, "{}", asked.len());
        let more = [
            "port 1003",
            "port 9",
            "packets = 20",
            "packets > 1000000",
            "duration > 1h",
            "tcp",
            "interface eth0",
            "interface eth7",
            "recording x",
            "sni x.y",
            "dns.name = x.y",
            "udp",
            "session_id 1.0-1",
            "host 10.9.9.9",
            "bytes > 1 and port 1001",
            "state = SF",
            "community_id \"1:wCb3OG7yAFWelaUydu0D+125CLM=\"",
        ];
        asked.extend(more.map(str::to_owned));
        for text in &asked {
            for times in ["", "before 1970-01-01T00:00:30Z", "after 1970-01-01T00:00:30Z"] {
                let both = [text.as_str(), times].map(|it| format!("({it})"));
                let parts: Vec<_> = both.into_iter().filter(|it| it != "()").collect();
                let text = parts.join(" and ");
                let found = find_all(&volume, &text, None).1.completeness;
                let (_, report, _) = pcapng(&volume, &text);
                let extracted = report.manifest.completeness;
                let [found, extracted] =
                    [found, extracted].map(|it| (it.state(), it.gaps, it.left_out_packets));
                assert_eq!(extracted, found, "{text}");
            }
        }
    }
}

#[test]
fn tshark_reads_what_is_written() {
    if Command::new("tshark").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("not run: tshark is not installed");
        return;
    }
    let mut recorded = traffic(3, 20);
    recorded.interfaces.push(ethernet("eth1"));
    recorded.packets.push(packet(1, 1, datagram(1001, false, 3)));
    let volume = Volume::of(&recorded, How::default());
    let lines = |bytes: &[u8]| {
        let path = volume.folder.path().join("out");
        std::fs::write(&path, bytes).unwrap();
        let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "udp.srcport"];
        let run = Command::new("tshark").arg("-r").arg(&path).args(fields).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()
    };
    let from_pcapng = lines(&pcapng(&volume, "port 1001").2);
    let mut out = Vec::new();
    extract_to(&volume, "port 1001", false, Target::Pcap(&mut out)).unwrap();
    assert_eq!(lines(&out), from_pcapng);
    assert_eq!(from_pcapng.lines().count(), 21);
    assert_eq!(from_pcapng.lines().next(), Some("0.000000001\t1001"));
    assert_eq!(lines(&pcapng(&volume, "port 9").2), "");
}

#[test]
fn groups_of_segments_are_ruled_out_at_once_and_change_no_answer() {
    let how = How { piece_bytes: 16 << 10, segment_pieces: Some(1), ..How::default() };
    // About a thousand packets of a KiB each: fifteen of them fill a piece.
    let mut volume = Volume::of(&traffic(1200, 1), how);
    let queries =
        ["port 1007 and host 10.0.0.1", "host 192.0.2.1", "dns.name = absent.example", ""];
    let answers =
        |volume: &Volume| queries.map(|query| find_all(volume, query, None)).map(|(all, _)| all);
    let before = answers(&volume);
    let (_, report) = find_all(&volume, "host 192.0.2.1", None);
    let explain = report.explain;
    assert!(explain.segments >= 64, "{explain:?}");
    assert_eq!(explain.pruned_by_group + explain.pruned_by_filter, explain.segments, "{explain:?}");
    assert!(explain.pruned_by_group >= 64, "{explain:?}");
    assert_eq!(answers(&volume), before);
    // What is recorded afterwards, and what lost its index, is found as ever.
    volume.record(&traffic(30, 3), How { segment_pieces: None, ..how });
    let (found, report) = find_all(&volume, "port 1007 and host 10.0.0.1", None);
    assert!(found.len() > before[0].len(), "{report:?}");
    assert!(report.explain.pruned_by_group == 0, "every segment has this host");
    let (_, report) = find_all(&volume, "host 192.0.2.1", None);
    assert!(report.explain.pruned_by_group >= 64 && report.completeness.unindexed_packets == 90);
    volume.forget_cache();
    assert_eq!(find_all(&volume, queries[0], None).0, found);
}

/// Of a volume that no index covers, with such indexers.
fn find_with_workers(volume: &Volume, workers: indexer::Faulty) -> (Vec<Found>, FindReport) {
    let workers = indexer::Workers::new(std::sync::Arc::new(workers));
    find_with(&extract::Options { workers, ..volume.options() }, "", None)
}

#[test]
fn what_ends_the_indexer_is_left_out_of_the_answer_which_says_so() {
    let volume = Volume::of(&traffic(5, 200), How { segment_pieces: None, ..How::default() });
    let data = stripes(&volume, format::head::Kind::Data);
    let (poison, _) = data[data.len() / 2];
    let workers = indexer::Faulty::new(move |seen| {
        (seen.stripe == Some(poison)).then_some(indexer::Fate::Crashes)
    });
    let (found, report) = find_with_workers(&volume, workers);
    let left_out = report.completeness.left_out_packets;
    assert!((1..1000).contains(&left_out) && !report.completeness.is_complete());
    assert_eq!(packets_of(&found) + left_out, 1000);
    let text = format!("{left_out} packets that ended the indexer twice");
    assert!(report.completeness.to_string().contains(&text), "{}", report.completeness);
}

#[test]
fn an_answer_is_complete_although_somebody_kills_the_indexer() {
    let volume = Volume::of(&traffic(5, 200), How { segment_pieces: None, ..How::default() });
    let killed = AtomicU32::new(0);
    let workers = indexer::Faulty::new(move |seen| {
        let is_due = seen.frames == 3 && killed.fetch_add(1, Ordering::Relaxed) < 10;
        is_due.then_some(indexer::Fate::IsKilled)
    });
    let (found, report) = find_with_workers(&volume, workers);
    assert_eq!((packets_of(&found), report.completeness.left_out_packets), (1000, 0));
    assert!(report.completeness.is_complete());
}

fn packets_of(found: &[Found]) -> u64 {
    found.iter().map(|found| found.session.orig.packets + found.session.resp.packets).sum()
}
