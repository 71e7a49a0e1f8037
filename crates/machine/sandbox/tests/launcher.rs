//! Children, their launcher and the process above, killed in turn: the others hear of it, and
//! no process is left behind.
//!
//! This program is all of them: it starts itself with the name of a part.

#![expect(clippy::disallowed_methods, reason = "tests sleep and measure")]
#![expect(clippy::exit, reason = "parts of the tests end so")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::print_stdout, reason = "tests say how they ended")]

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child as Recorder, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sandbox::{Child, Ended, Error, How, IndexerLimits, Launcher, Program, Request};

/// A machine that is busy with something else is not a failure.
const PATIENCE: Duration = Duration::from_secs(20);

type Test = (&'static str, fn());
type Start<'a> = &'a dyn Fn(&Request<'_>) -> Child;

const TESTS: [Test; 15] = [
    ("descriptors_arrive_in_their_order_and_nothing_else_does", descriptors_arrive),
    ("an_end_is_reported_as_it_was", an_end_is_reported),
    ("what_a_child_used_is_told", use_is_told),
    ("a_child_that_hangs_is_killed", a_child_that_hangs_is_killed),
    ("a_child_ends_with_its_value", a_child_ends_with_its_value),
    ("a_child_outlives_the_thread_that_asked_for_it", a_child_outlives_its_thread),
    ("signals_that_ask_to_end_are_for_the_one_above", signals_are_for_the_one_above),
    ("only_what_was_named_is_started", only_what_was_named_is_started),
    ("no_more_children_than_anybody_needs", no_more_children_than_needed),
    ("a_command_gets_its_variables_and_takes_its_time", a_command_takes_its_time),
    ("starting_again_and_again_leaves_nothing_open", starting_again_leaves_nothing_open),
    ("an_indexer_of_a_confined_launcher_gives_up_as_much_as_any", an_indexer_is_confined),
    ("nobody_outlives_a_killed_recorder", nobody_outlives_a_killed_recorder),
    ("a_killed_launcher_takes_its_children_along_and_has_a_successor", a_killed_launcher),
    ("nobody_becomes_a_child_without_a_parent", nobody_becomes_a_child_without_a_parent),
];

fn main() {
    let mut words = std::env::args().skip(1);
    let (part, what) = (words.next(), words.next().unwrap_or_default());
    match part.as_deref() {
        Some("launch") => sandbox::serve().unwrap_or_else(|_| std::process::exit(9)),
        Some("child") => child(&what),
        Some("recorder") => recorder(&what),
        filter => {
            let filter = filter.filter(|word| !word.starts_with('-')).unwrap_or_default();
            for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(filter)) {
                test();
                println!("test {name} ... ok");
            }
        }
    }
}

fn words(words: &[&str]) -> Program {
    Program::Myself(words.iter().map(OsString::from).collect())
}

/// What a child does in these tests.
fn child(what: &str) {
    // The one above may be dead by now.
    let Ok(mut handed) = sandbox::handed() else { std::process::exit(9) };
    match what {
        "exit" => std::process::exit(7),
        "abort" => std::process::abort(),
        "work" => {
            let until = Instant::now() + Duration::from_millis(50);
            let room = vec![1_u8; 64 << 20];
            while Instant::now() < until {}
            assert!(room.iter().all(|byte| *byte == 1));
        }
        "indexer" => {
            let limits = IndexerLimits { memory_bytes: 1 << 30 };
            let notes = sandbox::confine_indexer(limits, &handed);
            let mut said = UnixStream::from(handed.descriptors.pop().unwrap());
            said.write_all(format!("{}\n", notes.join("; ")).as_bytes()).unwrap();
            // It stays until it has been looked at.
            said.read_exact(&mut [0]).unwrap();
        }
        "facts" => {
            let mut second = UnixStream::from(handed.descriptors.pop().unwrap());
            let mut first = UnixStream::from(handed.descriptors.pop().unwrap());
            assert!(handed.descriptors.is_empty());
            let variables = std::env::vars_os().count();
            let folder = std::env::current_dir().unwrap();
            let open = fs::read_dir("/proc/self/fd").unwrap().count();
            writeln!(first, "first").unwrap();
            writeln!(second, "second {variables} {} {open}", folder.display()).unwrap();
        }
        // It says that it is there.
        _ => {
            let said = handed.descriptors.pop().map(UnixStream::from);
            said.map(|mut said| said.write_all(b"!").unwrap()).unwrap_or_default();
            std::thread::sleep(Duration::from_mins(10));
        }
    }
}

fn hanging() -> Program {
    words(&["child", "hang"])
}

fn launcher(programs: Vec<Program>) -> Launcher {
    Launcher::start("launch", programs).unwrap()
}

/// Both ways to start a child.
fn both(program: &Program, check: &dyn Fn(Start<'_>)) {
    let launcher = launcher(vec![words(&["child", "another"]), program.clone()]);
    check(&|request| launcher.spawn(request).unwrap());
    check(&|request| sandbox::spawn(request).unwrap());
}

fn ended(child: &mut Child) -> Ended {
    child.wait_timeout(PATIENCE).unwrap().expect("it ends in time")
}

fn is_there(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie is one that its parent has not waited for: no process runs.
    !state.is_empty() && !state.rsplit(") ").next().unwrap().starts_with('Z')
}

fn wait_until(what: &str, is_so: &dyn Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// A child that hangs, and is past its beginning.
fn started(start: Start<'_>) -> Child {
    let (mut here, there) = UnixStream::pair().unwrap();
    let child = start(&Request::new(&hanging(), &[there.as_fd()]));
    drop(there);
    here.read_exact(&mut [0]).unwrap();
    child
}

fn descriptors_arrive() {
    both(&words(&["child", "facts"]), &|start| {
        let (first, there) = UnixStream::pair().unwrap();
        let (second, also) = UnixStream::pair().unwrap();
        let program = words(&["child", "facts"]);
        let mut child = start(&Request::new(&program, &[there.as_fd(), also.as_fd()]));
        drop((there, also));
        let read = |mut stream: UnixStream| {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(read(first), "first\n");
        // Open are the three standard ones, the two, and the folder that was counted.
        assert_eq!(read(second), "second 0 / 6\n");
        assert_eq!(ended(&mut child).how, How::Exited(0));
    });
}

fn an_end_is_reported() {
    both(&words(&["child", "exit"]), &|start| {
        let mut child = start(&Request::new(&words(&["child", "exit"]), &[]));
        assert_eq!(ended(&mut child).how, How::Exited(7));
        assert!(!child.is_running().unwrap());
        assert_eq!(ended(&mut child).how, How::Exited(7), "it stays so");
    });
    both(&words(&["child", "abort"]), &|start| {
        let mut child = start(&Request::new(&words(&["child", "abort"]), &[]));
        let by_itself = How::Signalled { signal: 6, by_us: false };
        assert_eq!(ended(&mut child).how, by_itself);
    });
    both(&hanging(), &|start| {
        let mut child = started(start);
        signal(child.pid(), Signal::KILL);
        let by_another = How::Signalled { signal: 9, by_us: false };
        assert_eq!(ended(&mut child).how, by_another);
    });
}

fn use_is_told() {
    both(&words(&["child", "work"]), &|start| {
        let mut child = start(&Request::new(&words(&["child", "work"]), &[]));
        let ended = ended(&mut child);
        assert_eq!(ended.how, How::Exited(0));
        assert!(ended.cpu >= Duration::from_millis(20), "{ended:?}");
        assert!((64 << 20..512 << 20).contains(&ended.peak_bytes), "{ended:?}");
    });
}

fn a_child_that_hangs_is_killed() {
    both(&hanging(), &|start| {
        let mut child = started(start);
        assert!(child.is_running().unwrap());
        let before = Instant::now();
        assert_eq!(child.wait_timeout(Duration::from_millis(20)).unwrap(), None);
        assert!(before.elapsed() >= Duration::from_millis(20));
        child.kill();
        let by_us = How::Signalled { signal: 9, by_us: true };
        assert_eq!(ended(&mut child).how, by_us);
        // One that is stopped, too.
        let mut child = started(start);
        signal(child.pid(), Signal::STOP);
        child.kill();
        assert_eq!(ended(&mut child).how, by_us);
    });
}

fn a_child_ends_with_its_value() {
    both(&hanging(), &|start| {
        let child = started(start);
        let pid = child.pid();
        assert!(is_there(pid));
        drop(child);
        wait_until("it is gone", &|| !is_there(pid));
    });
}

fn a_child_outlives_its_thread() {
    both(&hanging(), &|start| {
        // The thread that asked is gone, and the child is not.
        let mut child = started(start);
        assert_eq!(child.wait_timeout(Duration::from_millis(50)).unwrap(), None);
    });
    let asked = || {
        let (mut here, there) = UnixStream::pair().unwrap();
        let child = sandbox::spawn(&Request::new(&hanging(), &[there.as_fd()])).unwrap();
        here.read_exact(&mut [0]).unwrap();
        child
    };
    let mut child = std::thread::scope(|scope| scope.spawn(asked).join().unwrap());
    assert_eq!(child.wait_timeout(Duration::from_millis(100)).unwrap(), None);
}

fn signals_are_for_the_one_above() {
    let launcher = launcher(vec![hanging()]);
    let mut child = started(&|request| launcher.spawn(request).unwrap());
    for each in [Signal::INT, Signal::TERM, Signal::HUP] {
        signal(launcher.pid(), each);
        signal(child.pid(), each);
    }
    std::thread::sleep(Duration::from_millis(50));
    assert!(child.is_running().unwrap() && is_there(launcher.pid()));
}

fn only_what_was_named_is_started() {
    let launcher = launcher(vec![words(&["child", "exit"])]);
    for program in [hanging(), Program::Shell("true".into()), words(&["child", "exit", "more"])] {
        let answer = launcher.spawn(&Request::new(&program, &[]));
        assert!(matches!(answer, Err(Error::NotNamed)), "{answer:?}");
    }
}

fn no_more_children_than_needed() {
    let launcher = launcher(vec![hanging()]);
    let start = || launcher.spawn(&Request::new(&hanging(), &[]));
    let mut children: Vec<_> = (0..16).map(|_| start().unwrap()).collect();
    assert!(matches!(start(), Err(Error::NotStarted { .. })));
    let mut first = children.remove(0);
    first.kill();
    assert!(matches!(ended(&mut first).how, How::Signalled { .. }));
    children.push(start().unwrap());
}

fn a_command_takes_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let (said, late) = (folder.path().join("said"), folder.path().join("late"));
    let script = format!(
        "echo \"$WIRESPOOL_TEXT\" > {}; sleep 0.2; echo \"$HOME_OF_TEST\" > {}; exit 3",
        said.display(),
        late.display()
    );
    let command = Program::Shell(script.into());
    let environment = [("WIRESPOOL_TEXT", "two  words".to_owned())];
    let request = Request { environment: &environment, ..Request::new(&command, &[]) };
    let launcher = launcher(vec![command.clone()]);
    let mut child = launcher.spawn(&request).unwrap();
    assert_eq!(ended(&mut child).how, How::Exited(3));
    assert_eq!(fs::read_to_string(&said).unwrap(), "two  words\n");
    // It goes on when no process waits for it, and when the launcher is gone.
    fs::remove_file(&late).unwrap();
    drop(launcher.spawn(&request).unwrap());
    drop(launcher);
    wait_until("the command ends by itself", &|| late.exists());
}

fn starting_again_leaves_nothing_open() {
    let launcher = launcher(vec![words(&["child", "exit"])]);
    // Only root looks into a launcher.
    let open = |pid: &str| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let again = || {
        let mut child = launcher.spawn(&Request::new(&words(&["child", "exit"]), &[])).unwrap();
        assert_eq!(ended(&mut child).how, How::Exited(7));
    };
    again();
    let before = (open("self"), open(&launcher.pid().to_string()));
    let begun = Instant::now();
    (0..100).for_each(|_| again());
    println!("a child from start to report: {:?}", begun.elapsed() / 100);
    // It reports first, and clears up then.
    let now = || (open("self"), open(&launcher.pid().to_string()));
    wait_until("no more is open than before", &|| now().0 <= before.0 && now().1 <= before.1);
}

/// What the kernel says of a process.
fn state_of(pid: u32) -> Vec<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let names = ["Uid:", "Gid:", "Groups:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:"];
    let lines = status.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
    let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
    lines.map(str::to_owned).chain([score]).collect()
}

fn an_indexer_is_confined() {
    let indexer = words(&["child", "indexer"]);
    let launcher = launcher(vec![indexer.clone()]);
    let look = |start: Start<'_>| {
        let (mut here, there) = UnixStream::pair().unwrap();
        let mut child = start(&Request::new(&indexer, &[there.as_fd()]));
        drop(there);
        let mut notes = String::new();
        BufReader::new(here.try_clone().unwrap()).read_line(&mut notes).unwrap();
        let state = state_of(child.pid());
        here.write_all(b"!").unwrap();
        assert_eq!(ended(&mut child).how, How::Exited(0), "{notes}");
        (notes, state)
    };
    let mine = look(&|request| sandbox::spawn(request).unwrap());
    let its = look(&|request| launcher.spawn(request).unwrap());
    // It starts nothing before it is confined.
    let before = state_of(launcher.pid());
    look(&|request| launcher.spawn(request).unwrap());
    assert!(mine.1.iter().any(|line| line.trim() == "1000"), "{mine:?}");
    assert_eq!(mine, its);
    // The launcher itself is as before, confined, and not the first to end.
    assert_eq!(before, state_of(launcher.pid()));
    let own = fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    assert!(before.contains(&"NoNewPrivs:\t1".to_owned()) && before.last() == Some(&own));
    println!("below a launcher: {its:?}");
    // One that has a command keeps its rights for it.
    let command = Program::Shell("true".into());
    let free = self::launcher(vec![command.clone()]);
    ended(&mut free.spawn(&Request::new(&command, &[])).unwrap());
    assert!(state_of(free.pid()).contains(&"NoNewPrivs:\t0".to_owned()));
}

/// In a process of its own: has a launcher and children, says their numbers, and waits.
fn recorder(marker: &str) {
    let hanging = words(&["child", "hang", marker]);
    let launcher = launcher(vec![hanging.clone()]);
    println!("{}", launcher.pid());
    std::io::stdout().flush().unwrap();
    let start = || launcher.spawn(&Request::new(&hanging, &[])).unwrap();
    let direct = || sandbox::spawn(&Request::new(&hanging, &[])).unwrap();
    let children: Vec<_> = [start(), start(), direct(), start()].into();
    println!("ready {}", children.len());
    std::io::stdout().flush().unwrap();
    std::thread::sleep(Duration::from_mins(10));
}

fn start_recorder(marker: &str) -> (Recorder, BufReader<std::process::ChildStdout>) {
    let mut recorder = Command::new("/proc/self/exe");
    let mut recorder = recorder.args(["recorder", marker]).stdout(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(recorder.stdout.take().unwrap());
    (recorder, said)
}

/// Processes with the marker among their arguments, and launchers of that recorder.
fn left(marker: &str, recorder: u32) -> Vec<u32> {
    let numbers = fs::read_dir("/proc").unwrap();
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_one = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let has_marker = words.split(|byte| *byte == 0).any(|word| word == marker.as_bytes());
        has_marker && *pid != recorder && is_there(*pid)
    };
    numbers.filter(is_one).collect()
}

fn nobody_outlives_a_killed_recorder() {
    for round in 0..40_u64 {
        let marker = format!("marker-{}-{round}", std::process::id());
        let (mut recorder, mut said) = start_recorder(&marker);
        let mut launcher = String::new();
        said.read_line(&mut launcher).unwrap();
        let launcher: u32 = launcher.trim().parse().unwrap();
        // From the very first moment of the children on, to long after it.
        std::thread::sleep(Duration::from_micros(round * 250));
        if round % 4 == 3 {
            signal(launcher, Signal::STOP);
        }
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        wait_until("the launcher is gone", &|| !is_there(launcher));
        wait_until("the children are gone", &|| left(&marker, recorder.id()).is_empty());
    }
}

fn a_killed_launcher() {
    let launcher = launcher(vec![hanging()]);
    let start = || launcher.spawn(&Request::new(&hanging(), &[]));
    let mut children: Vec<_> = (0..4).map(|_| start().unwrap()).collect();
    signal(launcher.pid(), Signal::KILL);
    for child in &mut children {
        assert_eq!(ended(child).how, How::Unknown);
        wait_until("a child is gone", &|| !is_there(child.pid()));
    }
    // The one in reserve starts the next ones, until it has ended, too.
    let first = launcher.pid();
    let mut next = start().unwrap();
    assert_ne!(launcher.pid(), first);
    assert!(next.is_running().unwrap());
    signal(launcher.pid(), Signal::KILL);
    assert_eq!(ended(&mut next).how, How::Unknown);
    wait_until("a child is gone", &|| !is_there(next.pid()));
    assert!(matches!(start(), Err(Error::LauncherGone)));
    let before = Instant::now();
    drop(launcher);
    assert!(before.elapsed() < PATIENCE);
}

fn nobody_becomes_a_child_without_a_parent() {
    for part in [&["launch"][..], &["child", "exit"]] {
        let mut command = Command::new("/proc/self/exe");
        let input = [Stdio::null(), Stdio::piped()];
        for input in input {
            let command = command.args(part).stdin(input).stderr(Stdio::null());
            assert_ne!(command.status().unwrap().code(), Some(0));
        }
    }
    assert!(Path::new("/proc/self/exe").exists());
}
