use super::*;
use format::head::{StripeId, VolumeId};
use format::session_row::{Direction, State};
use units::{Epoch, Sequence};
use wire::{Address, FiveTuple, Protocol};

fn row(start: i64, port: u16) -> SessionRow {
    let tuple = FiveTuple {
        orig: Address::V4([10, 0, 0, 1].into()),
        resp: Address::V4([10, 0, 0, 2].into()),
        orig_port: port,
        resp_port: 443,
        proto: Protocol::UDP,
    };
    SessionRow {
        end: Timestamp(start + 5),
        orig: Direction { packets: 1, ..Direction::default() },
        state: State::S0,
        ..SessionRow::new(tuple, Timestamp(start))
    }
}

fn meta(sequence: u64) -> SegmentMeta {
    let at = StripeId { sequence: Sequence(sequence), sub: 0 };
    SegmentMeta {
        time_min: Timestamp(0),
        time_max: Timestamp(0),
        packets: 9,
        ..SegmentMeta::new(VolumeId([7; 16]), Epoch(1), at, at)
    }
}

/// Rows that ended during the segment, in no order, and those that its end makes.
fn rows(count: usize) -> (Vec<SessionRow>, Vec<SessionRow>) {
    let all = (0_i64..).zip(0_u16..=u16::MAX).cycle().take(count);
    let all: Vec<SessionRow> = all.map(|(time, port)| row(time * 7 % 5000, port)).collect();
    let (mut ended, mut last) = (all.clone(), all);
    ended.truncate(count / 3);
    last.drain(..count / 3);
    last.sort_by_key(|row| row.start);
    (ended, last)
}

#[test]
fn rows_become_the_file_that_encoding_them_at_once_makes() {
    for threads in [None, Some(1), Some(4)] {
        let (sender, files) = std::sync::mpsc::sync_channel(8);
        let deliver = move |file: Result<Encoded, index::Error>| sender.send(file).unwrap();
        let mut encoder = Encoder::start(Box::new(deliver)).unwrap();
        if let Some(threads) = threads {
            encoder.hire(threads);
        }
        let mut expected = Vec::new();
        for (sequence, count) in [(1, 0), (2, 1), (3, GROUP_ROWS), (4, 3 * GROUP_ROWS + 5)] {
            let (ended, last) = rows(count);
            let all = [ended.clone(), last.clone()].concat();
            expected.push(index::encode(&meta(sequence), &all).unwrap());
            let mut rows = encoder.begin(ended).unwrap();
            rows.extend(last);
            rows.finish(meta(sequence));
        }
        if threads.is_some() {
            encoder.complete();
        }
        drop(encoder);
        let made: Vec<Encoded> = files.iter().map(Result::unwrap).collect();
        assert_eq!(made, expected);
    }
}
