//! What no output takes the place of, and what ends a recording: nothing is lost by a slip.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::machine::{Attached, CAPTURES, Volume, command, recorder, run, text};

#[test]
fn no_output_replaces_a_member_by_any_name() {
    let volume = Volume::empty();
    volume.record(&["--read", CAPTURES]).done();
    let [linked, hard] = ["linked", "hard"].map(|name| volume.file(name));
    symlink(&volume.path, &linked).unwrap();
    std::fs::hard_link(&volume.path, &hard).unwrap();
    let before = std::fs::read(&volume.path).unwrap();
    let manifest = volume.file("packets.pcapng");
    for place in [&volume.path, &linked, &hard] {
        let path: &str = &volume.path;
        for words in [
            &["extract", path, "", "-w", place, "--force"][..],
            &["extract", path, "", "-w", &manifest, "--manifest", place, "--force"],
            &["salvage", path, "-w", place, "--force"],
            &["inspect", path, "--map-svg", place, "--force"],
        ] {
            let ran = run(words);
            let expected = format!("{place} is a member of a volume: name another place");
            let is_open = format!("{place} is read by this command: name another place");
            assert!(ran.code != Some(0), "{words:?}");
            assert!(
                ran.err.contains(&expected) || ran.err.contains(&is_open),
                "{words:?}: {ran:?}"
            );
        }
    }
    assert!(std::fs::read(&volume.path).unwrap() == before, "not a byte has changed");
    assert!(!Path::new(&manifest).exists());
}

#[test]
fn no_output_goes_to_a_disk_or_replaces_its_input() {
    let volume = Volume::empty();
    volume.record(&["--read", CAPTURES]).done();
    let input = volume.file("input.pcap");
    std::fs::copy(format!("{CAPTURES}/dns.pcap"), &input).unwrap();
    let extract = ["extract", &volume.path, "", "--force", "-w"];
    // What it reads from, here its standard input, is its input.
    let mut reading = command(&[&extract[..], &[&input]].concat());
    let reading = reading.stdin(std::fs::File::open(&input).unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&reading.stderr).into_owned();
    assert!(said.contains("is read by this command: name another place"), "{said}");
    assert!(
        std::fs::read(&input).unwrap() == std::fs::read(format!("{CAPTURES}/dns.pcap")).unwrap()
    );
    let disk = volume.file("disk");
    std::fs::write(&disk, vec![7; 8 << 20]).unwrap();
    let Some(device) = Attached::over(Path::new(&disk), &[]) else { return };
    let words = [&extract[..], &[&device.path]].concat();
    // Its manifest would lie beside it.
    run(&words).is_refused(": name another place");
    assert!(std::fs::read(&disk).unwrap() == vec![7; 8 << 20]);
}

/// A verb that reads `INPUT`, which holds this text, and writes to it.
const OVER_INPUT: [(&str, &[&str]); 6] = [
    (ZEEK, &["extract", "V", "--from-zeek", "INPUT", "-w", "INPUT"]),
    (ZEEK, &["extract", "V", "", "--from-zeek", "INPUT", "-w", "OUT", "--manifest", "INPUT"]),
    (EVE, &["extract", "V", "--from-eve", "INPUT", "-w", "INPUT"]),
    ("1234.0-17\n", &["extract", "V", "--sessions", "INPUT", "-w", "INPUT"]),
    ("", &["extract", "V", "", "--tags", "INPUT", "-w", "INPUT"]),
    (EVE, &["find", "V", "--from-eve", "INPUT", "--parquet", "INPUT"]),
];
const ZEEK: &str = concat!(
    r#"{"ts":1.5,"uid":"C1","id.orig_h":"192.0.2.1","id.orig_p":1,"#,
    r#""id.resp_h":"192.0.2.2","id.resp_p":2,"proto":"udp"}"#,
    "\n"
);
const EVE: &str = concat!(
    r#"{"timestamp":"2026-01-01T00:00:00.000000+0000","event_type":"alert","#,
    r#""src_ip":"192.0.2.1","src_port":1,"dest_ip":"192.0.2.2","dest_port":2,"proto":"UDP"}"#,
    "\n"
);

/// `--parquet` comes with SQL.
fn is_built(words: &[&str]) -> bool {
    cfg!(feature = "sql") || !words.contains(&"--parquet")
}

