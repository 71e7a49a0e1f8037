//! What extract selects, splits, comments and anonymises, as a user sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use serde_json::Value;
use testdata::Corpus;

use crate::machine::{Ran, Volume, command, run, write_key};

fn manifest(volume: &Volume, name: &str) -> Value {
    let text = std::fs::read_to_string(volume.file(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Fields of a capture's packets, as tshark reads them; `None` with a printed reason without it.
fn tshark(file: &str, fields: &[&str], options: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.args(["-r", file, "-T", "fields", "-E", "separator=|"]).args(options);
    for field in fields {
        command.args(["-e", field]);
    }
    let Ok(output) = command.output() else {
        println!("not run: no tshark");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect())
}

#[test]
fn sessions_are_named_by_file_by_pipe_and_by_community_id() {
    let volume = Volume::recorded();
    let found = run(&["find", &volume.path, "sni www.github.com", "--json"]).done().out;
    let ids = volume.file("ids");
    std::fs::write(&ids, &found).unwrap();
    let out = volume.file("by-ids.pcapng");
    let named = ["extract", &volume.path, "--sessions", &ids, "-w", &out];
    let ran = run(&named).done();
    assert!(ran.err.contains("23 packets of 1 session row, complete"), "{ran:?}");
    assert_eq!(manifest(&volume, "by-ids.pcapng.json")["request"]["sessions_named"], 1);

    let json: Value = serde_json::from_str(&found).unwrap();
    let community_id = json["community_id"].as_str().unwrap();
    let out = volume.file("by-community.pcapng");
    let ran = run(&["extract", &volume.path, "--community-id", community_id, "-w", &out]).done();
    assert!(ran.err.contains("23 packets"), "{ran:?}");
    let ran = run(&["find", &volume.path, "tcp", "--community-id", community_id]).done();
    assert_eq!(ran.out.lines().count(), 2, "{ran:?}");

    let id = json["session_id"].as_str().unwrap();
    std::fs::write(&ids, format!("{id}\n\n999999.0-0\n")).unwrap();
    let ran = run(&[&named[..], &["--force"]].concat());
    assert!(
        ran.code == Some(1) && ran.err.contains("not there: 1 of the named sessions"),
        "{ran:?}"
    );
    std::fs::write(&ids, "what is this\n").unwrap();
    run(&[&named[..], &["--force"]].concat()).fails_with(2, "line 1: no session id");
    run(&["extract", &volume.path, "-w", &out]).fails_with(2, "which sessions?");

    let mut child = command(&["extract", &volume.path, "--sessions", "-", "-w", "-"]);
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), found.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.len() > 1000, "{output:?}");
}

#[test]
fn packets_are_chosen_by_filter_payload_and_what_is_around() {
    let volume = Volume::recorded();
    let out = volume.file("out.pcapng");
    let count = |arguments: &[&str]| {
        let ran = run(&[&["extract", &volume.path, "-w", &out, "--force"][..], arguments].concat());
        assert!(ran.code == Some(0), "{ran:?}");
        manifest(&volume, "out.pcapng.json")["outputs"][0]["packets"].as_u64().unwrap()
    };
    assert_eq!(count(&["port 53"]), 16);
    assert_eq!(count(&["port 53", "--packet-filter", "dst port 53"]), 8);
    let request = &manifest(&volume, "out.pcapng.json")["request"];
    assert_eq!(request["packet_filter"], "dst port 53");
    let get = count(&["", "--payload", "GET /"]);
    assert!(get > 0 && get == count(&["tcp port 80", "--payload", "hex:47 45 54 20 2f"]));
    assert_eq!(get, count(&["", "--payload", "re:^GET [^ ]+ HTTP/1\\.[01]"]));
    let whole = count(&["", "--payload", "GET /", "--whole-sessions"]);
    assert!(whole > get, "{whole} of whole sessions");
    assert_eq!(whole, count(&["app http", "--whole-sessions"]));
    // The captures lie years apart: around a session is what is in its capture.
    assert!(count(&["app http", "--around", "1h"]) >= whole);
    assert_eq!(count(&["app http", "--around", "1h", "--packet-filter", "icmp6"]), 0);

    let refused = |arguments: &[&str], words: &str| {
        let fixed = ["extract", &volume.path, "udp", "-w", &out, "--force"];
        run(&[&fixed[..], arguments].concat()).fails_with(2, words);
    };
    refused(&["--packet-filter", "tcp port"], "filter \"tcp port\"");
    refused(&["--packet-filter", "host www.example.com"], "are not looked up; give addresses");
    for wrong in [["--payload", "hex:1"], ["--payload", "re:("], ["--around", "soon"]] {
        let ran = run(&[&["extract", &volume.path, "udp", "-w", &out][..], &wrong].concat());
        assert!(ran.code == Some(2) && ran.err.contains(wrong[0]), "{ran:?}");
    }
}

/// libpcap's compiler takes time with the cube of the alternatives, and cannot be stopped.
#[test]
fn a_filter_of_many_alternatives_is_done_or_given_up() {
    let volume = Volume::recorded();
    let extract = |filter: &str| {
        run(&["extract", &volume.path, "port 53", "-w", "/dev/null", "--packet-filter", filter])
    };
    let any_of = |count: u32, word: &str| {
        let each: Vec<_> = (53..53 + count).map(|port| format!("{word} {port}")).collect();
        each.join(" or ")
    };
    let packets = |ran: &Ran| ran.err.lines().nth(1).unwrap().to_owned();
    let (one, many) = (extract("port 53").done(), extract(&any_of(150, "port")).done());
    assert_eq!(packets(&many), packets(&one));
    let endless = extract(&any_of(4000, "dst port 1 or src port"));
    endless.fails_with(2, "libpcap is not done with it after 10 s; give fewer alternatives");
    assert!(endless.err.len() < 400, "{endless:?}");
}

#[test]
fn a_limit_that_cuts_is_in_statement_manifest_and_exit_code() {
    let volume = Volume::recorded();
    let out = volume.file("out.pcapng");
    for (limit, value, packets) in
        [("--limit", "1", None), ("--limit-packets", "5", Some(5)), ("--limit-bytes", "1K", None)]
    {
        let fixed = ["extract", &volume.path, "port 53", "-w", &out, "--force"];
        let ran = run(&[&fixed[..], &[limit, value]].concat());
        assert!(ran.code == Some(1), "{ran:?}");
        assert!(
            ran.err.contains("incomplete\ncut: there is more than the limit allows"),
            "{ran:?}"
        );
        let manifest = manifest(&volume, "out.pcapng.json");
        assert_eq!(manifest["completeness"]["limited"], true);
        let written = manifest["outputs"][0]["packets"].as_u64().unwrap();
        assert!(written > 0 && written < 16 && packets.is_none_or(|packets| packets == written));
        let ran = run(&[&fixed[..], &[limit, "1000000"]].concat()).done();
        assert!(ran.err.contains("complete") && !ran.err.contains("cut"), "{ran:?}");
    }
}

#[test]
fn sessions_are_split_into_files_that_say_what_they_are() {
    let volume = Volume::recorded();
    let folder = volume.file("sessions");
    let split = ["extract", &volume.path, "", "--split", "sessions", "--comments", "-w"];
    run(&[&split[..], &[&format!("{folder}/")]].concat()).done();
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 12, "one a session: {names:?}");
    let found = run(&["find", &volume.path, "--json"]).done().out;
    let rows: Vec<Value> = found.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let by_start: Vec<String> =
        rows.iter().map(|row| format!("{}.pcapng", row["session_id"].as_str().unwrap())).collect();
    for (name, end) in names.iter().zip(&by_start) {
        assert!(name.ends_with(&format!("_{end}")), "names sort by start: {name}, {end}");
    }
    let dns = names.iter().find(|name| name.contains("_udp_")).unwrap();
    assert!(dns.contains(".53_") && dns.starts_with("20"), "{dns}");
    let manifest = manifest(&volume, "sessions.json");
    let outputs = manifest["outputs"].as_array().unwrap();
    let packets: u64 = outputs.iter().map(|output| output["packets"].as_u64().unwrap()).sum();
    assert_eq!(packets, 123);
    run(&["verify-extract", &volume.file("sessions.json"), &folder]).done();

    let ran = run(&[&split[..], &[&folder]].concat());
    assert!(ran.code == Some(3) && ran.err.contains("exists already"), "{ran:?}");
    run(&[&split[..], &["-"]].concat()).fails_with(2, "-w names a folder");
    for name in &names {
        let file = format!("{folder}/{name}");
        let fields = ["frame.comment", "tcp.stream", "udp.stream"];
        let Some(packets) = tshark(&file, &fields, &[]) else { return };
        assert!(!packets.is_empty());
        let id = name.rsplit('_').next().unwrap().trim_end_matches(".pcapng");
        for packet in &packets {
            assert!(packet[0].starts_with(&format!("session {id} from ")), "{packet:?}");
            assert!(packet[1..].iter().all(|stream| stream.is_empty() || stream == "0"));
        }
    }
}

