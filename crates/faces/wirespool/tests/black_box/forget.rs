//! Somebody's packets are taken off a volume, on every member, and what goes with them is said.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::encrypted::{PUBLIC, SECRET};
use crate::golden::pcap;
use crate::machine::{CAPTURES, Ran, Volume, command, run, text, write_key};

struct Spool {
    folder: TempDir,
    members: Vec<String>,
    index: String,
    identity: Vec<String>,
}

impl Spool {
    fn new(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| text(folder.path().join(name));
        let members: Vec<String> = (0..3).map(|it| file(&format!("m{it}"))).collect();
        let mut create = vec!["create", &*members[0], "--member", &members[1]];
        create.extend(["--member", &members[2], "--parity", "1", "--size", "24M"]);
        create.extend(["--piece", "32K", "--sparse"]);
        run(&[&create[..], more].concat()).done();
        let index = file("index");
        Self { folder, members, index, identity: Vec::new() }
    }

    fn encrypted() -> Self {
        let mut spool = Self::new(&["--recipient", PUBLIC]);
        let key = text(spool.folder.path().join("key"));
        write_key(&key, SECRET);
        spool.identity = vec!["--identity".to_owned(), key];
        spool
    }

    fn path(&self) -> &str {
        &self.members[0]
    }

    fn file(&self, name: &str) -> String {
        text(self.folder.path().join(name))
    }

    fn with<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        let own = ["--index-dir", &*self.index];
        let identity = self.identity.iter().map(String::as_str);
        words.iter().copied().chain(own).chain(identity).collect()
    }

    fn record(&self) {
        // Each file by a recorder of its own, and so in slots of its own.
        for name in ["dns", "http", "tls", "tls-ipv6"] {
            let file = format!("{CAPTURES}/{name}.pcap");
            let own = ["record", self.path(), "--pool", "8M", "--index-dir", &self.index];
            run(&[&own[..], &["--read", &file]].concat()).done();
        }
    }

    fn find(&self, query: &str) -> (Vec<Value>, Ran) {
        let ran = run(&self.with(&["find", self.path(), query, "--json"]));
        let lines = ran.out.lines().map(|line| serde_json::from_str(line).unwrap());
        (lines.collect(), ran)
    }

    fn forget(&self, query: &str, more: &[&str]) -> Ran {
        run(&[&self.with(&["forget", self.path(), query]), more].concat())
    }

    fn bytes(&self) -> Vec<Vec<u8>> {
        self.members.iter().map(|member| std::fs::read(member).unwrap()).collect()
    }

    fn holds(&self, canary: &str) -> usize {
        let canary = canary.as_bytes();
        let all = self.bytes();
        all.iter().filter(|bytes| bytes.windows(canary.len()).any(|part| part == canary)).count()
    }

    /// A name of TLS, and the query of all that is known to name it.
    fn name(&self) -> (String, String) {
        let (sessions, _) = self.find("sni *");
        let name = sessions.iter().find_map(|session| session["sni"].as_str()).unwrap().to_owned();
        let query = format!("sni {name} or dns.name {name} or http.host {name}");
        (name, query)
    }
}

/// A receipt is checked alone, by who has the public key.
fn receipts_are_checked(receipt: &str, public: &str) {
    let check = || run(&["verify-extract", receipt, "--public-key", public]);
    let said = check().done().out;
    for words in [" is signed with the key given, ", " is the receipt of forget of ", "slots over"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains("\nreason: Art. 17, case 4\n"), "{said}");
    let whole = std::fs::read_to_string(receipt).unwrap();
    let (front, seal) = whole.split_once(",\n  \"seal\"").unwrap();
    for (other, words) in [
        (whole.replace("case 4", "case 5"), "it was changed after it was written"),
        (whole[..whole.len() / 2].to_owned(), "it is no receipt"),
        (format!("{front}\n}}\n"), "seal"),
        (format!("{front},\n  \"more\": 1,\n  \"seal\"{seal}"), "it was changed"),
        ("{}".to_owned(), "it is no receipt"),
    ] {
        std::fs::write(receipt, other).unwrap();
        let ran = check();
        assert!(ran.code == Some(1) && ran.out.contains(words), "{words}: {ran:?}");
        assert!(!ran.out.contains("case 5"), "nothing is shown of what is forged: {ran:?}");
    }
    std::fs::write(receipt, whole.replace("\"receipt_version\": 1", "\"receipt_version\": 2"))
        .unwrap();
    check().is_refused("the receipt has version 2");
    std::fs::write(receipt, whole).unwrap();
}

