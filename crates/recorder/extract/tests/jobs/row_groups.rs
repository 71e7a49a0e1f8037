//! Segments of several row groups: an answer of few sessions reads few of them, and is the
//! beginning of the whole answer.

use core::ops::ControlFlow;

use extract::{Explain, Sought, find_columns};
use found::Found;
use index::GROUP_ROWS;
use query::Query;
use session::Config;
use units::{ManualClock, NANOS_PER_SECOND, Timestamp};

use crate::recorder::{How, Packet, Traffic, Volume, endless, ethernet};
use crate::whole::found;

/// Sessions of one datagram, a millisecond apart.
const SHORT: u16 = 20_000;
const APART_NS: i64 = NANOS_PER_SECOND / 1000;

fn datagram(
    (orig_port, resp_port): (u16, u16),
    time: i64,
    (len, name): (u16, Option<u8>),
) -> Packet {
    let mut data = vec![2; 12];
    data.extend([8, 0, 0x45, 0]);
    data.extend((28 + len).to_be_bytes());
    data.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0]);
    // A server of its own for a hundred sessions.
    data.extend((orig_port / 100).to_be_bytes());
    data.extend([orig_port, resp_port, 8 + len, 0].map(u16::to_be_bytes).concat());
    let end = data.len() + usize::from(len);
    if let Some(name) = name {
        data.extend([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, b'h', b'0' + name, 0, 0, 1, 0, 1]);
    }
    data.resize(end, 0);
    let original_len = u32::try_from(data.len()).unwrap();
    Packet { interface: 0, timestamp: Timestamp(time), original_len, data, options: Vec::new() }
}

/// What the session of this number asks for: one name comes only first, one in a while, one is
/// rare, one comes everywhere else.
fn name(number: u16) -> u8 {
    match number {
        0..3000 => 0,
        9000..9300 => 1,
        _ if number % 2501 == 7 => 2,
        _ => 3,
    }
}

/// Many short sessions, and some that go on beside them for seconds, with a row for each. Some of
/// those ask for a name, but not at once.
fn traffic() -> Traffic {
    let short = (0..SHORT).map(|number| {
        let what = (20 + number % 7, Some(name(number)));
        datagram((30_000 + number, 53), i64::from(number) * APART_NS, what)
    });
    let long = (0..9_u16).flat_map(|number| {
        let (begin, step) = (i64::from(number) * 2300, 300 + i64::from(number));
        let port = if number % 3 == 0 { 53 } else { 7 };
        let times = (0..30).map(move |at| (at, begin + at * step));
        times.take_while(|(_, time)| *time < 20_000).map(move |(at, time)| {
            let asks = (port == 53 && at > 20).then_some(if number == 3 { 2 } else { 3 });
            datagram((100 + number, port), time * APART_NS + 5, (40, asks))
        })
    });
    let mut packets: Vec<Packet> = short.chain(long).collect();
    packets.sort_by_key(|packet| packet.timestamp);
    Traffic { interfaces: vec![ethernet("eth0")], packets, blocks: Vec::new() }
}

fn volume(slice_ns: Option<i64>) -> Volume {
    let config = Config { slice_ns, ..endless() };
    Volume::of(&traffic(), How { segment_pieces: Some(usize::MAX), config, ..How::default() })
}

/// The sessions that are asked for, and what that cost.
fn sought(
    volume: &Volume,
    text: &str,
    (newest_first, limit): (bool, u64),
) -> (Vec<Found>, Explain) {
    let query = Query::parse(text, Timestamp(0)).unwrap();
    let asked = Sought { limit: Some(limit), newest_first, ..Sought::new(&query) };
    let (mut all, clock) = (Vec::new(), ManualClock::new(Timestamp(0)));
    let report = find_columns(&volume.options(), &asked, &clock, &mut |event| {
        if let found::Event::Found(found) = event {
            all.push(found.clone());
        }
        ControlFlow::Continue(())
    });
    (all, report.unwrap().explain)
}

