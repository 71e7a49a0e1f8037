//! Extracts are in the order of time: whatever queues, interfaces and files lie in each other's
//! times, with little memory.

use core::ops::ControlFlow;

use completeness::Disorder;
use extract::{Request, extract};
use manifest::Manifest;
use packet_output::{MergeMemory, Target};
use proptest::prelude::*;
use query::Query;
use units::{ManualClock, Timestamp};

use crate::reader::read;
use crate::recorder::{How, Packet, Traffic, Volume, ethernet, lacks_nothing};

/// Bytes of payload: about 35 packets in a piece of 16 KiB.
const PAYLOAD: u16 = 400;
const PIECE_BYTES: u32 = 16 << 10;

/// A datagram from 10.0.0.`host` that names its recording and its place there.
fn packet(host: u8, interface: u32, time: i64, number: u32) -> Packet {
    let mut data = vec![2; 12];
    data.extend([8, 0, 0x45, 0]);
    data.extend((28 + PAYLOAD).to_be_bytes());
    data.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, host, 10, 0, 0, 200]);
    data.extend([1000_u16.to_be_bytes(), 2000_u16.to_be_bytes()].concat());
    data.extend((8 + PAYLOAD).to_be_bytes());
    data.extend([0, 0]);
    data.extend(number.to_be_bytes());
    data.resize(data.len() + usize::from(PAYLOAD) - 4, 7);
    let original_len = u32::try_from(data.len()).unwrap();
    let timestamp = Timestamp(time);
    Packet { interface, timestamp, original_len, data, options: Vec::new() }
}

/// What is recorded at a time: packets of some queues, each of which hands its own on when it has
/// so many.
#[derive(Clone, Debug)]
struct Recording {
    begin: i64,
    /// Packets that each queue gathers before they come.
    queues: Vec<usize>,
    interfaces: u32,
    /// For each packet: time since the last one, queue, host, and now and then a step back.
    packets: Vec<(i64, usize, u8, bool)>,
    claims: Option<i64>,
    is_indexed: bool,
}

impl Recording {
    /// The packets in the order in which they come.
    fn traffic(&self, first: u32) -> Traffic {
        let names = (0..self.interfaces).map(|number| ethernet(&format!("eth{number}")));
        let mut traffic = Traffic { interfaces: names.collect(), ..Traffic::default() };
        let mut gathered: Vec<Vec<Packet>> = self.queues.iter().map(|_| Vec::new()).collect();
        let mut time = self.begin;
        for (number, (step, queue, host, is_back)) in (first..).zip(&self.packets) {
            time += step;
            // A card that gives times may be a little off.
            let at = if *is_back { time - 40 } else { time };
            let queue = queue % self.queues.len();
            let interface = u32::try_from(queue).unwrap() % self.interfaces;
            gathered[queue].push(packet(*host, interface, at, number));
            if gathered[queue].len() == self.queues[queue] {
                traffic.packets.append(&mut gathered[queue]);
            }
        }
        traffic.packets.extend(gathered.into_iter().flatten());
        traffic
    }
}

fn recording() -> impl Strategy<Value = Recording> {
    let packet = (0_i64..20, 0_usize..60, 0_u8..3, prop::bool::weighted(0.02));
    (
        // No packet lies before 1970, which pcapng has no time for, also when it is a little off.
        40_i64..4000,
        prop::collection::vec(prop_oneof![1_usize..10, 30_usize..200], 1..5),
        1_u32..4,
        prop::collection::vec(packet, 1..700),
        prop::option::of(Just(0)),
        prop::bool::weighted(0.8),
    )
        .prop_map(|(begin, queues, interfaces, packets, claims, is_indexed)| Recording {
            begin,
            queues,
            interfaces,
            packets,
            claims,
            is_indexed,
        })
}

/// A volume with recordings one behind the other, and their packets in the order of the ring.
fn recorded(recordings: &[Recording], segment_pieces: usize) -> (Volume, Vec<Packet>) {
    let (mut volume, mut packets) = (Volume::new(PIECE_BYTES, 16 << 20), Vec::new());
    for recording in recordings {
        let traffic = recording.traffic(u32::try_from(packets.len()).unwrap());
        let segment_pieces = recording.is_indexed.then_some(segment_pieces);
        let claims = recording.claims;
        let how = How { piece_bytes: PIECE_BYTES, segment_pieces, claims, ..How::default() };
        volume.record(&traffic, how);
        packets.extend(traffic.packets);
    }
    (volume, packets)
}

type Frames = Vec<(i128, Vec<u8>)>;

/// Whether packets of a host are wanted.
type IsWanted = fn(u8) -> bool;

fn extracted(volume: &Volume, text: &str, merge: MergeMemory) -> (Frames, Manifest) {
    let query = Query::parse(text, Timestamp(0)).unwrap();
    let mut out = Vec::new();
    let options = extract::Options { merge, ..volume.options() };
    let (request, clock) = (Request::new(&query, text), ManualClock::new(Timestamp(0)));
    let target = Target::Pcapng(&mut out);
    let report =
        extract(&options, &request, target, &clock, &mut |_| ControlFlow::Continue(())).unwrap();
    let frames = read(&out).frames.into_iter().map(|frame| (frame.time_ns, frame.data));
    (frames.collect(), report.manifest)
}

