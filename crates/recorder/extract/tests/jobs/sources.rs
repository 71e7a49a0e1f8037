//! Interfaces and recordings by their names.

use std::collections::BTreeSet;

use extract::{FindReport, Sought};
use found::Found;
use proptest::prelude::*;
use query::Query;
use units::{ManualClock, Timestamp};

use crate::recorder::{How, Packet, Traffic, Volume, ethernet};

/// Names as systems and files have them, and some that steer terminals or spreadsheets.
const NAMES: [&str; 8] =
    ["eth0", "ETH0", "br-lan.7", "a b", "=1+1", "\u{1b}[31m", "say \"*\" \\ no", "7"];

fn frame(port: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([port, 53, 8].map(u16::to_be_bytes).concat());
    // With a trailer, so that a few dozen fill a piece.
    frame.resize(300, 0);
    frame
}

/// A packet each nanosecond: of which interface, and of which session.
fn traffic(names: &[&str], packets: &[(usize, u16)]) -> Traffic {
    let packet = |(time, &(interface, port)): (i64, &(usize, u16))| {
        let data = frame(port);
        let original_len = u32::try_from(data.len()).unwrap();
        let interface = u32::try_from(interface % names.len()).unwrap();
        Packet { interface, timestamp: Timestamp(time), original_len, data, options: Vec::new() }
    };
    Traffic {
        interfaces: names.iter().map(|name| ethernet(name)).collect(),
        packets: (0..).zip(packets).map(packet).collect(),
        blocks: Vec::new(),
    }
}

fn find(volume: &Volume, text: &str) -> (Vec<Found>, FindReport) {
    let query = Query::parse(text, Timestamp(0)).unwrap_or_else(|it| panic!("{}", it.render(text)));
    let mut found = Vec::new();
    let report = extract::find_columns(
        &volume.options(),
        &Sought::new(&query),
        &ManualClock::new(Timestamp(0)),
        &mut |event| {
            if let found::Event::Found(row) = event {
                found.push(row.clone());
            }
            core::ops::ControlFlow::Continue(())
        },
    );
    (found, report.unwrap())
}

/// A name between quotes, as docs/query.md says it.
fn quoted(name: &str) -> String {
    let escaped = ['\\', '"', '*']
        .iter()
        .fold(name.to_owned(), |text, letter| text.replace(*letter, &format!("\\{letter}")));
    format!("\"{escaped}\"")
}

fn how(is_cut_off: bool, is_late: bool, has_index: bool) -> How {
    How {
        piece_bytes: 16 << 10,
        segment_pieces: has_index.then_some(5),
        crash: is_cut_off,
        late: is_late,
        recording: Some("night shift"),
        ..How::default()
    }
}

#[test]
fn a_name_selects_the_sessions_of_the_interfaces_that_have_it() {
    let names = prop::collection::vec(prop::sample::select(&NAMES[..]), 1..5);
    let packets = prop::collection::vec((0..5_usize, 1..12_u16), 1..250);
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.8));
    let config = ProptestConfig { cases: 12, ..ProptestConfig::default() };
    proptest!(config, |(names in names, packets in packets, (crash, late, index) in flags)| {
        let volume = Volume::of(&traffic(&names, &packets), how(crash, late, index));
        for name in NAMES {
            let of_name = (0..names.len()).filter(|&at| names[at] == name);
            let numbers: Vec<String> = of_name.map(|at| at.to_string()).collect();
            let by_number = if numbers.is_empty() {
                Vec::new()
            } else {
                find(&volume, &format!("interface in {{{}}}", numbers.join(" "))).0
            };
            let quoted = quoted(name);
            let (by_name, report) = find(&volume, &format!("interface_name {quoted}"));
            prop_assert_eq!(&by_name, &by_number, "{:?}", name);
            let in_set = find(&volume, &format!("interface_name in {{no_such {quoted}}}")).0;
            prop_assert_eq!(&in_set, &by_number);
            if name != "7" {
                prop_assert_eq!(&find(&volume, &format!("interface = {quoted}")).0, &by_number);
                let mixed = find(&volume, &format!("interface in {{99, {quoted}}}")).0;
                prop_assert_eq!(&mixed, &by_number);
            }
            let source = |found: &Found| found.session.source.clone().unwrap_or_default();
            prop_assert!(by_name.iter().all(|row| source(row).interface.as_deref() == Some(name)));
            // Nothing is met that is not there.
            let there: BTreeSet<String> = names.iter().map(|&name| name.to_owned()).collect();
            prop_assert!(report.met.interfaces.is_subset(&there), "{:?}", report.met);
            // One without a session is known from the segments that describe it.
            let query = Query::parse(&format!("interface_name {quoted}"), Timestamp(0)).unwrap();
            let unmet = query.unmet("interface_name", &report.met.interfaces);
            prop_assert!(by_name.is_empty() || unmet.is_empty(), "{:?}", unmet);
        }
        let (all, _) = find(&volume, "");
        let (called, _) = find(&volume, "has interface_name");
        prop_assert_eq!(all, called);
    });
}

#[test]
fn a_recording_is_known_by_its_name_before_anything_is_indexed() {
    let packets: Vec<(usize, u16)> = (1..=600).map(|number| (0, number)).collect();
    let volume = Volume::of(&traffic(&["eth0"], &packets), how(true, false, false));
    let (of_night, report) = find(&volume, "recording = \"night shift\"");
    assert_eq!(of_night.len(), 600);
    assert_eq!(report.met.recordings.len(), 1, "{:?}", report.met);
    assert_eq!(find(&volume, "not (has recording)").0, []);
}

#[test]
fn a_recording_is_known_by_its_name_also_where_no_index_is_left() {
    let packets: Vec<(usize, u16)> = (1..=600).map(|number| (0, number)).collect();
    let mut volume = Volume::of(&traffic(&["eth0"], &packets), how(true, false, true));
    let all = find(&volume, "").0;
    assert_eq!(all.len(), 600);
    assert_eq!(find(&volume, "recording \"night shift\"").0, all);
    assert!(all.iter().any(|row| row.is_provisional), "some have no index");
    volume.record(
        &traffic(&["eth1"], &packets),
        How { recording: Some("day"), ..how(false, false, true) },
    );
    let (of_night, report) = find(&volume, "recording night*");
    assert_eq!(of_night.len(), 600);
    assert_eq!(report.met.recordings.len(), 2, "{:?}", report.met);
    assert_eq!(find(&volume, "recording day and interface eth1").0.len(), 600);
    assert_eq!(find(&volume, "recording day and interface eth0").0, []);
    assert_eq!(find(&volume, "recording = weekend").1.met.recordings.len(), 2);
}
