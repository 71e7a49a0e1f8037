//! A configuration file: checked, explained, and what it lists kept running.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::lines::Lines;
use crate::machine::{BINARY, PAIR, Ran, Volume, enter, run, write_key};

const PATIENCE: Duration = Duration::from_secs(30);

/// A configuration and what runs by it.
pub(crate) struct Supervised {
    pub(crate) volume: Volume,
    file: String,
    pub(crate) child: Child,
    lines: Lines,
}

impl Supervised {
    fn start(volume: Volume, text: &str) -> Self {
        Self::with_input(volume, text, Stdio::null())
    }

    pub(crate) fn with_input(volume: Volume, text: &str, input: Stdio) -> Self {
        let with_input = |command: &mut Command| {
            command.stdin(input);
        };
        Self::as_run_by(BINARY, with_input, volume, text)
    }

    /// The same, by a program that runs it.
    fn as_run_by(
        program: &str,
        prepare: impl FnOnce(&mut Command),
        volume: Volume,
        text: &str,
    ) -> Self {
        let file = volume.file("wirespool.toml");
        fs::write(&file, text).unwrap();
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        prepare(&mut command);
        command.args(["serve", "--config", &file]).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = Lines::of(child.stderr.take().unwrap());
        Self { volume, file, child, lines }
    }

    /// Reads lines up to one that contains these words.
    #[track_caller]
    pub(crate) fn hear(&mut self, words: &str) -> String {
        self.lines.hear(words, PATIENCE)
    }

    pub(crate) fn reload(&self, text: &str) {
        fs::write(&self.file, text).unwrap();
        signal("-HUP", self.child.id());
    }

    pub(crate) fn end(&mut self) -> Option<i32> {
        signal("-TERM", self.child.id());
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(started.elapsed() < PATIENCE, "it does not end: {:?}", self.lines.said);
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let pids = children(self.child.id());
        drop(self.child.kill());
        drop(self.child.wait());
        for pid in pids {
            signal("-KILL", pid);
        }
    }
}

pub(crate) fn signal(signal: &str, pid: u32) {
    let mut command = Command::new("kill");
    command.args([signal, &pid.to_string()]).stderr(Stdio::null());
    command.status().unwrap();
}

fn children(pid: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    listed.unwrap_or_default().split_whitespace().map(|id| id.parse().unwrap()).collect()
}

/// The process that a line names.
pub(crate) fn process(line: &str) -> u32 {
    line.trim().rsplit(' ').next().unwrap().parse().unwrap()
}

fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(20));
    }
}

fn config(text: &str, verb: &str) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wirespool.toml");
    fs::write(&file, text).unwrap();
    run(&["config", verb, file.to_str().unwrap()])
}

const GOOD: &str = "[recorder.office]\nvolume = '/data/spool'\ninterface = ['eth0', 'eth1']\n\
                    class = 'port 443=64k'\nmax_age = '30d'\nerase = false\n\n\
                    [api]\ntoken_file = '/data/tokens'\nworkers = 8\n";