fn placed<'a>(words: &[&'a str], places: &[(&str, &'a str)]) -> Vec<&'a str> {
    let place = |word: &&'a str| {
        places.iter().find(|(name, _)| name == word).map_or(*word, |(_, place)| place)
    };
    words.iter().map(place).chain(["--force"]).collect()
}

#[test]
fn no_output_replaces_what_was_read_and_closed_before() {
    let volume = Volume::empty();
    volume.record(&["--read", CAPTURES]).done();
    let [input, other, out, hard] = ["input", "other", "out", "hard"].map(|name| volume.file(name));
    let tags = format!("{}\n", r#"{"session_id":"1.0-1","tag":"x"}"#);
    for (text, words) in OVER_INPUT.into_iter().filter(|(_, words)| is_built(words)) {
        let text = if text.is_empty() { &*tags } else { text };
        std::fs::write(&input, text).unwrap();
        std::fs::hard_link(&input, &hard).unwrap();
        for place in [&input, &hard] {
            let mut given = placed(words, &[("V", &volume.path), ("OUT", &out)]);
            let last = given.iter().rposition(|word| *word == "INPUT").unwrap();
            given[last] = place;
            let given = placed(&given, &[("INPUT", &input)]);
            let ran = run(&given[..given.len() - 1]);
            let expected = format!("{place} is read by this command: name another place");
            assert!(ran.err.contains(&expected), "{given:?}: {ran:?}");
            assert_eq!(std::fs::read_to_string(&input).unwrap(), text, "{given:?}");
        }
        std::fs::remove_file(&hard).unwrap();
    }
    // A key is an input, too, and so is an earlier anchor.
    run(&["keygen", &other]).done();
    let key = std::fs::read(&other).unwrap();
    let words = ["extract", &volume.path, "", "-w", &other, "--sign", &other, "--force"];
    assert!(run(&words).err.contains("is read by this command"));
    assert!(std::fs::read(&other).unwrap() == key);
}

/// A receipt is what is left of what is gone: none is replaced, and nobody is told how.
#[test]
fn no_receipt_takes_the_place_of_another() {
    let volume = Volume::empty();
    volume.record(&["--read", CAPTURES]).done();
    let taken = volume.file("taken");
    std::fs::write(&taken, "a receipt").unwrap();
    for words in [&["erase", &volume.path][..], &["forget", &volume.path, "udp", "--yes"]] {
        run(&[words, &["--receipt", &taken]].concat())
            .is_refused("taken exists already, and no receipt is replaced; name another file");
        assert_eq!(std::fs::read_to_string(&taken).unwrap(), "a receipt");
    }
    let left = run(&["find", &volume.path, "udp", "--limit", "1"]);
    assert!(left.done().out.contains("udp"), "nothing was forgotten");
}

/// What each verb reads and what it writes, as the same file: `IN` is copied from what the first
/// word names, and takes its place in the words.
const OVER_ANY: [(&str, &str); 24] = [
    ("atlas", "extract V udp --mmdb IN -w IN"),
    ("atlas", "find V udp --mmdb IN --parquet IN"),
    ("key", "extract V udp --sign IN -w IN"),
    ("key", "extract V udp --sign IN -w OUT --manifest IN"),
    ("key", "request udp --case 1 --sign IN -w IN"),
    ("key", "anchor V --sign IN -w IN"),
    ("key", "anchor V --sign IN -w OUT --witness IN"),
    ("key", "forget V udp --yes --sign IN --receipt IN"),
    ("key", "erase V --sign IN --receipt IN"),
    ("secret", "extract V udp --anonymise IN -w IN"),
    ("extract.json", "verify-extract IN extract --html IN"),
    ("extract", "verify-extract extract.json IN --html IN"),
    ("key.pub", "verify-extract extract.json extract --public-key IN --html IN"),
    ("anchor", "verify-extract extract.json extract --anchor IN --html IN"),
    ("anchor.stripes", "anchor V --previous anchor -w OUT --witness IN"),
    ("rows.parquet", "sql IN SELECT+1 --parquet IN"),
    ("rows.parquet", "sql . SELECT+1 --parquet IN"),
    ("results.json", "bench -r 2 --baseline IN --export-json IN -- true"),
    ("results.json", "bench -r 2 --fact IN --export-json IN -- true"),
    ("results.json", "bench -r 2 --input IN --csv IN -- true"),
    ("results.json", "bench -r 2 --file IN --csv IN -- true"),
    ("settings", "stenocurl /query -s -d udp -o IN"),
    ("settings", "stenoread udp -n -w IN"),
    ("settings", "stenoread udp -nwIN"),
];

/// Verbs without `--force`: they replace in any case, or never.
const NEVER_ASKED: [&str; 4] = ["stenocurl", "stenoread", "erase", "forget"];

#[test]
fn no_output_replaces_whatever_its_command_reads() {
    let volume = Volume::empty();
    volume.record(&["--read", CAPTURES]).done();
    let folder = Path::new(&volume.path).parent().unwrap();
    let in_folder = |words: &[&str]| {
        let mut command = command(words);
        command.current_dir(folder).env("STENOGRAPHER_CONFIG", "settings.parquet");
        crate::machine::Ran::new(&command.output().unwrap())
    };
    in_folder(&["keygen", "key"]).done();
    in_folder(&["extract", &volume.path, "udp", "--sign", "key", "-w", "extract"]).done();
    in_folder(&["anchor", &volume.path, "-w", "anchor"]).done();
    in_folder(&["bench", "-r", "2", "--export-json", "results.json", "--", "true"]).done();
    if cfg!(feature = "sql") {
        in_folder(&["find", &volume.path, "--parquet", "rows.parquet"]).done();
    }
    let atlas = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sessions/query/tests/data/places.mmdb");
    std::fs::copy(atlas, volume.file("atlas")).unwrap();
    crate::machine::write_key(&volume.file("secret"), &"5a".repeat(32));
    std::fs::write(volume.file("settings"), format!(r#"{{"Volume":"{}"}}"#, volume.path)).unwrap();
    for (given, words) in OVER_ANY {
        let words: Vec<&str> = words.split(' ').collect();
        if !is_built(&words) {
            continue;
        }
        // One name for all, as SQL knows files by it.
        let (input, other) = (volume.file("input.parquet"), volume.file("settings.parquet"));
        let name = if given == "settings" { "settings.parquet" } else { "input.parquet" };
        let place = if given == "settings" { &other } else { &input };
        std::fs::copy(volume.file(given), place).unwrap();
        // An anchor has its list beside it.
        std::fs::copy(volume.file("anchor.stripes"), format!("{place}.stripes")).unwrap();
        let before = std::fs::read(place).unwrap();
        let force = !NEVER_ASKED.contains(&words[0]);
        let mut filled: Vec<String> = words
            .iter()
            .map(|word| match *word {
                "V" => volume.path.clone(),
                "OUT" => volume.file("another"),
                word => word.replace("IN", name).replace('+', " "),
            })
            .collect();
        if force {
            filled.insert(1, "--force".to_owned());
        }
        let filled: Vec<&str> = filled.iter().map(String::as_str).collect();
        let ran = in_folder(&filled);
        assert!(std::fs::read(place).unwrap() == before, "{filled:?}: {ran:?}");
        assert!(ran.code != Some(0), "{filled:?}: {ran:?}");
        let is_said = ["is read by this command", "has something else in it", "exists already"]
            .iter()
            .any(|said| ran.err.contains(said));
        assert!(is_said, "{filled:?}: {ran:?}");
        std::fs::remove_file(place).unwrap();
    }
}

#[test]
fn two_outputs_of_one_command_are_two_files() {
    let volume = Volume::empty();
    volume.record(&["--read", CAPTURES]).done();
    let [out, same, soft] = ["out", "./out", "soft"].map(|name| volume.file(name));
    let [json, list] = [".json", ".stripes"].map(|suffix| format!("{out}{suffix}"));
    std::fs::write(&out, "of before").unwrap();
    symlink(&out, &soft).unwrap();
    for words in [
        &["extract", "V", "", "-w", "OUT", "--manifest", "OUT"][..],
        &["extract", "V", "", "-w", "OUT", "--manifest", "SAME"],
        &["extract", "V", "", "-w", "OUT", "--manifest", "SOFT"],
        &["anchor", "V", "-w", "OUT", "--witness", "OUT"],
        &["anchor", "V", "-w", "OUT", "--witness", "LIST"],
        &["diagnose", "tcp", "--save", "OUT", "--html", "OUT", "--for", "1s"],
    ] {
        let places = [("V", &*volume.path), ("OUT", &out), ("SAME", &same), ("SOFT", &soft)];
        let words = placed(words, &places);
        let words = placed(&words, &[("JSON", &json), ("LIST", &list)]);
        let ran = run(&words[..words.len() - 1]);
        let expected = "is another output of this command, too: name another place";
        assert!(ran.code != Some(0) && ran.err.contains(expected), "{words:?}: {ran:?}");
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "of before", "{words:?}");
    }
}

#[test]
fn the_folder_of_an_index_takes_no_other_file() {
    let volume = Volume::empty();
    volume.record(&["--read", CAPTURES]).done();
    let index = &*volume.index;
    let inside = format!("{index}/foo");
    let before = std::fs::read_dir(index).unwrap().count();
    for words in [
        &["extract", &volume.path, "", "-w", &inside, "--index-dir", index][..],
        &["find", &volume.path, "", "--parquet", &inside, "--index-dir", index],
        &["hold", &volume.path, "", "--hold-dir", index, "--index-dir", index],
        &["record", &volume.path, "--read", CAPTURES, "--index-dir", index, "--hold", "udp"],
    ] {
        if !is_built(words) {
            continue;
        }
        let hold = ["--hold-dir", index];
        let further: &[&str] = if words.contains(&"record") { &hold } else { &[] };
        let ran = run(&[words, further].concat());
        let expected = "lies in a folder that the program keeps for itself";
        assert!(ran.code != Some(0) && ran.err.contains(expected), "{words:?}: {ran:?}");
        assert_eq!(std::fs::read_dir(index).unwrap().count(), before, "{words:?}");
    }
}

#[test]
fn nothing_is_written_beside_a_device() {
    let volume = Volume::empty();
    volume.record(&["--read", CAPTURES]).done();
    for device in ["/dev/null", "/dev/stdout"] {
        let words = ["extract", &volume.path, "udp", "-w", device, "--force"];
        let ran = run(&words);
        assert!(ran.err.contains("no manifest is written"), "{ran:?}");
        assert!(!Path::new(&format!("{device}.json")).exists());
    }
    let words = ["extract", &volume.path, "", "-w", "/dev/null.pcap", "--force"];
    assert!(run(&words).err.contains("lies among devices"), "no file is made there either");
    // What a shell opened as standard output is a file, and its name a link to it.
    let file = volume.file("opened");
    let mut extract = command(&["extract", &volume.path, "udp", "-w", "/dev/stdout", "--force"]);
    let ran = extract.stdout(std::fs::File::create(&file).unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("lies among devices"), "{said}");
    assert!(Path::new("/dev/stdout").is_symlink());
}

/// Records what arrives until a signal comes; what it then says.
fn end_by(signal: &str, volume: &Volume) {
    let more = ["--pool", "4M", "--name", signal.trim_start_matches('-')];
    let (mut child, mut input) = recorder(&volume.path, &volume.index, &more);
    input.write_all(&std::fs::read(format!("{CAPTURES}/dns.pcap")).unwrap()).unwrap();
    let begun = Instant::now();
    while !run(&["inspect", &volume.path]).out.contains("all durable") {
        assert!(begun.elapsed() < Duration::from_secs(30), "the recorder acknowledges");
    }
    let number = child.id().to_string();
    assert!(Command::new("kill").args([signal, &number]).status().unwrap().success());
    let signalled = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if signalled.elapsed() > Duration::from_mins(1) {
            child.kill().unwrap();
            panic!("{signal} does not end it");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = child.wait_with_output().unwrap();
    drop(input);
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(ended.status.code(), Some(0), "{signal}: {ended:?}");
    assert!(said.contains("every packet that arrived is stored"), "{signal}: {said}");
}

#[test]
fn whatever_signal_ends_a_recording_it_ends_in_order() {
    let usual = ["-HUP", "-QUIT", "-XCPU", "-USR1", "-ALRM", "-TERM"];
    let rare = ["-30", "-16", "-29", "-34", "-37", "-64"];
    for signal in usual.into_iter().chain(rare) {
        // One each: of a second recording nothing says from outside that it has begun.
        let volume = Volume::empty();
        end_by(signal, &volume);
        run(&["verify", &volume.path]).done();
        let found = run(&["find", &volume.path, "udp", "--index-dir", &volume.index]).done();
        assert!(!found.err.contains("gap"), "{}", text(found.err.into()));
        let named = ["find", &volume.path, "udp", "--columns", "recording", "--csv"];
        let named = run(&[&named[..], &["--index-dir", &volume.index]].concat()).done();
        let name = signal.trim_start_matches('-');
        assert!(named.out.lines().skip(1).all(|line| line == name), "{signal}: {named:?}");
        assert!(named.out.lines().count() > 1, "{signal}");
    }
}
