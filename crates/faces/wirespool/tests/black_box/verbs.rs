//! The verbs as a user meets them: help, arguments, formats, exit codes.

use std::process::{Command, Stdio};

use crate::machine::{CAPTURES, Ran, Volume, command, run, verbs_of};
use serde_json::Value;

#[test]
fn the_help_of_every_verb_has_an_example() {
    let all = run(&["--help"]).done().out;
    // Made of clap's own list; a unit test shows that no verb is left out of it.
    let verbs = verbs_of(&all);
    assert!(verbs.len() > 25, "{verbs:?}");
    for verb in &verbs {
        let help = run(&[verb, "--help"]).done().out;
        let usage = format!("\n  wirespool {verb} ");
        let without = format!("\n  wirespool {verb}\n");
        let piped = format!("wirespool {verb} ");
        let examples = help.split_once("Examples:").map(|(_, examples)| examples).unwrap();
        let has = [&usage, &without, &piped].iter().any(|form| examples.contains(*form));
        assert!(has, "{verb}: {help}");
        assert!(help.lines().all(|line| line.len() <= 100), "{verb} fits 100 columns");
    }
    assert!(all.contains("Exit codes"));
    assert!(!all.contains("generate"), "what is for packagers is not shown");
}

#[test]
fn wrong_arguments_are_usage_errors() {
    for arguments in [
        &[][..],
        &["bogus"],
        &["create"],
        &["create", "x", "--bogus"],
        &["record", "x"],
        &["record", "x", "--interface", "lo", "--read", "y"],
        &["record", "x", "--interface", "lo", "--interface", "lo"],
        &["record", "x", "--read", "y", "--session-timeout", "soon"],
        &["record", "x", "--read", "y", "--no-index", "--keep-sessions", "1d"],
        &["find", "x", "--json", "--csv"],
        &["find", "x", "--limit", "many"],
        &["find", "x", "--plot", "--top", "app"],
        &["find", "x", "--by", "bytes"],
        #[cfg(feature = "sql")]
        &["sql", "x"],
        #[cfg(feature = "sql")]
        &["sql", "x", "SELECT 1", "--json", "--csv"],
        &["extract", "x", "tcp"],
        &["extract", "x", "-w", "y"],
        &["replay", "x"],
        &["replay", "x", "--interface", "lo", "--top", "--pps", "5"],
        &["replay", "x", "--interface", "lo", "--gbit", "0"],
        &["replay", "x", "--interface", "lo", "--speed", "fast"],
        &["completions", "tcsh"],
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert!(ran.out.is_empty() && !ran.err.is_empty(), "{ran:?}");
    }
}

