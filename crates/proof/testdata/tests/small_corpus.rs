//! The small corpus is the same each time, and tshark, which has no part in it, sees in it what its
//! tables say.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says why it did not run"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use testdata::Corpus;

/// A row of a table by its columns' names.
type Row = BTreeMap<String, String>;

/// The sessions of the table, and the frames of each capture.
type Both = (Vec<Row>, BTreeMap<String, Vec<Row>>);

/// What tshark is asked for each frame; of fields that occur twice the innermost.
const FIELDS: [&str; 23] = [
    "frame.time_epoch",
    "frame.len",
    "frame.cap_len",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "ip.len",
    "ipv6.plen",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
    "tcp.len",
    "udp.length",
    "tcp.flags",
    "tls.handshake.extensions_server_name",
    "tls.handshake.ja3",
    "dns.qry.name",
    "http.host",
    "ssh.protocol",
    "communityid",
    "_ws.malformed",
];

/// Columns of the table with names, and the field of each.
const NAMES: [(&str, &str); 5] = [
    ("sni", "tls.handshake.extensions_server_name"),
    ("ja3", "tls.handshake.ja3"),
    ("dns", "dns.qry.name"),
    ("http_host", "http.host"),
    ("ssh", "ssh.protocol"),
];

fn row(names: &[&str], line: &str) -> Row {
    names.iter().zip(line.split('\t')).map(|(&name, cell)| (name.into(), cell.into())).collect()
}

fn table(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split('\t').collect();
    lines.map(|line| row(&names, line)).collect()
}

/// The frames of a capture, as tshark reads them.
fn frames(capture: &Path) -> Vec<Row> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "--enable-protocol", "communityid", "-T", "fields", "-E", "occurrence=l"]);
    // No checksum is taken on trust, on either side.
    let checks = ["ip", "tcp", "udp"].map(|layer| format!("{layer}.check_checksum:TRUE"));
    tshark.args(checks.iter().flat_map(|check| ["-o", check]));
    tshark.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = tshark.arg("-r").arg(capture).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", capture.display());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| row(&FIELDS, line)).collect()
}

/// What the maker and tshark say, of which tshark is asked once. Nothing, and the reason said,
/// where it is not installed.
fn by_both() -> Option<&'static Both> {
    static BOTH: OnceLock<Both> = OnceLock::new();
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("not run: no tshark");
        return None;
    }
    Some(BOTH.get_or_init(|| {
        let small = Corpus::small();
        let sessions = table(&small.path().join("ref/tshark_sessions.tsv"));
        let files: BTreeSet<&String> = sessions.iter().map(|row| &row["file"]).collect();
        let frames = |file: &String| frames(&small.path().join("pcap").join(file));
        let captures = files.into_iter().map(|file| (file.clone(), frames(file))).collect();
        (sessions, captures)
    }))
}

/// `1-4,9` as places.
fn places(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse::<usize>().unwrap() - 1..last.parse::<usize>().unwrap()
    };
    text.split(',').flat_map(range).collect()
}

fn number(text: &str) -> u64 {
    let hexadecimal = text.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
    hexadecimal.unwrap_or_else(|| text.parse()).unwrap_or(0)
}

fn files_of(corpus: &Corpus) -> BTreeMap<String, Vec<u8>> {
    let files = corpus
        .captures()
        .into_iter()
        .chain(fs::read_dir(corpus.path().join("ref")).unwrap().map(|entry| entry.unwrap().path()));
    let name = |path: &Path| path.strip_prefix(corpus.path()).unwrap().display().to_string();
    files.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

#[test]
fn the_same_captures_are_made_each_time() {
    let (first, second) = (Corpus::small(), Corpus::small());
    let (one, other) = (files_of(&first), files_of(&second));
    assert!(one == other);
    assert!(one.len() > 30, "{} files", one.len());
    let bytes: usize = one.values().map(Vec::len).sum();
    assert!(bytes < 10_000_000, "{bytes} bytes");
    let folder = first.path().to_owned();
    drop(first);
    assert!(!folder.exists(), "it stays behind");
}

#[test]
fn every_frame_is_of_one_session() {
    let small = Corpus::small();
    let mut seen = BTreeMap::<String, Vec<usize>>::new();
    for row in table(&small.path().join("ref/tshark_sessions.tsv")) {
        seen.entry(row["file"].clone()).or_default().extend(places(&row["frames"]));
    }
    let containers = table(&small.path().join("ref/container.tsv"));
    assert_eq!(seen.len(), containers.len());
    for row in containers {
        let mut places = seen[&row["file"]].clone();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..row["packets"].parse().unwrap()), "{}", row["file"]);
    }
}

/// One direction's or both directions' counts of a session, by tshark's fields.
fn counts(frames: &[&Row], row: &Row, is_from_a: Option<bool>) -> [u64; 3] {
    let six = row["ip_a"].contains(':');
    let source = if six { "ipv6.src" } else { "ip.src" };
    let of_side = frames.iter().filter(|frame| {
        is_from_a.is_none_or(|is_from_a| (frame[source] == row["ip_a"]) == is_from_a)
    });
    of_side.fold([0; 3], |[packets, bytes, ip_bytes], frame| {
        let ip = if six { 40 + number(&frame["ipv6.plen"]) } else { number(&frame["ip.len"]) };
        [packets + 1, bytes + number(&frame["frame.len"]), ip_bytes + ip]
    })
}