/// What reveals addresses, and whether checksums are right.
const TELLING: [&str; 10] = [
    "frame.time_epoch",
    "eth.src",
    "eth.dst",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
];

#[test]
fn anonymised_packets_keep_prefixes_ports_and_right_checksums() {
    let volume = Volume::recorded();
    let (plain, other) = (volume.file("plain.pcapng"), volume.file("other.pcapng"));
    let key = volume.file("key");
    write_key(&key, &"00112233445566778899aabbccddeeff".repeat(2));
    run(&["extract", &volume.path, "net 0.0.0.0/0 or ip6", "-w", &plain]).done();
    let fixed = ["extract", &volume.path, "net 0.0.0.0/0 or ip6", "--anonymise"];
    run(&[&fixed[..], &[&key, "-w", &other]].concat()).done();
    assert_eq!(manifest(&volume, "other.pcapng.json")["request"]["anonymised"], true);
    let bytes = std::fs::read(&other).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("net 0.0.0.0/0"), "the query leaked");

    let again = volume.file("again.pcapng");
    run(&[&fixed[..], &[&key, "-w", &again]].concat()).done();
    assert!(std::fs::read(&again).unwrap() == bytes, "one key, one result");
    std::fs::write(&key, "short").unwrap();
    run(&[&fixed[..], &[&key, "-w", "-"]].concat()).fails_with(2, "64 hex digits");
    run(&[&fixed[..], &[&volume.file("absent"), "-w", "-"]].concat()).is_refused("cannot read");

    let checks = ["ip", "tcp", "udp"].map(|proto| format!("{proto}.check_checksum:TRUE"));
    let options: Vec<&str> = checks.iter().flat_map(|check| ["-o", check]).collect();
    let Some(before) = tshark(&plain, &TELLING, &options) else { return };
    let after = tshark(&other, &TELLING, &options).unwrap();
    assert_eq!(before.len(), after.len());
    let mut names = BTreeMap::new();
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((&before[0], &before[7..]), (&after[0], &after[7..]), "time and checksums");
        for (old, new) in before[1..7].iter().zip(&after[1..7]) {
            let known = names.entry(old.clone()).or_insert_with(|| new.clone());
            assert_eq!(known, new, "one address, one other");
            let is_group = old.starts_with("ff") || old.starts_with("33:33") || old.is_empty();
            assert_eq!(old == new, is_group, "{old} {new}");
        }
    }
    let others: BTreeSet<&String> = names.values().collect();
    assert_eq!(others.len(), names.len(), "two never become one");
}

