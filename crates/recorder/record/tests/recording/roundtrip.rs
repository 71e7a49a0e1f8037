//! Every capture of the corpus goes into a volume and comes out as it was.

use std::fs;
use std::path::PathBuf;

use record::Input;

use crate::volumes::{
    corpus, folder, new_volume, options, packets_of_file, packets_of_volume, run,
};

fn captures() -> Option<Vec<PathBuf>> {
    let root = corpus()?;
    let mut files = Vec::new();
    let mut directories = vec![root.join("pcap"), root.join("derived")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_none_or(|extension| extension != "tsv") {
                files.push(path);
            }
        }
    }
    files.sort();
    Some(files)
}

#[test]
fn every_capture_comes_back_byte_for_byte() {
    let Some(files) = captures() else { return };
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
    println!("{compared} packets of {} captures compared, {broken_off} broke off", files.len());
    assert!(files.len() > 500 && compared > 90_000);
}

#[test]
fn recordings_follow_one_another_and_the_ring_laps() {
    let Some(files) = captures() else { return };
    let large: Vec<PathBuf> =
        files.into_iter().filter(|file| fs::metadata(file).unwrap().len() > 500_000).collect();
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
