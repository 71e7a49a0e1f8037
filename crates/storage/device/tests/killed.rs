//! A writer that is killed leaves its member free as soon as its last writes have ended: this test
//! binary, started again with a variable set, writes until it is killed.

#![expect(clippy::disallowed_methods, reason = "tests sleep")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(
    clippy::print_stdout,
    reason = "the parent waits for a line, and tests say why they did not run"
)]

mod common;

use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::Loop;
use device::{CreateOptions, Options, Pool, create_file, open};

const VARIABLE: &str = "DEVICE_TEST_MEMBER";
const PIECE: usize = 1 << 20;
const READY: &str = "eight writes are done";

#[test]
fn the_child_writes_until_it_is_killed() {
    let Ok(path) = std::env::var(VARIABLE) else { return };
    let pool = Pool::new(8, PIECE).unwrap();
    let options = Options::default();
    let mut device = open(Path::new(&path), &options).unwrap();
    let mut completions = Vec::new();
    for number in 0_u64.. {
        let buffer = loop {
            match pool.take() {
                Some(buffer) => break buffer,
                None => device.reap(Some(Duration::from_secs(1)), &mut completions),
            }
        };
        device.submit_write(
            number,
            number % 8 * u64::try_from(PIECE).unwrap(),
            buffer.freeze(),
            PIECE,
        );
        completions.clear();
        if number == 16 {
            println!("\n{READY}");
        }
    }
}

/// Kills a writer of `path` some time after its first writes, and opens the member at once.
fn check_killed(path: &Path, after: Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_child_writes_until_it_is_killed", "--nocapture"])
        .env(VARIABLE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == READY), "the child wrote");
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    open(path, &Options::default()).unwrap();
}

#[test]
fn the_member_of_a_killed_writer_can_be_opened() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("member");
    let options = CreateOptions { size_bytes: 8 << 20, sparse: true, overwrite: false };
    create_file(&path, &options, &mut |_, _| ControlFlow::Continue(())).unwrap();
    for millis in 0..10 {
        check_killed(&path, Duration::from_millis(millis));
    }
    let Some(device) = Loop::attach(&path, &[]) else { return };
    for millis in 0..10 {
        check_killed(&device.0, Duration::from_millis(millis));
    }
}
