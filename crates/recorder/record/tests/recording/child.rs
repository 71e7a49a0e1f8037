//! A recorder in a process of its own, to be killed: this test binary, started again with a
//! variable set.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use core::ops::ControlFlow;
use core::time::Duration;

use host::SystemClock;
use record::{Input, Options, Progress, record};
use units::{Clock, Sleep, Timestamp};

use crate::volumes::options;

const TASK: &str = "RECORD_TEST_TASK";
/// How much faster time passes for the child: it reports its progress fifty times a second, cuts
/// its columns and shows signs of life as often.
const USE_THREADS: i64 = 10;

/// What a child records.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) volume: PathBuf,
    pub(crate) inputs: Vec<PathBuf>,
    pub(crate) with_index: bool,
    pub(crate) cut_after_ms: u64,
}

impl Task {
    pub(crate) fn options(&self) -> Options {
        let mut options = options(&self.volume, Input::Files(self.inputs.clone()));
        options.cut_after = Duration::from_millis(self.cut_after_ms);
        if !self.with_index {
            options.sessions = None;
        }
        options
    }

    fn to_text(&self) -> String {
        let paths = [&self.volume].into_iter().chain(&self.inputs);
        let paths: Vec<&str> = paths.map(|path| path.to_str().unwrap()).collect();
        format!("{}\n{}\n{}", self.with_index, self.cut_after_ms, paths.join("\n"))
    }

    fn from_text(text: &str) -> Self {
        let mut lines = text.lines();
        Self {
            with_index: lines.next().unwrap().parse().unwrap(),
            cut_after_ms: lines.next().unwrap().parse().unwrap(),
            volume: lines.next().unwrap().into(),
            inputs: lines.map(PathBuf::from).collect(),
        }
    }
}

/// A clock that hurries.
struct Hurried(i64);

impl Clock for Hurried {
    fn realtime(&self) -> Timestamp {
        SystemClock.realtime()
    }

    fn boottime_ns(&self) -> i64 {
        self.0 + (SystemClock.boottime_ns() - self.0) * USE_THREADS
    }
}

impl Sleep for Hurried {
    fn sleep_until(&self, until_ns: i64) {
        SystemClock.sleep_until(self.0 + (until_ns - self.0) / USE_THREADS + 1);
    }
}

#[test]
fn the_child_records_what_it_is_told_to() {
    let Ok(task) = std::env::var(TASK) else { return };
    // The line that names the test has no end yet.
    println!();
    let mut tell = |progress: &Progress| {
        println!("stored {}", progress.total.stored);
        ControlFlow::Continue(())
    };
    let clock = Hurried(SystemClock.boottime_ns());
    match record(&Task::from_text(&task).options(), &clock, &mut tell) {
        Ok(report) => println!("stored {}", report.total.stored),
        Err(error) => println!("failed {error}"),
    }
}

/// A child that records.
pub(crate) struct Recorder {
    child: Child,
    output: ChildStdout,
}

impl Recorder {
    /// Starts a child; its standard input is for the caller to feed.
    pub(crate) fn start(task: &Task) -> (Self, ChildStdin) {
        Self::start_as(&mut Command::new(std::env::current_exe().unwrap()), task)
    }

    /// Starts a child by a command that runs this binary.
    pub(crate) fn start_as(command: &mut Command, task: &Task) -> (Self, ChildStdin) {
        let mut child = command
            .args(["--exact", "child::the_child_records_what_it_is_told_to", "--nocapture"])
            .env(TASK, task.to_text())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        (Self { child, output }, input)
    }

    /// Waits until the child has reported this many acknowledged packets.
    pub(crate) fn wait_for(&mut self, stored: u64) {
        let mut text = Vec::new();
        let mut byte = [0];
        while !text.ends_with(b"\n") || told(&text).stored < stored {
            assert_eq!(self.output.read(&mut byte).unwrap(), 1, "the child goes on");
            text.push(byte[0]);
        }
    }

    /// Kills the child with SIGKILL.
    pub(crate) fn kill(mut self) -> Told {
        self.child.kill().unwrap();
        self.wait()
    }

    /// Waits for the child's end.
    pub(crate) fn wait(mut self) -> Told {
        let mut text = Vec::new();
        self.output.read_to_end(&mut text).unwrap();
        self.child.wait().unwrap();
        told(&text)
    }
}

/// What a child said in whole lines.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Told {
    /// Packets acknowledged.
    pub(crate) stored: u64,
    /// Why it failed.
    pub(crate) failure: Option<String>,
}

fn told(output: &[u8]) -> Told {
    let end = output.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
    let text = String::from_utf8_lossy(&output[..end]);
    let find = |word| text.lines().rev().find_map(|line| line.strip_prefix(word));
    Told {
        stored: find("stored ").map_or(0, |count| count.parse().unwrap()),
        failure: find("failed ").map(str::to_owned),
    }
}

/// Opens and lets go of the member: what a killed writer had in flight has ended then.
pub(crate) fn await_release(volume: &Path) {
    drop(device::open(volume, &device::Options::default()).unwrap());
}
