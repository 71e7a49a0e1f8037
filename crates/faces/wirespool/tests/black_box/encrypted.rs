//! Encrypted volumes: with a private key all is as on a plain one, without it nothing is there.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

pub(crate) mod keys;
mod raw;
mod tpm;

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::machine::{CAPTURES, Ran, Volume, command, run, text, write_key};

/// A private key of age.
pub(crate) const SECRET: &str =
    "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";
pub(crate) const PUBLIC: &str = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";
const OTHER: &str = "AGE-SECRET-KEY-184JMZMVQH3E6U0PSL869004Y3U2NYV7R30EU99CSEDNPH02YUVFSZW44VU";

/// An encrypted volume, and the keys of one who may read it and of one who may not.
struct Encrypted {
    folder: TempDir,
    members: Vec<String>,
    index: String,
    key: String,
    other: String,
}

impl Encrypted {
    fn new(members: usize, parity: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| text(folder.path().join(name));
        let members: Vec<String> = (0..members).map(|it| file(&format!("m{it}"))).collect();
        let [index, key, other] = ["index", "key", "other"].map(file);
        write_key(&key, &format!("# created: 2026\n# public key: {PUBLIC}\n{SECRET}\n"));
        write_key(&other, OTHER);
        let mut create = vec!["create", &*members[0], "--parity", parity, "--recipient", PUBLIC];
        create.extend(["--size", "48M", "--piece", "256K", "--sparse"]);
        members.iter().skip(1).for_each(|it| create.extend(["--member", it]));
        let said = run(&create).done();
        assert!(said.out.contains(&format!("encrypted to:  {PUBLIC}")), "{said:?}");
        Self { folder, members, index, key, other }
    }

    fn file(&self, name: &str) -> String {
        text(self.folder.path().join(name))
    }

    fn path(&self) -> &str {
        &self.members[0]
    }

    fn record(&self, arguments: &[&str]) -> Ran {
        let fixed = ["record", self.path(), "--pool", "8M", "--index-dir", &self.index];
        run(&[&fixed, arguments].concat())
    }

    fn find(&self, query: &str) -> String {
        let words = ["find", self.path(), query, "--json", "--index-dir", &self.index];
        run(&[&words[..], &["--identity", &self.key]].concat()).done().out
    }

    fn extract(&self, query: &str, name: &str) -> Vec<u8> {
        let output = self.file(name);
        let words = ["extract", self.path(), query, "-w", &output, "--force"];
        run(&[&words[..], &["--identity", &self.key, "--index-dir", &self.index]].concat()).done();
        std::fs::read(output).unwrap()
    }
}

/// What both answer must be the same but for the ids, which name stripes.
fn without_ids(json: &str) -> Vec<String> {
    let lines = json.lines().map(|line| {
        let (_, rest) = line.split_once(',').expect("an object of several fields");
        rest.to_owned()
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}

/// Byte strings that any reader of the plain volume finds in it, and no reader of this one.
fn canaries() -> Vec<Vec<u8>> {
    let names = ["example.com", "GET /", "\u{1}www", "SSH-2.0", "PAR1"];
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

fn files_of(folder: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap()).collect()
}

fn found(canary: &[u8], files: &[Vec<u8>]) -> usize {
    files.iter().filter(|file| file.windows(canary.len()).any(|part| part == canary)).count()
}

#[test]
fn answers_are_those_of_a_plain_volume_and_the_disk_shows_nothing() {
    let plain = Volume::recorded();
    let volume = Encrypted::new(1, "0");
    volume.record(&["--read", CAPTURES, "--name", "captures"]).done();
    let expected = run(&["find", &plain.path, "", "--json", "--index-dir", &plain.index]).done();
    assert!(expected.out.lines().count() > 10);
    assert_eq!(without_ids(&volume.find("")), without_ids(&expected.out));
    // Not from the cache, but from the ring.
    std::fs::remove_dir_all(&volume.index).unwrap();
    assert_eq!(without_ids(&volume.find("")), without_ids(&expected.out));
    let file = plain.file("all.pcapng");
    run(&["extract", &plain.path, "", "-w", &file]).done();
    let packets = |file: &str| {
        let words = ["extract", file, "", "-w", "-", "--format", "pcap"];
        words.map(str::to_owned).to_vec()
    };
    let of = |words: Vec<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        command(&words).output().unwrap()
    };
    let mut mine = packets(volume.path());
    mine.extend(["--identity".to_owned(), volume.key.clone()]);
    let (mine, theirs) = (of(mine), of(packets(&plain.path)));
    assert_eq!(mine.status.code(), theirs.status.code());
    assert!(mine.stdout == theirs.stdout, "the same packets, byte by byte");

    let sealed = [files_of(volume.folder.path()), files_of(Path::new(&volume.index))].concat();
    let open = [files_of(plain.folder.path()), files_of(Path::new(&plain.index))].concat();
    let mut seen = 0;
    for canary in canaries() {
        seen += found(&canary, &open);
        assert_eq!(found(&canary, &sealed), 0, "{:?}", String::from_utf8_lossy(&canary));
    }
    assert!(seen > 3, "the plain volume shows them: {seen}");
}

#[test]
fn an_encrypted_volume_is_archived_in_plain_only_where_that_is_said() {
    let volume = Encrypted::new(1, "0");
    volume.record(&["--read", CAPTURES]).done();
    let (folder, key) = (volume.file("archive"), &volume.key);
    let to = format!("file://{folder}");
    let words = ["archive", volume.path(), "--to", &to, "--sensor", "dc1", "--identity", key];
    let refused = run(&words);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("is encrypted, and an archive is plain Parquet"), "{refused:?}");
    let sessions = Path::new(&folder).join("sessions");
    assert!(!sessions.exists());
    run(&[&words[..], &["--plain"]].concat()).done();
    run(&["archive", "verify", "--to", &to, "--sensor", "dc1"]).done();
    assert!(sessions.exists());
}

