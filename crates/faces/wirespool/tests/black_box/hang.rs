//! A member that hangs: the others go on without it, everything ends, and Ctrl-C is heard.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fuse::{Hang, Hanging};
use crate::golden::from_50_ports;
use crate::machine::{CAPTURES, Ran, Volume, command, enter, recorder, run};

/// A volume of two data columns and one of parity, with the captures of the demo, whose second
/// member lies on a file system that can hang.
struct Rig {
    volume: Volume,
    members: [String; 3],
    disk: Hanging,
}

impl Rig {
    fn new() -> Option<Self> {
        let volume = Volume::empty();
        let members = [0, 1, 2].map(|number| {
            std::fs::create_dir(volume.file(&format!("mount-{number}"))).unwrap();
            volume.file(&format!("mount-{number}/disk"))
        });
        let create = ["create", &members[0], "--size", "80M", "--piece", "256K", "--sparse"];
        let others = ["--parity", "1", "--member", &members[1], "--member", &members[2]];
        run(&[&create[..], &others].concat()).done();
        run(&["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index]).done();
        let disk = Hanging::over(Path::new(&members[1]))?;
        let rig = Self { volume, members, disk };
        // It is a disk like any other.
        let json = run(&["inspect", &rig.members[0], "--json"]).done().out;
        let inspected: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(inspected["members"][1]["state"], "whole", "{json}");
        Some(rig)
    }

    /// Readers of all kinds, and the name of what each writes.
    fn readers(&self, name: &str) -> Vec<Vec<String>> {
        let volume = self.members[0].clone();
        let own = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let index = &*self.volume.index;
        let file = self.volume.file(&format!("{name}.pcapng"));
        vec![
            own(&["inspect", &volume]),
            own(&["status", &volume]),
            own(&["verify", &volume]),
            own(&["find", &volume, "--index-dir", index]),
            own(&["extract", &volume, "ip or ip6", "-w", &file, "--index-dir", index]),
        ]
    }

    fn record(&self) -> Vec<String> {
        let words = ["record", &self.members[0], "--read", CAPTURES, "--pool", "4M", "--json"];
        let words = [&words[..], &["--index-dir", &self.volume.index]].concat();
        words.into_iter().map(str::to_owned).collect()
    }
}

fn start(words: &[&str]) -> Child {
    let mut command = command(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn words(owned: &[String]) -> Vec<&str> {
    owned.iter().map(String::as_str).collect()
}

/// Waits for the end; a process that takes longer is killed and fails the test.
#[track_caller]
fn end_within(mut child: Child, limit: Duration) -> Ran {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > limit {
            child.kill().unwrap();
            let ran = Ran::new(&child.wait_with_output().unwrap());
            panic!("it did not end within {limit:?}: {ran:?}");
        }
        sleep(Duration::from_millis(20));
    }
    Ran::new(&child.wait_with_output().unwrap())
}

/// A member that does not answer is 10 s late once, and 1 s again now and then; the rest is for a
/// busy machine.
const LATE: Duration = Duration::from_secs(30);

fn goes_on_without_it(name: &str, hang: Hang) {
    if !enter("true", &format!("hang::{name}")) {
        return;
    }
    let Some(rig) = Rig::new() else { return };
    run(&words(rig.readers("before").last().unwrap())).done();
    rig.disk.hang(&[hang]);
    let running: Vec<_> =
        rig.readers("hanging").iter().map(|it| (it.clone(), start(&words(it)))).collect();
    for (words, child) in running {
        let ran = end_within(child, LATE);
        assert_eq!(ran.code, Some(1), "{words:?}: {ran:?}");
        assert!(ran.err.contains("mount-1/disk did not answer within 10 s"), "{words:?}: {ran:?}");
    }
    let extracted = |name: &str| std::fs::read(rig.volume.file(&format!("{name}.pcapng"))).unwrap();
    assert!(extracted("hanging") == extracted("before"), "the others have it all");
    let ran = end_within(start(&words(&rig.record())), LATE);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["members"][0]["member"], 1, "{report}");
    rig.disk.answer();
    let again = run(&words(&rig.record())).done();
    assert!(again.out.contains("returned"), "{again:?}");
}

#[test]
fn a_member_whose_name_hangs_is_left_out() {
    goes_on_without_it("a_member_whose_name_hangs_is_left_out", Hang::Look);
}

#[test]
fn a_member_that_hangs_when_it_is_opened_is_left_out() {
    goes_on_without_it("a_member_that_hangs_when_it_is_opened_is_left_out", Hang::Open);
}

#[test]
fn a_member_that_hangs_when_it_is_read_is_left_out() {
    goes_on_without_it("a_member_that_hangs_when_it_is_read_is_left_out", Hang::Read);
}

#[test]
fn a_stop_is_heard_while_a_member_hangs() {
    if !enter("true", "hang::a_stop_is_heard_while_a_member_hangs") {
        return;
    }
    let Some(rig) = Rig::new() else { return };
    for hang in [Hang::Look, Hang::Open, Hang::Read] {
        rig.disk.hang(&[hang]);
        let all = [rig.readers("interrupted"), vec![rig.record()]].concat();
        let running: Vec<_> = all.iter().map(|it| (it, start(&words(it)))).collect();
        sleep(Duration::from_secs(2));
        for (_, child) in &running {
            stop(child);
        }
        for (words, child) in running {
            let ran = end_within(child, Duration::from_secs(3));
            assert_ne!(ran.code, Some(0), "{words:?}: {ran:?}");
        }
        rig.disk.answer();
    }
    run(&words(&rig.record())).done();
}

impl Rig {
    /// The verbs that are not among [`Self::readers`]; what they write has `name` in its name.
    fn others(&self, name: &str) -> Vec<Vec<String>> {
        let own = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let [volume, hung, third] = &self.members;
        let new = |what: &str| self.volume.file(&format!("{name}-{what}"));
        let (salvaged, grown, replaced) = (new("salvaged"), new("grown"), new("replaced"));
        let mut all = vec![
            own(&["scrub", volume, "--dry-run"]),
            own(&["scrub", volume]),
            own(&["salvage", volume, hung, third, "-w", &salvaged]),
            own(&["create", hung, "--size", "80M"]),
            own(&["grow", volume, &grown, "--sparse"]),
            own(&["replace", volume, "2", &replaced, "--sparse"]),
            own(&["top", volume, "--once", "--for", "1s"]),
        ];
        if cfg!(feature = "sql") {
            all.push(own(&["sql", volume, "SELECT count(*) FROM sessions"]));
        }
        all
    }
}

/// One after the other: those that write exclude each other. They go on without the member, or say
/// in one line which it is.
#[test]
fn every_other_verb_ends_within_its_deadline_while_a_member_hangs() {
    if !enter("true", "hang::every_other_verb_ends_within_its_deadline_while_a_member_hangs") {
        return;
    }
    for hang in [Hang::Look, Hang::Open, Hang::Read] {
        let Some(rig) = Rig::new() else { return };
        rig.disk.hang(&[hang]);
        for words_of in rig.others("late") {
            let ran = end_within(start(&words(&words_of)), 2 * LATE);
            // 1 with what the others have, 3 where nothing can be done without it.
            assert!(matches!(ran.code, Some(1 | 3)), "{hang:?}, {words_of:?}: {ran:?}");
            let line = "mount-1/disk did not answer within 10 s";
            assert_eq!(ran.err.matches(line).count(), 1, "{hang:?}, {words_of:?}: {ran:?}");
        }
        // What it was for: parity has all of it.
        let [volume, hung, third] = &rig.members;
        let file = rig.volume.file("without-it");
        let ran = run(&["salvage", volume, hung, third, "-w", &file, "--json"]);
        let report: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((ran.code, &report["lost_packets"]), (Some(1), &json!(0)), "{hang:?}: {ran:?}");
        let beside = rig.volume.file("of-the-others");
        run(&["salvage", volume, third, "-w", &beside]).done();
        assert!(std::fs::read(&file).unwrap() == std::fs::read(&beside).unwrap(), "{hang:?}");
        rig.disk.answer();
    }
}

#[test]
fn every_other_verb_hears_a_stop_while_a_member_hangs() {
    if !enter("true", "hang::every_other_verb_hears_a_stop_while_a_member_hangs") {
        return;
    }
    let Some(rig) = Rig::new() else { return };
    for hang in [Hang::Look, Hang::Open, Hang::Read] {
        rig.disk.hang(&[hang]);
        for words_of in rig.others(&format!("stopped-{hang:?}")) {
            let child = start(&words(&words_of));
            sleep(Duration::from_secs(1));
            stop(&child);
            let ran = end_within(child, Duration::from_secs(4));
            assert_ne!(ran.code, Some(0), "{hang:?}, {words_of:?}: {ran:?}");
        }
        rig.disk.answer();
    }
}

/// The disk that hangs is the one that is named: as the volume, or to be taken in.
#[test]
fn a_named_disk_that_hangs_is_said_in_time() {
    if !enter("true", "hang::a_named_disk_that_hangs_is_said_in_time") {
        return;
    }
    let Some(rig) = Rig::new() else { return };
    let [volume, hung, _] = &rig.members;
    for hang in [Hang::Look, Hang::Open] {
        let new = |name: &str| rig.volume.file(&format!("{hang:?}-{name}"));
        let (file, other) = (new("named.pcapng"), new("other"));
        rig.disk.hang(&[hang]);
        let mut all = vec![
            vec!["find", hung, "--member", volume],
            vec!["extract", hung, "ip", "-w", &file, "--member", volume],
            vec!["qualify", hung, "--json"],
            vec!["grow", volume, hung, "--force"],
            vec!["replace", volume, "2", hung, "--force"],
            vec!["create", &other, "--member", hung, "--size", "80M", "--force"],
        ];
        if cfg!(feature = "sql") {
            all.push(vec!["sql", hung, "SELECT count(*) FROM sessions", "--member", volume]);
        }
        let running: Vec<_> = all.iter().map(|words| (words, start(words))).collect();
        for (words, child) in running {
            let ran = end_within(child, 2 * LATE);
            assert!(matches!(ran.code, Some(1 | 3)), "{hang:?}, {words:?}: {ran:?}");
            let line = "mount-1/disk did not answer within 10 s";
            assert!(ran.err.contains(line), "{hang:?}, {words:?}: {ran:?}");
        }
        rig.disk.answer();
        run(&["verify", volume]).done();
    }
}

/// A disk that takes no write, and is to be a member: it is named, and the volume is as before.
#[test]
fn a_new_member_that_takes_no_write_is_said_in_time() {
    if !enter("true", "hang::a_new_member_that_takes_no_write_is_said_in_time") {
        return;
    }
    let Some(rig) = Rig::new() else { return };
    let [volume, hung, _] = &rig.members;
    let other = rig.volume.file("other");
    run(&["create", &other, "--size", "80M", "--piece", "256K", "--sparse"]).done();
    let packets = |name: &str| {
        let found = run(&["find", &other, "--json", "--index-dir", &rig.volume.file(name)]);
        (found.code, found.out)
    };
    run(&["record", &other, "--read", CAPTURES, "--index-dir", &rig.volume.file("index")]).done();
    let before = packets("before");
    for words in [
        vec!["grow", &other, hung, "--force"],
        vec!["create", hung, "--member", volume, "--size", "80M", "--force"],
    ] {
        rig.disk.hang(&[Hang::Write]);
        let child = start(&words);
        let ran = end_within(child, 3 * LATE);
        rig.disk.answer();
        assert!(matches!(ran.code, Some(1 | 3)), "{words:?}: {ran:?}");
        assert!(ran.err.contains("mount-1/disk did not answer"), "{words:?}: {ran:?}");
        assert_eq!(packets(words[0]), before, "{words:?}");
        run(&["verify", &other]).done();
    }
}

/// A call that hangs in the kernel keeps the process, but not who reads what it has printed.
#[test]
fn who_reads_an_answer_has_its_end_while_the_kernel_keeps_the_process() {
    let name = "who_reads_an_answer_has_its_end_while_the_kernel_keeps_the_process";
    if !enter("true", &format!("hang::{name}")) {
        return;
    }
    let Some(rig) = Rig::new() else { return };
    let (volume, index) = (&*rig.members[0], &*rig.volume.index);
    let (mut recorder, mut input) = recorder(volume, index, &["--flush-interval", "1s"]);
    rig.disk.hang(&[Hang::Write, Hang::Read]);
    input.write_all(&std::fs::read(format!("{CAPTURES}/dns.pcap")).unwrap()).unwrap();
    for words in [vec!["status", volume], vec!["find", volume, "udp", "--index-dir", index]] {
        let mut child = start(&words);
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (told, ends) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut all = String::new();
            let read = out.read_to_string(&mut all).and_then(|_| err.read_to_string(&mut all));
            drop(told.send(read.map(|_| all)));
        });
        let said = ends.recv_timeout(LATE).expect("both pipes end").unwrap();
        assert!(said.contains("did not answer within 10 s"), "{words:?}: {said}");
        rig.disk.answer();
        child.wait().unwrap();
        rig.disk.hang(&[Hang::Write, Hang::Read]);
    }
    rig.disk.answer();
    drop(input);
    recorder.wait().unwrap();
}

