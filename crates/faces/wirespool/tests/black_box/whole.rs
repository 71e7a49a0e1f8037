//! Files are read whole, or not at all: one that is too long is not cut.

use std::fs::{self, File};
use std::path::Path;

use crate::machine::{Volume, run, write_key};

/// The beginning of a log or a list is no answer to a question about all of it: whatever reads a
/// file whole refuses one that is longer than it can be, and at once.
#[test]
fn a_file_that_is_too_long_is_refused_and_not_cut() {
    let volume = Volume::recorded();
    let (out, key) = (volume.file("out"), volume.file("long.key"));
    write_key(&key, "");
    let long = volume.file("long");
    fs::write(&long, "{").unwrap();
    for path in [&long, &key] {
        File::options().write(true).open(path).unwrap().set_len(5 << 30).unwrap();
    }
    let (long, path) = (long.as_str(), volume.path.as_str());
    run(&["extract", path, "", "-w", &volume.file("good")]).done();
    let good = volume.file("good");
    for arguments in [
        &["find", path, "--from-eve", long][..],
        &["find", path, "--from-zeek", long],
        &["find", path, "country = DE", "--mmdb", long],
        &["find", path, "tag = x", "--tags", long],
        &["extract", path, "-w", &out, "--sessions", long],
        &["extract", path, "", "-w", &out, "--sign", &key],
        &["approve", long, "--sign", &key],
        &["verify-extract", long, &good],
        &["verify-extract", &format!("{good}.json"), &good, "--public-key", long],
        &["verify-extract", &format!("{good}.json"), &good, "--tsa-ca", long],
        &["verify", path, "--anchor", long],
        &["verify", path, "--witness", long],
        &["qualify", "show", long],
        &["qualify", "diff", long, long],
        &["qualify", "plan", "--rate", "1G", "--disk", long],
        &["qualify", "--model", long],
        &["create", &out, "--size", "64M", "--sparse", "--qualification", long],
        &["diagnose", "recorder", path, "--report", long],
        &["bench", "--baseline", long, "--", "true"],
        &["config", "check", long],
        &["serve", path, "--token-file", &key],
    ] {
        run(arguments).is_refused("is longer than");
        assert!(!Path::new(&out).exists(), "{arguments:?}");
    }
}
