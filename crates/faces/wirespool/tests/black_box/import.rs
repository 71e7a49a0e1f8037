//! Captures of other recorders, with their times.

use std::process::Command;

use serde_json::Value;

use crate::machine::{CAPTURES, Volume, run};

/// What stenotype 1.0.1 wrote of a veth pair: 40 datagrams that came in, every fifth in VLAN 5 with
/// its tag in the header of the ring, and neighbour discovery; 3 that went out.
const PACKETS: &[u8] = include_bytes!("../data/stenotype-PKT0.zst");
const INDEX: &[u8] = include_bytes!("../data/stenotype-IDX0.zst");

/// A directory as Stenographer leaves it, with a file that is being written.
fn stenographer(volume: &Volume) -> String {
    let folder = volume.folder.path().join("stenographer");
    for (name, bytes) in [("PKT0", PACKETS), ("IDX0", INDEX)] {
        let thread = folder.join(name);
        std::fs::create_dir_all(&thread).unwrap();
        let bytes = zstd::decode_all(bytes).unwrap();
        std::fs::write(thread.join("1795339351036586"), bytes).unwrap();
    }
    std::fs::write(folder.join("PKT0/.1795339359016362"), "").unwrap();
    crate::machine::text(folder)
}

#[test]
fn a_filter_chooses_among_the_packets_of_files() {
    let volume = Volume::empty();
    let captures = CAPTURES;
    let recorded = volume.record(&["--read", captures, "--filter", "udp port domain"]);
    if recorded.err.contains("not installed") {
        println!("not run: libpcap is not installed");
        return;
    }
    let recorded = recorded.done();
    assert!(recorded.out.contains("every packet that arrived is stored"), "{recorded:?}");
    let found = run(&["find", &volume.path, "--csv", "--columns", "proto_name"]).done().out;
    let protocols: Vec<&str> = found.lines().skip(1).collect();
    assert!(protocols.len() > 5, "{protocols:?}");
    assert!(protocols.iter().all(|protocol| *protocol == "udp"), "{protocols:?}");
    let wrong = volume.record(&["--read", captures, "--filter", "udp prot domain"]);
    wrong.fails_with(2, "filter \"udp prot domain\": ");
}

#[test]
fn compressed_captures_are_recorded_as_they_are() {
    let plain = Volume::recorded();
    let rows = |volume: &Volume| {
        let columns =
            ["--columns", "start_ns,orig_ip,resp_ip,packets,frame_bytes", "--sort", "start_ns"];
        let found = run(&[&["find", &volume.path, "--csv"][..], &columns].concat());
        found.done().out
    };
    let expected = rows(&plain);
    assert_eq!(expected.lines().count(), 13);
    let packed = Volume::empty();
    let [zst, gz] = ["a.pcap.zst", "b.pcap.gz"].map(|name| packed.file(name));
    let demo = |name: &str| std::fs::read(format!("{CAPTURES}/{name}")).unwrap();
    std::fs::write(&zst, zstd::encode_all(&demo("dns.pcap")[..], 3).unwrap()).unwrap();
    let tls = format!("{CAPTURES}/tls.pcap");
    let output = Command::new("gzip").args(["-c", &tls]).output().unwrap();
    std::fs::write(&gz, output.stdout).unwrap();
    let [http, v6] = ["http.pcap", "tls-ipv6.pcap"].map(|name| format!("{CAPTURES}/{name}"));
    let inputs = ["--read", &zst, "--read", &gz, "--read", &http, "--read", &v6];
    let ran = packed.record(&inputs).done();
    assert!(ran.out.contains("(files)"), "{ran:?}");
    assert_eq!(rows(&packed), expected);
    // What was cut is said, and kept as far as it goes.
    let whole = std::fs::read(&gz).unwrap();
    std::fs::write(&gz, &whole[..whole.len() / 2]).unwrap();
    let ran = Volume::empty().record(&["--read", &gz]);
    assert!(ran.code == Some(1) && ran.out.contains("b.pcap.gz: incomplete"), "{ran:?}");
}

#[test]
fn a_directory_of_stenographer_is_recorded_with_times_tags_and_directions() {
    let volume = Volume::empty();
    let folder = stenographer(&volume);
    let ran = volume.record(&["--read", &folder, "--json"]).done();
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&json["offered"], &json["stored"]), (&STORED.into(), &STORED.into()), "{ran:?}");

    let found = run(&["find", &volume.path, "udp port 1000", "--json"]).done().out;
    let rows: Vec<Value> = found.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 1, "{found}");
    let start = rows[0]["start_ns"].as_i64().unwrap();
    assert_eq!(start / 1_000_000_000, 1_795_339_353, "the times are those of the capture");
    let out = volume.file("out.pcapng");
    let tagged = ["extract", &volume.path, "vlan 5 or port 1000", "-w", &out, "--packet-filter"];
    let count = |filter: &str| {
        run(&[&tagged[..], &[filter, "--force"]].concat()).done();
        let manifest = std::fs::read_to_string(format!("{out}.json")).unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        manifest["outputs"][0]["packets"].as_u64().unwrap()
    };
    assert_eq!(count("vlan 5 and udp port 1000"), 2, "1 of 5 and 1 of 4 of 40");
    // A filter that does not speak of tags accepts packets of every VLAN.
    assert_eq!(count("udp port 1000"), 10);

    run(&["extract", &volume.path, "udp port 2000", "-w", &out, "--force"]).done();
    let fields = ["-T", "fields", "-e", "frame.packet_flags_direction", "-e", "udp.srcport"];
    let Ok(output) = Command::new("tshark").args(["-r", &out]).args(fields).output() else {
        println!("not run: no tshark");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.lines().collect::<Vec<_>>(), ["0x00000002\t2000"; 3]);
}

#[test]
fn damaged_blocks_of_stenotype_give_what_is_whole_and_are_named() {
    let bytes = zstd::decode_all(PACKETS).unwrap();
    let read = |bytes: &[u8]| {
        let volume = Volume::empty();
        let file = volume.file("packets");
        std::fs::write(&file, bytes).unwrap();
        let ran = volume.record(&["--read", &file, "--json"]);
        let json: Value = serde_json::from_str(&ran.out).unwrap_or_default();
        (ran.code, json["stored"].as_u64().unwrap_or(0), ran)
    };
    let whole = read(&bytes);
    assert_eq!((whole.0, whole.1), (Some(0), STORED));
    // The third packet of the first block points behind its end.
    let mut broken = bytes.clone();
    let at = 48 + 2 * usize::try_from(0xa8_u32).unwrap();
    broken[at + 12..at + 16].fill(0xff);
    let (code, stored, ran) = read(&broken);
    assert!(code == Some(1) && stored == 2, "{ran:?}");
    let (code, stored, ran) = read(&bytes[..bytes.len() - 1]);
    assert!(code == Some(1) && stored < STORED, "{ran:?}");
    let (code, _, ran) = read(&[&bytes[..4], &[0xff; 100][..]].concat());
    assert!(code == Some(1) && ran.out.contains("not a pcap"), "{ran:?}");
}

/// Packets in both blocks.
const STORED: u64 = 54;

#[test]
fn a_file_that_is_named_twice_is_refused_before_anything_is_stored() {
    let volume = Volume::empty();
    let file = format!("{CAPTURES}/dns.pcap");
    let twice = volume.record(&["--read", &file, "--read", &file]);
    twice.fails_with(2, "dns.pcap is given twice: its packets would be, too");
    volume.record(&["--read", &file]).done();
}
