//! Every example of every help and of the documents runs: none is a wrong usage, and what reads a
//! volume gets its answer.
//!
//! Paths lie in a folder of the test, sizes are small, interfaces are of names that no machine has,
//! and programs that reach out are stand-ins: nothing of the machine is touched or heard.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::encrypted::keys::OTHERS;
use crate::encrypted::{PUBLIC, SECRET};
use crate::machine::{BINARY, CAPTURES, Ran, Volume, command, run, text, verbs_of, write_key};

/// What begins an example.
const PROGRAMS: [&str; 3] = ["wirespool ", "stenoread ", "stenocurl "];
/// Programs that are only pretended.
const STAND_INS: [&str; 7] = ["curl", "dig", "jq", "tshark", "wireshark", "systemctl", "./crawler"];
/// Verbs that only read a volume or a file, or need neither: they must answer.
const ANSWERING: [&str; 15] = [
    "archive",
    "completions",
    "extract",
    "fields",
    "find",
    "hold",
    "inspect",
    "keygen",
    "plan",
    "scrub",
    "sql",
    "status",
    "tag",
    "verify",
    "verify-extract",
];
/// Examples that need what only their owner has; between two anchors nothing is recorded here.
const FOREIGN: [&str; 6] =
    ["--mmdb", "/dev/sd", "--from-", "s3://", "tuesday.anchor", "--approved"];
/// Where their paths begin.
const FOLDERS: [&str; 9] = [
    "/data",
    "/dev/sd",
    "/dev/mapper",
    "/etc/wirespool",
    "/tmp",
    "/mnt",
    "/disk",
    "/var/l",
    "/spool",
];
/// As long as an example runs, in seconds; then it is interrupted.
const RUNS_S: &str = "4";
const THREADS: usize = 8;

/// Each help that there is, those of subcommands among them.
fn helps() -> Vec<String> {
    let (mut helps, mut next) = (Vec::new(), vec![Vec::new()]);
    while let Some(words) = next.pop() {
        let words: Vec<String> = words;
        let said = Ran::new(&command(&[]).args(&words).arg("--help").output().unwrap()).out;
        let verbs = verbs_of(&said).into_iter();
        next.extend(verbs.map(|verb| [&words[..], &[verb]].concat()));
        helps.push(said);
    }
    helps
}

/// The examples of a text, in lines that begin behind `indent` with a program's name, or lead into
/// a program.
fn examples(text: &str, indent: &str) -> Vec<String> {
    let mut examples: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let line = line.strip_prefix("sudo ").unwrap_or(line);
        let line = line.strip_prefix("-u wirespool ").unwrap_or(line);
        if is_open {
            let last = examples.last_mut().unwrap();
            write!(last, "\n{}", line.trim()).unwrap();
        } else if let Some(line) = line.strip_prefix(indent)
            && PROGRAMS
                .iter()
                .any(|program| line.starts_with(program) || line.contains(&format!("| {program}")))
        {
            examples.push(line.to_owned());
        } else {
            continue;
        }
        let last = examples.last().unwrap();
        let quotes = |quote| last.matches(quote).count() % 2 == 1;
        is_open = last.ends_with('\\') || quotes('\'') || quotes('"');
    }
    examples
}

