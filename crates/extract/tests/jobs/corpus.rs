//! Sessions of the corpus, found by tuple and extracted, against the frames that tshark lists for them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use core::ops::ControlFlow;

use extract::{Found, Request, Target, extract, find, packets};
use query::Query;
use units::{ManualClock, Timestamp};

use crate::reader::{Frame, read, read_file};
use crate::recorder::{How, Volume, traffic_of};

type Row = BTreeMap<String, String>;

fn corpus() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/corpus");
    if !path.is_dir() {
        println!("not run: no corpus at {}", path.display());
        return None;
    }
    Some(path)
}

fn table(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split('\t').collect();
    lines
        .map(|line| {
            names.iter().zip(line.split('\t')).map(|(&k, v)| (k.into(), v.into())).collect()
        })
        .collect()
}

/// `1-4,9` as numbers from 0.
fn frame_numbers(text: &str) -> Vec<usize> {
    text.split(',')
        .flat_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            first.parse::<usize>().unwrap()..=last.parse().unwrap()
        })
        .map(|number| number - 1)
        .collect()
}

fn nanos(text: &str) -> i64 {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fraction = format!("{fraction:0<9}");
    let [seconds, fraction] =
        [seconds, &fraction[..9]].map(|text| text.parse::<i64>().unwrap_or(0));
    seconds * 1_000_000_000 + fraction
}

fn query_of(row: &Row) -> String {
    let mut query =
        format!("proto = {} and host = {} and host = {}", row["proto"], row["ip_a"], row["ip_b"]);
    if ["6", "17", "132"].contains(&row["proto"].as_str()) && !row["port_a"].is_empty() {
        query += &format!(" and port = {} and port = {}", row["port_a"], row["port_b"]);
    }
    query
}

/// The frame without what a pcap session cannot say.
fn plain(frame: &Frame) -> (u16, i128, u32, &[u8]) {
    (frame.link_type, frame.time_ns, frame.original_len, &frame.data)
}

fn extracted(volume: &Volume, query: &str) -> Vec<u8> {
    let parsed = Query::parse(query, Timestamp(0)).unwrap();
    let mut out = Vec::new();
    let request = Request { query: &parsed, query_text: query, whole_sessions: false };
    let clock = ManualClock::new(Timestamp(0));
    let report =
        extract(&volume.options(), &request, Target::Pcapng(&mut out), &clock, &mut |_| {
            ControlFlow::Continue(())
        });
    let report = report.unwrap();
    assert_eq!(report.manifest.completeness.missing_packets, 0, "{query}");
    out
}

fn found(volume: &Volume, query: &str) -> Vec<Found> {
    let parsed = Query::parse(query, Timestamp(0)).unwrap();
    let clock = ManualClock::new(Timestamp(0));
    let mut all = Vec::new();
    find(&volume.options(), &parsed, None, &clock, &mut |found| {
        all.push(found.clone());
        ControlFlow::Continue(())
    })
    .unwrap();
    all
}

/// Why a session's packets are not those of the reference.
fn difference(volume: &Volume, original: &[Frame], row: &Row) -> Option<&'static str> {
    let expected: Vec<&Frame> = frame_numbers(&row["frames"])
        .into_iter()
        .filter_map(|number| original.get(number))
        .collect();
    let count = u64::try_from(expected.len()).unwrap();
    if expected.len() != row["pkts"].parse::<usize>().unwrap() {
        return Some("the capture breaks off before its last frame");
    }
    let candidates = found(volume, &query_of(row));
    if candidates.is_empty() {
        return Some("no session with this tuple");
    }
    // Rows far apart in time are shown apart, and are one session all the same.
    let mut sessions = BTreeMap::<Timestamp, (u64, Vec<String>)>::new();
    for found in candidates {
        let (packets, ids) = sessions.entry(found.session.session_start).or_default();
        *packets += found.session.orig.packets + found.session.resp.packets;
        ids.extend(found.rows.iter().map(|id| format!("session_id = {id}")));
    }
    let start = Timestamp(nanos(&row["first"]));
    let same = sessions.iter().filter(|(_, (packets, _))| *packets == count);
    let Some((_, (_, ids))) = same.min_by_key(|(begin, _)| begin.since(start).abs()) else {
        return Some("the sessions of this tuple have other packet counts");
    };
    let capture = read(&extracted(volume, &ids.join(" or ")));
    let mut got: Vec<_> = capture.frames.iter().map(plain).collect();
    let mut expected: Vec<_> = expected.into_iter().map(plain).collect();
    if got == expected {
        return None;
    }
    got.sort_unstable();
    expected.sort_unstable();
    // Several interfaces are merged by time.
    if got == expected && capture.interfaces.len() > 1 { None } else { Some("other packets") }
}

#[test]
fn sessions_come_out_as_their_packets_lie_in_the_capture() {
    let Some(corpus) = corpus() else { return };
    let mut by_file = BTreeMap::<String, Vec<Row>>::new();
    for row in table(&corpus.join("ref/tshark_sessions.tsv")) {
        if !row["proto"].starts_with("nonip") {
            by_file.entry(row["file"].clone()).or_default().push(row);
        }
    }
    let (mut count, mut equal) = (0, 0);
    let mut reasons = BTreeMap::<&str, usize>::new();
    for (file, rows) in by_file {
        let path = corpus.join("pcap").join(&file);
        let traffic = traffic_of(&path);
        let volume = Volume::of(&traffic, How::default());
        let original = read_file(&path).frames;
        for row in &rows {
            count += 1;
            match difference(&volume, &original, row) {
                None => equal += 1,
                Some(reason) => {
                    *reasons.entry(reason).or_default() += 1;
                    println!("{file} {} pkts {}: {reason}", query_of(row), row["pkts"]);
                }
            }
        }
    }
    println!("{equal} of {count} sessions extracted as they lie in their captures; {reasons:?}");
    assert!(equal >= 500 && equal * 100 >= count * 97);
}

#[test]
fn all_packets_of_every_capture_come_out_without_an_index() {
    let Some(corpus) = corpus() else { return };
    let mut count = 0;
    for entry in fs::read_dir(corpus.join("derived")).unwrap() {
        let path = entry.unwrap().path();
        let traffic = traffic_of(&path);
        let how = How { segment_pieces: None, ..How::default() };
        let volume = Volume::of(&traffic, how);
        let mut seen = Vec::new();
        let report = packets(&volume.options(), |found| {
            seen.push((found.packet.timestamp, found.packet.data.to_vec()));
            ControlFlow::Continue(())
        });
        let expected: Vec<_> =
            traffic.packets.iter().map(|packet| (packet.timestamp, packet.data.clone())).collect();
        assert_eq!(report.unwrap().packets, u64::try_from(expected.len()).unwrap());
        assert!(seen == expected, "{}", path.display());
        count += seen.len();
    }
    assert!(count > 100);
}