/// A terminal that closes hangs up twice, which is one wish; a person who says it again means now.
#[test]
fn a_second_wish_to_stop_ends_a_recording_at_once_and_nothing_acknowledged_is_lost() {
    let name = "a_second_wish_to_stop_ends_a_recording_at_once_and_nothing_acknowledged_is_lost";
    if !enter("true", &format!("hang::{name}")) {
        return;
    }
    let Some(rig) = Rig::new() else { return };
    let (volume, index) = (&*rig.members[0], &*rig.volume.index);
    let (mut recorder, mut input) = recorder(volume, index, &[]);
    let found = || {
        let find = ["find", volume, "udp", "--csv", "--index-dir", index];
        run(&find).out.lines().count()
    };
    let (before, begun) = (found(), Instant::now());
    input.write_all(&std::fs::read(format!("{CAPTURES}/dns.pcap")).unwrap()).unwrap();
    // The question makes them durable.
    while found() == before {
        assert!(begun.elapsed() < LATE, "the recorder acknowledges");
    }
    let acknowledged = found();
    rig.disk.hang(&[Hang::Write]);
    // `timeout` sends two at once.
    let number = recorder.id();
    let both = format!("kill -TERM {number}; kill -INT {number}; kill -TERM {number}");
    assert!(std::process::Command::new("sh").args(["-c", &both]).status().unwrap().success());
    for signal in ["-HUP", "-HUP", "-USR1", "-HUP"] {
        signal_to(&recorder, signal);
        sleep(Duration::from_millis(100));
        assert!(recorder.try_wait().unwrap().is_none(), "it waits for the disk");
    }
    signal_to(&recorder, "-QUIT");
    let ended = end_within(recorder, Duration::from_secs(3));
    drop(input);
    assert_eq!(ended.code, Some(130), "{ended:?}");
    rig.disk.answer();
    run(&["verify", volume]).done();
    assert_eq!(found(), acknowledged);
}

