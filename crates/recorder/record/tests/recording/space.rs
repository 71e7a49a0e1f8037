//! Members that cannot be written: one clear line each, and nothing acknowledged is lost.

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use format::directory::GapCause;
use host::SystemClock;
use record::record;

use crate::child::{Recorder, Task};
use crate::namespace::{enter, is_root};
use crate::numbered::{capture, feed, identify};
use crate::volumes::{assert_clean, folder, new_volume, open, run, stripes};

fn task(volume: &Path, input: &Path) -> Task {
    Task {
        volume: volume.to_owned(),
        inputs: vec![input.to_owned()],
        with_index: true,
        cut_after_ms: 1000,
    }
}

/// Records a few packets, and gives the reason why that cannot be.
fn refusal(volume: &Path) -> String {
    let folder = folder();
    let file = folder.path().join("capture");
    fs::write(&file, capture(0, 10)).unwrap();
    let options = task(volume, &file).options();
    let result = record(&options, &SystemClock, &mut |_| ControlFlow::Continue(()));
    result.unwrap_err().to_string()
}

#[test]
fn a_volume_in_use_is_refused_and_its_recording_goes_on() {
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 64 << 10, 8 << 20);
    let (mut recorder, mut input) = Recorder::start(&task(&volume, Path::new("-")));
    input.write_all(&capture(0, 100)).unwrap();
    recorder.wait_for(100);
    let in_use = format!("{} is in use by another process or by the system", volume.display());
    assert_eq!(refusal(&volume), in_use);
    drop(input);
    let told = recorder.wait();
    assert_eq!((told.stored, told.failure), (100, None));
    let file = folder.path().join("capture");
    fs::write(&file, capture(1, 10)).unwrap();
    let report = run(&task(&volume, &file).options());
    assert!(report.recovery.clean && report.total.stored == 10);
}

#[test]
fn a_volume_without_permission_is_refused() {
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 64 << 10, 8 << 20);
    let denied = format!("no permission to open {}", volume.display());
    if !is_root() {
        fs::set_permissions(&volume, fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(refusal(&volume), denied);
        return;
    }
    // Root may open anything, but not the files of users that its namespace does not know.
    chown(&volume, Some(65_534), Some(65_534)).unwrap();
    let mut unshare = Command::new("unshare");
    unshare.arg("--map-root-user").arg(std::env::current_exe().unwrap());
    let (recorder, _input) = Recorder::start_as(&mut unshare, &task(&volume, Path::new("-")));
    match recorder.wait().failure {
        Some(failure) => assert_eq!(failure, denied),
        None => println!("not run: no user namespaces"),
    }
}

#[test]
fn a_volume_on_a_read_only_file_system_is_refused() {
    let steps = "mount -t tmpfs -o size=16M none /mnt";
    if !enter("space::a_volume_on_a_read_only_file_system_is_refused", steps) {
        return;
    }
    let volume = Path::new("/mnt/volume");
    new_volume(volume, 64 << 10, 8 << 20);
    remount("ro");
    assert_eq!(refusal(volume), "/mnt/volume is read-only");
}

fn remount(options: &str) {
    let options = format!("remount,{options}");
    // The options that are there name users whom a user namespace does not know.
    let arguments = ["--options-mode", "ignore", "-o", &options, "none", "/mnt"];
    let status = Command::new("mount").args(arguments).status().unwrap();
    assert!(status.success());
}

/// A file that was created complete cannot run out of space; a sparse one can.
#[test]
fn a_full_file_system_ends_a_recording_and_loses_nothing_acknowledged() {
    let test = "space::a_full_file_system_ends_a_recording_and_loses_nothing_acknowledged";
    if !enter(test, "mount -t tmpfs -o size=12M none /mnt") {
        return;
    }
    let volume = Path::new("/mnt/volume");
    new_volume(volume, 256 << 10, 48 << 20);
    let (recorder, input) = Recorder::start(&task(volume, Path::new("-")));
    feed(input, 0, 100, Duration::from_millis(2));
    let told = recorder.wait();
    let (acknowledged, failure) = (told.stored, told.failure.unwrap());
    println!("{acknowledged} packets acknowledged, then: {failure}");
    let start =
        "too few members are left, 0 of 1 that it takes: member 0 (/mnt/volume): cannot write";
    assert!(failure.starts_with(start), "{failure}");
    assert!(failure.contains(": No space left on device (os error 28): of a disk"), "{failure}");
    assert!(acknowledged > 0);
    assert_clean(&open(volume));
    // There is no space for a new epoch either.
    let failure = refusal(volume);
    assert!(failure.contains(": No space left on device (os error 28): of a disk"), "{failure}");
    assert_clean(&open(volume));

    remount("size=64M");
    let folder = folder();
    let file = folder.path().join("capture");
    fs::write(&file, capture(1, 1000)).unwrap();
    let report = run(&task(volume, &file).options());
    assert!(!report.recovery.clean && report.recovery.damaged == 0);
    let reader = open(volume);
    assert_clean(&reader);
    let stripes = stripes(&reader);
    let first_again = stripes.iter().find(|stripe| stripe.epoch == report.epoch).unwrap();
    assert!(first_again.gaps.iter().any(|gap| gap.cause == GapCause::Crash));
    let found: Vec<(u32, u64)> = stripes
        .iter()
        .flat_map(|stripe| &stripe.packets)
        .map(|(_, packet)| identify(&packet.3))
        .collect();
    let kept = found.iter().filter(|(round, _)| *round == 0).count() as u64;
    assert!(kept >= acknowledged, "{acknowledged} packets were acknowledged, {kept} are there");
    assert!(found.into_iter().eq((0..kept).map(|it| (0, it)).chain((0..1000).map(|it| (1, it)))));
}
