use std::collections::BTreeMap;

use diagnose::io::{
    Content, DiskCounters, Faults, FileKey, IoWatch, Limited, ProcessCounters, Tracing, Wait,
};
use findings::Diagnosis;

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

fn page(watch: &IoWatch) -> String {
    let mut page = page::Document::new("x");
    add_disks(&mut page, watch);
    page.finish("")
}

#[test]
fn a_page_has_plots_of_each_disk_and_the_tables() {
    let mut watch = watch();
    let disk = watch.disks.values_mut().next().unwrap();
    disk.operations.get_mut(&Operation::Read).unwrap().sizes.insert(12, 12);
    for step in 0..20 {
        disk.places.cells.insert((step, 100), [4096, 0]);
        disk.places.cells.insert((step, 300 + step), [0, 8192]);
    }
    let html = page(&watch);
    let titles = html.split("<figcaption><h3>").skip(1);
    let titles: Vec<&str> = titles.map(|rest| rest.split('<').next().unwrap()).collect();
    let expected = [
        "Bytes over time",
        "Offset over time, read",
        "Offset over time, written",
        "Latency of reads, sda",
        "Sizes of reads, sda",
    ];
    assert_eq!(titles, expected);
    // Reads stay in a row of the plot, which is one area; writes move on, by a
    // row of the plot in three steps.
    assert!(html.contains("class=\"point c1\" data-points=\"1\""), "{html}");
    assert!(html.contains("class=\"point c2\" data-points=\"8\""), "{html}");
    for words in [
        "80.0 KiB read; a mark is 3.00 MiB in 50.0 ms.",
        "12 values, the longest 1.2 ms.",
        "sda had 0.50 requests at the same time",
        "<th scope=\"row\" class=\"long\">/data/file</th>",
        "cat\\u{1b}[2J (process 77)",
    ] {
        assert!(html.contains(words), "{words} in {html}");
    }
    let nothing = page(&IoWatch::default());
    assert!(nothing.contains("Nothing.") && !nothing.contains("<svg"), "{nothing}");
}

/// One of everything that is shown as JSON.
fn full() -> IoWatch {
    let mut watch = watch();
    let device = DeviceNumber { major: 8, minor: 0 };
    let amount = |count| Amount { count, bytes: count * 4096 };
    let disk = watch.disks.get_mut(&device).unwrap();
    let reads = disk.operations.get_mut(&Operation::Read).unwrap();
    (reads.readahead, reads.metadata) = (amount(2), amount(1));
    reads.sizes.insert(12, 12);
    disk.places.cells.insert((2, 3), [4096, 8192]);
    let kernel = ProcessSeen {
        name: "flusher".to_owned(),
        is_kernel: true,
        readahead: amount(1),
        writes: amount(3),
        later: amount(4),
        others: 5,
        ..ProcessSeen::default()
    };
    watch.processes.insert(9, kernel);
    let faults = Faults { count: 3, in_memory: 4, ..Faults::default() };
    let log = FileSeen {
        readahead: amount(1),
        partial_pages: amount(2),
        writes: amount(30),
        by: [(9, [amount(0), amount(30)])].into(),
        changed_by: [(77, 6)].into(),
        mapped_by: [(5, faults)].into(),
        ..FileSeen::default()
    };
    watch.files.insert(Content::Journal(device), log);
    let limit = |is_write, unit| DiskLimit {
        device,
        is_write,
        unit,
        per_second: 1_000_000,
        file: "io.max",
        unlimited: "8:0 wbps=max".to_owned(),
    };
    let limited = Limited {
        folder: "/sys/fs/cgroup/a".into(),
        name: "/a".to_owned(),
        reaches_below: true,
        limits: vec![limit(true, Unit::Bytes), limit(false, Unit::Requests)],
    };
    watch.groups.push(GroupSeen {
        limited,
        standing_ns: 500,
        moved: BTreeMap::new(),
        waits: [(77, Wait { ns: 400, ..Wait::default() })].into(),
        held: [(device, [amount(1), amount(2)])].into(),
        stalled_us: Some(3),
    });
    let counters = ProcessCounters {
        name: "cat".to_owned(),
        asked_bytes: 1,
        read_bytes: 2,
        written_bytes: 3,
        cancelled_bytes: 4,
    };
    watch.process_counters.insert(77, counters);
    (watch.unmatched, watch.unplaced, watch.own) = (1, 2, amount(3));
    watch
}

#[test]
fn json_has_its_names_and_their_order() {
    assert_eq!(io_json(&full(), &Diagnosis::default()), include_str!("frozen.json"));
    let refused =
        IoWatch { tracing: Tracing::Refused("root".to_owned()), ns: 5, ..IoWatch::default() };
    assert_eq!(io_json(&refused, &Diagnosis::default()), include_str!("frozen_refused.json"));
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
