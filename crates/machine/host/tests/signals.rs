//! Signals, each case in a process of its own: this test binary, started again with a variable set.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "helpers of tests; one waits")]

use std::process::Command;
use std::time::Duration;

use host::StopFlag;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::raise;

const VARIABLE: &str = "HOST_TEST_SIGNAL_COUNT";

/// The exit status of a process that gets so many signals.
fn status_after(signals: &str) -> Option<i32> {
    let this = std::env::current_exe().unwrap();
    let mut child = Command::new(this);
    child.args(["--exact", "the_child_gets_signals"]).env(VARIABLE, signals);
    child.output().unwrap().status.code()
}

#[test]
fn the_child_gets_signals() {
    let Ok(signals) = std::env::var(VARIABLE) else { return };
    let flag = StopFlag::install().unwrap();
    assert!(!flag.is_set());
    for signal in signals.split(',') {
        if signal == "later" {
            std::thread::sleep(Duration::from_millis(250));
            continue;
        }
        raise(if signal == "INT" { SIGINT } else { SIGTERM }).unwrap();
        assert!(flag.is_set());
    }
}

#[test]
fn the_first_signal_sets_the_flag_and_the_second_ends_the_process() {
    for (signals, status) in [
        ("INT", 0),
        ("TERM", 0),
        ("INT,later,INT", 130),
        ("TERM,later,INT", 130),
        ("INT,later,TERM", 130),
        // One wish, said to a process and to its group.
        ("INT,INT", 0),
        ("TERM,INT,TERM", 0),
    ] {
        assert_eq!(status_after(signals), Some(status), "{signals}");
    }
}

#[test]
fn a_flag_without_signals_is_set_by_hand() {
    let flag = StopFlag::default();
    let clone = flag.clone();
    clone.set();
    assert!(flag.is_set());
}