fn signal_to(child: &Child, signal: &str) {
    let number = child.id().to_string();
    let status = std::process::Command::new("kill").args([signal, &number]).status();
    assert!(status.unwrap().success());
}

/// Not by SIGINT, which is ignored in whatever a shell starts in the background.
fn stop(child: &Child) {
    signal_to(child, "-TERM");
}

const PACKETS: u32 = 20_000;

/// Imports packets and has the member hang when half of them are on their way.
fn import_while_it_hangs(rig: &Rig, hang: impl FnOnce(&Hanging)) -> Ran {
    let more = ["--pool", "2M", "--json"];
    let (recorder, mut input) = recorder(&rig.members[0], &rig.volume.index, &more);
    let (all, half) = (from_50_ports(PACKETS), from_50_ports(PACKETS / 2).len());
    let (before, after) = all.split_at(half);
    input.write_all(before).unwrap();
    sleep(Duration::from_secs(1));
    hang(&rig.disk);
    let after = after.to_vec();
    let feeding = std::thread::Builder::new().spawn(move || input.write_all(&after)).unwrap();
    let ran = end_within(recorder, Duration::from_secs(40));
    drop(feeding.join());
    ran
}

fn check_import(rig: &Rig, ran: &Ran) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&report["offered"], &report["stored"]), (&PACKETS.into(), &PACKETS.into()));
    assert_eq!(report["members"][0]["change"], "expelled", "{report}");
    let file = rig.volume.file("imported.pcap");
    let query = ["extract", &rig.members[0], "host 192.168.0.1", "-w", &file, "--format", "pcap"];
    let extract = start(&[&query[..], &["--index-dir", &rig.volume.index]].concat());
    let extracted = end_within(extract, LATE);
    let packets = std::fs::read(&file).unwrap();
    let each = 16 + 1000;
    assert_eq!(packets.len(), 24 + each * usize::try_from(PACKETS).unwrap(), "{extracted:?}");
    assert!(extracted.err.contains("complete"), "{extracted:?}");
}

