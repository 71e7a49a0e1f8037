//! Flash that gets discards ahead of the head: nothing that was promised goes with
//! it, whatever crash comes, and the next mount finds the head as fast as ever.

use device::{Crash, Fault, Modelled, OPERATIONS, Operation, Rule};
use units::{MemberId, Sequence};
use writer::{Opener, mount};

use crate::ring::{Ring, boxed};

const DISCARDS: &[Operation] = &[Operation::Discard];

/// Members 0 and 1 of three are flash.
fn flash() -> (Ring, writer::Writer) {
    let ring = Ring::new(2, 1);
    let mut writer = ring.mount();
    for member in [0, 1] {
        writer.discard_ahead(MemberId(member), true);
    }
    (ring, writer)
}

fn close_and_check(ring: &Ring, mut writer: writer::Writer) {
    writer.drain(&ring.timeline).unwrap();
    let acknowledged = writer.acknowledged();
    writer.close(&ring.timeline).unwrap();
    ring.check(&ring.disks, acknowledged);
}

#[test]
fn nothing_promised_is_discarded_and_a_crash_finds_the_head_without_a_scan() {
    let (mut ring, mut writer) = flash();
    let slots = writer.geometry().slots;
    for round in 0_u64..60 {
        let before = writer.counters().discarded_bytes;
        ring.append(&mut writer, 200).unwrap();
        let acknowledged = writer.acknowledged();
        // The next head says so to readers.
        ring.append(&mut writer, 1).unwrap();
        ring.check(&ring.disks, acknowledged);
        assert!(writer.counters().discarded_bytes > before, "round {round}");
        let crashed = |disk: &Modelled| disk.crash(Crash::Rows { seed: round });
        let crashed: Vec<Modelled> = ring.disks.iter().map(crashed).collect();
        let (after, recovery) = mount(boxed(&crashed), &Opener::alone(&ring.timeline)).unwrap();
        assert!(!recovery.scanned_all && recovery.damaged == 0, "round {round}: {recovery:?}");
        assert!(after.acknowledged() > writer.acknowledged());
        drop(after);
        ring.check(&crashed, acknowledged);
    }
    assert!(writer.acknowledged().sequence > Sequence(4 * slots), "several laps");
    let [first, second, other] = [0, 1, 2].map(|member: usize| ring.disks[member].work());
    assert_eq!(other.discarded_bytes, 0, "it did not ask for it");
    assert_eq!(first.discarded_bytes, second.discarded_bytes);
    // Three laps on two members at least: nearly every slot that was written again.
    let ring_bytes = slots * u64::from(writer.geometry().piece_bytes);
    assert!(first.discarded_bytes > 3 * ring_bytes, "{} bytes", first.discarded_bytes);
}

#[test]
fn a_discard_that_fails_is_the_last_one_and_harms_nobody() {
    let (mut ring, mut writer) = flash();
    ring.disks[0].add_rule(Rule::new(Fault::Error, DISCARDS).after(2).times(1));
    ring.append(&mut writer, 200).unwrap();
    let told = ring.disks[0].work().discarded_bytes;
    ring.append(&mut writer, 200).unwrap();
    assert_eq!(ring.disks[0].work().discarded_bytes, told);
    assert!(ring.disks[1].work().discarded_bytes > told, "the other goes on");
    assert!(writer.expelled().is_empty());
    close_and_check(&ring, writer);
}

#[test]
fn no_slot_is_erased_while_it_is_discarded() {
    let mut ring = Ring::new(2, 1);
    let mut writer = ring.mount();
    // More than once round.
    for _ in 0..6 {
        ring.append(&mut writer, 200).unwrap();
    }
    let second = 1_000_000_000;
    let slow = Rule::new(Fault::Slow { latency_ns: second }, DISCARDS);
    ring.disks[0].add_rule(slow);
    writer.leave_slot(&ring.timeline).unwrap();
    writer.give_up_before(Sequence::MAX, &ring.timeline).unwrap();
    writer.drain(&ring.timeline).unwrap();
    writer.discard_ahead(MemberId(0), true);
    writer.poll(None, &ring.timeline).unwrap();
    assert!(writer.counters().discarded_bytes > 0, "a discard is under way");
    let left = writer.left_to_erase();
    assert!(left > 10, "{left}");
    // The oldest slots are the ones ahead of the head.
    for _ in 0..90 {
        assert!(writer.erase_next(&ring.timeline).unwrap());
        writer.poll(None, &ring.timeline).unwrap();
        assert_eq!(writer.left_to_erase(), left, "it would be erased under the discard");
        ring.timeline.advance_by(second / 100);
    }
    writer.discard_ahead(MemberId(0), false);
    while writer.erase_next(&ring.timeline).unwrap() || !writer.is_all_durable() {
        writer.poll_at_once(&ring.timeline).unwrap();
        ring.timeline.advance_by(second / 100);
    }
    assert_eq!(writer.left_to_erase(), 0, "it goes on when the disk has answered");
    ring.append(&mut writer, 40).unwrap();
    assert!(writer.expelled().is_empty());
    close_and_check(&ring, writer);
}

#[test]
fn who_makes_the_head_wait_is_told_nothing_for_a_while_and_who_never_answers_is_expelled() {
    let (mut ring, mut writer) = flash();
    let slow = Rule::new(Fault::Slow { latency_ns: 500_000_000 }, DISCARDS);
    ring.disks[0].add_rule(slow.times(1));
    ring.append(&mut writer, 250).unwrap();
    writer.drain(&ring.timeline).unwrap();
    let told = ring.disks[0].work().discarded_bytes;
    assert!(told > 0 && ring.disks[1].work().discarded_bytes > told);
    ring.timeline.advance_by(60_000_000_000);
    ring.append(&mut writer, 250).unwrap();
    assert!(ring.disks[0].work().discarded_bytes > told);
    assert!(writer.expelled().is_empty());

    let (mut ring, mut writer) = flash();
    let stuck = Rule::new(Fault::Slow { latency_ns: 3_600_000_000_000 }, OPERATIONS);
    ring.disks[1].add_rule(stuck.times(1));
    ring.append(&mut writer, 250).unwrap();
    assert_eq!(writer.expelled().iter().map(|it| it.member.get()).collect::<Vec<_>>(), [1]);
    close_and_check(&ring, writer);
}