#[test]
fn without_a_private_key_one_line_says_what_to_do() {
    let volume = Encrypted::new(1, "0");
    volume.record(&["--read", CAPTURES]).done();
    let (path, out) = (volume.path(), volume.file("out.pcapng"));
    for words in [&["find", path, ""][..], &["extract", path, "", "-w", &out]] {
        let locked = run(words);
        locked.is_refused("is encrypted: name the file of a private key with --identity FILE");
        let strange = run(&[words, &["--identity", &volume.other]].concat());
        strange.is_refused(&format!(
            "is encrypted to others than the identities given; its recipients: {PUBLIC}"
        ));
    }
    assert!(!Path::new(&out).exists());
    let named = |file: &str| run(&["find", path, "", "--identity", file]);
    assert_eq!(named("/nonexistent").code, Some(2));
    let empty = volume.file("empty");
    write_key(&empty, "# nothing\n");
    assert!(named(&empty).err.contains("it holds no identity"));
    let open = volume.file("open");
    std::fs::write(&open, SECRET).unwrap();
    assert_eq!(named(&open).code, Some(2), "others may read it");
    let wrong = ["create", &volume.file("v"), "--size", "32M", "--recipient", "age1wrong"];
    let wrong = run(&wrong);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("is no recipient"), "{wrong:?}");
    let held =
        volume.record(&["--read", CAPTURES, "--hold", "tcp", "--hold-dir", &volume.file("h")]);
    assert!(held.code != Some(0) && held.err.contains("encrypted"), "{held:?}");
}

/// Keeping a volume whole needs no key, and takes none from who has one.
#[test]
fn members_are_verified_repaired_and_replaced_without_a_key() {
    let volume = Encrypted::new(3, "1");
    volume.record(&["--read", CAPTURES]).done();
    let before = volume.find("");
    let packets = volume.extract("", "before.pcapng");
    let inspected = run(&["inspect", volume.path(), "--json"]).done();
    assert!(inspected.out.contains(PUBLIC), "{inspected:?}");
    run(&["verify", volume.path()]).done();
    // What a member holds of packets rots, but for the heads in front.
    let mut bytes = std::fs::read(&volume.members[1]).unwrap();
    let slots = (2 << 20)..(12 << 20);
    for slot in slots.step_by(256 << 10) {
        bytes[slot + 4096..slot + 8192].fill(0x55);
    }
    std::fs::write(&volume.members[1], bytes).unwrap();
    assert_eq!(run(&["verify", volume.path()]).code, Some(1));
    assert!(volume.extract("", "rotten.pcapng") == packets, "repaired from the others");
    run(&["scrub", volume.path()]).done();
    run(&["verify", volume.path()]).done();
    // A member is gone, and another device takes its place; then the other two are replaced, too.
    for number in 0..3_usize {
        let new = volume.file(&format!("new{number}"));
        std::fs::remove_file(&volume.members[number]).unwrap();
        let any = if number == 0 { &volume.members[1] } else { &volume.file("new0") };
        let number = number.to_string();
        let replaced = run(&["replace", any, &number, &new, "--sparse"]);
        assert_eq!(replaced.code, Some(0), "{replaced:?}");
    }
    let path = volume.file("new0");
    let found = run(&["find", &path, "", "--json", "--identity", &volume.key]).done();
    assert_eq!(found.out, before);
    run(&["verify", &path]).done();
}

