//! Members come back, are replaced by blank devices, and are missing from the start. Afterwards as
//! many others as there is parity may go, and everything is still there.

use core::ops::ControlFlow;

use device::{Crash, Device, Fault, MUTATIONS, Modelled, ReadAt, Rule};
use format::superblock::Spare;
use units::{Clock, MemberId, Sequence};
use volume::{Error, Reader};
use writer::{
    Opener, Resilver, Resilvered, Returning, Writer, mount, mount_without, resilver, verify,
};

use crate::ring::{Ring, boxed, disk};

/// Shapes that survive the loss of a member.
const SHAPES: [(u8, u8); 6] = [(1, 1), (1, 2), (2, 1), (2, 2), (4, 2), (3, 2)];

pub(crate) fn make_whole(ring: &Ring, disks: &[Modelled], writer: &mut Writer) -> Resilvered {
    let open = |writer: &Writer| {
        let disks = disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>);
        writer.reader(disks.collect())
    };
    resilver(writer, &open, &ring.timeline, &mut |_, _| ControlFlow::Continue(())).unwrap()
}

/// Whichever members are lost, as many as there is parity, everything is read.
pub(crate) fn check_without(ring: &Ring, writer: Writer, parity: usize) {
    let tail = writer.tail();
    let mut gaps = writer.membership().numbers().map(|member| writer.membership().gap(member));
    assert!(gaps.all(|gap| gap.is_empty() || gap.end <= tail), "{:?}", writer.superblock());
    let acknowledged = writer.acknowledged();
    writer.close(&ring.timeline).unwrap();
    let report = verify(&ring.reader(), &mut |_, _| ControlFlow::Continue(()));
    assert_eq!((report.damage, report.degraded), (Vec::new(), 0));
    for first in 0..ring.disks.len() {
        let mut left = ring.disks.clone();
        for lost in 0..parity {
            left.remove((first + lost) % left.len());
        }
        ring.check(&left, acknowledged);
    }
}

pub(crate) fn spare(number: u8) -> Spare {
    Spare { uuid: [number; 16], path: String::new() }
}

#[test]
fn a_member_that_was_away_is_made_whole() {
    for (data, parity) in SHAPES {
        let mut ring = Ring::new(data, parity);
        let mut writer = without_member_1(&mut ring);
        ring.append(&mut writer, 30).unwrap();
        writer.close(&ring.timeline).unwrap();

        let mut writer = ring.mount();
        let gap = writer.membership().gap(MemberId(1));
        assert!(!gap.is_empty() && gap.end < Sequence::MAX, "{gap:?}");
        let disks = ring.disks.clone();
        let report = make_whole(&ring, &disks, &mut writer);
        assert_eq!((report.lost, report.waits_for), (vec![], vec![]));
        // Only what it missed: what it held before was not written again.
        let slots = gap.end - gap.start;
        let piece_bytes = u64::from(writer.geometry().piece_bytes);
        assert!((1..=slots * piece_bytes).contains(&report.bytes));
        ring.append(&mut writer, 10).unwrap();
        writer.drain(&ring.timeline).unwrap();
        check_without(&ring, writer, usize::from(parity));
    }
}

/// A writer that has gone on without member 1, which is there again.
fn without_member_1(ring: &mut Ring) -> Writer {
    let mut writer = ring.mount();
    ring.append(&mut writer, 20).unwrap();
    lose_member_1(ring, writer)
}

fn lose_member_1(ring: &mut Ring, mut writer: Writer) -> Writer {
    ring.disks[1].vanish(Crash::Rows { seed: 5 });
    ring.append(&mut writer, 20).unwrap();
    assert_eq!(writer.expelled().last().map(|it| it.member), Some(MemberId(1)));
    ring.disks[1].come_back();
    writer
}

fn device_of(ring: &Ring, member: usize) -> Box<dyn Device> {
    Box::new(ring.disks[member].clone())
}

fn take_back(writer: &mut Writer, device: Box<dyn Device>, ring: &Ring) -> Result<MemberId, Error> {
    writer.take_back(Returning::open(device)?, &ring.timeline)
}

#[test]
fn a_member_that_vanished_is_taken_back_by_the_running_writer() {
    for (data, parity) in SHAPES {
        let mut ring = Ring::new(data, parity);
        let mut writer = without_member_1(&mut ring);
        assert!(writer.has_let_go(), "nothing of it is under way");
        assert_eq!(take_back(&mut writer, device_of(&ring, 1), &ring).unwrap(), MemberId(1));
        let gap = writer.membership().gap(MemberId(1));
        assert_eq!(gap.end, writer.acknowledged().sequence, "from the EPOCH on it has everything");
        ring.append(&mut writer, 20).unwrap();
        let done = make_whole(&ring, &ring.disks.clone(), &mut writer);
        assert!(done.bytes > 0 && done.lost.is_empty(), "{done:?}");
        check_without(&ring, writer, usize::from(parity));
    }
}