#[test]
fn tshark_counts_what_the_table_of_sessions_says() {
    let Some((sessions, captures)) = by_both() else { return };
    for row in sessions {
        let all = &captures[&row["file"]];
        let frames: Vec<&Row> = places(&row["frames"]).into_iter().map(|at| &all[at]).collect();
        for frame in &frames {
            let fields = format!("{row:#?}\n{frame:#?}");
            let is_malformed = !frame["_ws.malformed"].is_empty();
            assert!(!is_malformed || row["file"] == "snapped.pcap", "{fields}");
        }
        let kept: u64 = frames.iter().map(|frame| number(&frame["frame.cap_len"])).sum();
        assert_eq!(kept, number(&row["cap_bytes"]), "{row:#?}");
        assert_eq!(frames[0]["frame.time_epoch"], row["first"], "{row:#?}");
        assert_eq!(frames[frames.len() - 1]["frame.time_epoch"], row["last"], "{row:#?}");
        if row["proto"].starts_with("nonip") {
            continue;
        }
        let total = ["pkts", "frame_bytes"].map(|column| number(&row[column]));
        assert_eq!(counts(&frames, row, None)[..2], total, "{row:#?}");
        for (is_from_a, side) in [(true, "ab"), (false, "ba")] {
            let columns = ["pkts", "frame_bytes", "ip_bytes"];
            let expected = columns.map(|column| number(&row[&format!("{column}_{side}")]));
            assert_eq!(counts(&frames, row, Some(is_from_a)), expected, "{side} of {row:#?}");
        }
    }
    assert!(captures.len() > 15);
}

#[test]
fn tshark_sees_the_ends_and_the_payload_that_the_table_says() {
    let Some((sessions, captures)) = by_both() else { return };
    for row in sessions {
        let (proto, len) = match row["proto"].as_str() {
            "6" => ("tcp", "tcp.len"),
            "17" => ("udp", "udp.length"),
            _ => continue,
        };
        let all = &captures[&row["file"]];
        let (mut payload, mut flags, mut is_fragmented) = ([0; 2], [0; 2], false);
        for frame in places(&row["frames"]).into_iter().map(|at| &all[at]) {
            let ip = if row["ip_a"].contains(':') { "ipv6" } else { "ip" };
            let field = |layer: &str, name: &str| frame[&format!("{layer}.{name}")].clone();
            let is_from_a = field(ip, "src") == row["ip_a"];
            let [near, far] = if is_from_a { ["a", "b"] } else { ["b", "a"] };
            assert_eq!(field(ip, "dst"), row[&format!("ip_{far}")], "{row:#?}");
            if field(proto, "srcport").is_empty() {
                // A fragment; its last one shows the whole datagram.
                is_fragmented = true;
                continue;
            }
            assert_eq!(field(proto, "srcport"), row[&format!("port_{near}")], "{row:#?}");
            assert_eq!(field(proto, "dstport"), row[&format!("port_{far}")], "{row:#?}");
            let header = if proto == "udp" { 8 } else { 0 };
            payload[usize::from(!is_from_a)] += number(&frame[len]) - header;
            flags[usize::from(!is_from_a)] |= number(&frame["tcp.flags"]);
        }
        let expected = ["payload_ab", "payload_ba"].map(|column| number(&row[column]));
        assert!(payload == expected, "{payload:?}, fragments {is_fragmented}: {row:#?}");
        let expected = ["tcp_flags_ab", "tcp_flags_ba"].map(|column| number(&row[column]));
        assert_eq!(flags, expected, "{row:#?}");
    }
}

#[test]
fn tshark_finds_the_names_that_the_table_says_and_no_other() {
    let Some((sessions, captures)) = by_both() else { return };
    let mut found = BTreeMap::<&str, usize>::new();
    for row in sessions {
        let all = &captures[&row["file"]];
        let places = places(&row["frames"]);
        let set = |texts: &mut dyn Iterator<Item = &str>| -> BTreeSet<String> {
            texts.filter(|text| !text.is_empty()).map(str::to_owned).collect()
        };
        // An error of ICMP has none of its own; a fragment has none before it is whole.
        let ids = set(&mut places.iter().map(|&at| all[at]["communityid"].as_str()));
        let stated = &row["community_id"];
        assert!(ids.is_empty() || ids.contains(stated), "{ids:?}: {row:#?}");
        for (column, field) in NAMES {
            let seen = set(&mut places.iter().map(|&at| all[at][field].as_str()));
            let said = set(&mut row[column].split(','));
            assert_eq!(seen, said, "{column} of {row:#?}");
            *found.entry(column).or_default() += usize::from(!said.is_empty());
        }
    }
    assert_eq!(found.len(), NAMES.len());
    assert!(found.values().all(|sessions| *sessions > 0), "{found:?}");
}

/// Tests of real captures run over the small corpus alone where the large one is not there; this
/// one says so.
#[test]
fn the_large_corpus_is_there() {
    match Corpus::large() {
        Some(large) => assert!(large.captures().len() > 500),
        None => println!("not run: {}", testdata::lacks_large()),
    }
}
