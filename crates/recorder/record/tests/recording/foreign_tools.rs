//! What lies on the disk is a capture file: tshark, capinfos and tcpdump read what `dd` takes out
//! of a volume, after a stop, after a crash, and after several laps.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use testdata::Corpus;
use units::{EachSequence, Sequence};
use volume::Reader;

use crate::child::{Recorder, Task, await_release};
use crate::volumes::{
    Packet, assert_clean, folder, new_volume, open, packets_of_file, run, stripes_of_slot,
};

const ETHERNET: [&str; 6] = [
    "pcap/zeek/cwd-navigation.pcap",
    "pcap/ndpi/gnutella.pcap",
    "pcap/zeek/smb2.pcap",
    "pcap/mercury/pppoe_double_vlan_tagging.pcap",
    "derived/snapped68.pcap",
    "pcap/pcapplusplus/tls2.pcap",
];

/// Twelve link types, 126 interfaces in one capture, several sections, times that run backwards.
const MIXED: [&str; 14] = [
    "pcap/pcapplusplus/sll.pcap",
    "pcap/zeek/llc.pcap",
    "pcap/ndpi/opc-ua.pcap",
    "pcap/zeek/modify-request.pcapng",
    "pcap/zeek/quic-interop-retry.pcap",
    "pcap/libpcap/wpa-Induction.pcap",
    "pcap/pcapng-gen/le-test202.pcapng",
    "pcap/zeek/wlanmon.pcap",
    "pcap/pcapplusplus/sll2.pcap",
    "derived/time-backwards.pcap",
    "derived/zero-length.pcap",
    "pcap/ndpi/pfcp.pcapng",
    "pcap/ja4/chrome-cloudflare-quic-with-secrets.pcapng",
    "pcap/ndpi/1kxun.pcap",
];

/// The same of the small corpus.
const SMALL_ETHERNET: [&str; 4] =
    ["pcap/protocols.pcap", "pcap/many.pcap", "pcap/snapped.pcap", "pcap/tcp-ns-be.pcap"];

/// Seven link types, captures of several interfaces and sections, times that run backwards.
const SMALL_MIXED: [&str; 12] = [
    "pcap/raw.pcap",
    "pcap/null.pcap",
    "pcap/loop.pcap",
    "pcap/ppp.pcap",
    "pcap/cooked.pcap",
    "pcap/cooked2.pcap",
    "pcap/pcapng-gen/be-interfaces.pcapng",
    "pcap/pcapng-gen/le-sections.pcapng",
    "derived/time-backwards.pcap",
    "derived/zero-length.pcap",
    "pcap/fragments-ns-be.pcap",
    "pcap/many.pcap",
];

/// How a volume came to lie there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Stop,
    Crash,
    Laps,
}

/// What tools should find in a run of slots.
struct Run {
    packets: Vec<Packet>,
    /// Of all its interfaces, those without packets too.
    link_types: BTreeSet<u16>,
}

fn has_tools() -> bool {
    ["tshark", "capinfos", "tcpdump", "dd"].iter().all(|tool| {
        let found = Command::new(tool).arg("--version").output().is_ok();
        if !found {
            println!("not run: needs {tool}");
        }
        found
    })
}

/// Records captures of the corpus onto a new volume that ends as given.
fn recorded(folder: &Path, end: End, captures: &[PathBuf], with_index: bool) -> PathBuf {
    let volume = folder.join("volume");
    let laps = end == End::Laps;
    let (piece, size) = if laps { (64 << 10, 7 << 20) } else { (256 << 10, 12 << 20) };
    new_volume(&volume, piece, size);
    let task = Task {
        volume: volume.clone(),
        inputs: captures.to_vec(),
        with_index,
        // Cut at every batch where columns are not to be full.
        cut_after_ms: if with_index { 1000 } else { 0 },
    };
    if end == End::Crash {
        let task = Task { inputs: vec![captures.to_vec(); 50].concat(), ..task.clone() };
        let (mut recorder, _input) = Recorder::start(&task);
        recorder.wait_for(3000);
        recorder.kill();
        await_release(&volume);
    }
    for round in 1.. {
        let report = run(&task.options());
        assert!(report.total.is_lossless() && report.total.stored > 1000);
        // Where the run of all slots crosses the end of the ring.
        if !laps || (round > 2 && wraps(&open(&volume))) {
            break;
        }
    }
    volume
}