#[test]
fn who_is_not_the_absent_member_is_not_taken_back() {
    let mut ring = Ring::new(2, 1);
    let mut writer = ring.mount();
    ring.append(&mut writer, 20).unwrap();
    let second = ring.disks[2].snapshot();
    let mut writer = lose_member_1(&mut ring, writer);
    let mut refused = |device: Box<dyn Device>| {
        let error = take_back(&mut writer, device, &ring).unwrap_err();
        assert!(writer.membership().of(MemberId(1)).is_none());
        error
    };
    let present = refused(device_of(&ring, 0));
    assert!(matches!(present, Error::Ahead { member: MemberId(0) }), "{present}");
    let blank = refused(Box::new(disk(&ring.timeline, 9)));
    assert!(matches!(blank, Error::NoSuperblock(_)), "{blank}");
    let stranger = refused(Box::new(Ring::with_id(2, 1, 7).disks[1].clone()));
    assert!(matches!(stranger, Error::ForeignMember { .. }), "{stranger}");
    // Others went on with it: two histories.
    let first = ring.disks[1].snapshot();
    for _ in 0..3 {
        let there = [first.clone(), second.clone()];
        ring.mount_without(&there, &[MemberId(0)]).close(&ring.timeline).unwrap();
    }
    let ahead = refused(Box::new(first));
    assert!(matches!(ahead, Error::Ahead { member: MemberId(1) }), "{ahead}");
}

#[test]
fn who_was_called_gone_is_a_stranger_and_may_fill_the_empty_seat() {
    for (data, parity) in SHAPES {
        let mut ring = Ring::new(data, parity);
        let mut writer = ring.mount();
        ring.append(&mut writer, 20).unwrap();
        writer.close(&ring.timeline).unwrap();
        let mut left = ring.disks.clone();
        let gone = left.remove(1);
        let mut writer = ring.mount_without(&left, &[MemberId(1)]);
        ring.append(&mut writer, 20).unwrap();
        writer.close(&ring.timeline).unwrap();

        let all = ring.disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>);
        let read = Reader::open(all.collect()).map(drop);
        assert!(matches!(read, Err(Error::GivenUp { member: MemberId(1), .. })), "{read:?}");
        let mounted = mount(boxed(&ring.disks), &Opener::alone(&ring.timeline)).map(drop);
        assert!(matches!(mounted, Err(Error::GivenUp { member: MemberId(1), .. })), "{mounted:?}");

        // It is not waited for any more, and there is nothing to say again.
        let mut writer = mount(boxed(&left), &Opener::alone(&ring.timeline)).unwrap().0;
        assert!(
            writer.membership().is_vacant(MemberId(1))
                && writer.membership().absent().next().is_none()
        );
        let back = take_back(&mut writer, Box::new(gone.clone()), &ring);
        assert!(matches!(back, Err(Error::GivenUp { member: MemberId(1), .. })), "{back:?}");

        writer.replace((MemberId(1), spare(77)), Box::new(gone), &ring.timeline).unwrap();
        ring.append(&mut writer, 10).unwrap();
        let disks = ring.disks.clone();
        let report = make_whole(&ring, &disks, &mut writer);
        assert_eq!((report.lost, report.waits_for), (vec![], vec![]));
        check_without(&ring, writer, usize::from(parity));
    }
}

#[test]
fn who_is_gone_for_good_does_not_make_up_for_what_the_newest_epoch_holds() {
    let mut ring = Ring::new(2, 1);
    without_member_1(&mut ring).close(&ring.timeline).unwrap();
    // What was acknowledged since lies on members 0 and 2.
    let left = [ring.disks[1].clone(), ring.disks[2].clone()];
    let error =
        mount_without(boxed(&left), &[MemberId(0)], &Opener::alone(&ring.timeline)).unwrap_err();
    assert!(matches!(error, Error::Quorum { present: 1, needed: 2, .. }), "{error}");
}

