//! Times at the ends of what can be stored, and rows that no indexer writes: every job ends, with
//! what is there.

use core::ops::ControlFlow;
use core::time::Duration;

use extract::{Error, FindReport, Request, extract, find};
use format::session_row::SessionRow;
use found::{Event, Top, Traffic as Plotted};
use packet_output::Target;
use query::{Field, Query};
use session::Config;
use units::{ManualClock, Sequence, Timestamp};

use crate::reader::read;
use crate::recorder::{How, Packet, Traffic, Volume, ethernet};

/// TCP from 10.0.0.1 to 10.0.0.2.
fn segment(port: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 41, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([port.to_be_bytes(), 443_u16.to_be_bytes()].concat());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0, b'x']);
    frame
}

fn traffic(times: &[i64]) -> Traffic {
    let mut traffic = Traffic { interfaces: vec![ethernet("eth0")], ..Traffic::default() };
    for (at, &time) in (0_u16..).zip(times) {
        for port in [1000, 1000 + at] {
            let data = segment(port);
            let original_len = u32::try_from(data.len()).unwrap();
            let timestamp = Timestamp(time);
            let options = Vec::new();
            traffic.packets.push(Packet { interface: 0, timestamp, original_len, data, options });
        }
    }
    traffic
}

/// Finds and sums up what there is.
fn all(volume: &Volume, text: &str, now: Timestamp) -> (u64, FindReport) {
    let query = Query::parse(text, now).unwrap();
    let (mut packets, mut plotted) = (0, Plotted::default());
    let mut top = Top::new(Field::find("duration_ns").or(Field::find("port")).unwrap());
    let clock = ManualClock::new(now);
    let report = find(&volume.options(), &query, None, &clock, &mut |event| {
        if let Event::Found(found) = event {
            packets += found.session.orig.packets + found.session.resp.packets;
            plotted.add(&found.session);
            top.add(found);
        }
        ControlFlow::Continue(())
    });
    assert!(plotted.buckets().map(|(begin, _)| begin).is_sorted());
    (packets, report.unwrap())
}

#[test]
fn times_may_be_the_earliest_and_the_latest() {
    // What is not later than the very first moment counts as expired.
    let (min, max) = (i64::MIN + 1, i64::MAX);
    let orders: [&[i64]; 4] = [
        &[min, 0, max, max, 0, min, 1, min + 1, max - 1],
        &[max, min, max, min],
        &[min, min, max],
        &[max, 0],
    ];
    for times in orders {
        for config in [Config::default(), crate::recorder::endless()] {
            for segment_pieces in [None, Some(1)] {
                let recorded = traffic(times);
                let count = u64::try_from(recorded.packets.len()).unwrap();
                let how = How { segment_pieces, config, ..How::default() };
                let volume = Volume::of(&recorded, how);
                for now in [Timestamp(0), Timestamp::MIN, Timestamp::MAX] {
                    let (packets, report) = all(&volume, "", now);
                    assert_eq!(packets, count, "{times:?}: {report:?}");
                    let asked = [
                        "after 1h ago",
                        "before 1h ago",
                        "before 1677-09-21T00:12:43.145224192Z",
                        "after 2262-04-11T23:47:16.854775807Z",
                        "start_ns >= 1677-09-21T00:12:43.145224193Z and bytes > 1",
                    ];
                    // An hour before the first moment is none, which is said.
                    let asked = asked.into_iter().filter(|text| Query::parse(text, now).is_ok());
                    let answers: Vec<_> = asked.map(|text| all(&volume, text, now)).collect();
                    assert!(answers.len() >= 3);
                }
                extracted(&volume, count);
            }
        }
    }
}

/// Extracts in every way that has to do with times.
fn extracted(volume: &Volume, count: u64) {
    let margins = [None, Some(Duration::from_secs(1)), Some(Duration::MAX)];
    for text in ["", "port 1001"] {
        for around in margins {
            for whole_sessions in [false, true] {
                let query = Query::parse(text, Timestamp(0)).unwrap();
                let request = Request { around, whole_sessions, ..Request::new(&query, text) };
                let (clock, mut out) = (ManualClock::new(Timestamp(0)), Vec::new());
                let report = extract(
                    &volume.options(),
                    &request,
                    Target::Pcapng(&mut out),
                    &clock,
                    &mut |_| ControlFlow::Continue(()),
                );
                let report = report.unwrap();
                assert_eq!(read(&out).frames.len(), usize::try_from(report.packets).unwrap());
                let is_all = text.is_empty() || around == Some(Duration::MAX);
                assert!(!is_all || report.packets == count, "{text} {around:?}: {report:?}");
                // pcap has no such times: that is an error, not an end.
                let target = Target::Pcap(&mut out);
                drop(extract(&volume.options(), &request, target, &clock, &mut |_| {
                    ControlFlow::Continue(())
                }));
            }
        }
    }
}

#[test]
fn rows_of_a_forged_index_find_nothing_more_and_end_nothing() {
    let forgeries: [fn(&mut SessionRow); 7] = [
        |row| row.pieces.iter_mut().for_each(|span| span.piece.column = 23),
        |row| row.pieces.iter_mut().for_each(|span| span.piece.column = 255),
        |row| row.pieces.iter_mut().for_each(|span| span.piece.sequence = Sequence::MAX),
        |row| row.pieces.iter_mut().for_each(|span| span.piece.sub = u16::MAX),
        |row| row.pieces.iter_mut().for_each(|span| (span.begin, span.end) = (4, u32::MAX / 4 * 4)),
        |row| {
            row.orig.packets = u64::MAX;
            row.resp.packets = u64::MAX;
            row.orig.frame_bytes = u64::MAX;
            row.resp.frame_bytes = u64::MAX;
        },
        |row| {
            let span = row.pieces[0];
            row.pieces = vec![span; 1000];
            row.session_start = Timestamp::MAX;
        },
    ];
    let recorded = traffic(&[1, 2, 3]);
    for (number, forge) in forgeries.into_iter().enumerate() {
        let how = How { forge: Some(forge), segment_pieces: Some(1), ..How::default() };
        let volume = Volume::of(&recorded, how);
        let query = Query::parse("host 10.0.0.1", Timestamp(0)).unwrap();
        // A number that no row can have is an error of the index, in a line.
        let is_refused = |error: Error| {
            assert!(matches!(error, Error::Index(_)), "{number}: {error}");
        };
        let found =
            find(&volume.options(), &query, None, &ManualClock::new(Timestamp(0)), &mut |_| {
                ControlFlow::Continue(())
            });
        found.map_or_else(is_refused, |report| assert!(report.sessions <= 6, "{number}"));
        let (clock, mut out) = (ManualClock::new(Timestamp(0)), Vec::new());
        let request = Request::new(&query, "host 10.0.0.1");
        let target = Target::Pcapng(&mut out);
        let report =
            extract(
                &volume.options(),
                &request,
                target,
                &clock,
                &mut |_| ControlFlow::Continue(()),
            );
        report.map_or_else(is_refused, |report| assert!(report.packets <= 6, "{number}"));
    }
}
