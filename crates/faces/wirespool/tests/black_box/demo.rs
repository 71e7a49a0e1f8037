//! The demo, as root and as `nobody`.

use std::time::Instant;

use crate::machine::{Ran, run, run_unprivileged, text};

#[track_caller]
fn shows_everything(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.err, "", "{ran:?}");
    for step in [
        "created ",
        "123 packets stored, 0 lost",
        "www.github.com",
        "23 packets in ",
        "verify-extract: unchanged",
        "verify: clean",
        "the directory is removed",
    ] {
        assert!(ran.out.contains(step), "{step:?} in {ran:?}");
    }
}

#[test]
fn it_shows_everything_in_seconds_and_cleans_up() {
    let begun = Instant::now();
    let ran = run(&["demo"]);
    let seconds = begun.elapsed().as_secs_f64();
    shows_everything(&ran);
    assert!(seconds < 10.0, "{seconds} s");
    let folder = ran.out.split_whitespace().find(|word| word.contains("/wirespool-demo-")).unwrap();
    let folder = std::path::Path::new(folder).parent().unwrap();
    assert!(!folder.exists(), "{} is gone", folder.display());
}

#[test]
fn it_runs_without_any_privilege() {
    let folder = tempfile::tempdir().unwrap();
    let Some(ran) = run_unprivileged(folder.path(), &["demo"]) else { return };
    shows_everything(&ran);
    assert!(ran.out.contains("recorded nothing live"), "{ran:?}");
}

#[test]
fn what_it_keeps_can_be_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let kept = text(folder.path().join("kept"));
    run(&["demo", "--keep", &kept]).done();
    run(&["inspect", &format!("{kept}/volume")]).done();
    let (manifest, extract) =
        (format!("{kept}/session.pcapng.json"), format!("{kept}/session.pcapng"));
    run(&["verify-extract", &manifest, &extract]).done();
    run(&["demo", "--keep", &kept]).is_refused("exists already; name a new directory");
}