#[test]
fn a_crash_at_any_write_of_taking_back_loses_nothing() {
    for (data, parity) in [(1, 1), (2, 1), (2, 2)] {
        for after in 0..24 {
            let mut ring = Ring::new(data, parity);
            let mut writer = without_member_1(&mut ring);
            writer.drain(&ring.timeline).unwrap();
            let acknowledged = writer.acknowledged();
            for disk in &ring.disks {
                disk.add_rule(Rule::new(Fault::Error, MUTATIONS).after(after));
            }
            let taken = take_back(&mut writer, device_of(&ring, 1), &ring);
            let crash = |disk: &Modelled| disk.crash(Crash::Rows { seed: after });
            let crashed: Vec<Modelled> = ring.disks.iter().map(crash).collect();
            drop(writer);
            let mounted = mount(boxed(&crashed), &Opener::alone(&ring.timeline));
            let (mut writer, _) = mounted.unwrap_or_else(|error| panic!("{after}: {error}"));
            assert!(writer.acknowledged() > acknowledged, "{after}");
            let (member, reached) = (writer.membership().is_fresh(MemberId(1)), taken.is_ok());
            assert!(member, "{after}: it takes part ({reached})");
            make_whole(&ring, &crashed, &mut writer);
            writer.close(&ring.timeline).unwrap();
            ring.check(&crashed, acknowledged);
            ring.check(&crashed[1..], acknowledged);
        }
    }
}

#[test]
fn a_blank_device_takes_a_member_s_place() {
    for (data, parity) in SHAPES {
        for is_there in [true, false] {
            let mut ring = Ring::new(data, parity);
            let mut writer = ring.mount();
            ring.append(&mut writer, 60).unwrap();
            if !is_there {
                writer.close(&ring.timeline).unwrap();
                let mut left = ring.disks.clone();
                left.remove(1);
                writer = ring.mount_without(&left, &[MemberId(1)]);
            }
            let blank = disk(&ring.timeline, 77);
            writer
                .replace((MemberId(1), spare(77)), Box::new(blank.clone()), &ring.timeline)
                .unwrap();
            ring.append(&mut writer, 20).unwrap();
            let old = core::mem::replace(&mut ring.disks[1], blank);
            let disks = ring.disks.clone();
            let report = make_whole(&ring, &disks, &mut writer);
            assert_eq!((report.lost, report.waits_for), (vec![], vec![]));
            check_without(&ring, writer, usize::from(parity));

            // The old one has no say any more.
            let mut both = ring.disks.clone();
            both.push(old);
            let both = both.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>);
            let error = Reader::open(both.collect());
            assert!(matches!(error, Err(Error::ReplacedMember { member: MemberId(1), .. })));
        }
    }
}

#[test]
fn a_spare_takes_the_place_of_a_member_that_fails() {
    for (data, parity) in SHAPES {
        let mut ring = Ring::new(data, parity);
        let mut writer = ring.mount();
        let waiting = [91, 92].map(|number| disk(&ring.timeline, number));
        for (number, device) in [91, 92].into_iter().zip(&waiting) {
            writer.add_spare(spare(number), Box::new(device.clone()), &ring.timeline).unwrap();
        }
        ring.append(&mut writer, 30).unwrap();
        ring.disks[0].add_rule(Rule::new(Fault::Error, MUTATIONS));
        ring.append(&mut writer, 10).unwrap();
        writer.drain(&ring.timeline).unwrap();
        assert_eq!(writer.expelled()[0].member, MemberId(0));
        // The first spare is not there any more.
        let second = Box::new(waiting[1].clone());
        writer.replace((MemberId(0), spare(92)), second, &ring.timeline).unwrap();
        assert_eq!(writer.superblock().spares, [spare(91)]);
        ring.disks[0] = waiting[1].clone();
        ring.append(&mut writer, 10).unwrap();
        let disks = ring.disks.clone();
        let report = make_whole(&ring, &disks, &mut writer);
        assert_eq!((report.lost, report.waits_for), (vec![], vec![]));
        check_without(&ring, writer, usize::from(parity));
    }
}

/// What may happen to a member while it is made whole.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    ASpareTakesItsPlace,
    ItLeavesAndReturns,
    AnotherOneLeaves,
    AnotherOneLeavesInTheLastDrain,
}

#[test]
fn what_was_read_for_a_member_is_no_other_s() {
    use Meanwhile::*;
    for (data, parity) in [(2, 1), (2, 2), (4, 2)] {
        let all = [
            ASpareTakesItsPlace,
            ItLeavesAndReturns,
            AnotherOneLeaves,
            AnotherOneLeavesInTheLastDrain,
        ];
        for meanwhile in all {
            if parity < 2 && matches!(meanwhile, AnotherOneLeaves | AnotherOneLeavesInTheLastDrain)
            {
                // Then the member that lacks something is needed, and nothing can be computed.
                continue;
            }
            a_late_repair(Ring::new(data, parity), usize::from(parity), meanwhile);
        }
    }
}