#[test]
fn a_file_without_a_fault_has_notes_and_is_shown_whole() {
    let good = GOOD;
    let checked = config(good, "check").done();
    assert!(checked.out.ends_with(": 1 recorder and the API, no fault\n"), "{checked:?}");
    // They may be there where the file goes.
    let elsewhere = good.replace("eth0", "absent0").replace("eth1", "absent1");
    let checked = config(&elsewhere, "check").done();
    for note in [
        "line 2: volume: /data/spool is not there\n",
        "line 3: interface: this machine has no interface absent0\n",
        "line 9: token_file: /data/tokens is not there\n",
    ] {
        assert!(checked.err.contains(note), "{checked:?}");
    }
    assert_eq!(checked.err.matches("note: ").count(), 4, "{checked:?}");
    let relative = config(&good.replace("/data/spool", "spool"), "check").done();
    assert!(relative.err.contains("spool counts from the folder"), "{relative:?}");
    let shown = config(good, "show").done().out;
    for line in [
        "interface = [\"eth0\", \"eth1\"]",
        "erase = \"off\"",
        "# snaplen = \"0\"",
        "# max_time = \"15m\"",
        "name = \"office\"",
        // What the API serves is what is recorded.
        "volumes = [\"/data/spool\"]",
        "# wirespool serve --token-file=/data/tokens --workers=8 -- /data/spool",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert_eq!(config(&shown, "show").done().out, shown);
}

#[test]
fn a_file_is_checked_with_a_line_for_each_fault() {
    let good = GOOD;
    for (text, words) in [
        (good.replace("max_age", "max_aeg"), ":5: "),
        (good.replace("max_age", "max_aeg"), "did you mean max_age?"),
        (good.replace("'30d'", "'30 dogs'"), ":5: max_age: \"30 dogs\" is not right: "),
        (good.replace("workers = 8", "workers = 0"), ":10: workers: \"0\" is not right: "),
        (good.replace("'30d'", "'1 x'\nsnaplen = -1\nsource = 'x'"), ":6: snaplen: \"-1\" is not"),
        (good.replace("'30d'", "'1 x'\nsnaplen = -1\nsource = 'x'"), ":7: source: \"x\" is not"),
        // What the verbs would say when they are started, again and again.
        (
            good.replace("443=64k", "443 and hots=64k"),
            ":4: [recorder.office] filter \"port 443 and",
        ),
        (
            good.replace("erase", "filter = 'hots 1'\nerase"),
            ":6: [recorder.office] filter \"hots 1\"",
        ),
        (good.replace("erase", "name = ''\nerase"), ":6: [recorder.office] name needs a name"),
        (good.replace("token_file = '/data/tokens'", ""), ": [api] whoever may connect"),
        (good.replace("token_file = '/data/tokens'", ""), "give token_file FILE (`"),
        (good.replace("workers = 8", "listen = '0.0.0.0:8420'"), ":10: [api] "),
        (good.replace("workers = 8", "listen = '0.0.0.0:8420'"), "(tls_cert, tls_key)"),
        (good.replace("workers = 8", "stenographer = '127.0.0.1:1234'"), ":10: [api] "),
        (
            good.replace("workers = 8", "requests_file = '/r'"),
            ":10: [api] requests_file needs audit",
        ),
        // What is wrong elsewhere hides none of it.
        (good.replace("443=64k", "443 and hots=64k").replace("30d", "3 dogs"), ":4: "),
        (good.replace("443=64k", "443 and hots=64k").replace("30d", "3 dogs"), ":5: max_age"),
        (
            good.replace("443=64k", "x y=64k").replace("erase", "filter = 'hots 1'\nerase"),
            ":4: [recorder.office] filter \"port x y\"",
        ),
        (
            good.replace("443=64k", "x y=64k").replace("erase", "filter = 'hots 1'\nerase"),
            ":6: [recorder.office] filter \"hots 1\"",
        ),
        (good.replace("workers = 8", "workers = 100000"), "a whole number from 1 to 1024"),
        (good.replace("workers = 8", "connections = 99999999"), "from 1 to 65536"),
        (
            format!("{good}\n[recorder.second]\nvolume = '/data/spool'\ninterface = 'eth2'\n"),
            ":13: volume: /data/spool is that of [recorder.office] already",
        ),
        (good.replace("interface", "no_index = true\nread"), "read is no key of [recorder]"),
        (good.replace("volume =", "#"), "[recorder.office] lacks volume"),
        (good.replace("interface =", "#"), "[recorder.office] lacks interface"),
        (good.replace("erase", "hold = 'port 53'\nerase"), "[recorder.office] lacks hold_dir"),
        (good.replace("erase", "hold = 'hots 1'\nhold_dir = '/x'\nerase"), "did you mean"),
        ("[api]\ntoken_file = '/data/tokens'\n".to_owned(), "[api] lacks volumes"),
        (String::new(), "neither [recorder.NAME] nor [api]"),
    ] {
        let refused = config(&text, "check");
        let err = refused.err.replace(": line ", ":");
        assert!(refused.code == Some(2) && err.contains(words), "{words}: {refused:?}");
        assert!(!err.contains("\\n"), "a line for each: {err}");
    }
    run(&["config", "explain", "max_agee"]).fails_with(2, "did you mean max_age?");
    let one = run(&["config", "explain", "recorder.max_age"]).done();
    assert!(one.out.starts_with("recorder.max_age = TIME\n    Give out no packet"), "{one:?}");
    run(&["serve", "--config", "/nonexistent.toml"]).fails_with(3, "/nonexistent.toml");
}

#[test]
fn the_document_has_every_key() {
    let reference = run(&["generate", "config"]).done().out;
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/config.md");
    let document = fs::read_to_string(document).unwrap();
    assert!(document.contains(reference.trim()), "docs/config.md needs this part:\n{reference}");
}

#[test]
fn what_a_file_lists_is_kept_running_and_changed_without_a_stop() {
    let test = "supervised::what_a_file_lists_is_kept_running_and_changed_without_a_stop";
    if !enter(PAIR, test) {
        return;
    }
    let volume = Volume::empty();
    let other = volume.file("lab");
    run(&["create", &other, "--size", "64M", "--piece", "256K", "--sparse"]).done();
    let tokens = volume.file("tokens");
    write_key(&tokens, "");
    let office = format!(
        "[recorder.office]\nvolume = '{}'\ninterface = 'taker'\npool = '4M'\nkernel_ring = '1M'\n\
         index_dir = '{}'\n",
        volume.path, volume.index
    );
    let audit = volume.file("audit.jsonl");
    let api =
        format!("[api]\nlisten = '127.0.0.1:0'\ntoken_file = '{tokens}'\naudit = '{audit}'\n");
    let mut it = Supervised::start(volume, &format!("{office}\n{api}"));
    let recorder = process(&it.hear("recorder.office: process"));
    let service = process(&it.hear("api: process"));
    it.hear("listening at http://127.0.0.1:");
    // What ends is started again, and nothing else is.
    signal("-KILL", service);
    it.hear("api: was ended after");
    it.hear("listening at ");
    assert!(is_running(recorder), "{:?}", it.lines.said);
    signal("-KILL", recorder);
    it.hear("recorder.office: was ended after");
    it.hear("recorder.office: recording taker into ");
    let parent = it.child.id();
    until("a new recorder", || children(parent).len() == 2);
    // A file with a fault changes nothing.
    it.reload(&office.replace("pool", "pol"));
    it.hear("the new configuration is not used");
    it.hear("did you mean pool?");
    let running = children(parent);
    assert_eq!(running.len(), 2);
    // What records is not stopped for other words: another one with those takes over.
    let lab = format!(
        "[recorder.lab]\nvolume = '{other}'\ninterface = 'taker'\npool = '4M'\nkernel_ring = '1M'\n"
    );
    let new_api = format!("{api}workers = 2\n");
    let new_office = office.replace("'4M'", "'8M'");
    it.reload(&format!("{new_office}{lab}{new_api}"));
    it.hear("recorder.office: pool changed");
    it.hear(" takes over");
    it.hear("api: started again with other volumes, workers");
    let lab_process = process(&it.hear("recorder.lab: process"));
    let has_new_words = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|it| it.contains("--pool=8M"))
    };
    until("the new words", || children(parent).iter().any(has_new_words));
    until("the end of who had the old ones", || children(parent).len() == 3);
    assert!(!children(parent).iter().all(|pid| running.contains(pid)));
    it.hear("listening at ");
    // What is taken out ends in order.
    it.reload(&format!("{new_office}{new_api}"));
    it.hear("recorder.lab: taken out");
    until("the end of the one that is taken out", || !is_running(lab_process));
    signal("-HUP", parent);
    it.hear("nothing is new");
    let all = children(parent);
    let code = it.end();
    assert_eq!(code, Some(0), "{:?}", it.lines.said);
    assert!(!all.into_iter().any(is_running));
    // One chain, through a kill and a start with other words.
    run(&["audit", "verify", &audit]).done();
    let shown = run(&["audit", "show", &audit]).done().out;
    assert_eq!(shown.lines().filter(|line| line.ends_with(" started")).count(), 3, "{shown}");
    let found = run(&["status", &it.volume.path]);
    assert!(found.out.contains("whole"), "{found:?}");
}

