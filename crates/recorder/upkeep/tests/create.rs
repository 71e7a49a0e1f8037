//! What creating leaves behind, and what inspecting and verifying say of it.

use core::ops::ControlFlow;
use std::path::{Path, PathBuf};

use units::{ManualClock, Timestamp};
use upkeep::{CreateOptions, Error, create, inspect, verify};
use volume::Usable;

const MIB: u64 = 1 << 20;

fn options(volume: PathBuf) -> CreateOptions {
    CreateOptions {
        missing: 0,
        spares: Vec::new(),
        members: vec![volume],
        parity_columns: 0,
        size_bytes: Some(32 * MIB + 5),
        piece_bytes: 64 << 10,
        zones: None,
        extent_bytes: None,
        usable: Usable::default(),
        qualified: None,
        max_age: None,
        recipients: Vec::new(),
        sparse: false,
        raw: false,
        force: false,
    }
}

fn clock() -> ManualClock {
    ManualClock::new(Timestamp(1_700_000_000_000_000_000))
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("our own folder").count()
}

#[test]
fn a_new_volume_is_written_whole_and_holds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path().join("volume"));
    let mut seen = Vec::new();
    let created = create(&options, &clock(), &mut |done, total| {
        seen.push((done, total));
        ControlFlow::Continue(())
    });
    let created = created.unwrap();
    assert_eq!(created.members[0].size_bytes, 32 * MIB, "whole rows");
    assert_eq!(seen.last(), Some(&(32 * MIB, 32 * MIB)));
    assert!(seen.is_sorted());

    let inspection = inspect(&options.members[0], &[]).unwrap();
    let found = volume::open_superblocks(&options.members[0], &[]).unwrap();
    assert_eq!(*found.superblock(), created.superblock);
    assert_eq!(
        (inspection.volume_id, inspection.geometry),
        (found.superblock().volume_id, created.superblock.geometry)
    );
    assert_eq!((inspection.tail, inspection.slots_used, inspection.clean_stop), (None, 0, false));
    assert!(inspection.recordings.is_empty() && inspection.reach_ns.is_none());
    let verification =
        verify(&options.members[0], &[], &mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(verification.is_clean && verification.is_complete);
    assert_eq!(verification.read.slots, 0);
}

#[test]
fn two_volumes_share_neither_identity_nor_key() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name| {
        let options = CreateOptions { sparse: true, ..options(folder.path().join(name)) };
        create(&options, &clock(), &mut |_, _| ControlFlow::Continue(())).unwrap().superblock
    };
    let (one, other) = (make("one"), make("other"));
    assert_ne!(one.volume_id, other.volume_id);
    assert!(one.head_key != other.head_key);
    assert_ne!(one.members[0].uuid, other.members[0].uuid);
}

#[test]
fn breaking_off_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path().join("volume"));
    let result = create(&options, &clock(), &mut |_, _| ControlFlow::Break(()));
    assert!(matches!(result, Err(Error::Device(device::Error::Interrupted))), "{result:?}");
    assert_eq!(files(folder.path()), 0);
}

#[test]
fn a_refusal_touches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let run = |options: &CreateOptions| {
        create(options, &clock(), &mut |_, _| panic!("nothing is written")).unwrap_err()
    };
    let small = CreateOptions { size_bytes: Some(MIB), ..options(path.clone()) };
    assert!(matches!(run(&small), Error::Volume { source: volume::Error::TooSmall { .. }, .. }));
    let unsized_file = CreateOptions { size_bytes: None, ..options(path.clone()) };
    assert!(matches!(run(&unsized_file), Error::NoSize { .. }));
    let elsewhere = options(folder.path().join("absent/volume"));
    assert!(matches!(run(&elsewhere), Error::NoDirectory { .. }));
    assert_eq!(files(folder.path()), 0);
    std::fs::write(&path, b"kept").unwrap();
    let forced = CreateOptions { force: true, ..options(path.clone()) };
    assert!(matches!(run(&forced), Error::UnknownFile { .. }));
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
}
