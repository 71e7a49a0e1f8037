//! The owner against workers that do what they should, and against others.

use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use device::Buffer;
use format::head::HEAD_BYTES;
use format::piece::{EncodedInterface, InterfaceFields, PacketParts, PieceBuilder};
use host::SystemClock;
use units::{Epoch, InterfaceId, Sequence, Timestamp};
use wire::LinkType;

use super::*;
use crate::message::Rest;
use crate::{Fate, Faulty, InThread, Launch, Seen};

const PIECE_BYTES: usize = 64 << 10;
const WAIT: Duration = Duration::from_millis(20);

fn udp(port: u8) -> Vec<u8> {
    let mut packet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46];
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x90]);
    packet.extend([port, 0, 53, 0, 26, 0, 0]);
    packet.resize(60, 7);
    packet
}

/// A sealed piece with `count` packets of as many sessions.
fn piece(pool: &Pool, count: u8) -> Piece {
    piece_at(pool, count, 0)
}

/// The same with packets from this time on.
fn piece_at(pool: &Pool, count: u8, from_ns: i64) -> Piece {
    let mut column: Buffer = pool.take().unwrap();
    let interface = EncodedInterface::new(&InterfaceFields {
        id: InterfaceId(0),
        link_type: LinkType::ETHERNET,
        name: "eth0",
        snaplen: 0,
        recording: "",
        options: &[],
    });
    let mut builder = PieceBuilder::new(column.len());
    for port in 0..count {
        let packet = udp(port);
        let parts = PacketParts {
            timestamp: Timestamp(from_ns + i64::from(port)),
            original_len: 60,
            parts: [&packet, &[], &[]],
            options: &[],
        };
        assert!(builder.push(&mut column, &interface, &parts));
    }
    let rows = builder.rows();
    let rows = builder.finish(&mut column, &[], &mut Vec::new(), rows);
    let end = HEAD_BYTES * (1 + usize::from(rows));
    let starts = builder.into_starts();
    Piece { memory: 0, buffer: column.freeze(), column: 0, body: HEAD_BYTES..end, starts }
}

fn id(sequence: u64) -> StripeId {
    StripeId { sequence: Sequence(sequence), sub: 0 }
}

fn stripe(pool: &Pool, sequence: u64) -> Stripe {
    Stripe { pieces: vec![piece(pool, 3)], ..stripe_without_pieces(sequence) }
}

fn stripe_without_pieces(sequence: u64) -> Stripe {
    Stripe {
        run_kind: RunKind::Live,
        id: id(sequence),
        epoch: Epoch(1),
        is_late: false,
        without_names: false,
        packets: 3,
        times: Times { min: Timestamp(0), max: Timestamp(2) },
        slot_cid: None,
        pieces: Vec::new(),
    }
}

fn closing(first: u64, last: u64) -> Closing {
    Closing {
        run_kind: RunKind::Live,
        first: id(first),
        last: id(last),
        epoch: Epoch(1),
        times: Times { min: Timestamp(0), max: Timestamp(2) },
        packets: 3 * (last - first + 1),
        missed_packets: 0,
        left_out: Vec::new(),
        index_bytes_max: 1 << 20,
        rest: Rest::GoesOn,
    }
}

fn owner(pool: &Pool, launch: Arc<dyn Launch>) -> Owner {
    Owner::new(Setup {
        volume: VolumeId([1; 16]),
        hash_seed: 1,
        sessions: Some(Config::default()),
        memories: vec![pool.clone()],
        workers: Workers::new(launch),
    })
}

fn pool() -> Pool {
    Pool::shared(8, PIECE_BYTES).unwrap()
}

/// Workers that meet this fate when they are given what `is_meant`, so many times in all.
fn faulty(
    fate: Fate,
    times: u32,
    is_meant: impl Fn(Seen) -> bool + Send + Sync + 'static,
) -> Arc<dyn Launch> {
    let left = Mutex::new(times);
    Arc::new(Faulty::new(move |seen| {
        let mut left = left.lock().unwrap();
        let meets = is_meant(seen) && *left > 0;
        *left -= u32::from(meets);
        meets.then(|| fate.clone())
    }))
}

/// Anything behind the first frame.
fn any_request(seen: Seen) -> bool {
    seen.frames > 0
}

/// Polls until something happens.
fn next(owner: &mut Owner) -> Event {
    for _ in 0..1000 {
        if let Some(event) = owner.poll(&SystemClock, WAIT) {
            return event;
        }
    }
    panic!("nothing happens: {owner:?}");
}

