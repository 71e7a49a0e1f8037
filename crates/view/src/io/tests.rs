use std::collections::BTreeMap;

use diagnose::io::{Content, DiskCounters, FileKey, IoWatch, Tracing};

use super::*;

fn watch() -> IoWatch {
    let device = DeviceNumber { major: 8, minor: 0 };
    let mut watch = IoWatch { ns: 2_000_000_000, ..IoWatch::default() };
    let counters = DiskCounters {
        reads: 12,
        read_bytes: 49_152,
        read_ms: 24,
        busy_ms: 500,
        weighted_ms: 1000,
        ..DiskCounters::default()
    };
    watch.counters.insert(device, ("sda".to_owned(), counters));
    let mut reads = OperationSeen::default();
    reads.sequential = 6;
    reads.all = Amount { count: 12, bytes: 49_152 };
    (1..=12).for_each(|step| reads.device.add(step * 100_000));
    (1..=12).for_each(|_| reads.queue.add(2_000));
    let disk = DiskSeen {
        operations: BTreeMap::from([(Operation::Read, reads)]),
        under_way_max: 3,
        device_ns: 1_000_000_000,
        ..DiskSeen::default()
    };
    watch.disks.insert(device, disk);
    let amount = Amount { count: 12, bytes: 49_152 };
    let name = "cat\u{1b}[2J".to_owned();
    watch.processes.insert(77, ProcessSeen { name, reads: amount, ..ProcessSeen::default() });
    let file = FileKey { device, inode: 12 };
    watch.names.insert(file, "/data/file".into());
    let by = BTreeMap::from([(77, [amount, Amount::default()])]);
    watch.files.insert(Content::File(file), FileSeen { reads: amount, by, ..FileSeen::default() });
    watch
}

#[test]
fn disks_processes_and_files_are_told_of_and_harmless() {
    let text = io(&watch(), None);
    for line in [
        "Disks",
        "sda had 0.50 requests at the same time in the mean, 3 at most",
        "sda, reads",
        "Processes",
        "Files",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    assert!(text.contains("/data/file") && text.contains("50 %"), "{text}");
    assert!(text.contains("cat\\u{1b}[2J (process 77)"), "{text}");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn without_tracing_there_are_the_counters() {
    let mut watch = watch();
    watch.disks.clear();
    watch.tracing = Tracing::Refused("root".to_owned());
    let text = io(&watch, None);
    let row = text.lines().find(|line| line.starts_with("sda")).unwrap();
    assert!(row.contains("2.0 ms") && row.ends_with("25 %"), "{text}");
}

#[test]
fn json_has_everything() {
    let watch = watch();
    let report = diagnose::io::diagnose(&watch);
    let json: serde_json::Value = serde_json::from_str(&io_json(&watch, &report)).unwrap();
    assert_eq!((&json["version"], &json["tracing"]["is_on"]), (&1.into(), &true.into()));
    let reads = &json["disks"][0]["operations"][0];
    assert_eq!((&reads["operation"], &reads["count"]), (&"read".into(), &12.into()));
    assert_eq!(reads["device"]["max_ns"], 1_200_000);
    let counted: u64 = reads["device"]["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| bucket["count"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, 12);
    assert_eq!(json["files"][0]["by"][0]["process"], 77);
    assert_eq!(json["counters"][0]["read_ms"], 24);
}