#[test]
fn an_import_goes_on_while_writes_to_a_member_hang() {
    if !enter("true", "hang::an_import_goes_on_while_writes_to_a_member_hang") {
        return;
    }
    let Some(rig) = Rig::new() else { return };
    let ran = import_while_it_hangs(&rig, |disk| disk.hang(&[Hang::Write]));
    check_import(&rig, &ran);
}

#[test]
fn an_import_goes_on_and_ends_while_a_member_does_nothing_any_more() {
    if !enter("true", "hang::an_import_goes_on_and_ends_while_a_member_does_nothing_any_more") {
        return;
    }
    let Some(rig) = Rig::new() else { return };
    let ran = import_while_it_hangs(&rig, Hanging::hang_all);
    check_import(&rig, &ran);
}

/// What a running recorder says of the members that it goes on without, and what is to be done, by
/// `status`; asked until it is as it should be.
fn status_when(volume: &str, is_so: impl Fn(&Value) -> bool) -> (Value, String) {
    let begun = Instant::now();
    loop {
        let json = run(&["status", volume, "--json"]);
        let status: Value = serde_json::from_str(&json.out).unwrap_or_else(|_| panic!("{json:?}"));
        if is_so(&status) {
            return (status, run(&["status", volume]).out);
        }
        assert!(begun.elapsed() < LATE, "{status}");
        sleep(Duration::from_millis(200));
    }
}