fn wraps(reader: &Reader) -> bool {
    let (span, geometry) = (reader.span().unwrap(), reader.geometry());
    geometry.slot(span.acknowledged.sequence) < geometry.slot(span.tail)
}

/// Takes the slots of these sequences out with `dd`; where the ring wraps in between, with two of
/// them.
fn dd(volume: &Path, reader: &Reader, sequences: RangeInclusive<Sequence>, to: &Path) {
    let geometry = reader.geometry();
    let piece = u64::from(geometry.piece_bytes);
    drop(fs::remove_file(to));
    let mut next = *sequences.start();
    while next <= *sequences.end() {
        let to_ring_end = geometry.slots - geometry.slot(next).get();
        let count = to_ring_end.min(sequences.end().next() - next);
        let status = Command::new("dd")
            .arg(format!("if={}", volume.display()))
            .arg(format!("of={}", to.display()))
            .arg(format!("bs={piece}"))
            .arg(format!("skip={}", geometry.slot_offset(next) / piece))
            .arg(format!("count={count}"))
            .args(["oflag=append", "conv=notrunc", "status=none"])
            .status();
        assert!(status.unwrap().success());
        next += count;
    }
}

fn contents(reader: &Reader, sequences: RangeInclusive<Sequence>) -> Run {
    let mut run = Run { packets: Vec::new(), link_types: BTreeSet::new() };
    for stripe in sequences.each().flat_map(|sequence| stripes_of_slot(reader, sequence)) {
        run.link_types.extend(stripe.interfaces.iter().map(|(_, link_type)| *link_type));
        run.packets.extend(stripe.packets.into_iter().map(|(_, packet)| packet));
    }
    run
}

/// Runs a tool that must succeed and find nothing to complain about.
fn tool(program: &str, arguments: &[&str], file: &Path) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).arg("-r").arg(file).stdin(Stdio::null());
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<&str> = errors
        .lines()
        .filter(|line| !line.starts_with("Running as user"))
        .filter(|line| !line.starts_with("reading from file"))
        .collect();
    assert!(output.status.success() && complaints.is_empty(), "{program}: {errors}");
    output
}

fn tool_text(program: &str, arguments: &[&str], file: &Path) -> String {
    String::from_utf8(tool(program, arguments, file).stdout).unwrap()
}

/// capinfos counts the packets.
fn check_capinfos(file: &Path, expected: &Run) {
    let output = Command::new("capinfos").args(["-TMcr"]).arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    let count = text.trim_end().rsplit('\t').next().unwrap();
    assert_eq!(count, expected.packets.len().to_string(), "{text}");
}

/// What tshark need not look at, because only whole frames are compared.
const TSHARK: [&str; 5] = ["-n", "--disable-protocol", "ip", "--disable-protocol", "ipv6"];

/// tshark reads every byte of a run with one link type, and writes it again. (It cannot write a run
/// whose sections differ in their interfaces.)
fn check_tshark_writes(file: &Path, expected: &Run) {
    let written = file.with_extension("tshark");
    tool("tshark", &["-w", written.to_str().unwrap(), "-F", "pcapng"], file);
    let found = packets_of_file(&written);
    assert!(found == expected.packets, "tshark read {} packets", found.len());
}

/// tshark shows every byte.
fn check_tshark_bytes(file: &Path, expected: &Run) {
    let arguments = [&TSHARK[..], &["-T", "jsonraw", "-j", "frame"]].concat();
    let raw = tool_text("tshark", &arguments, file);
    let lines: Vec<&str> = raw.lines().map(str::trim).collect();
    let frames = lines.windows(2).filter(|pair| pair[0] == "\"frame_raw\": [");
    let found = frames.map(|pair| from_hexadecimal(pair[1].trim_matches(['"', ','])));
    assert!(found.eq(expected.packets.iter().map(|packet| packet.3.clone())));
}