#[test]
fn stripes_are_answered_in_order_and_a_segment_comes_back() {
    let pool = pool();
    let mut owner = owner(&pool, Arc::new(InThread));
    for sequence in 1..=4 {
        owner.push(stripe(&pool, sequence));
    }
    assert!(!owner.has_room() && pool.free_count() == 4);
    for sequence in 1..=4 {
        let Event::Taken(stripe, taken) = next(&mut owner) else { panic!() };
        assert_eq!((stripe.id, taken.packets, taken.malformed), (id(sequence), 3, None));
    }
    assert!(owner.close(closing(1, 4), &SystemClock).is_none());
    let Event::Segment(closing, encoded) = next(&mut owner) else { panic!() };
    assert_eq!((closing.first, encoded.summary.sessions, encoded.summary.packets), (id(1), 3, 12));
    assert!(owner.is_idle() && owner.poll(&SystemClock, WAIT).is_none());
    assert_eq!((pool.free_count(), owner.deaths()), (8, 0));
}

#[test]
fn a_stripe_that_ends_two_workers_is_poison_and_the_others_have_rows() {
    let pool = pool();
    let started = Arc::new(Mutex::new(0));
    let starts = Arc::clone(&started);
    let launch = faulty(Fate::Crashes, u32::MAX, move |seen| {
        *starts.lock().unwrap() += usize::from(seen.frames == 0);
        seen.stripe == Some(id(2))
    });
    let mut owner = owner(&pool, launch);
    for sequence in 1..=4 {
        owner.push(stripe(&pool, sequence));
    }
    let mut seen = Vec::new();
    while !owner.is_idle() {
        match next(&mut owner) {
            Event::Taken(stripe, _) => seen.push(("taken", stripe.id.sequence.get())),
            Event::Died(death) => seen.push(("died", u64::from(death.by_itself))),
            Event::Poison(stripe) => seen.push(("poison", stripe.id.sequence.get())),
            other => panic!("{other:?}"),
        }
    }
    let (died, others): (Vec<_>, Vec<_>) = seen.into_iter().partition(|(what, _)| *what == "died");
    assert_eq!(died, [("died", 1); 2]);
    assert_eq!(others, [("taken", 1), ("poison", 2), ("taken", 3), ("taken", 4)]);
    assert!(owner.is_poison(id(2)) && !owner.is_poison(id(3)));
    assert_eq!((*started.lock().unwrap(), pool.free_count()), (3, 8));
    // It is handed to no third.
    owner.push(stripe(&pool, 2));
    assert!(matches!(next(&mut owner), Event::Poison(_)));
}

#[test]
fn poison_among_others_is_not_sent_again_and_a_suspect_is_sent_alone() {
    let pool = pool();
    let ended = Arc::new(Mutex::new(Vec::new()));
    let ends = Arc::clone(&ended);
    let launch = faulty(Fate::Crashes, u32::MAX, move |seen| {
        let is_meant = seen.stripe.is_some_and(|stripe| stripe.sequence.get() % 2 == 0);
        ends.lock().unwrap().extend(seen.stripe.filter(|_| is_meant));
        is_meant
    });
    let mut owner = owner(&pool, launch);
    // As when a stretch is made anew: the same ones, again and again.
    for _ in 0..5 {
        (1..=4).for_each(|sequence| owner.push(stripe(&pool, sequence)));
        while !owner.is_idle() {
            next(&mut owner);
        }
    }
    assert_eq!(*ended.lock().unwrap(), [id(2), id(2), id(4), id(4)]);
    assert_eq!(owner.deaths(), 4);
}

#[test]
fn a_stripe_is_not_blamed_when_somebody_kills_workers() {
    let pool = pool();
    let mut owner = owner(&pool, faulty(Fate::IsKilled, 5, any_request));
    owner.push(stripe(&pool, 1));
    for _ in 0..5 {
        assert!(matches!(next(&mut owner), Event::Died(Death { by_itself: false, .. })));
    }
    assert!(matches!(next(&mut owner), Event::Taken(..)));
    assert_eq!((owner.deaths(), owner.is_poison(id(1))), (5, false));
    // Each reported that it used a second.
    assert_eq!(owner.end(), 6 * Faulty::CPU);
}

#[test]
fn segments_under_way_are_given_back_when_the_worker_dies() {
    let pool = pool();
    let mut owner = owner(&pool, faulty(Fate::Crashes, u32::MAX, |seen| seen.closes));
    owner.push(stripe(&pool, 1));
    assert!(matches!(next(&mut owner), Event::Taken(..)));
    assert!(owner.close(closing(1, 1), &SystemClock).is_none());
    let Event::Died(death) = next(&mut owner) else { panic!() };
    assert_eq!(death.closings, [closing(1, 1)]);
    assert!(owner.is_idle());
}