/// An anchor goes on from one before, also where what that saw last was forgotten.
#[test]
fn anchors_go_on_after_a_forget() {
    let spool = Spool::new(&[]);
    spool.record();
    let [monday, tuesday, other] = ["monday", "tuesday", "other"].map(|name| spool.file(name));
    run(&["anchor", spool.path(), "-w", &monday]).done();
    spool.forget("tcp or udp", &["--yes"]).done();
    let next = |file: &str| run(&["anchor", spool.path(), "-w", file, "--previous", &monday]);
    spool.record();
    next(&tuesday).done();
    let ran = run(&["verify", spool.path(), "--anchor", &tuesday]).done();
    assert!(ran.out.contains("the volume is the one that it saw"), "{ran:?}");
    let ran = run(&["verify", spool.path(), "--anchor", &monday]);
    assert!(ran.code == Some(1) && ran.out.contains("rewritten"), "{ran:?}");
    // Not where it ends before what that saw.
    let stranger = Spool::new(&[]);
    stranger.record();
    run(&["anchor", stranger.path(), "-w", &other, "--previous", &monday])
        .is_refused("not as the previous anchor saw it");
}

#[test]
fn what_is_forgotten_is_in_no_sector_and_answers_say_so() {
    let spool = Spool::new(&[]);
    spool.record();
    let (name, query) = spool.name();
    let (all, _) = spool.find("");
    let (meant, _) = spool.find(&query);
    assert!(!meant.is_empty() && spool.holds(&name) > 0);
    let before = spool.bytes();
    let planned = spool.forget(&query, &[]).done();
    assert!(planned.out.contains("nothing was changed: --yes does it"), "{planned:?}");
    assert!(planned.out.contains("other packets"), "{planned:?}");
    assert!(spool.bytes() == before, "a plan writes nothing");

    let (receipt, key) = (spool.file("receipt.json"), spool.file("signing.key"));
    run(&["keygen", &key]).done();
    let words = ["--yes", "--receipt", &receipt, "--sign", &key, "--reason", "Art. 17, case 4"];
    let done = spool.forget(&query, &words).done();
    assert!(done.out.contains("erased on every member"), "{done:?}");
    assert_eq!(spool.holds(&name), 0, "in no sector of any member");
    let said: Value = serde_json::from_str(&std::fs::read_to_string(&receipt).unwrap()).unwrap();
    assert_eq!((&said["action"], &said["reason"]), (&"forget".into(), &"Art. 17, case 4".into()));
    assert!(said["packets"].as_u64() > Some(0) && said["seal"]["ed25519"].is_object(), "{said}");
    let sequences = said["sequences"].as_array().unwrap().len();
    assert_eq!(said["slots"], sequences, "{said}");

    receipts_are_checked(&receipt, &format!("{key}.pub"));

    let (left, ran) = spool.find(&query);
    assert!(left.is_empty(), "{left:?}");
    assert!(ran.err.contains("forgotten: packets were erased on request between"), "{ran:?}");
    let (others, _) = spool.find("");
    assert!(!others.is_empty() && others.len() < all.len(), "{} of {}", others.len(), all.len());
    let out = spool.file("rest.pcapng");
    let rest = run(&spool.with(&["extract", spool.path(), "", "-w", &out]));
    assert_eq!(rest.code, Some(1), "{rest:?}");
    let manifest = std::fs::read_to_string(format!("{out}.json")).unwrap();
    assert!(
        manifest.contains("\"forgotten\": [") && !manifest.contains("\"stripe\""),
        "{manifest}"
    );
    // So it is where the sessions are looked for first, and where none of them is left.
    for query in [&*query, "app dns", "sni no.such.name", "packets > 1000000"] {
        let own = ["extract", spool.path(), query, "--force", "-w", &out];
        let rest = run(&spool.with(&own));
        assert_eq!(rest.code, Some(1), "{query}: {rest:?}");
        assert!(rest.err.contains("\nforgotten: packets were erased"), "{query}: {rest:?}");
    }
    // Nothing is damaged, nothing comes back from parity, and the ring goes on.
    run(&["verify", spool.path()]).done();
    run(&["scrub", spool.path()]).done();
    assert_eq!(spool.holds(&name), 0);
    assert_eq!(spool.forget(&query, &["--yes"]).code, Some(1), "nothing is left to forget");
    spool.record();
    let (again, _) = spool.find("");
    assert_eq!(again.len(), others.len() + all.len());
    run(&["verify", spool.path()]).done();
}