/// Without what stands beside it: in a help a comment follows two blanks, in a document `#`.
fn without_comment(example: &str) -> String {
    let lines = example.lines().map(|line| {
        let (mut quote, mut blanks, mut end) = (None, 0, line.len());
        for (at, letter) in line.char_indices() {
            match (quote, letter) {
                (None, '\'' | '"') => quote = Some(letter),
                (Some(open), letter) if open == letter => quote = None,
                (None, '#') if blanks == 1 => {
                    end = at;
                    break;
                }
                (None, ' ') if blanks == 1 => {
                    end = at - 1;
                    break;
                }
                _ => {}
            }
            blanks = usize::from(letter == ' ' && quote.is_none());
        }
        line[..end].trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn of_helps() -> Vec<String> {
    let helps = helps();
    assert!(helps.len() > 30, "{} helps", helps.len());
    let mut all = Vec::new();
    for help in helps {
        all.extend(examples(&help, "  ").iter().map(|one| without_comment(one)));
    }
    // Lists of verbs name programs, too.
    all.retain(|example| example.contains(' '));
    all
}

fn of_documents() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut files: Vec<PathBuf> =
        fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.push(root.join("README.md"));
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut all = Vec::new();
    for file in files {
        let document = fs::read_to_string(file).unwrap();
        let blocks = document.split("```sh\n").skip(1);
        for block in blocks.filter_map(|behind| behind.split("```").next()) {
            all.extend(examples(block, "").iter().map(|one| without_comment(one)));
        }
    }
    all
}

/// Where the paths of the examples lie.
struct World {
    volume: Volume,
    bystander: std::process::Child,
}

impl World {
    fn new() -> Self {
        let volume = Volume::recorded();
        let bystander = Command::new("sleep").arg("600").spawn().unwrap();
        let world = Self { volume, bystander };
        for name in [
            "bin",
            "data",
            "dev",
            "etc/wirespool",
            "tmp",
            "mnt",
            "old",
            "var/log/suricata",
            "var/lib/wirespool",
        ] {
            fs::create_dir_all(world.path(name)).unwrap();
        }
        fs::create_dir_all(world.path(".config/fish/completions")).unwrap();
        fs::rename(&world.volume.path, world.path("data/spool")).unwrap();
        let vault = text(world.path("data/vault"));
        run(&["create", &vault, "--size", "64M", "--sparse", "--recipient", PUBLIC]).done();
        symlink(CAPTURES, world.path("old/captures")).unwrap();
        for place in ["dev/sdb1", "var/lib/wirespool/volume"] {
            symlink(world.path("data/spool"), world.path(place)).unwrap();
        }
        for disk in ["sdb", "sdc", "sdd", "sde"] {
            symlink("/dev/null", world.path(&format!("dev/{disk}"))).unwrap();
        }
        let event = r#"{"timestamp":"2013-11-25T16:27:01.000000+0000","event_type":"alert",
            "src_ip":"10.180.156.141","src_port":62599,"dest_ip":"192.30.252.130","dest_port":443,
            "proto":"TCP","alert":{"signature":"x","severity":1}}"#;
        for log in ["eve.json", "alert.json", "var/log/suricata/eve.json"] {
            fs::write(world.path(log), event.replace('\n', "") + "\n").unwrap();
        }
        let profile =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/qualify/profiles/single-8tb.csv");
        for name in ["profile.csv", "single-8tb.csv"] {
            symlink(profile, world.path(name)).unwrap();
        }
        let report = text(world.path("data.json"));
        run(&["qualify", "--model", profile, "--part", "sweep", "-o", &report]).done();
        for name in ["sdb.json", "before.json", "now.json"] {
            fs::copy(&report, world.path(name)).unwrap();
        }
        write_key(&text(world.path("analyst.key")), SECRET);
        // As a TPM would open it.
        write_key(&text(world.path("analyst.cred")), SECRET);
        world.add_programs();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.volume.folder.path().join(name)
    }

    /// The programs, which note how they end, and stand-ins for others.
    fn add_programs(&self) {
        let add = |name: &str, script: &str| {
            let path = self.path("bin").join(name.trim_start_matches("./"));
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        for (name, verb) in
            [("wirespool", ""), ("stenoread", "stenoread"), ("stenocurl", "stenocurl")]
        {
            let volume = if verb.is_empty() { "" } else { "--volume data/spool" };
            add(
                name,
                &format!(
                    "{BINARY} {verb} \"$@\" {volume}\ncode=$?\necho $code >>\"$CODES\"\nexit $code"
                ),
            );
        }
        for name in STAND_INS {
            add(name, "[ -t 0 ] || cat >/dev/null");
        }
        symlink(self.path("bin/crawler"), self.path("crawler")).unwrap();
    }

    /// The example as it can be run anywhere.
    fn rewritten(&self, example: &str) -> String {
        let mut text = example.replace("4711", &self.bystander.id().to_string());
        text = text.replace("--packets 5000000", "--packets 5000");
        if text.starts_with("wirespool keys") {
            // Others read what is plain; nobody else changes who can read it.
            text = text.replace("/data/spool", "/data/vault");
            text = text.replace("--remove age1...", &format!("--remove {PUBLIC}"));
            text = text.replace("--add age1...", &format!("--add {OTHERS}"));
        }
        text = text.replace("--escrow age1...", &format!("--escrow {PUBLIC}"));
        if text.starts_with("wirespool extract") && text.contains("--raw") {
            text = text.replace("/data/spool", "/data/vault");
        }
        if text.starts_with("wirespool bench") {
            // Other examples have facts in a file of this name.
            text = text.replace("monday.json", "bench.json");
        }
        for size in ["100G", "8G", "10T", "1G"] {
            text = text.replace(&format!("--size {size}"), "--size 64M");
        }
        let here = self.volume.folder.path().display();
        text = text.replace("file:///", &format!("file://{here}/"));
        if text.starts_with("wirespool top") {
            // What is no interface is taken for a file.
            text = text.replace("eth0", "lo");
        }
        // Those of this machine are not the test's.
        text = text.replace("--interface any", "--interface absent");
        for interface in ["eth0", "eth1", "eth2", "eth3"] {
            text = text.replace(interface, &format!("absent{}", &interface[3..]));
        }
        if text.starts_with("wirespool setup") && !text.contains("--interface") {
            // Nobody can be asked, and this machine stays as it is.
            text.push_str(" --interface absent0");
        }
        if text.starts_with("wirespool top") && !text.contains("--once") {
            text.push_str(" --once");
        }
        self.moved(&text)
    }

    /// With all paths below the folder of the test.
    fn moved(&self, text: &str) -> String {
        let here = self.volume.folder.path().display();
        let mut moved = String::new();
        let mut before = ' ';
        for (at, letter) in text.char_indices() {
            let rest = &text[at..];
            if " '>+=".contains(before) && FOLDERS.iter().any(|folder| rest.starts_with(folder)) {
                write!(moved, "{here}").unwrap();
                moved.push_str(if rest.starts_with("/spool") { "/data" } else { "" });
            }
            moved.push(letter);
            before = letter;
        }
        moved
    }

    /// What its programs ended with; none where it was interrupted.
    fn run(&self, number: usize, example: &str) -> (Vec<i32>, Ran) {
        let codes = self.path(&format!("codes-{number}"));
        fs::write(&codes, "").unwrap();
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("timeout");
        shell.args(["--signal=INT", "--kill-after=10", RUNS_S, "sh", "-c"]);
        shell.arg(self.rewritten(example)).current_dir(self.volume.folder.path());
        shell.env("PATH", path).env("HOME", self.volume.folder.path()).env("CODES", &codes);
        for variable in ["XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"] {
            shell.env_remove(variable);
        }
        let ran = Ran::new(&shell.stdin(Stdio::null()).output().unwrap());
        let codes = fs::read_to_string(codes).unwrap_or_default();
        (codes.lines().map(|line| line.parse().unwrap()).collect(), ran)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.bystander.kill().unwrap();
        self.bystander.wait().unwrap();
    }
}

/// What is wrong with an example, if anything is.
fn complaint(example: &str, codes: &[i32], ran: &Ran) -> Option<String> {
    if ran.err.contains("this build has no SQL") {
        println!("not run: {example}: needs --features sql");
        return None;
    }
    let words: Vec<&str> = example.split_whitespace().collect();
    let program = words.iter().position(|word| *word == "wirespool");
    let verb = program.map_or(words.first(), |program| words.get(program + 1));
    let verb = verb.copied().unwrap_or_default();
    let is_foreign = FOREIGN.iter().any(|foreign| example.contains(foreign));
    let must_answer = ANSWERING.contains(&verb) && !is_foreign && !example.contains("--follow");
    // Examples write to the same names.
    let must_answer = must_answer && !ran.err.contains("exists already");
    let is_wrong = codes.contains(&2)
        || (must_answer
            && (codes.is_empty() || codes.iter().any(|code| ![0, 1, 5].contains(code))));
    is_wrong.then(|| format!("{example}\n  ended with {codes:?}: {}", ran.err))
}

#[test]
fn no_verb_has_the_help_of_another_one() {
    let helps = helps();
    let mut first_lines = BTreeSet::new();
    for line in helps.iter().filter_map(|help| help.lines().next()) {
        assert!(first_lines.insert(line), "twice: {line}");
    }
}

/// Examples beside one another repair and record into the same volume: one that came too early
/// tries again, so often at most.
const TRIES: u32 = 20;

#[test]
fn every_example_of_help_and_documents_runs() {
    let all: BTreeSet<String> = of_helps().into_iter().chain(of_documents()).collect();
    // What an example reads an earlier one has made.
    let round = |example: &str| match example {
        one if one.contains("keygen") || one.contains("enrol init") => 0,
        one if one.contains("enrol client") => 1,
        one if one.contains("--previous") => 2,
        one if one.contains(" -w ") || one.contains("--parquet") => 1,
        one if one.starts_with("wirespool archive /") => 1,
        _ => 3,
    };
    let mut rounds = [const { Vec::new() }; 4];
    for example in all {
        rounds[round(&example)].push(example);
    }
    let world = World::new();
    let complaints = Mutex::new(Vec::new());
    let mut count = 0;
    for (round, examples) in rounds.iter().enumerate() {
        count += examples.len();
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while let Some(example) = examples.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let number = next.load(Ordering::Relaxed) * 10 + round;
                        let mut answer = world.run(number, example);
                        for _ in 0..TRIES {
                            if answer.1.err.contains("is in use, by a recorder perhaps") {
                                thread::sleep(Duration::from_secs(1));
                                answer = world.run(number, example);
                            }
                        }
                        let (codes, ran) = answer;
                        complaints.lock().unwrap().extend(complaint(example, &codes, &ran));
                    }
                });
            }
        });
    }
    assert!(count > 130, "{count} examples");
    let complaints = complaints.into_inner().unwrap();
    assert!(complaints.is_empty(), "{} of {count}:\n{}", complaints.len(), complaints.join("\n"));
}