#[test]
fn a_recorder_goes_on_when_what_started_it_is_killed() {
    if !enter(PAIR, "supervised::a_recorder_goes_on_when_what_started_it_is_killed") {
        return;
    }
    let volume = Volume::empty();
    let text = format!(
        "[recorder.office]\nvolume = '{}'\ninterface = 'taker'\npool = '4M'\nkernel_ring = '1M'\n",
        volume.path
    );
    let mut it = Supervised::start(volume, &text);
    let recorder = process(&it.hear("recorder.office: process"));
    it.hear("recording taker into ");
    it.child.kill().unwrap();
    it.child.wait().unwrap();
    sleep(Duration::from_millis(500));
    assert!(is_running(recorder));
    signal("-INT", recorder);
    until("the end of the recorder", || !is_running(recorder));
}

/// One recording, through two services: a second recorder would get nothing, and stopping the first
/// one would lose what comes meanwhile.
#[test]
fn the_next_service_takes_over_a_recorder_whose_service_was_killed() {
    let name = "supervised::the_next_service_takes_over_a_recorder_whose_service_was_killed";
    if !enter(PAIR, name) {
        return;
    }
    let volume = Volume::empty();
    let text = format!(
        "[recorder.office]\nvolume = '{}'\ninterface = 'taker'\npool = '4M'\nkernel_ring = '1M'\n",
        volume.path
    );
    let mut first = Supervised::start(volume, &text);
    let recorder = process(&first.hear("recorder.office: process"));
    first.hear("recording taker into ");
    first.child.kill().unwrap();
    first.child.wait().unwrap();

    let again = |text: &str| {
        fs::write(&first.file, text).unwrap();
        let mut command = Command::new(BINARY);
        command.args(["serve", "--config", &first.file]).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = Lines::of(child.stderr.take().unwrap());
        (child, lines)
    };
    let (mut second, mut lines) = again(&text);
    let said = lines.hear("goes on, which a service that has ended had started", PATIENCE);
    assert!(said.contains(&format!("process {recorder} ")), "{said}");
    assert!(!said.contains("other keys"), "{said}");
    assert!(is_running(recorder) && children(second.id()).is_empty());
    // It is known to the one that took it over.
    fs::write(&first.file, text.replace("'4M'", "'8M'")).unwrap();
    signal("-HUP", second.id());
    lines.hear("pool changed", PATIENCE);
    lines.hear(" takes over", PATIENCE);
    until("the end of who had the old keys", || !is_running(recorder));
    let recorder = children(second.id())[0];
    lines.hear("taken over from the recorder before", PATIENCE);
    second.kill().unwrap();
    second.wait().unwrap();

    let (mut third, mut lines) = again(&text);
    let said = lines.hear("it has other keys than this file", PATIENCE);
    assert_eq!(process(&said), recorder, "{said}");
    // It ends as one of its own does, and is started again.
    signal("-INT", recorder);
    lines.hear("recorder.office: ended; it is started again", PATIENCE);
    lines.hear("recording taker into ", PATIENCE);
    let own = children(third.id());
    signal("-KILL", third.id());
    third.wait().unwrap();

    let (mut fourth, mut lines) = again(&text);
    let said = lines.hear("goes on, which a service that has ended had started", PATIENCE);
    assert!(!said.contains("other keys"), "{said}");
    signal("-TERM", fourth.id());
    lines.hear("ended in order", PATIENCE);
    assert_eq!(fourth.wait().unwrap().code(), Some(0));
    assert!(own.len() == 1 && !own.into_iter().any(is_running), "{:?}", lines.said);
    // None of them ended without its end.
    run(&["find", &first.volume.path, "", "--json"]).done();
}