/// Packets of which only headers were kept, and the sessions as `find` shows them, of the captures
/// of a corpus recorded with these options.
fn sessions_of(corpus: &Corpus, options: &[&str]) -> (u64, BTreeMap<String, Value>) {
    let volume = Volume::of_size("1G");
    let folder = corpus.path().join("pcap").display().to_string();
    let ran = volume.record(&[&["--read", &folder, "--json"], options].concat());
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let found = run(&["find", &volume.path, "", "--json", "--index-dir", &volume.index]);
    let sessions = found.out.lines().map(|line| {
        let mut session: Value = serde_json::from_str(line).unwrap();
        let fields = session.as_object_mut().unwrap();
        let id = fields.remove("session_id").unwrap();
        // How many packets were cut differs. A session that begins within another's connection is
        // told by its ports alone when all that it sent is encrypted.
        fields.remove("truncated_packets");
        fields.remove("app_by");
        (id.as_str().unwrap().to_owned(), session)
    });
    (report.get("headers_only").unwrap().as_u64().unwrap(), sessions.collect())
}

#[test]
fn without_encrypted_payload_all_names_and_prints_stay_as_they_were() {
    for corpus in Corpus::all() {
        let (none, expected) = sessions_of(&corpus, &[]);
        let (headers_only, found) = sessions_of(&corpus, &["--class", "=handshake"]);
        assert!(none == 0 && headers_only > 0 && found.len() > 20, "{headers_only}");
        for (id, session) in &expected {
            assert_eq!(found.get(id), Some(session), "{id}");
        }
        assert_eq!(found.len(), expected.len());
    }
}

/// Of a pipe, what its reader took counts: the status is that of any program before `head`.
#[test]
fn what_a_reader_did_not_take_is_not_called_complete() {
    let volume = Volume::recorded();
    for arguments in [&["-w", "-"][..], &["-w", "-", "--format", "pcap"]] {
        let query = ["extract", &volume.path, "port 53"];
        let mut extract = command(&[&query[..], arguments].concat());
        let (reader, writer) = std::io::pipe().unwrap();
        extract.stdout(writer).stderr(Stdio::piped());
        let child = extract.spawn().unwrap();
        drop((reader, extract));
        let ran = Ran::new(&child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.err.contains(", incomplete\ncut: stopped before its end"), "{ran:?}");
    }
}