/// What a worker may say that breaks a rule, sent in place of the answer to a stripe.
fn lies() -> Vec<(&'static str, Vec<u8>)> {
    let say = |answer: Answer| {
        let mut bytes = Vec::new();
        answer.encode(&mut bytes);
        bytes
    };
    let taken = Taken { packets: 3, ..Taken::default() };
    let summary = format::directory::Summary {
        first: id(1),
        last: id(1),
        time_min: Timestamp(0),
        time_max: Timestamp(0),
        sessions: 0,
        packets: 0,
        unindexed: false,
        gaps: false,
        unread: false,
    };
    let segment = Answer::Segment(SegmentHead { summary, parquet_bytes: u64::MAX });
    vec![
        ("a segment that was not asked for", say(segment)),
        ("too many packets", say(Answer::Taken(id(1), Taken { packets: 4, ..taken }))),
        (
            "more unread than packets",
            say(Answer::Taken(id(1), Taken { unread: u64::MAX, ..taken })),
        ),
        (
            "two answers",
            [say(Answer::Taken(id(1), taken)), say(Answer::Taken(id(1), taken))].concat(),
        ),
        ("another version", say(Answer::Hello { version: 1, notes: Vec::new() })),
        ("a failure of nothing", say(Answer::Failed(String::new()))),
        ("a long frame", [&u32::MAX.to_le_bytes()[..], &[18, 0, 0, 0]].concat()),
        ("noise", vec![0x5a; 100]),
    ]
}

#[test]
fn a_worker_that_breaks_a_rule_is_ended_and_the_next_one_is_believed() {
    for (what, lie) in lies() {
        let pool = pool();
        let mut owner = owner(&pool, faulty(Fate::Says(lie), 1, any_request));
        owner.push(stripe(&pool, 1));
        let mut events = vec![next(&mut owner)];
        if matches!(events[0], Event::Taken(..)) {
            // The second answer shows when another is awaited.
            owner.push(stripe(&pool, 2));
            events = vec![next(&mut owner)];
        }
        assert!(
            matches!(&events[0], Event::Died(Death { by_itself: true, .. })),
            "{what}: {events:?}"
        );
        assert!(matches!(next(&mut owner), Event::Taken(..)), "{what}");
    }
}

#[test]
fn a_segment_larger_than_its_packets_explain_is_not_taken() {
    let pool = pool();
    let mut owner = owner(&pool, Arc::new(InThread));
    owner.push(stripe(&pool, 1));
    assert!(matches!(next(&mut owner), Event::Taken(..)));
    let closing = Closing { index_bytes_max: 100, ..closing(1, 1) };
    assert!(owner.close(closing, &SystemClock).is_none());
    assert!(matches!(next(&mut owner), Event::Died(Death { by_itself: true, .. })));
}

#[test]
fn a_worker_that_hangs_is_ended_after_its_silence_and_a_paused_machine_is_no_silence() {
    let pool = pool();
    let has_it = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&has_it);
    let is_meant = move |seen| {
        told.fetch_or(any_request(seen), Ordering::SeqCst);
        any_request(seen)
    };
    let mut owner = owner(&pool, faulty(Fate::Hangs, 1, is_meant));
    owner.push(stripe(&pool, 1));
    let clock = units::ManualClock::new(Timestamp(0));
    // Whatever a busy machine takes for a thread: it counts from when the worker has its request.
    while !has_it.load(Ordering::SeqCst) {
        assert!(owner.poll(&clock, Duration::from_millis(1)).is_none());
    }
    // The machine was off for an hour: that counts as a second.
    let (hour, second) = (3600 * NANOS_PER_SECOND, NANOS_PER_SECOND);
    for step in [0, hour, hour, hour] {
        clock.advance_nanos(step);
        assert!(owner.poll(&clock, Duration::from_millis(1)).is_none());
    }
    let mut seconds = 2;
    let event = loop {
        clock.advance_nanos(second);
        seconds += 1;
        if let Some(event) = owner.poll(&clock, Duration::from_millis(1)) {
            break event;
        }
    };
    assert!(matches!(event, Event::Died(Death { by_itself: true, .. })));
    assert!((58..=62).contains(&seconds), "{seconds}");
    clock.advance_nanos(second);
    let answer = core::iter::repeat_with(|| owner.poll(&clock, WAIT)).take(100).flatten().next();
    assert!(matches!(answer, Some(Event::Taken(..))), "{answer:?}");
}

/// Workers that cannot be started.
#[derive(Debug)]
struct Nobody;

impl Launch for Nobody {
    fn start(&self, _stream: OwnedFd, _memories: &[Pool]) -> io::Result<Box<dyn Process>> {
        Err(io::Error::other("no more processes"))
    }
}

