//! What is left out on purpose: traffic classes and copies.

use std::path::Path;

use core::time::Duration;

use record::{Class, Input};

use crate::numbered::{identify, packet, time_ns};
use crate::volumes::{Packet, new_volume, options, packets_of_volume, run};

const PACKETS: u64 = 2000;

/// A pcap in nanoseconds of numbered packets, 50 sessions in turn, each packet `times` times.
fn capture(path: &Path, times: usize) {
    let words = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1];
    let mut file: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    for number in (0..PACKETS).flat_map(|number| std::iter::repeat_n(number, times)) {
        let (bytes, time) = (packet(0, number), time_ns(0, number).cast_unsigned());
        let len = bytes.len() as u32;
        for word in [(time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(bytes);
    }
    std::fs::write(path, file).unwrap();
}

/// Records the capture; gives the report and what is in the volume.
fn recorded(
    times: usize,
    classes: &[&str],
    drop_duplicates: Option<Duration>,
) -> (record::Report, Vec<Packet>) {
    let folder = tempfile::tempdir().unwrap();
    let (volume, pcap) = (folder.path().join("volume"), folder.path().join("in.pcap"));
    capture(&pcap, times);
    new_volume(&volume, 256 << 10, 32 << 20);
    let mut options = options(&volume, Input::Files(vec![pcap]));
    options.classes = classes.iter().map(|class| class.parse::<Class>().unwrap()).collect();
    options.drop_duplicates = drop_duplicates;
    let report = run(&options);
    let packets = packets_of_volume(&volume);
    assert_eq!(report.total.stored, packets.len() as u64);
    assert!(report.total.is_balanced() && report.total.is_lossless());
    (report, packets)
}

#[test]
fn a_class_keeps_the_first_packets_of_each_session_and_counts_the_others() {
    let (report, packets) = recorded(1, &["udp port 40007=nothing", "udp=10p"], None);
    // 49 sessions with the first 10 of 40 packets each, and one of which nothing is kept.
    assert_eq!((report.total.stored, report.total.cut), (490, PACKETS - 490));
    for (_, _, _, bytes) in packets {
        let (_, number) = identify(&bytes);
        assert!(number < 500 && number % 50 != 7, "{number}");
    }
}

#[test]
fn headers_are_kept_with_the_length_on_the_wire() {
    let (report, packets) = recorded(1, &["=headers"], None);
    let total = &report.total;
    assert_eq!((total.stored, total.headers_only, total.cut), (PACKETS, PACKETS, 0));
    for (number, (_, time, original_len, bytes)) in (0..).zip(packets) {
        let whole = packet(0, number);
        assert_eq!((time, original_len as usize), (time_ns(0, number), whole.len()));
        assert_eq!(bytes, whole[..42]);
    }
}

#[test]
fn copies_are_left_out_and_counted_and_every_packet_is_there_once() {
    let (report, packets) = recorded(3, &[], Some(Duration::from_millis(1)));
    assert_eq!((report.total.offered, report.total.copies), (3 * PACKETS, 2 * PACKETS));
    let numbers = packets.iter().map(|(_, _, _, bytes)| identify(bytes).1);
    assert!(numbers.eq(0..PACKETS));
}

#[test]
fn a_filter_that_means_nothing_is_an_error_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, pcap) = (folder.path().join("volume"), folder.path().join("in.pcap"));
    capture(&pcap, 1);
    new_volume(&volume, 256 << 10, 32 << 20);
    let mut options = options(&volume, Input::Files(vec![pcap]));
    options.classes = vec!["prot 80=headers".parse().unwrap()];
    let before = std::fs::read(&volume).unwrap();
    let clock = host::SystemClock;
    let failed = record::record(&options, &clock, &mut |_| core::ops::ControlFlow::Continue(()));
    assert!(failed.is_err_and(|error| error.to_string().contains("prot 80")));
    assert!(std::fs::read(&volume).unwrap() == before);
}
