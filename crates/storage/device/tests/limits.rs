//! What the limits of a process take away is replaced, and said. One test, because limits belong to
//! the process.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use device::{CreateOptions, Options, Pool, create_file, open};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

fn lower(resource: Resource, current: u64) -> Rlimit {
    let before = getrlimit(resource);
    setrlimit(resource, Rlimit { current: Some(current), maximum: before.maximum }).unwrap();
    before
}

/// A write arrives, and what is replaced is said.
fn check_notes(path: &Path, expected: Option<&str>) {
    let pool = Pool::new(4, 1 << 20).unwrap();
    let buffer = pool.take().unwrap().freeze();
    let mut device = open(path, &Options::default()).unwrap();
    let notes = device.notes();
    assert_eq!(notes.len(), usize::from(expected.is_some()), "{notes:?}");
    assert!(notes.iter().all(|note| expected.is_some_and(|it| note.contains(it))), "{notes:?}");
    device.submit_write(1, 0, buffer, 1 << 20);
    let mut completions = Vec::new();
    device.reap(Some(Duration::from_secs(10)), &mut completions);
    assert!(matches!(completions.as_slice(), [only] if only.result.is_ok()), "{completions:?}");
}

#[test]
fn limits_are_worked_around_and_noted() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("member");
    let options = CreateOptions { size_bytes: 4 << 20, sparse: true, overwrite: false };
    create_file(&path, &options, &mut |_, _| ControlFlow::Continue(())).unwrap();

    // Without the capability to lock any amount of memory, 64 KiB hold a ring, and no pool.
    let mut weaker = capabilities(None).unwrap();
    weaker.effective -= CapabilitySet::IPC_LOCK;
    set_capabilities(None, weaker).unwrap();
    let before = lower(Resource::Memlock, 64 << 10);
    check_notes(&path, None);
    setrlimit(Resource::Memlock, before).unwrap();

    // Space for the member's own descriptor and none for a ring.
    let next_descriptor = rustix::io::dup(rustix::stdio::stdin()).unwrap().as_raw_fd();
    let before = lower(Resource::Nofile, u64::try_from(next_descriptor).unwrap() + 1);
    check_notes(&path, Some("writing with 4 threads instead"));
    setrlimit(Resource::Nofile, before).unwrap();
}