#[test]
fn a_wrong_query_is_shown_with_its_place() {
    let volume = Volume::empty();
    let ran = run(&["find", &volume.path, "tcp", "and", "prot", "53"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("did you mean \"port\"?"), "{ran:?}");
    assert!(ran.err.ends_with("  tcp and prot 53\n          ^\n"), "{ran:?}");
    let ran = run(&["extract", &volume.path, "tcp and", "-w", "never"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn create_and_inspect_tell_the_same_in_text_and_json() {
    let volume = Volume::empty();
    let ran = run(&["inspect", &volume.path]).done();
    assert!(ran.out.contains("never written"), "{ran:?}");
    let before = std::fs::read(&volume.path).unwrap();
    let json: Value =
        serde_json::from_str(&run(&["inspect", &volume.path, "--json"]).done().out).unwrap();
    assert_eq!((&json["piece_bytes"], &json["slots_used"]), (&262_144.into(), &0.into()));
    assert_eq!(json.get("tail_sequence"), None, "absent is absent");
    assert!(std::fs::read(&volume.path).unwrap() == before, "inspect never writes");

    let path = volume.file("other");
    let arguments = ["create", &path, "--size", "64M", "--piece", "256K", "--json"];
    let json: Value = serde_json::from_str(&run(&arguments).done().out).unwrap();
    assert_eq!(
        (&json["members"][0]["sparse"], &json["size_bytes"]),
        (&false.into(), &67_108_864.into())
    );
}

#[test]
fn recordings_are_listed_by_name_with_their_packets() {
    let volume = Volume::recorded();
    volume.record(&["--read", &format!("{CAPTURES}/dns.pcap")]).done();
    let broken = volume.file("broken.pcap");
    std::fs::write(&broken, b"no capture").unwrap();
    let ran = volume.record(&["--read", &broken, "--name", "nothing"]);
    assert!(ran.code == Some(1) && ran.out.contains("broken off: "), "{ran:?}");

    let text = run(&["inspect", &volume.path]).done().out;
    assert!(!text.contains("nothing"), "what stored no packet is no recording: {text}");
    assert!(text.contains("captures") && text.contains("in order"), "{text}");
    let json = run(&["inspect", &volume.path, "--json"]).done().out;
    let json: Value = serde_json::from_str(&json).unwrap();
    let recordings = json["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), 2);
    assert_eq!(
        (&recordings[0]["name"], &recordings[0]["packets"]),
        (&"captures".into(), &123.into())
    );
    assert_eq!((recordings[1].get("name"), &recordings[1]["packets"]), (None, &16.into()));
    assert_eq!((&json["clean_stop"], &json["index"]["packets"]), (&true.into(), &139.into()));
}

#[test]
fn without_an_index_packets_are_found_all_the_same() {
    let volume = Volume::empty();
    let ran = volume.record(&["--read", CAPTURES, "--no-index", "--json"]).done();
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&json["stored"], &json["sessions"]), (&123.into(), &0.into()));
    let found = run(&["find", &volume.path, "--index-dir", &volume.index]).done();
    assert_eq!(found.out.lines().count(), 13, "{found:?}");
}

#[test]
fn a_recordings_share_shrinks_as_the_ring_takes_it() {
    let volume = Volume::recorded();
    // 64 MiB in slots of 256 KiB: every recording leaves its last slot, so laps come quickly.
    let capture = format!("{CAPTURES}/tls-ipv6.pcap");
    let inputs = volume.named_often(&capture, 800);
    let inputs: Vec<&str> = inputs.iter().flat_map(|input| ["--read", input]).collect();
    for lap in ["lap 1", "lap 2"] {
        volume.record(&[&inputs[..], &["--name", lap]].concat()).done();
    }
    let json = run(&["inspect", &volume.path, "--json"]).done().out;
    let json: Value = serde_json::from_str(&json).unwrap();
    let recordings = json["recordings"].as_array().unwrap();
    let names: Vec<&str> = recordings.iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(!names.contains(&"captures"), "overwritten: {names:?}");
    assert_eq!(recordings[0].get("share_left"), None, "an unknown part is gone: {json:#}");
    assert_eq!(recordings.last().unwrap()["share_left"], 1.0);
    run(&["verify", &volume.path]).done();
}

#[test]
fn columns_order_and_tags_of_find_are_those_asked_for() {
    let volume = Volume::recorded();
    let json = run(&["find", &volume.path, "sni www.github.com", "--json"]).done().out;
    let tls: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    for (choice, expected) in [
        (&["--columns", "orig_ip,sni,tls_cipher_name"][..], "orig_ip,sni,tls_cipher_name"),
        (
            &["--sort", "bytes:desc", "--limit", "1", "--columns", "sni,packets"],
            "ipv6.google.com,36",
        ),
        (&["--sort", "start_ns:desc", "--limit", "1", "--columns", "sni"], "ipv6.google.com"),
        (&["tls_cipher", "*RC4*", "--columns", "sni,tls_version_name"], "www.github.com,TLS 1."),
        (
            &["dns_answers", "149.20.4.69", "--columns", "dns_answers"],
            "199.204.44.194|198.145.20.140|149.20.4.69",
        ),
        (&["--top", "tls_cipher"], "tls_cipher,5,TLS_RSA_WITH_RC4_128_SHA,1,23,"),
    ] {
        let csv = run(&[&["find", &volume.path, "--csv"], choice].concat()).done().out;
        assert!(csv.contains(expected), "{choice:?}: {csv}");
    }
    let sorted = run(&[
        "find",
        &volume.path,
        "--sort",
        "orig_packets",
        "--csv",
        "--columns",
        "orig_packets",
    ]);
    let counts: Vec<u64> =
        sorted.done().out.lines().skip(1).map(|line| line.parse().unwrap()).collect();
    assert!(counts.len() == 12 && counts.is_sorted(), "{counts:?}");
    let (tags, id) = (volume.file("tags.jsonl"), tls["session_id"].as_str().unwrap());
    std::fs::write(&tags, format!("{{\"session_id\":\"{id}\",\"tag\":\"ET SCAN\"}}\n")).unwrap();
    let tagged =
        ["find", &volume.path, "tag = *scan*", "--tags", &tags, "--columns", "sni,tag", "--json"];
    assert_eq!(run(&tagged).done().out, "{\"sni\":\"www.github.com\",\"tag\":[\"ET SCAN\"]}\n");

    let refused = |choice: &[&str], words: &str| {
        run(&[&["find", &volume.path], choice].concat()).fails_with(2, words);
    };
    refused(&["--columns", "snl"], "there is no field \"snl\"; did you mean \"sni\"?");
    refused(&["--sort", "bytes:down"], "\"down\" is no order; write asc or desc");
    refused(&["has tag"], "the field tag needs what wirespool tag printed: --tags FILE");
    let ran = run(&["find", &volume.path, "ip.src == 10.0.0.1"]);
    assert!(ran.code == Some(2) && ran.err.contains("here write src host ADDRESS"), "{ran:?}");
}

#[test]
fn every_line_of_find_json_is_an_object_with_known_names() {
    let volume = Volume::recorded();
    let fields = run(&["fields"]).done().out;
    let known: Vec<&str> = fields.lines().filter_map(|line| line.split(' ').next()).collect();
    let json = run(&["find", &volume.path, "--json"]).done().out;
    let rows: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 12);
    for row in &rows {
        let names: Vec<&String> = row.as_object().unwrap().keys().collect();
        let unknown: Vec<_> = names
            .iter()
            .filter(|name| !known.contains(&name.as_str()) && !name.ends_with("_name"))
            .collect();
        assert!(unknown.is_empty(), "fields that no query can ask for: {unknown:?}");
        assert!(!row.as_object().unwrap().values().any(Value::is_null), "absent is absent");
    }
    let tls = rows.iter().find(|row| row["sni"] == "www.github.com").unwrap();
    let community_id = tls["community_id"].as_str().unwrap();
    assert_eq!(community_id, "1:JebvFh6+fkj6uRw7LYcK388Vcy8=");
    assert_eq!((&tls["orig_packets"], &tls["resp_port"]), (&14.into(), &443.into()));

    let csv = run(&["find", &volume.path, "--csv"]).done().out;
    // Between quotes a comma belongs to the value (RFC 4180).
    let outside = |line: &str| -> usize {
        line.split('"').step_by(2).map(|part| part.matches(',').count()).sum()
    };
    let widths: Vec<usize> = csv.lines().map(outside).collect();
    assert_eq!(widths.len(), 13);
    assert!(widths.iter().all(|width| *width == widths[0]), "{csv}");

    let query = format!("community_id {community_id}");
    let table = run(&["find", &volume.path, &query]).done().out;
    assert_eq!(table.lines().count(), 2, "{table}");
    let limited = run(&["find", &volume.path, "udp", "--limit", "3"]).done().out;
    assert_eq!(limited.lines().count(), 4, "{limited}");
}

#[test]
fn an_extract_is_verified_by_its_manifest() {
    let volume = Volume::recorded();
    let (file, manifest) = (volume.file("out.pcapng"), volume.file("out.pcapng.json"));
    let extract = ["extract", &volume.path, "sni", "www.github.com", "-w", &file];
    let ran = run(&extract).done();
    assert!(ran.err.contains("23 packets of 1 session row, complete"), "{ran:?}");
    run(&["verify-extract", &manifest, &file]).done();
    run(&extract).is_refused("exists already; --force replaces it");
    run(&[&extract[..], &["--force"]].concat()).done();

    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(run(&["verify-extract", &manifest, &file]).code, Some(1));
    bytes.pop();
    std::fs::write(&file, &bytes).unwrap();
    let ran = run(&["verify-extract", &manifest, &file]);
    assert!(ran.code == Some(1) && ran.out.contains("bytes"), "{ran:?}");
    run(&["verify-extract", &file, &file]).is_refused("cannot read the manifest");
    run(&["verify-extract", &manifest]).fails_with(2, "name its extract, too");
    let text = std::fs::read_to_string(&manifest).unwrap();
    for cut in [0, text.len() / 2, text.rfind(",\n  \"seal\"").unwrap()] {
        std::fs::write(&manifest, &text[..cut]).unwrap();
        let ran = run(&["verify-extract", &manifest, &file]);
        assert!(ran.code == Some(1) && ran.out.contains("not a manifest"), "{cut}: {ran:?}");
    }
    run(&["verify-extract", &volume.file("absent"), &file]).is_refused("cannot open");
}

#[test]
fn what_standard_output_gets_is_what_a_file_gets() {
    let volume = Volume::recorded();
    for format in ["pcapng", "pcap"] {
        let file = volume.file(format);
        let query = ["extract", &volume.path, "port", "53", "--format", format, "-w"];
        run(&[&query[..], &[&file]].concat()).done();
        let piped = command(&[&query[..], &["-"]].concat()).output().unwrap();
        assert!(piped.status.success());
        assert!(piped.stdout == std::fs::read(&file).unwrap(), "{format}");
        let Ok(tshark) =
            Command::new("tshark").args(["-r", &file, "-T", "fields", "-e", "dns.id"]).output()
        else {
            println!("not run: no tshark");
            continue;
        };
        assert_eq!(String::from_utf8_lossy(&tshark.stdout).lines().count(), 16, "{format}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let volume = Volume::recorded();
    for arguments in [&["find", &volume.path, "--csv"][..], &["fields"], &["--help"]] {
        let mut child = command(arguments);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.code().is_some_and(|code| code < 2), "{arguments:?}: {output:?}");
        assert!(Ran::new(&output).err.is_empty(), "{arguments:?}: {output:?}");
    }
}

#[test]
fn an_interrupt_stops_a_recording_in_order() {
    let volume = Volume::empty();
    let arguments = ["record", &volume.path, "--pool", "4M", "--read", "-", "--json"];
    let mut child = command(&[&arguments[..], &["--index-dir", &volume.index]].concat());
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let capture = std::fs::read(format!("{CAPTURES}/tls.pcap")).unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, &capture).unwrap();
    let begun = std::time::Instant::now();
    while !run(&["inspect", &volume.path]).out.contains("all durable") {
        assert!(begun.elapsed().as_secs() < 30, "the recorder acknowledges");
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    drop(input);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["stored"], &json["in_flight"]), (&23.into(), &0.into()));
    let text = run(&["inspect", &volume.path]).done().out;
    assert!(text.contains("last stop:     in order"), "{text}");
}

/// A flag that is taken and changes nothing is a promise that is not kept.
#[test]
fn flags_that_would_mean_nothing_are_refused() {
    let volume = Volume::recorded();
    let (path, dns) = (&*volume.path, format!("{CAPTURES}/dns.pcap"));
    let [out, holds] = ["out.pcap", "holds"].map(|name| volume.file(name));
    let record = ["record", path, "--read", &dns];
    let list = ["hold", "--list", "--hold-dir", &holds];
    for (words, more, said) in [
        (&record[..], &["--kernel-ring", "8M"][..], "--kernel-ring"),
        (&record, &["--no-promiscuous"], "--no-promiscuous"),
        (&record, &["--source", "packet"], "--source"),
        (&record, &["--hold-budget", "1G"], "--hold"),
        (&["verify", path], &["--public-key", &dns], "name it with --anchor"),
        (&list, &["--sign", &dns], "--list makes none"),
        (&list, &["--case", "7"], "--list makes none"),
        (&list, &["--packet-filter", "udp"], "--list makes none"),
        (&list, &["--index-dir", &holds], "--list makes none"),
        (&["extract", path, "", "-w", &out, "--format", "pcap"], &["--comments"], "--comments"),
        (&["replay", &dns, "--interface", "lo"], &["--index-dir", &holds], "is about a volume"),
    ] {
        let ran = run(&[words, more].concat());
        assert!(ran.code == Some(2) && ran.err.contains(said), "{said}: {ran:?}");
    }
}

/// Nothing was read, so nothing can be said to be stored.
#[test]
fn who_read_nothing_says_so() {
    let volume = Volume::empty();
    let [folder, capture] = ["empty", "none.pcap"].map(|name| volume.file(name));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&capture, crate::golden::pcap(std::iter::empty())).unwrap();
    for from in [&folder, &capture] {
        let ran = run(&["record", &volume.path, "--read", from]);
        assert!(ran.code == Some(1) && ran.out.starts_with("no packet was read\n"), "{ran:?}");
    }
    let dns = format!("{CAPTURES}/dns.pcap");
    let filtered = ["record", &volume.path, "--read", &dns, "--filter", "port 9"];
    let ran = run(&filtered).done();
    assert!(ran.out.starts_with("every packet that arrived is stored\n"), "{ran:?}");
}

