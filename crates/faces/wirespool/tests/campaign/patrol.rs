//! Scrubbing beside a recorder, on a schedule.

use std::os::unix::fs::FileExt;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::feed::{Fed, done, run};

const PIECE_BYTES: u64 = 64 << 10;

/// Rows in eight slots of one member are not what they were.
fn damage(member: &str) {
    let file = std::fs::File::options().write(true).open(member).unwrap();
    for slot in 3..11 {
        let row = (2 << 20) + slot * PIECE_BYTES + (slot % 3) * 4096;
        file.write_all_at(&[0x5a; 4096], row).unwrap();
    }
}

/// Records for a while; gives the remarks of the report.
fn record(arguments: &[&str], time: Duration) -> String {
    let mut fed = Fed::start(arguments, Duration::from_millis(20));
    thread::sleep(time);
    let sent = fed.end();
    let output = fed.child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["stored"], sent, "{report}");
    report["notes"].to_string()
}

#[test]
fn a_recorder_repairs_what_rots_and_keeps_to_its_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).into_os_string().into_string().unwrap();
    let members = ["member-0", "member-1", "member-2"].map(file);
    let create = ["create", &members[0], "--size", "96M", "--piece", "64K", "--sparse"];
    let others = ["--parity", "1", "--member", &members[1], "--member", &members[2]];
    done(&[&create[..], &others].concat());
    let index = file("index");
    let plain = ["record", &members[0], "--pool", "4M", "--index-dir", &index];
    let scrubbing = [&plain[..], &["--scrub-every", "1h"]].concat();
    record(&plain, Duration::from_millis(1500));
    damage(&members[1]);
    assert_eq!(run(&["scrub", &members[0], "--dry-run"]).0, Some(1));

    let mut notes = String::new();
    for _ in 0..20 {
        notes += &record(&scrubbing, Duration::from_secs(2));
        let (code, text) = run(&["scrub", &members[0], "--dry-run"]);
        if code == Some(0) {
            break;
        }
        println!("not yet: {text}");
        // A slow machine: the next recorder goes on from where this one was.
    }
    assert!(notes.contains("places repaired"), "{notes}");
    done(&["scrub", &members[0], "--dry-run"]);

    // The pass is done and the next one not due.
    damage(&members[2]);
    record(&scrubbing, Duration::from_millis(500));
    assert_eq!(run(&["scrub", &members[0], "--dry-run"]).0, Some(1));
    assert!(done(&["scrub", &members[0]]).contains("repaired"));
}