/// What somebody else runs is named, and is not ended with the service.
#[test]
fn a_recorder_that_no_service_has_started_is_left_alone() {
    let name = "supervised::a_recorder_that_no_service_has_started_is_left_alone";
    if !enter(PAIR, name) {
        return;
    }
    let volume = Volume::empty();
    let mut command = Command::new(BINARY);
    command.args(["record", &volume.path, "--interface", "taker", "--pool", "4M"]);
    let mut other = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = Lines::of(other.stderr.take().unwrap());
    lines.hear("recording taker into ", PATIENCE);
    let text = format!(
        "[recorder.office]\nvolume = '{}'\ninterface = 'taker'\npool = '4M'\nkernel_ring = '1M'\n",
        volume.path
    );
    let mut it = Supervised::start(volume, &text);
    let said = it.hear("it is left alone, and nothing is started beside it");
    assert!(said.contains(&format!("process {} ", other.id())), "{said}");
    signal("-INT", other.id());
    assert!(other.wait().unwrap().success());
    it.hear("recorder.office: recording taker into ");
    assert_eq!(it.end(), Some(0), "{:?}", it.lines.said);
}

/// What others leave behind is waited for, and how a process of its own ended is not lost to that.
#[test]
fn the_first_process_of_a_container_leaves_no_zombie() {
    let name = "supervised::the_first_process_of_a_container_leaves_no_zombie";
    if !enter(PAIR, name) {
        return;
    }
    let volume = Volume::empty();
    let tokens = volume.file("tokens");
    write_key(&tokens, "");
    let text = format!(
        "[recorder.office]\nvolume = '{}'\ninterface = 'taker'\npool = '4M'\nkernel_ring = '1M'\n\
         [api]\nlisten = '127.0.0.1:0'\ntoken_file = '{tokens}'\n",
        volume.path
    );
    let in_container = |command: &mut Command| {
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", BINARY]);
    };
    let mut it = Supervised::as_run_by("unshare", in_container, volume, &text);
    let both = ["recording taker into ", "listening at http://127.0.0.1:"];
    it.lines.hear_all(&both, PATIENCE);
    let [first] = children(it.child.id())[..] else { panic!("one process in it") };
    let is_zombie = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
    };
    for _ in 0..3 {
        // Children of the recorder have children, and those of the API are in groups of their own.
        let own = children(first);
        let orphans: Vec<u32> = own.iter().flat_map(|pid| children(*pid)).collect();
        let of_orphans: Vec<u32> = orphans.iter().flat_map(|pid| children(*pid)).collect();
        assert!(!orphans.is_empty());
        for pid in &own {
            signal("-KILL", *pid);
        }
        it.lines.hear_all(&both, PATIENCE);
        let all = [own, orphans, of_orphans].concat();
        until("what has ended is gone", || !all.iter().any(is_zombie));
        until("new ones", || children(first).len() == 2);
    }
    let all = children(first);
    signal("-TERM", first);
    until("the end", || it.child.try_wait().unwrap().is_some());
    assert!(!all.into_iter().any(is_running), "{:?}", it.lines.said);
}