#[test]
fn pages_and_completions_are_generated() {
    let folder = tempfile::tempdir().unwrap();
    run(&["generate", "man", folder.path().to_str().unwrap()]).done();
    for page in ["wirespool.1", "wirespool-record.1", "wirespool-verify-extract.1"] {
        let text = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(text.contains("wirespool"), "{page}");
    }
    let script = run(&["completions", "bash"]).done().out;
    for words in ["packet xdp", "auto packet xdp", "kernel adapter", "on off", "auto on off"] {
        assert!(script.contains(&format!("-W \"{words}\"")), "{words}");
    }
    for words in ["\"sweep fill passes ", "\"talkers dns disk ", "\"answer destination device "] {
        assert!(script.contains(words), "{words}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).done().out;
        assert!(script.contains("verify-extract"), "{shell}");
        assert_eq!(script, run(&["generate", "completions", shell]).done().out);
    }
}

#[test]
fn a_time_zone_that_is_not_known_is_said_once() {
    let volume = Volume::recorded();
    let find = |zone: &str| {
        let find = ["find", &volume.path, "--local", "--index-dir", &volume.index];
        Ran::new(&command(&find).env("TZ", zone).output().unwrap()).done()
    };
    let ran = find("Europe/Berln");
    let line = "--local: TZ is Europe/Berln, a time zone that is not known here: times are UTC";
    assert_eq!(ran.err.matches(line).count(), 1, "{ran:?}");
    for zone in ["CET-1CEST", ""] {
        let ran = find(zone);
        assert!(!ran.err.contains("time zone"), "{zone}: {ran:?}");
    }
}