#[test]
fn an_encrypted_volume_forgets_as_well() {
    let spool = Spool::encrypted();
    spool.record();
    let (all, _) = spool.find("");
    let (_, query) = spool.name();
    let words = ["forget", spool.path(), &*query, "--yes"];
    run(&words).is_refused("is encrypted: name the file of a private key");
    spool.forget(&query, &["--yes"]).done();
    let (left, _) = spool.find(&query);
    let (others, _) = spool.find("");
    assert!(left.is_empty() && !others.is_empty() && others.len() < all.len());
    run(&["verify", spool.path()]).done();
}

#[test]
fn a_member_that_is_away_would_keep_it() {
    let spool = Spool::new(&[]);
    spool.record();
    let (_, query) = spool.name();
    std::fs::rename(&spool.members[2], spool.file("away")).unwrap();
    spool.forget(&query, &["--yes"]).is_refused("would keep what is to be forgotten");
    spool.forget("", &["--yes"]).fails_with(2, "matches all packets");
    // It may hide something of somebody whom no answer names.
    let nothing = spool.forget("host 203.0.113.250", &["--yes"]);
    assert!(nothing.out.contains("no answer gives out a packet"), "{nothing:?}");
    nothing.is_refused("would keep what is to be forgotten");
}

/// Packets of 1000 bytes from 192.168.0.HOST, one each millisecond, the first so long ago.
fn from_host(host: u8, count: u32, seconds_ago: u64) -> Vec<u8> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let first_ns = (now.as_secs() - seconds_ago) * 1_000_000_000;
    let mut packet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 3, 218];
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 168, 0, host, 192, 168, 0, 2, 0x90]);
    packet.extend([0, 0, 53, 3, 198, 0, 0]);
    packet.resize(1000, 7);
    pcap((0..count).map(|at| (first_ns + u64::from(at) * 1_000_000, packet.clone())))
}

/// Rows that outlive their packets: those that match go though no packet is left, others stay or
/// are said to go, and answers say that there were some.
#[test]
fn rows_that_outlive_their_packets_are_forgotten_as_well_and_no_others_without_a_word() {
    let volume = Volume::of_size("24M");
    let record = |parts: &[Vec<u8>]| {
        let file = volume.file("part.pcap");
        let bytes =
            parts.iter().enumerate().map(|(at, part)| &part[if at == 0 { 0 } else { 24 }..]);
        std::fs::write(&file, bytes.collect::<Vec<_>>().concat()).unwrap();
        volume.record(&["--read", &file, "--keep-sessions", "180d"]).done();
    };
    record(&[from_host(11, 3, 3600), from_host(12, 3, 3500)]);
    record(&[from_host(13, 3, 3000)]);
    record(&[from_host(20, 30_000, 1800)]);
    record(&[from_host(14, 3, 600)]);
    let own = ["--index-dir", &*volume.index, "--keep-sessions", "180d"];
    let find = |host: u8, more: &[&str]| {
        let query = format!("host 192.168.0.{host}");
        let ran = run(&[&["find", &volume.path, &query, "--json"], more].concat());
        (ran.out.lines().count(), ran)
    };
    assert_eq!(find(11, &own[..2]).0, 0, "its packets are overwritten");
    let rows = || [11, 12, 13, 14].map(|host| find(host, &own).0);
    assert_eq!(rows(), [1, 1, 1, 1]);
    let receipt = volume.file("receipt.json");
    let forget = |host: u8, more: &[&str]| {
        let query = format!("host 192.168.0.{host}");
        let index = ["--index-dir", &*volume.index];
        run(&[&["forget", &volume.path, &query], &index[..], more].concat())
    };

    // Somebody whose packets are there: the rows of others stay.
    let done = forget(14, &["--yes"]).done();
    assert!(!done.out.contains("kept rows:"), "{done:?}");
    assert_eq!(rows(), [1, 1, 1, 0]);

    let planned = forget(11, &[]).done();
    let said = "kept rows:        1 of overwritten packets among them; 1 other of the same index";
    assert!(planned.out.contains(said), "{planned:?}");
    assert_eq!(rows(), [1, 1, 1, 0], "a plan removes nothing");
    forget(11, &["--yes", "--receipt", &receipt]).done();
    let receipt: Value = serde_json::from_slice(&std::fs::read(&receipt).unwrap()).unwrap();
    let counts = ["kept_rows", "other_kept_rows", "slots"].map(|field| receipt[field].as_u64());
    assert_eq!(counts, [Some(1), Some(1), Some(0)], "{receipt}");
    assert_eq!(rows(), [0, 0, 1, 0]);
    for host in [11, 12] {
        let (_, ran) = find(host, &own);
        assert!(ran.err.contains("\nforgotten: packets were erased on request"), "{ran:?}");
    }
    // A recorder leaves it at that.
    record(&[from_host(15, 3, 300)]);
    let (_, ran) = find(11, &own);
    assert!(ran.err.contains("\nforgotten: packets were erased on request"), "{ran:?}");
    assert_eq!((rows(), find(15, &own).0), ([0, 0, 1, 0], 1));
    assert_eq!(forget(11, &["--yes"]).code, Some(1), "nothing is left to forget");
}