#[test]
fn few_sessions_of_several_row_groups_are_the_first_of_all() {
    for slice_ns in [None, Some(NANOS_PER_SECOND)] {
        let volume = volume(slice_ns);
        let all = found(&volume, "");
        assert_eq!(all.len(), usize::from(SHORT) + 9);
        assert!(all.len() > 2 * GROUP_ROWS);
        assert_eq!(all.iter().any(|found| found.rows.len() > 1), slice_ns.is_some());
        let questions = [
            "",
            "port 7",
            "orig_port = 30000",
            "orig_port = 49999",
            "port 40404 or port 104",
            "bytes > 65",
            "duration > 3s",
            "packets > 1 and resp_port = 7",
            "host 10.0.1.100",
            "portrange 38000-38100 and bytes > 65",
            "tcp",
            "app dns",
            "dns.type = 1",
            "dns.name = h0",
            "dns.name = h1",
            "dns.name = h2",
            "dns.name = h3",
            "dns.name = h4",
            "dns.name = h3 and packets > 1",
            "dns.name = h3 and after 1970-01-01T00:00:09Z",
            "dns.name = h3 and before 1970-01-01T00:00:09Z",
            "dns.name = h2 and before 1970-01-01T00:00:12Z",
            "udp and before 1970-01-01T00:00:07Z and after 1970-01-01T00:00:03Z",
            "before 1970-01-01T00:00:03Z and after 1970-01-01T00:00:07Z",
            "dns.name = h2 and before 1970-01-01T00:00:03Z and after 1970-01-01T00:00:07Z",
        ];
        for text in questions {
            let query = Query::parse(text, Timestamp(0)).unwrap();
            let whole = all.iter().filter(|found| query.matches(&found.session, &found.rows));
            let mut whole: Vec<Found> = whole.cloned().collect();
            assert_eq!(found(&volume, text), whole, "{text}");
            for newest_first in [false, true] {
                for limit in [1, 100, 257, 9000] {
                    let (few, _) = sought(&volume, text, (newest_first, limit));
                    let expected = whole.len().min(usize::try_from(limit).unwrap());
                    let whole = &whole[..expected];
                    let differ = few.iter().zip(whole).find(|(one, other)| one != other);
                    let counts = (few.len(), expected);
                    assert!(few == whole, "{newest_first} {counts:?} of {text}: {differ:#?}");
                }
                whole.reverse();
            }
        }
    }
}

#[test]
fn few_sessions_cost_few_row_groups() {
    let volume = volume(None);
    // The index is made when it is asked for first.
    let count = u64::from(SHORT) + 9;
    let rows = u64::try_from(GROUP_ROWS).unwrap();
    let questions = [
        "",
        "bytes > 65",
        "udp",
        "app dns",
        "dns.type = 1",
        "dns.name = h0 or dns.name = h3",
        "dns.name = h3",
        "app dns and before 1970-01-01T00:00:19Z",
        "before 1970-01-01T00:00:19Z",
    ];
    for newest_first in [false, true] {
        for text in questions {
            let (all, of_all) = sought(&volume, text, (newest_first, count));
            for limit in [5, 300] {
                let (few, of_few) = sought(&volume, text, (newest_first, limit));
                assert_eq!(few, all[..few.len()], "{text}");
                assert_eq!(few.len(), usize::try_from(limit).unwrap(), "{text}");
                let (few, all) = (of_few.index_bytes, of_all.index_bytes);
                println!("{newest_first} {limit} {text}: {few} of {all}, {} rows", of_few.rows);
                assert!(few * 3 < all * 2, "{few} of {all}: {text}");
                // A look and the search, each in one. The newest before a time also need who was
                // alive then, which here may be any.
                let is_bounded = !(newest_first && text.contains("before"));
                assert!(!is_bounded || of_few.rows <= 2 * rows, "{} rows: {text}", of_few.rows);
            }
        }
    }
}