/// A service of the API, and its process.
fn api_alone() -> (Supervised, u32) {
    let volume = Volume::empty();
    let tokens = volume.file("tokens");
    write_key(&tokens, "");
    let text = format!(
        "[api]\nvolumes = ['{}']\nlisten = '127.0.0.1:0'\ntoken_file = '{tokens}'\n",
        volume.path
    );
    let mut it = Supervised::start(volume, &text);
    let api = process(&it.hear("api: process"));
    it.hear("listening at http://127.0.0.1:");
    (it, api)
}

/// The next parent could not start an API of its own beside it.
#[test]
fn an_api_ends_in_order_when_what_started_it_is_killed() {
    let (mut it, api) = api_alone();
    it.child.kill().unwrap();
    it.child.wait().unwrap();
    it.hear("who kept it running has ended");
    it.hear("ended in order");
    until("the end of the API", || !is_running(api));
}

/// An API at a port that is in use: the one before goes on, and the audit does not fill up.
#[test]
fn an_api_that_cannot_listen_gets_its_keys_back_and_writes_no_audit() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let api = |volume: &Volume, listen: &str| {
        let (tokens, audit) = (volume.file("tokens"), volume.file("audit.jsonl"));
        write_key(&tokens, "");
        let text = format!(
            "[api]\nvolumes = ['{}']\nlisten = '{listen}'\ntoken_file = '{tokens}'\n\
             audit = '{audit}'\n",
            volume.path
        );
        (text, audit)
    };
    let volume = Volume::empty();
    let (text, audit) = api(&volume, "127.0.0.1:0");
    let (changed, _) = api(&volume, &taken);
    let mut it = Supervised::start(volume, &text);
    it.hear("listening at http://127.0.0.1:");
    let second = run(&["serve", "--config", &it.file]);
    second.is_refused("another service runs with this file");
    it.reload(&changed);
    it.hear("api: started again with other listen");
    it.hear("it goes on with listen as before");
    it.hear("listening at http://127.0.0.1:");
    let starts = || {
        let shown = run(&["audit", "show", &audit]).done().out;
        shown.lines().filter(|line| line.ends_with(" started")).count()
    };
    assert_eq!(starts(), 2, "{:?}", it.lines.said);
    assert_eq!(it.end(), Some(0), "{:?}", it.lines.said);

    let volume = Volume::empty();
    let (text, audit) = api(&volume, &taken);
    let mut it = Supervised::start(volume, &text);
    for _ in 0..3 {
        it.hear("cannot listen at");
    }
    assert!(!fs::exists(&audit).unwrap(), "{:?}", it.lines.said);
}

