use proptest::collection::vec;
use proptest::prelude::*;
use units::{Epoch, Sequence};

use super::*;

fn frame_of(bytes: &[u8]) -> (u32, &[u8]) {
    let (head, content) = bytes.split_first_chunk().unwrap();
    let (length, kind) = frame_head(*head);
    assert_eq!(length, content.len());
    (kind, content)
}

pub(crate) fn begin(sessions: Option<Config>) -> Begin {
    let memories = vec![MemoryShape { count: 8, size: 4096 }];
    Begin { volume: VolumeId([9; 16]), hash_seed: 5, sessions, memories }
}

pub(crate) fn closing() -> Closing {
    let at = |sequence, sub| StripeId { sequence, sub };
    Closing {
        run_kind: RunKind::Past,
        first: at(Sequence(1), 2),
        last: at(Sequence::MAX, u16::MAX),
        epoch: Epoch(3),
        times: Times { min: Timestamp(-1), max: Timestamp(i64::MAX) },
        packets: 4,
        missed_packets: 5,
        left_out: vec![LeftOut { first: at(Sequence(6), 0), last: at(Sequence(7), 1), packets: 8 }],
        index_bytes_max: u64::MAX,
        rest: Rest::Last,
    }
}

pub(crate) fn before() -> Before {
    let (number, at, parquet_bytes) = (3, Timestamp(-4), BEFORE_BYTES_MAX);
    Before { run_kind: RunKind::Past, epoch: Epoch(9), number, at, parquet_bytes }
}

pub(crate) fn stripe() -> StripeAt {
    let piece = PieceAt {
        memory: 1,
        buffer: 2,
        column: 3,
        begin: 4,
        end: 5,
        starts: vec![0, 96, u32::MAX],
    };
    StripeAt {
        run_kind: RunKind::Live,
        stripe: StripeId { sequence: Sequence(9), sub: 1 },
        epoch: Epoch(7),
        is_late: true,
        without_names: false,
        pieces: vec![piece.clone(), PieceAt { starts: Vec::new(), ..piece }],
    }
}

pub(crate) fn answers() -> Vec<Answer> {
    let summary = Summary {
        first: StripeId { sequence: Sequence(1), sub: 0 },
        last: StripeId { sequence: Sequence(2), sub: 3 },
        time_min: Timestamp(i64::MIN),
        time_max: Timestamp(i64::MAX),
        sessions: 4,
        packets: 5,
        unindexed: true,
        gaps: false,
        unread: true,
    };
    let gave_way = GaveWay { names: 7, heads: 8, pieces: 9, sessions: 10 };
    let taken =
        Taken { packets: 1, unread: 2, rows: 3, row_bytes: 4, malformed: Some((5, 6)), gave_way };
    vec![
        Answer::Hello { version: 1, notes: vec!["no Landlock".to_owned()] },
        Answer::Taken(StripeId { sequence: Sequence(8), sub: 9 }, taken),
        Answer::Segment(SegmentHead { summary, parquet_bytes: 7 }),
        Answer::Failed("why".to_owned()),
    ]
}

#[test]
fn what_is_said_is_what_is_heard() {
    for sessions in [None, Some(Config { tcp_timeout_ns: None, ..Config::default() })] {
        let begin = begin(sessions);
        let mut bytes = Vec::new();
        begin.encode(&mut bytes);
        let (kind, content) = frame_of(&bytes);
        assert_eq!(Begin::decode(kind, content), Ok(begin));
    }
    let elsewhere = Closing { rest: Rest::Elsewhere, ..closing() };
    let closings = [Request::Close(closing()), Request::Close(elsewhere)];
    let others = [Request::Stripe(stripe()), Request::UseThreads(4), Request::Before(before())];
    for request in others.into_iter().chain(closings) {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        let (kind, content) = frame_of(&bytes);
        assert_eq!(Request::decode(kind, content), Ok(request));
    }
    for answer in answers() {
        let mut bytes = Vec::new();
        answer.encode(&mut bytes);
        let (kind, content) = frame_of(&bytes);
        assert_eq!(Answer::decode(kind, content), Ok(answer));
    }
}

