use std::collections::BTreeMap;

use proptest::prelude::*;
use query::Query;
use talkers::{Grouping, Limits, Moment, Talker, Talkers, WINDOWS};
use units::Timestamp;

use crate::frames::{Made, interface, udp};

const ALL: usize = usize::MAX;

fn taken(limits: Limits, frames: &[Made]) -> Talkers {
    let mut talkers = Talkers::new(limits, 7);
    for frames in frames.chunks(5) {
        talkers.take(&[interface()], frames.iter().map(Made::packet));
    }
    talkers.end();
    talkers
}

/// Few hosts and ports, so that sessions have several packets, up to a second out of order.
fn frames() -> impl Strategy<Value = Vec<Made>> {
    let frame = (0_i64..90_000, 1_u8..5, 1_u8..5, 0_u16..3, 0_usize..200);
    let frames = prop::collection::vec(frame, 1..200);
    frames.prop_map(|mut frames| {
        frames.sort_by_key(|(ms, ..)| *ms);
        let made = frames.into_iter().map(|(ms, from, to, port, len)| {
            // A server answers from the port that it is asked at.
            let (source, target) = if from < to { (4000 + port, 80) } else { (80, 4000 + port) };
            udp(ms, (from, source), (to, target), &vec![0; len])
        });
        made.collect()
    })
}

/// Bytes and packets of all windows by the text of what they are put together by.
type Sums = BTreeMap<String, ([u64; 3], [u64; 3])>;

fn by_hand(frames: &[Made], at: i64, keys: impl Fn(&[u8]) -> Vec<String>) -> Sums {
    let mut sums = Sums::new();
    for frame in frames {
        let age = at - frame.second();
        if !(0..40).contains(&age) {
            continue;
        }
        for key in keys(&frame.data) {
            let (bytes, packets) = sums.entry(key).or_default();
            for (place, window) in WINDOWS.iter().enumerate() {
                if age < *window {
                    bytes[place] += u64::try_from(frame.data.len()).unwrap();
                    packets[place] += 1;
                }
            }
        }
    }
    sums
}

fn of(talkers: &[Talker]) -> Sums {
    let line =
        |talker: &Talker| (talker.who.to_string(), (talker.sums.bytes(), talker.sums.packets));
    talkers.iter().map(line).collect()
}

fn host(last: u8) -> String {
    format!("10.0.0.{last}")
}

proptest! {
    #[test]
    fn each_window_has_the_packets_of_its_seconds(frames in frames(), at in 0_i64..100) {
        let talkers = taken(Limits::default(), &frames);
        let all = Query::all();
        let of_grouping = |grouping| of(&talkers.talkers(grouping, Moment(at), &all, ALL).0);
        let hosts = by_hand(&frames, at, |data| {
            let mut hosts = vec![host(data[29]), host(data[33])];
            hosts.dedup();
            hosts
        });
        prop_assert_eq!(of_grouping(Grouping::Host), hosts);
        let pairs = by_hand(&frames, at, |data| {
            let (low, high) = (data[29].min(data[33]), data[29].max(data[33]));
            vec![format!("{} > {}", host(low), host(high))]
        });
        prop_assert_eq!(of_grouping(Grouping::Pair), pairs);
        let total: u64 = by_hand(&frames, at, |_| vec![String::new()])
            .values().map(|(bytes, _)| bytes[2]).sum();
        for grouping in [Grouping::Session, Grouping::Port, Grouping::Protocol] {
            let sum: u64 = of_grouping(grouping).values().map(|(bytes, _)| bytes[2]).sum();
            prop_assert_eq!(sum, total, "{:?}", grouping);
        }
        let by_second = talkers.bytes_by_second(Moment(at), 40);
        prop_assert_eq!(by_second.iter().sum::<u64>(), total);
    }

    #[test]
    fn the_query_of_a_line_selects_its_sessions_and_no_others(frames in frames()) {
        let talkers = taken(Limits::default(), &frames);
        let at = Moment(frames.last().unwrap().second());
        for grouping in [Grouping::Session, Grouping::Pair, Grouping::Host] {
            for talker in talkers.talkers(grouping, at, &Query::all(), ALL).0 {
                let query = Query::parse(&talker.who.query(), Timestamp(0)).unwrap();
                let selected = talkers.talkers(grouping, at, &query, ALL).0;
                let same = selected.iter().find(|other| other.who == talker.who);
                prop_assert_eq!(same.map(|other| other.sums), Some(talker.sums));
                if grouping != Grouping::Host {
                    prop_assert_eq!(selected.len(), 1, "{:?}", talker.who);
                }
                let packets = talkers.packets(&query).count();
                prop_assert!(u64::try_from(packets).unwrap() >= talker.sums.packets[2]);
            }
        }
        let all = talkers.packets(&Query::all()).count();
        prop_assert_eq!(all, frames.len(), "all fit the memory");
    }

    #[test]
    fn any_order_of_times_and_any_bound_is_taken(
        mut frames in frames(), seed: u64, lines in 0_usize..50,
    ) {
        // Times jump forth and back.
        for (place, frame) in (0_i64..).zip(&mut frames) {
            let turned = seed.rotate_left(u32::try_from(place % 64).unwrap());
            frame.ms += turned.cast_signed() % 3 * 200_000;
        }
        let limits = Limits { packet_bytes: 0, lines, sessions: 3 };
        let talkers = taken(limits, &frames);
        let held = talkers.held();
        prop_assert_eq!(held.packets, u64::try_from(frames.len()).unwrap());
        let (oldest, newest) = held.seconds.unwrap();
        prop_assert!(oldest <= newest);
        for grouping in [Grouping::Session, Grouping::Protocol] {
            assert!(talkers.talkers(grouping, newest, &Query::all(), 1).0.len() <= 1);
        }
    }
}

#[test]
fn a_second_is_over_with_the_next_one_or_when_time_is_told() {
    let frames = [udp(1000, (1, 4000), (2, 80), &[0; 10]), udp(1900, (2, 80), (1, 4000), &[0; 10])];
    let mut talkers = Talkers::new(Limits::default(), 7);
    talkers.take(&[interface()], frames.iter().map(Made::packet));
    assert_eq!(talkers.held().seconds, None);
    talkers.advance(Timestamp(1_999_999_999));
    assert_eq!(talkers.held().seconds, None);
    talkers.advance(Timestamp(2_000_000_000));
    assert_eq!(talkers.held().seconds, Some((Moment(1), Moment(1))));
    let [talker] = &*talkers.talkers(Grouping::Session, Moment(1), &Query::all(), ALL).0 else {
        panic!()
    };
    assert_eq!(talker.who.to_string(), "10.0.0.1:4000 > 10.0.0.2:80 udp");
    assert_eq!((talker.sums.sent, talker.sums.received), ([52; 3], [52; 3]));
}
