//! Every capture goes into a volume and comes out as it was.

use std::fs;
use std::path::PathBuf;

use record::Input;
use testdata::Corpus;

use crate::volumes::{folder, new_volume, options, packets_of_file, packets_of_volume, run};

#[test]
fn every_capture_comes_back_byte_for_byte() {
    Corpus::all().iter().for_each(check_captures);
}

fn check_captures(corpus: &Corpus) {
    let files = corpus.captures();
    // Most of the time disks are waited for.
    let parts = files.chunks(files.len().div_ceil(4));
    let results: Vec<(usize, usize)> = std::thread::scope(|scope| {
        let checks: Vec<_> = parts.map(|part| scope.spawn(|| check_files(part))).collect();
        checks.into_iter().map(|check| check.join().unwrap()).collect()
    });
    let compared: usize = results.iter().map(|(compared, _)| compared).sum();
    let broken_off: usize = results.iter().map(|(_, broken_off)| broken_off).sum();
    println!("{compared} packets of {} captures compared, {broken_off} broke off", files.len());
    let least = if corpus.is_large { (500, 90_000) } else { (25, 3000) };
    assert!(files.len() > least.0 && compared > least.1);
}

/// The packets that were compared, and the files that broke off.
fn check_files(files: &[PathBuf]) -> (usize, usize) {
    let folder = folder();
    let (mut compared, mut broken_off) = (0, 0);
    for (number, file) in files.iter().enumerate() {
        let volume = folder.path().join("volume");
        new_volume(&volume, if number % 2 == 0 { 2 << 20 } else { 512 << 10 }, 96 << 20);
        let expected = packets_of_file(file);
        let report = run(&options(&volume, Input::Files(vec![file.clone()])));
        assert_eq!(report.total.stored as usize, expected.len(), "{}", file.display());
        assert!(report.total.too_long == 0, "{}", file.display());
        let found = packets_of_volume(&volume);
        assert!(found == expected, "{} differs", file.display());
        compared += found.len();
        broken_off += report.broken_off.len();
    }
    (compared, broken_off)
}

#[test]
fn recordings_follow_one_another_and_the_ring_laps() {
    Corpus::all().iter().for_each(check_laps);
}

fn check_laps(corpus: &Corpus) {
    let mut large = corpus.captures();
    large.retain(|file| fs::metadata(file).unwrap().len() > 500_000);
    // As many bytes as laps need: the small corpus has one such file.
    let times = if corpus.is_large { 1 } else { 10 };
    let large: Vec<_> = std::iter::repeat_n(large, times).flatten().collect();
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 64 << 10, 8 << 20);
    let mut all = Vec::new();
    for _ in 0..4 {
        let report = run(&options(&volume, Input::Files(large.clone())));
        assert!(
            report.total.is_lossless() && report.recovery.last_alive.is_none()
                || report.recovery.clean
        );
        all.extend(large.iter().flat_map(|file| packets_of_file(file)));
        let found = packets_of_volume(&volume);
        assert!(!found.is_empty() && all.ends_with(&found), "the newest packets are there");
        assert!(found.len() < all.len(), "the ring has lapped");
    }
}