fn away(status: &Value) -> usize {
    status["members_away"].as_array().map_or(0, Vec::len)
}

/// A recorder that gets packets in small portions, so that each trouble is met, until it ends.
struct Fed {
    volume: String,
    recorder: Child,
    _feeding: std::thread::JoinHandle<()>,
}

impl Fed {
    fn new(volume: &str, index: &str) -> Self {
        let (recorder, mut input) = recorder(volume, index, &["--pool", "4M", "--json"]);
        let packets = from_50_ports(PACKETS);
        let feeding = std::thread::Builder::new().spawn(move || {
            let mut portions = packets.chunks(packets.len() / 400);
            while portions.next().is_some_and(|portion| input.write_all(portion).is_ok()) {
                sleep(Duration::from_millis(500));
            }
        });
        let fed = Self { volume: volume.to_owned(), recorder, _feeding: feeding.unwrap() };
        status_when(volume, |status| status["offered"].as_u64() > Some(0));
        fed
    }

    /// What is said of the second member, by which it goes.
    fn goes_without(&self, [change, comeback, to_do]: [&str; 3]) {
        let (status, text) = status_when(&self.volume, |status| away(status) == 1);
        let gone = &status["members_away"][0];
        assert_eq!((&gone["member"], &gone["comeback"]), (&1.into(), &comeback.into()), "{status}");
        assert_eq!(gone["change"], change, "{status}");
        let said = gone["text"].as_str().unwrap();
        assert!(text.contains(said) && text.contains(to_do), "{text}");
        assert!(text.contains("with the recorder stopped: wirespool replace"), "{text}");
        let is_event = |event: &Value| event["text"].as_str().is_some_and(|it| it.ends_with(said));
        assert!(status["events"].as_array().unwrap().iter().any(is_event), "{status}");
    }

    /// It is back, and the recorder ends in order.
    fn comes_back(self) {
        status_when(&self.volume, |status| away(status) == 0);
        stop(&self.recorder);
        let ran = end_within(self.recorder, LATE);
        assert!(ran.out.contains("returned"), "{ran:?}");
    }
}

#[test]
fn a_member_that_was_away_comes_back_by_itself_and_status_says_so() {
    let volume = Volume::empty();
    let members = [0, 1, 2].map(|number| volume.file(&format!("disk-{number}")));
    let create = ["create", &members[0], "--size", "80M", "--piece", "256K", "--sparse"];
    let others = ["--parity", "1", "--member", &members[1], "--member", &members[2]];
    run(&[&create[..], &others].concat()).done();
    run(&["record", &members[0], "--read", CAPTURES, "--index-dir", &volume.index]).done();
    let elsewhere = volume.file("elsewhere");
    std::fs::rename(&members[1], &elsewhere).unwrap();
    let fed = Fed::new(&members[0], &volume.index);
    fed.goes_without(["absent", "by_itself", "bring member 1 back"]);
    std::fs::rename(&elsewhere, &members[1]).unwrap();
    fed.comes_back();
}

#[test]
fn a_member_that_failed_a_write_comes_back_once_it_was_gone_and_status_says_so() {
    let name = "a_member_that_failed_a_write_comes_back_once_it_was_gone_and_status_says_so";
    if !enter("true", &format!("hang::{name}")) {
        return;
    }
    let Some(rig) = Rig::new() else { return };
    let fed = Fed::new(&rig.members[0], &rig.volume.index);
    rig.disk.fail(&[Hang::Write]);
    let to_do = "takes member 1 back once it was unplugged and is there again";
    fed.goes_without(["expelled", "once_gone", to_do]);
    // That it takes writes again is not known, and not tried.
    rig.disk.fail(&[]);
    sleep(Duration::from_secs(5));
    status_when(&fed.volume, |status| away(status) == 1);
    rig.disk.fail(&[Hang::Look]);
    sleep(Duration::from_secs(5));
    rig.disk.fail(&[]);
    fed.comes_back();
}
