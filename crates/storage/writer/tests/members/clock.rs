//! Packets expire by the clock as far as something explains what it says.

use format::superblock::Superblock;
use units::{Clock, NANOS_PER_SECOND, Timestamp};
use volume::Retention;
use writer::{ClockDoubt, Writer};

use crate::ring::Ring;

const HOUR_NS: i64 = 3600 * NANOS_PER_SECOND;
const DAY_NS: i64 = 24 * HOUR_NS;
const AGE_NS: i64 = 7 * DAY_NS;
const RETENTION: Retention = Retention { max_age_ns: AGE_NS, erases: true };
/// No clock is right by chance.
const YEARS_NS: i64 = 5 * 365 * DAY_NS;

/// A ring that was recorded into for a while, and closed.
fn recorded() -> Ring {
    let mut ring = Ring::new(2, 1);
    advance(&ring, 300 * DAY_NS);
    go_on(&mut ring, |writer, ring| writer.expire(RETENTION, AGE_NS, &ring.timeline).unwrap());
    ring
}

/// Mounts, does something, records a little, closes; gives the superblock.
fn go_on(ring: &mut Ring, something: impl FnOnce(&mut Writer, &Ring)) -> Superblock {
    let mut writer = ring.mount();
    something(&mut writer, ring);
    ring.append(&mut writer, 10).unwrap();
    writer.drain(&ring.timeline).unwrap();
    let superblock = writer.superblock().clone();
    writer.close(&ring.timeline).unwrap();
    superblock
}

fn advance(ring: &Ring, ns: i64) {
    ring.timeline.advance_by(ns.try_into().unwrap());
}

fn expired(ring: &mut Ring) -> (Timestamp, Option<ClockDoubt>) {
    let mut doubt = None;
    let superblock = go_on(ring, |writer, ring| {
        doubt = writer.clock_doubt(AGE_NS, &ring.timeline);
        writer.expire(RETENTION, AGE_NS, &ring.timeline).unwrap();
    });
    (superblock.expired_through, doubt)
}

#[test]
fn a_clock_that_is_years_ahead_expires_nothing_however_often_it_says_so() {
    let mut ring = recorded();
    let begun = ring.timeline.realtime();
    ring.timeline.jump_realtime(YEARS_NS);
    for _ in 0..5 {
        // What is recorded meanwhile has that time in its heads.
        let (through, doubt) = expired(&mut ring);
        assert!(through.since(begun) < -AGE_NS + HOUR_NS, "{through}");
        assert!(matches!(doubt, Some(ClockDoubt::Ahead { .. })), "{doubt:?}");
        advance(&ring, HOUR_NS / 10);
    }
    ring.timeline.jump_realtime(-YEARS_NS);
    let (through, doubt) = expired(&mut ring);
    assert_eq!(doubt, None);
    let now = ring.timeline.realtime();
    assert!(now.since(through) >= AGE_NS && now.since(through) < AGE_NS + HOUR_NS, "{through}");
}

#[test]
fn a_volume_into_which_nobody_recorded_yet_waits_as_long_as_the_machine_is_up() {
    let mut ring = Ring::new(2, 1);
    advance(&ring, 300 * DAY_NS);
    assert_eq!(expired(&mut ring).1, None);
    let mut ring = Ring::new(2, 1);
    ring.timeline.jump_realtime(300 * DAY_NS);
    let (_, doubt) = expired(&mut ring);
    assert!(matches!(doubt, Some(ClockDoubt::Ahead { .. })), "{doubt:?}");
}

#[test]
fn a_clock_that_jumps_while_recording_expires_nothing_either() {
    let mut ring = recorded();
    go_on(&mut ring, |writer, ring| {
        let before = writer.superblock().expired_through;
        ring.timeline.jump_realtime(YEARS_NS);
        writer.expire(RETENTION, AGE_NS, &ring.timeline).unwrap();
        let through = writer.superblock().expired_through;
        assert!(through.since(before) < HOUR_NS, "{before} to {through}");
        assert_eq!(writer.erasable_through(AGE_NS, &ring.timeline), through);
    });
}

#[test]
fn time_that_passed_expires_whether_anybody_recorded_or_not() {
    for off_ns in [HOUR_NS, DAY_NS, 30 * DAY_NS] {
        let mut ring = recorded();
        // The machine was on.
        advance(&ring, off_ns);
        let (through, doubt) = expired(&mut ring);
        assert_eq!(doubt, None, "{off_ns}");
        let age_ns = ring.timeline.realtime().since(through);
        assert!((AGE_NS..AGE_NS + HOUR_NS).contains(&age_ns), "{off_ns}: {age_ns}");
    }
    // It was off for a night.
    let mut ring = recorded();
    ring.timeline.jump_realtime(12 * HOUR_NS);
    let (through, doubt) = expired(&mut ring);
    assert!(doubt.is_none() && ring.timeline.realtime().since(through) < AGE_NS + HOUR_NS);
}

#[test]
fn somebody_who_knows_makes_packets_expire_and_come_back() {
    let mut ring = recorded();
    ring.timeline.jump_realtime(YEARS_NS);
    let wrong = go_on(&mut ring, |writer, ring| {
        writer.expire_by_clock(RETENTION, AGE_NS, &ring.timeline).unwrap();
        assert_eq!(writer.clock_doubt(AGE_NS, &ring.timeline), None);
    });
    assert!(ring.timeline.realtime().since(wrong.expired_through) < AGE_NS + HOUR_NS);

    // It was wrong. What comes now would not be given out, but is not erased.
    ring.timeline.jump_realtime(-YEARS_NS);
    let through = go_on(&mut ring, |writer, ring| {
        let now = ring.timeline.realtime();
        let expired_through = wrong.expired_through;
        let doubt = writer.clock_doubt(AGE_NS, &ring.timeline);
        assert_eq!(doubt, Some(ClockDoubt::Behind { now, expired_through }));
        assert_eq!(writer.clock_doubt(0, &ring.timeline), doubt, "also without a maximum age");
        writer.expire(RETENTION, AGE_NS, &ring.timeline).unwrap();
        assert_eq!(writer.superblock().expired_through, expired_through, "it stays hidden");
        assert!(now.since(writer.erasable_through(AGE_NS, &ring.timeline)) >= AGE_NS);
        writer.expire_by_clock(RETENTION, AGE_NS, &ring.timeline).unwrap();
        assert_eq!(writer.clock_doubt(AGE_NS, &ring.timeline), None);
    });
    assert!(ring.timeline.realtime().since(through.expired_through) >= AGE_NS);
    // Without a maximum age all of it comes back.
    let all = go_on(&mut ring, |writer, ring| {
        writer.expire_by_clock(Retention::default(), 0, &ring.timeline).unwrap();
    });
    assert_eq!(all.expired_through, Timestamp::MIN);
}