/// What no query finds is somebody's as well: what the ring is about to overwrite, what a slot that
/// was closed early has behind its end, and what is beyond the maximum age.
#[test]
fn what_answers_do_not_give_out_is_taken_off_the_disks_too() {
    let volume = Volume::of_size("24M");
    let record = |host: u8, count, seconds_ago, more: &[&str]| {
        let file = volume.file("part.pcap");
        std::fs::write(&file, from_host(host, count, seconds_ago)).unwrap();
        volume.record(&[&["--read", &file], more].concat()).done();
    };
    let left = |host: u8| {
        let bytes = std::fs::read(&volume.path).unwrap();
        let canary = [192, 168, 0, host, 192, 168, 0, 2];
        bytes.windows(canary.len()).filter(|part| *part == canary).count()
    };
    let forget = |host: u8| {
        let query = format!("host 192.168.0.{host}");
        let index = ["--index-dir", &*volume.index];
        run(&[&["forget", &volume.path, &query, "--yes"], &index[..]].concat())
    };
    // More than a lap, in recordings that each end within a slot; then somebody else.
    for round in 0..9 {
        record(31, 3000, 4000 - round * 100, &[]);
    }
    record(32, 10_000, 2000, &[]);
    assert!(left(31) > 0, "the ring still has some");
    let ran = forget(31);
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    assert_eq!(left(31), 0, "{ran:?}");
    assert!(left(32) > 0);

    // Older than the maximum age, and not erased.
    record(33, 200, 1500, &[]);
    record(34, 3, 2, &["--max-age", "10m"]);
    assert!(left(33) > 0);
    let ran = forget(33);
    assert_eq!((ran.code, left(33)), (Some(1), 0), "{ran:?}");
    assert_eq!(left(34), 3);
}

/// Whenever it is killed, what is left can be read, and it can be done again.
#[test]
fn a_kill_leaves_a_volume_that_is_read_and_can_be_made_to_forget() {
    for delay_ms in [2, 10, 20, 40, 80, 160] {
        let spool = Spool::new(&[]);
        spool.record();
        let (name, query) = spool.name();
        let words = spool.with(&["forget", spool.path(), &query, "--yes"]);
        let mut child = command(&words).stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        let (_, ran) = spool.find("");
        assert!(matches!(ran.code, Some(0 | 1 | 5)), "{delay_ms}: {ran:?}");
        let again = spool.forget(&query, &["--yes"]);
        assert!(matches!(again.code, Some(0 | 1)), "{delay_ms}: {again:?}");
        let (left, _) = spool.find(&query);
        assert!(left.is_empty(), "{delay_ms}: {left:?}");
        assert_eq!(spool.holds(&name), 0, "{delay_ms}: {again:?}");
        spool.record();
    }
}

#[test]
fn no_more_is_left_of_a_recording_than_it_had() {
    let volume = Volume::recorded();
    let index = ["--index-dir", &*volume.index];
    let forget = ["forget", &volume.path, "port 53", "--yes"];
    run(&[&forget[..], &index].concat()).done();
    let report = run(&["inspect", &volume.path, "--json"]).done().out;
    let report: Value = serde_json::from_str(&report).unwrap();
    let left = report["recordings"].as_array().unwrap().iter();
    let left: Vec<Option<f64>> = left.map(|one| one["share_left"].as_f64()).collect();
    assert!(!left.is_empty(), "{report:#}");
    assert!(left.iter().flatten().all(|share| *share <= 1.0), "{report:#}");
}