#[test]
fn a_frame_that_is_cut_or_longer_is_refused() {
    let mut bytes = Vec::new();
    Request::Stripe(stripe()).encode(&mut bytes);
    let (kind, content) = frame_of(&bytes);
    for end in 0..content.len() {
        assert!(Request::decode(kind, &content[..end]).is_err(), "{end}");
    }
    assert!(Request::decode(kind, &[content, &[0]].concat()).is_err());
    for answer in answers() {
        let mut bytes = Vec::new();
        answer.encode(&mut bytes);
        let (kind, content) = frame_of(&bytes);
        assert!(Answer::decode(kind, &content[..content.len() - 1]).is_err());
    }
}

#[test]
fn the_largest_stripe_fits_a_frame_and_long_texts_are_cut() {
    // The smallest packet takes 32 bytes of a piece of 2 MiB.
    let piece = PieceAt { starts: vec![7; 65_536], ..stripe().pieces.remove(0) };
    let mut bytes = Vec::new();
    Request::Stripe(StripeAt { pieces: vec![piece; 24], ..stripe() }).encode(&mut bytes);
    assert!(bytes.len() - FRAME_BYTES <= REQUEST_BYTES_MAX);

    let mut bytes = Vec::new();
    Answer::Failed("\u{e4}".repeat(TEXT_BYTES_MAX)).encode(&mut bytes);
    assert!(bytes.len() - FRAME_BYTES <= ANSWER_BYTES_MAX);
    let (kind, content) = frame_of(&bytes);
    assert!(Answer::decode(kind, content).is_ok());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(kind in 0..24_u32, content in vec(any::<u8>(), 0..400)) {
        // What is read says the same again.
        if let Ok(request) = Request::decode(kind, &content) {
            let mut bytes = Vec::new();
            request.encode(&mut bytes);
            prop_assert_eq!(&bytes[FRAME_BYTES..], &content[..]);
        }
        if let Ok(answer) = Answer::decode(kind, &content) {
            let mut bytes = Vec::new();
            answer.encode(&mut bytes);
            prop_assert_eq!(Answer::decode(kind, &bytes[FRAME_BYTES..]).unwrap(), answer);
        }
        if let Ok(begin) = Begin::decode(kind, &content) {
            prop_assert!(begin.memories.len() <= LIST_MAX);
        }
    }

    #[test]
    fn a_flipped_byte_is_read_or_refused(at in 0..200_usize, with in 1..=255_u8) {
        for answer in answers() {
            let mut bytes = Vec::new();
            answer.encode(&mut bytes);
            let place = FRAME_BYTES + at % (bytes.len() - FRAME_BYTES);
            bytes[place] ^= with;
            let (kind, content) = frame_of(&bytes);
            let _read_or_refused = Answer::decode(kind, content).is_ok();
        }
    }
}

/// Seeds of the fuzz target `indexer_frames`: one frame of each kind, and all of them cut and with
/// bytes changed.
#[test]
fn frames_of_every_kind_are_read_one_behind_the_other() {
    let mut bytes = Vec::new();
    let memories = vec![MemoryShape { count: 8, size: 4096 }];
    let sessions = Some(Config::default());
    Begin { volume: VolumeId([9; 16]), hash_seed: 5, sessions, memories }.encode(&mut bytes);
    for request in [Request::Stripe(stripe()), Request::Close(closing()), Request::UseThreads(4)] {
        request.encode(&mut bytes);
    }
    for answer in answers() {
        answer.encode(&mut bytes);
    }
    assert_eq!(crate::untrusted::frames(&bytes), 8);
    for end in 0..bytes.len() {
        assert!(crate::untrusted::frames(&bytes[..end]) < 8);
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        assert!(crate::untrusted::frames(&changed) <= 8);
    }
}
