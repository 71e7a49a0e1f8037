//! A volume put back to an older image while its index directory stays.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use std::fs;

use crate::golden::{capture, extracted};
use crate::machine::{Volume, run};

const FIRST_NS: u64 = 1_700_000_000_000_000_000;

/// Records packets of these numbers.
fn record(volume: &Volume, numbers: core::ops::Range<u32>) {
    let path = volume.file(&format!("{}.pcap", numbers.start));
    fs::write(&path, capture(FIRST_NS, numbers)).unwrap();
    volume.record(&["--read", &path]).done();
}

fn names(volume: &Volume) -> Vec<String> {
    let files = fs::read_dir(&volume.index).unwrap();
    let mut names: Vec<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Everything the volume holds is there, and nothing else: sessions by the 35 pairs of ends.
#[track_caller]
fn holds(volume: &Volume, numbers: &[core::ops::Range<u32>]) {
    let expected = numbers.iter().cloned().flatten().collect();
    assert_eq!(extracted(&volume.path, volume.folder.path(), FIRST_NS), expected);
    for host in ["10.1.0.0", "10.1.0.4"] {
        let find = ["find", &volume.path, "--index-dir", &volume.index, "--json"];
        let found = run(&[&find[..], &["host", host]].concat()).done().out;
        let packets: u64 = found
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|row| row["orig_packets"].as_u64().unwrap())
            .sum();
        let last: u32 = host[7..].parse().unwrap();
        let of_host = numbers.iter().cloned().flatten().filter(|number| number % 5 == last);
        assert_eq!(packets, u64::try_from(of_host.count()).unwrap(), "{host}: {found}");
    }
}

#[test]
fn an_index_directory_of_a_future_that_was_given_up_does_not_count() {
    let volume = Volume::empty();
    record(&volume, 0..500);
    let image = fs::read(&volume.path).unwrap();
    record(&volume, 500..3241);
    record(&volume, 3241..3300);
    holds(&volume, &[0..500, 500..3241, 3241..3300]);

    // Only read: what was recorded behind the image is gone.
    fs::write(&volume.path, &image).unwrap();
    holds(&volume, std::slice::from_ref(&(0..500)));
    // Written: other packets have the same sequences.
    record(&volume, 4000..4604);
    record(&volume, 5000..5010);
    holds(&volume, &[0..500, 4000..4604, 5000..5010]);
    assert_eq!(names(&volume).len(), 3, "{:?}", names(&volume));
}

#[test]
fn an_index_directory_that_nobody_opened_meanwhile_does_not_count() {
    let volume = Volume::empty();
    record(&volume, 0..500);
    let image = fs::read(&volume.path).unwrap();
    record(&volume, 500..3241);
    let future = fs::read_dir(&volume.index).unwrap().map(|file| file.unwrap().path());
    let saved: Vec<_> = future.map(|path| (fs::read(&path).unwrap(), path)).collect();
    fs::write(&volume.path, &image).unwrap();
    record(&volume, 4000..4604);
    // The old files lie beside the new ones, as after a copy of the directory came back, too.
    for (bytes, path) in saved {
        fs::write(path, bytes).unwrap();
    }
    holds(&volume, &[0..500, 4000..4604]);
    holds(&volume, &[0..500, 4000..4604]);
    assert_eq!(names(&volume).len(), 2, "{:?}", names(&volume));
}

#[test]
fn files_that_do_not_say_which_stripes_they_cover_are_made_anew() {
    let volume = Volume::empty();
    record(&volume, 0..500);
    let before = names(&volume);
    let [name] = before.as_slice() else { panic!("{before:?}") };
    let (old, _) = name.rsplit_once('-').unwrap();
    let folder = std::path::Path::new(&volume.index);
    fs::rename(folder.join(name), folder.join(format!("{old}.parquet"))).unwrap();
    holds(&volume, std::slice::from_ref(&(0..500)));
    assert_eq!(names(&volume), before);
}