/// A recorder that was killed leaves what it had: each start has a key of its own.
#[test]
fn a_killed_recorder_leaves_packets_that_can_be_read() {
    let volume = Encrypted::new(1, "0");
    volume.record(&["--read", CAPTURES]).done();
    let once = volume.find("").lines().count();
    let record = ["record", volume.path(), "--pool", "8M", "--read", "-"];
    let mut recorder = command(&[&record[..], &["--index-dir", &volume.index]].concat());
    let mut recorder = recorder.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = recorder.stdin.take().unwrap();
    let capture = std::fs::read(format!("{CAPTURES}/dns.pcap")).unwrap();
    std::io::Write::write_all(&mut input, &capture).unwrap();
    std::io::Write::flush(&mut input).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    drop(input);
    let words = ["find", volume.path(), "", "--json", "--identity", &volume.key];
    let after = run(&words);
    let twice = after.out.lines().count();
    assert!(twice > once, "{after:?}");
    volume.record(&["--read", CAPTURES]).done();
    let inspected = run(&["inspect", volume.path()]).done();
    assert!(inspected.out.contains("encrypted to"), "{inspected:?}");
    // The next recorder cannot index what it cannot read, and does not say that it has no rows.
    assert_eq!(run(&words).out.lines().count(), twice + once);
    run(&["verify", volume.path()]).done();
}

#[test]
fn salvage_decrypts_what_is_left_without_any_superblock() {
    let volume = Encrypted::new(1, "0");
    volume.record(&["--read", CAPTURES]).done();
    let all = volume.extract("", "all.pcapng");
    let mut bytes = std::fs::read(volume.path()).unwrap();
    let end = bytes.len();
    bytes[..8192].fill(0);
    bytes[end - 8192..].fill(0);
    std::fs::write(volume.path(), bytes).unwrap();
    let out = volume.file("salvaged.pcapng");
    let words = ["salvage", volume.path(), "-w", &out, "--force"];
    let locked = run(&words);
    assert_ne!(locked.code, Some(0), "{locked:?}");
    let opened = run(&[&words[..], &["--identity", &volume.key]].concat()).done();
    assert!(opened.out.contains("packets"), "{opened:?}");
    let salvaged = std::fs::read(&out).unwrap();
    assert!(salvaged.len() * 2 > all.len(), "{} of {}", salvaged.len(), all.len());
}

/// The wrapped keys are files of age: another program opens them.
#[test]
fn age_itself_unwraps_the_keys() {
    let volume = Encrypted::new(1, "0");
    volume.record(&["--read", CAPTURES]).done();
    let bytes = std::fs::read(volume.path()).unwrap();
    // Row 0 of the keys: the recipient, then the first key.
    let row = &bytes[12_288..16_384];
    assert!(row.starts_with(b"wireKEYS"));
    let length = |at: usize| usize::from(u16::from_le_bytes([row[at + 2], row[at + 3]]));
    let recipient = 48;
    assert_eq!(&row[recipient + 28..recipient + 28 + length(recipient)], PUBLIC.as_bytes());
    let key = recipient + 28 + length(recipient);
    let wrapped = &row[key + 28..key + 28 + length(key)];
    let file = volume.file("wrapped");
    std::fs::write(&file, wrapped).unwrap();
    let age = Command::new("age").args(["--decrypt", "--identity", &volume.key, &file]).output();
    let Ok(output) = age else {
        println!("not run: needs age");
        return;
    };
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout.len(), 56);
    assert_eq!(output.stdout[48..], 1_u64.to_le_bytes());
}