#[test]
fn without_workers_stripes_are_given_back_and_it_is_told_once() {
    let pool = pool();
    let mut owner = owner(&pool, Arc::new(Nobody));
    owner.push(stripe(&pool, 1));
    owner.push(stripe(&pool, 2));
    for sequence in [1, 2] {
        let Event::Unavailable(stripe) = next(&mut owner) else { panic!() };
        assert_eq!(stripe.id, id(sequence));
    }
    assert!(owner.is_unavailable() && owner.is_idle());
    assert_eq!(owner.take_notes(), ["the indexer cannot be started: no more processes"]);
    let Some(Event::Died(death)) = owner.close(closing(1, 2), &SystemClock) else { panic!() };
    assert_eq!(death.closings, [closing(1, 2)]);
}

#[test]
fn a_piece_outside_of_the_memory_ends_the_worker_and_nothing_else() {
    let pool = pool();
    let mut owner = owner(&pool, Arc::new(InThread));
    let mut outside = stripe(&pool, 1);
    outside.pieces[0].body = 4096..PIECE_BYTES + 4096;
    owner.push(outside);
    for _ in 0..2 {
        assert!(matches!(next(&mut owner), Event::Died(Death { by_itself: true, .. })));
    }
    assert!(matches!(next(&mut owner), Event::Poison(_)));
    assert_eq!(pool.free_count(), 8);
}

/// Hands over stripes of three sessions each, by their numbers and in this order, those that are
/// said to be late so; gives for each row of the segment when it and its session began.
fn sessions_of(order: &[(u64, bool)], next_segment: &[u64]) -> Vec<(i64, i64, u64)> {
    let pool = pool();
    let mut owner = owner(&pool, Arc::new(InThread));
    let hand_over = |sequence: u64, is_late: bool, owner: &mut Owner| {
        let from_ns = i64::try_from(sequence).unwrap() * NANOS_PER_SECOND;
        let times = Times { min: Timestamp(from_ns), max: Timestamp(from_ns + 2) };
        let pieces = vec![piece_at(&pool, 3, from_ns)];
        owner.push(Stripe { is_late, times, pieces, ..stripe_without_pieces(sequence) });
        assert!(matches!(next(owner), Event::Taken(..)));
    };
    let mut rows = Vec::new();
    for (stripes, rest) in [
        (order.to_vec(), Rest::GoesOn),
        (next_segment.iter().map(|&sequence| (sequence, false)).collect(), Rest::Last),
    ] {
        for &(sequence, is_late) in &stripes {
            hand_over(sequence, is_late, &mut owner);
        }
        let numbers = || stripes.iter().map(|(sequence, _)| *sequence);
        let (Some(first), Some(last)) = (numbers().min(), numbers().max()) else { continue };
        let second = |sequence: u64| i64::try_from(sequence).unwrap() * NANOS_PER_SECOND;
        let times = Times { min: Timestamp(second(first)), max: Timestamp(second(last) + 2) };
        let closing = Closing { times, rest, ..closing(first, last) };
        assert!(owner.close(closing, &SystemClock).is_none());
        let Event::Segment(_, encoded) = next(&mut owner) else { panic!() };
        let segment = index::Segment::open(encoded.parquet.into()).unwrap();
        let all = Timestamp::MIN..=Timestamp::MAX;
        let mut visit = |_, row: session::SessionRow| {
            let packets = row.orig.packets + row.resp.packets;
            rows.push((row.session_start.0, row.start.0, packets));
            core::ops::ControlFlow::Continue(())
        };
        segment.rows(index::Columns::All, &all, &mut visit).unwrap();
    }
    rows
}

/// When the sessions began, in all rows, and how many packets they have.
fn begins(rows: &[(i64, i64, u64)]) -> (Vec<i64>, u64) {
    let mut begins: Vec<i64> = rows.iter().map(|(session, ..)| *session).collect();
    begins.sort_unstable();
    begins.dedup();
    (begins, rows.iter().map(|(.., packets)| packets).sum())
}

#[test]
fn packets_that_come_late_are_of_the_sessions_around_them() {
    let at = |second: i64| (0..3).map(|port| second * NANOS_PER_SECOND + port).collect::<Vec<_>>();
    // In the middle of a session; at its beginning; nothing of it is in time so far.
    let middle = [(1, false), (3, false), (4, false), (2, true)];
    assert_eq!(begins(&sessions_of(&middle, &[5])), (at(1), 15));
    let beginning = [(2, false), (3, false), (1, true)];
    assert_eq!(begins(&sessions_of(&beginning, &[4])), (at(1), 12));
    assert_eq!(begins(&sessions_of(&[(1, true), (2, true)], &[3])), (at(1), 9));
    // After a longer silence another session begins.
    let (both, packets) = begins(&sessions_of(&[(1, true)], &[100]));
    assert_eq!((both, packets), ([at(1), at(100)].concat(), 6));
}