#[test]
fn a_program_with_wrong_words_waits_until_they_change_and_others_are_tried_again() {
    let volume = Volume::empty();
    let absent = volume.file("absent");
    let text = format!("[recorder.office]\nvolume = '{absent}'\ninterface = 'lo'\n");
    let mut it = Supervised::start(volume, &text);
    it.hear("recorder.office: process");
    // It does not exist: that may change by itself.
    it.hear("with exit code 3; it is started again");
    it.reload(&text.replace(&absent, &it.volume.path).replace("'lo'", "'lo'\nhold = 'port 53'"));
    it.hear("the new configuration is not used");
    it.hear("lacks hold_dir");
    assert_eq!(it.end(), Some(0), "{:?}", it.lines.said);
}

/// A process that is stopped neither ends nor answers.
#[test]
fn a_program_that_is_stopped_is_named_until_it_goes_on() {
    let (mut it, api) = api_alone();
    signal("-STOP", api);
    let said = it.hear("was stopped by a signal and does nothing");
    assert!(said.contains(&format!("api: process {api} ")), "{said}");
    signal("-CONT", api);
    it.hear(&format!("api: process {api} is not stopped any more"));
    signal("-STOP", api);
    it.hear("was stopped by a signal and does nothing");
    signal("-KILL", api);
    it.hear("api: was ended after");
    it.hear("listening at http://127.0.0.1:");
    assert_eq!(it.end(), Some(0), "{:?}", it.lines.said);
}