/// Packets of the hosts that `is_wanted` names, by time, those of a time as they came.
fn expected(packets: &[Packet], is_wanted: impl Fn(u8) -> bool) -> Frames {
    let wanted = packets.iter().filter(|packet| is_wanted(packet.data[29]));
    let mut frames: Frames =
        wanted.map(|packet| (i128::from(packet.timestamp.0), packet.data.clone())).collect();
    frames.sort_by_key(|(time, _)| *time);
    frames
}

/// Everything that may lie in each other's times here, and a small part of what is recorded.
fn memory(ring_order_bytes: usize) -> MergeMemory {
    MergeMemory { ring_order_bytes, most_bytes: 1 << 20 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn extracts_of_queues_and_overlapping_files_are_in_the_order_of_time(
        recordings in prop::collection::vec(recording(), 1..4),
        segment_pieces in 1_usize..8,
        ring_order_bytes in prop_oneof![Just(0_usize), 10_000_usize..100_000, Just(1 << 20)],
    ) {
        let (volume, packets) = recorded(&recordings, segment_pieces);
        let wanted: [(&str, IsWanted); 3] = [
            ("", |_| true),
            ("host 10.0.0.1", |host| host == 1),
            ("not host 10.0.0.1", |host| host != 1),
        ];
        for (text, is_wanted) in wanted {
            let (frames, manifest) = extracted(&volume, text, memory(ring_order_bytes));
            let whole = expected(&packets, is_wanted);
            prop_assert!(lacks_nothing(&manifest.completeness), "{}", manifest.completeness);
            prop_assert_eq!(manifest.completeness.disorder, Disorder::default());
            prop_assert_eq!(frames.len(), whole.len(), "{}", text);
            prop_assert!(frames == whole, "{}: another order", text);
            prop_assert!(manifest.pieces.is_sorted_by_key(|read| read.piece));
        }
    }
}

/// Packets 10 ns apart, of one queue.
fn in_order(begin: i64, count: usize) -> Recording {
    Recording {
        begin,
        queues: vec![1],
        interfaces: 1,
        packets: vec![(10, 0, 1, false); count],
        claims: None,
        is_indexed: true,
    }
}

/// Pieces with what is noted of their packets.
fn pieces(count: usize) -> usize {
    count * (18 << 10)
}

#[test]
fn files_that_overlap_by_far_more_than_is_held_are_merged_exactly() {
    for (claims, is_indexed) in [(None, true), (Some(0), true), (None, false)] {
        let recordings =
            [0, 3, 5000].map(|begin| Recording { claims, is_indexed, ..in_order(begin, 2000) });
        let (volume, packets) = recorded(&recordings, 9);
        let merge = MergeMemory { ring_order_bytes: pieces(1), most_bytes: pieces(12) };
        for text in ["", "host 10.0.0.1"] {
            let (frames, manifest) = extracted(&volume, text, merge);
            assert!(frames == expected(&packets, |_| true), "{claims:?} {is_indexed} {text:?}");
            assert!(!manifest.completeness.to_string().contains("order"));
        }
    }
}

#[test]
fn a_clock_that_is_set_back_far_is_put_right_and_nothing_is_said() {
    let mut recording = in_order(1_000_000, 4000);
    recording.packets[2000].0 = -900_000;
    let (volume, packets) = recorded(&[recording], 9);
    let merge = MergeMemory { ring_order_bytes: pieces(1), most_bytes: pieces(8) };
    for text in ["", "host 10.0.0.1"] {
        let (frames, manifest) = extracted(&volume, text, merge);
        assert!(frames == expected(&packets, |_| true), "{text:?}");
        assert_eq!(manifest.completeness.disorder, Disorder::default());
    }
}

#[test]
fn what_cannot_be_put_in_order_is_counted_and_said() {
    let said = |manifest: &Manifest| {
        let text = manifest.completeness.to_string();
        let line = text.lines().find(|line| line.starts_with("out of order: ")).unwrap();
        assert!(lacks_nothing(&manifest.completeness), "no packet is missing: {text}");
        line.to_owned()
    };
    // The clock falls back by less than what begins another stretch of recording.
    let mut recording = Recording { claims: Some(300), ..in_order(0, 2000) };
    recording.packets[1000].0 = -400;
    let (volume, packets) = recorded(&[recording], 100);
    let merge = MergeMemory { ring_order_bytes: pieces(1), most_bytes: pieces(40) };
    let (mut frames, manifest) = extracted(&volume, "", merge);
    let line = said(&manifest);
    assert!(line.contains(" packets behind later ones, by at most 0.0000"), "{line}");
    let behind = |frames: &Frames| {
        let mut latest = i128::MIN;
        let late = |&(time, _): &(i128, Vec<u8>)| {
            latest = latest.max(time);
            (latest > time).then_some(latest - time)
        };
        let late: Vec<i128> = frames.iter().filter_map(late).collect();
        let most_ns = late.iter().max().map_or(0, |most| u64::try_from(*most).unwrap());
        Disorder { packets: u64::try_from(late.len()).unwrap(), most_ns }
    };
    assert_eq!(manifest.completeness.disorder, behind(&frames));
    frames.sort();
    let mut whole = expected(&packets, |_| true);
    whole.sort();
    assert!(frames == whole);

    // More overlaps at a time than memory holds.
    let (volume, _) = recorded(&[0, 1, 2, 3, 4].map(|begin| in_order(begin, 500)), 100);
    let merge = MergeMemory { ring_order_bytes: pieces(1), most_bytes: pieces(3) };
    let (frames, manifest) = extracted(&volume, "", merge);
    said(&manifest);
    assert_eq!(manifest.completeness.disorder, behind(&frames));
    assert_eq!(frames.len(), 2500);
}