fn from_hexadecimal(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// tshark shows times to the nanosecond, lengths and link types.
fn check_tshark_fields(file: &Path, expected: &Run) {
    let packets = &expected.packets;
    let names = ["frame.time_epoch", "frame.len", "frame.cap_len", "frame.encap_type"];
    let fields = names.iter().flat_map(|name| ["-e", name]);
    let arguments: Vec<&str> = TSHARK.into_iter().chain(["-T", "fields"]).chain(fields).collect();
    let text = tool_text("tshark", &arguments, file);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), packets.len());
    let mut encapsulations = BTreeMap::new();
    for (line, (link_type, time, original_len, bytes)) in lines.iter().zip(packets) {
        let (line, encapsulation) = line.rsplit_once('\t').unwrap();
        let (seconds, nanos) = (time.div_euclid(1_000_000_000), time.rem_euclid(1_000_000_000));
        assert_eq!(line, format!("{seconds}.{nanos:09}\t{original_len}\t{}", bytes.len()));
        // Its numbers for link types are its own; each stands for one of ours.
        assert_eq!(*encapsulations.entry(link_type).or_insert(encapsulation), encapsulation);
    }
}

/// tcpdump reads every byte of a run with one link type.
fn check_tcpdump(file: &Path, expected: &Run) {
    let written = file.with_extension("tcpdump");
    let output = tool("tcpdump", &["--time-stamp-precision=nano", "-w", "-"], file);
    fs::write(&written, output.stdout).unwrap();
    let found = packets_of_file(&written);
    assert!(found == expected.packets, "tcpdump read {} packets", found.len());
}

/// The whole ring, every single slot, and runs in between.
fn check_all_runs(volume: &Path, end: End) -> usize {
    let reader = open(volume);
    assert_clean(&reader);
    let span = reader.span().unwrap();
    let (first, last) = (span.tail, span.acknowledged.sequence);
    let slots = last + 1 - first;
    assert!(wraps(&reader) || end != End::Laps);
    let mut runs = vec![first..=last];
    runs.extend((first..=last).each().map(|sequence| sequence..=sequence));
    // Multiples of two numbers without a common divisor come everywhere.
    let places = (1..=8).map(|number| first + number * 37 % slots);
    runs.extend(places.map(|from| from..=(from + from.get() * 11 % slots).min(last)));
    let single = slots as usize;
    let file = volume.with_extension("pcapng");
    for (number, run) in runs.iter().enumerate() {
        let expected = contents(&reader, run.clone());
        dd(volume, &reader, run.clone(), &file);
        check_capinfos(&file, &expected);
        let is_one_link_type = expected.link_types.len() == 1;
        if is_one_link_type {
            check_tcpdump(&file, &expected);
        }
        // tshark takes a third of a second to start: it does not see every single slot.
        if number == 0 || number > single || number % 16 == 1 {
            if is_one_link_type {
                check_tshark_writes(&file, &expected);
            } else {
                check_tshark_fields(&file, &expected);
            }
        }
        if number == 0 {
            assert!(expected.packets.len() > 500, "{} packets", expected.packets.len());
            check_tshark_fields(&file, &expected);
            check_tshark_bytes(&file, &expected);
        }
    }
    runs.len()
}

/// Over captures of the large corpus, or else of the small one: the tools take their time.
fn check(name: &str, [large, small]: [&[&str]; 2], volumes: [(End, bool); 3]) {
    if !has_tools() {
        return;
    }
    let corpus = Corpus::large().unwrap_or_else(Corpus::small);
    let captures = if corpus.is_large { large } else { small };
    let captures: Vec<PathBuf> = captures.iter().map(|name| corpus.path().join(name)).collect();
    for (end, with_index) in volumes {
        let folder = folder();
        let volume = recorded(folder.path(), end, &captures, with_index);
        let runs = check_all_runs(&volume, end);
        println!("{name}, {end:?}, index {with_index}: {runs} runs read");
    }
}

#[test]
fn tools_read_runs_of_one_link_type() {
    let volumes = [(End::Stop, false), (End::Crash, true), (End::Laps, true)];
    check("one link type", [&ETHERNET, &SMALL_ETHERNET], volumes);
}

#[test]
fn tools_read_runs_of_several_link_types_and_interfaces() {
    let volumes = [(End::Stop, true), (End::Crash, false), (End::Laps, false)];
    check("several link types", [&MIXED, &SMALL_MIXED], volumes);
}