/// A resilver has read a batch for member 1; the members change; what it found comes late.
fn a_late_repair(mut ring: Ring, parity: usize, meanwhile: Meanwhile) {
    let mut writer = without_member_1(&mut ring);
    let waiting = disk(&ring.timeline, 91);
    writer.add_spare(spare(91), Box::new(waiting.clone()), &ring.timeline).unwrap();
    take_back(&mut writer, device_of(&ring, 1), &ring).unwrap();
    ring.append(&mut writer, 5).unwrap();
    writer.drain(&ring.timeline).unwrap();

    let mut work = Resilver::new(writer.reader(readers(&ring)).unwrap(), MemberId(1)).unwrap();
    let batch = work.next_batch(writer.repairable().start).unwrap();
    assert!(!batch.rows.is_empty());
    let fail = |ring: &Ring, member: usize| {
        ring.disks[member].add_rule(Rule::new(Fault::Error, MUTATIONS));
    };
    match meanwhile {
        Meanwhile::ASpareTakesItsPlace => {
            fail(&ring, 1);
            ring.append(&mut writer, 3).unwrap();
            writer.drain(&ring.timeline).unwrap();
            writer
                .replace((MemberId(1), spare(91)), Box::new(waiting.clone()), &ring.timeline)
                .unwrap();
            ring.disks[1] = waiting;
        }
        Meanwhile::ItLeavesAndReturns => {
            writer = lose_member_1(&mut ring, writer);
            take_back(&mut writer, device_of(&ring, 1), &ring).unwrap();
        }
        Meanwhile::AnotherOneLeaves => {
            fail(&ring, 0);
            ring.append(&mut writer, 3).unwrap();
            writer.drain(&ring.timeline).unwrap();
        }
        Meanwhile::AnotherOneLeavesInTheLastDrain => fail(&ring, 0),
    }
    let before = writer.membership().gap(MemberId(1));
    for repair in batch.rows {
        let late = writer.repair(repair, &ring.timeline);
        let is_refused = matches!(late, Err(Error::MembersChanged { member: MemberId(1) }));
        let is_in_time = matches!(meanwhile, Meanwhile::AnotherOneLeavesInTheLastDrain);
        assert!(is_refused || (is_in_time && late.is_ok()), "{meanwhile:?}: {late:?}");
    }
    if matches!(meanwhile, Meanwhile::AnotherOneLeavesInTheLastDrain) {
        ring.append(&mut writer, 1).unwrap();
    }
    let late = writer.set_clean_from(work.seat(), work.clean_from(), &ring.timeline);
    assert!(
        matches!(late, Err(Error::MembersChanged { member: MemberId(1) })),
        "{meanwhile:?}: {late:?}"
    );
    assert!(
        writer.membership().gap(MemberId(1)).end >= before.end,
        "{meanwhile:?}: nothing became clean"
    );

    // Nothing is in the way of doing it properly.
    ring.append(&mut writer, 3).unwrap();
    if writer.membership().of(MemberId(0)).is_none() {
        let blank = disk(&ring.timeline, 77);
        writer.replace((MemberId(0), spare(77)), Box::new(blank.clone()), &ring.timeline).unwrap();
        ring.disks[0] = blank;
    }
    let disks = ring.disks.clone();
    let report = make_whole(&ring, &disks, &mut writer);
    assert_eq!((report.lost, report.waits_for), (vec![], vec![]), "{meanwhile:?}");
    check_without(&ring, writer, parity);
}

fn readers(ring: &Ring) -> Vec<Box<dyn ReadAt>> {
    ring.disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>).collect()
}

#[test]
fn a_newcomer_that_fails_leaves_the_volume_as_it_was() {
    let mut ring = Ring::new(3, 2);
    let mut writer = ring.mount();
    ring.append(&mut writer, 30).unwrap();
    for after in 0..12 {
        let blank = disk(&ring.timeline, 77);
        blank.add_rule(Rule::new(Fault::Error, MUTATIONS).after(after));
        // It may fail inside the change, or at the first stripe.
        let replaced = writer.replace((MemberId(1), spare(77)), Box::new(blank), &ring.timeline);
        ring.append(&mut writer, 5).unwrap();
        writer.drain(&ring.timeline).unwrap();
        assert!(
            replaced.is_ok() || writer.membership().of(MemberId(1)).is_none(),
            "{after}: {replaced:?}"
        );
    }
    let acknowledged = writer.acknowledged();
    writer.close(&ring.timeline).unwrap();
    let mut left = ring.disks.clone();
    left.remove(1);
    ring.check(&left, acknowledged);
    left.remove(0);
    ring.check(&left, acknowledged);
}

#[test]
fn a_volume_made_without_a_member_is_completed() {
    for (data, parity) in SHAPES {
        let mut ring = Ring::without(data, parity, &[data + parity - 1]);
        let blank = ring.disks.pop().unwrap();
        let mut writer = ring.mount();
        ring.append(&mut writer, 40).unwrap();
        let last = data + parity - 1;
        writer
            .replace((MemberId(last), spare(50)), Box::new(blank.clone()), &ring.timeline)
            .unwrap();
        ring.disks.push(blank);
        let disks = ring.disks.clone();
        let report = make_whole(&ring, &disks, &mut writer);
        assert_eq!((report.lost, report.waits_for), (vec![], vec![]));
        check_without(&ring, writer, usize::from(parity));
    }
}

#[test]
fn what_cannot_be_is_refused_and_nothing_changes() {
    let ring = Ring::new(2, 1);
    let mut writer = ring.mount();
    let epoch = writer.epoch();
    let device = || -> Box<dyn Device> { Box::new(disk(&ring.timeline, 9)) };
    let small = || -> Box<dyn Device> { Box::new(Modelled::instant(6 << 20)) };
    let replaced = writer.replace((MemberId(3), spare(9)), device(), &ring.timeline);
    assert!(matches!(
        replaced,
        Err(Error::NoSuchMember { member: MemberId(3), last: MemberId(2) })
    ));
    let replaced = writer.replace((MemberId(1), spare(9)), small(), &ring.timeline);
    assert!(matches!(replaced, Err(Error::Shrunk { .. })));
    let grown = writer.grow(vec![(spare(9), device())], 0, &ring.timeline);
    assert!(matches!(grown, Err(Error::Geometry { .. })), "parity does not become less");
    let grown = writer.grow(vec![(spare(9), small())], 1, &ring.timeline);
    assert!(matches!(grown, Err(Error::Shrunk { .. })));
    assert_eq!(writer.epoch(), epoch);
    assert!(ring.timeline.boottime_ns() >= 0);
}

/// A spare that has nothing yet, and a member that alone has what was recorded before.
#[test]
fn a_member_that_alone_has_something_is_needed() {
    let mut ring = Ring::new(1, 1);
    let mut writer = ring.mount();
    ring.append(&mut writer, 20).unwrap();
    ring.disks[0].vanish(Crash::Rows { seed: 5 });
    ring.append(&mut writer, 5).unwrap();
    assert!(!writer.is_needed(MemberId(0)) && writer.is_needed(MemberId(1)));
    let blank = disk(&ring.timeline, 7);
    writer.replace((MemberId(0), spare(70)), Box::new(blank.clone()), &ring.timeline).unwrap();

    ring.disks[1].add_rule(Rule::new(Fault::Error, MUTATIONS).times(1));
    ring.append(&mut writer, 5).unwrap();
    assert_eq!(writer.expelled().iter().map(|it| it.member.get()).collect::<Vec<_>>(), [0, 1]);
    assert!(writer.is_needed(MemberId(1)));

    // What it alone has the other is given, and then it may go.
    ring.disks[0] = blank;
    let done = make_whole(&ring, &ring.disks.clone(), &mut writer);
    assert!(done.bytes > 0 && done.lost.is_empty(), "{done:?}");
    assert!(!writer.is_needed(MemberId(1)));
    let blank = disk(&ring.timeline, 8);
    writer.replace((MemberId(1), spare(71)), Box::new(blank.clone()), &ring.timeline).unwrap();
    ring.disks[1] = blank;
    make_whole(&ring, &ring.disks.clone(), &mut writer);
    check_without(&ring, writer, 1);
}

/// Suspended, or a virtual machine that stood still: the clock went on, and no thread asked the
/// disks.
#[test]
fn who_does_not_answer_while_nobody_looks_is_not_left() {
    for (stalled_s, is_left) in [(21, false), (40, true)] {
        let second = 1_000_000_000;
        let mut ring = Ring::new(2, 1);
        let mut writer = ring.mount();
        ring.append(&mut writer, 20).unwrap();
        writer.drain(&ring.timeline).unwrap();
        ring.disks[1].stall(stalled_s * second);
        ring.append(&mut writer, 1).unwrap();
        writer.poll(None, &ring.timeline).unwrap();
        ring.timeline.advance_by(20 * second);
        for _ in 0..50 {
            writer.poll(None, &ring.timeline).unwrap();
            ring.timeline.advance_by(second / 10);
        }
        assert_eq!(!writer.expelled().is_empty(), is_left, "{stalled_s} s");
    }
}
