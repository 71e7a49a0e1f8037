//! A member fails or stalls while a writer is at work: the writer goes on without it, and whatever
//! it acknowledged is there when that member is gone for good, and when it comes back.

use core::ops::ControlFlow;

use device::{Crash, Device as _, Fault, MUTATIONS, Modelled, OPERATIONS, Operation, Rule};
use format::superblock::SUPERBLOCK_BYTES;
use units::{Clock, MemberId, Sequence};
use volume::{Error, Retention};
use writer::{Candidate, Opener, mount, mount_members, mount_without, verify};

use crate::ring::{Ring, boxed};

/// What becomes of a member.
type Misfortune = fn(&Modelled);

const MISFORTUNES: [(&str, Misfortune); 2] = [
    ("fails", |disk| disk.add_rule(Rule::new(Fault::Error, MUTATIONS))),
    ("stalls", |disk| disk.stall(3_600_000_000_000)),
];

#[test]
fn a_writer_goes_on_without_a_member_and_loses_nothing() {
    for (what, strike) in MISFORTUNES {
        for (data, parity) in [(2, 1), (2, 2), (4, 2)] {
            let mut ring = Ring::new(data, parity);
            let mut writer = ring.mount();
            let epoch = writer.epoch();
            ring.append(&mut writer, 20).unwrap();
            strike(&ring.disks[1]);
            ring.append(&mut writer, 40).unwrap();
            writer.drain(&ring.timeline).unwrap();
            let expelled: Vec<u8> =
                writer.expelled().iter().map(|gone| gone.member.get()).collect();
            assert_eq!(expelled, [1], "{what}, {data}+{parity}");
            assert!(writer.epoch() > epoch);
            let acknowledged = writer.acknowledged();
            assert!(acknowledged >= ring.appended.last().unwrap().0);

            // The power fails, and the member is gone for good.
            let crashed: Vec<Modelled> =
                ring.disks.iter().map(|disk| disk.crash(Crash::LoseAll)).collect();
            let mut left = crashed.clone();
            left.remove(1);
            let (writer, _) = mount(boxed(&left), &Opener::alone(&ring.timeline)).unwrap();
            drop(writer);
            ring.check(&left, acknowledged);

            // It comes back as it was: stale, and no harm.
            let (writer, _) = mount(boxed(&crashed), &Opener::alone(&ring.timeline)).unwrap();
            let entry = &writer.superblock().members[1];
            assert!(entry.stale_from < entry.clean_from && entry.clean_from < Sequence::MAX);
            drop(writer);
            ring.check(&crashed, acknowledged);
        }
    }
}

/// Another program makes the member one of another volume.
fn overwrite(disk: &Modelled) {
    let mut superblock = vec![0; SUPERBLOCK_BYTES];
    Ring::with_id(2, 1, 9).disks[0].clone().read_at(0, &mut superblock).unwrap();
    disk.clone().write_at(0, &superblock).unwrap();
}

#[test]
fn a_member_that_leaves_at_the_end_is_told() {
    let overwritten: (&str, Misfortune) = ("is overwritten", overwrite);
    for (what, strike) in MISFORTUNES.into_iter().chain([overwritten]) {
        for rows_left in [false, true] {
            let mut ring = Ring::new(2, 1);
            let mut writer = ring.mount();
            ring.append(&mut writer, 20).unwrap();
            if !rows_left {
                writer.drain(&ring.timeline).unwrap();
            }
            strike(&ring.disks[1]);
            writer.stop(&ring.timeline).unwrap();
            let expelled: Vec<u8> =
                writer.expelled().iter().map(|gone| gone.member.get()).collect();
            assert_eq!(expelled, [1], "{what}");
            assert!(ring.append(&mut writer, 1).is_err(), "it is closed");
            let acknowledged = writer.acknowledged();
            assert!(acknowledged > ring.appended.last().unwrap().0, "{what}");
            drop(writer);
            let mut left = ring.disks.clone();
            left.remove(1);
            ring.check(&left, acknowledged);
            let (writer, recovery) = mount(boxed(&left), &Opener::alone(&ring.timeline)).unwrap();
            assert!(recovery.clean, "{what}");
            drop(writer);
        }
        let mut ring = Ring::new(2, 1);
        let mut writer = ring.mount();
        ring.append(&mut writer, 20).unwrap();
        writer.drain(&ring.timeline).unwrap();
        strike(&ring.disks[0]);
        strike(&ring.disks[1]);
        let stopped = writer.stop(&ring.timeline);
        let is_told = match &stopped {
            Err(Error::TooFewLeft { failed, .. }) => failed.len() == 2,
            // A machine that stands still is no member's fault.
            Ok(()) => what == "stalls",
            _ => false,
        };
        assert!(is_told, "{what}: {stopped:?}");
    }
}

/// Opens what is there, as a recorder does.
fn opened(disks: &[Modelled]) -> Vec<Candidate> {
    MemberId::all().zip(boxed(disks)).map(|(member, disk)| (member, Ok(disk))).collect()
}

#[test]
fn a_member_that_fails_while_the_volume_is_opened_is_left_out_and_named() {
    for operations in [&[Operation::Read][..], &[Operation::Write], &[Operation::Flush], OPERATIONS]
    {
        let mut ring = Ring::new(3, 1);
        let mut writer = ring.mount();
        ring.append(&mut writer, 20).unwrap();
        writer.drain(&ring.timeline).unwrap();
        drop(writer);
        ring.disks[2].add_rule(Rule::new(Fault::Error, operations));
        let (mut writer, recovery) =
            mount_members(opened(&ring.disks), &[], &Opener::alone(&ring.timeline)).unwrap();
        let failed: Vec<u8> = recovery.failed.iter().map(|failed| failed.member.get()).collect();
        assert_eq!(failed, [2], "{operations:?}");
        assert!(recovery.failed[0].reason.starts_with("cannot "), "{:?}", recovery.failed);
        ring.append(&mut writer, 20).unwrap();
        writer.drain(&ring.timeline).unwrap();
        let acknowledged = writer.acknowledged();
        writer.close(&ring.timeline).unwrap();
        let mut left = ring.disks.clone();
        left.remove(2);
        ring.check(&left, acknowledged);

        // One more than parity covers: the refusal names it.
        ring.disks[0].add_rule(Rule::new(Fault::Error, operations));
        match mount_members(opened(&ring.disks), &[], &Opener::alone(&ring.timeline)) {
            Err(Error::Quorum { failed, .. }) => {
                assert!(failed.iter().any(|failed| failed.member == MemberId(0)), "{operations:?}");
            }
            other => panic!("{operations:?}: {other:?}"),
        }
    }
}

/// What cannot be read is no proof that nothing is there: no mount writes over it.
#[test]
fn a_failing_member_in_a_mount_costs_nothing_acknowledged() {
    for (data, parity) in [(2, 1), (4, 1)] {
        let mut ring = Ring::new(data, parity);
        let mut writer = ring.mount();
        ring.append(&mut writer, 20).unwrap();
        ring.disks[1].add_rule(Rule::new(Fault::Error, MUTATIONS));
        ring.append(&mut writer, 20).unwrap();
        writer.drain(&ring.timeline).unwrap();
        let acknowledged = writer.acknowledged();
        drop(writer);
        ring.disks[1].clear_rules();
        for operations in [&[Operation::Read][..], OPERATIONS] {
            // For good, and only for a while.
            for (after, times) in (0..90).flat_map(|after| [(after, u64::MAX), (after, 3)]) {
                let disks: Vec<Modelled> =
                    ring.disks.iter().map(|disk| disk.crash(Crash::Kill)).collect();
                let rule = Rule::new(Fault::Error, operations).after(after).times(times);
                disks[2].add_rule(rule);
                drop(mount_members(opened(&disks), &[], &Opener::alone(&ring.timeline)));
                disks[2].clear_rules();
                let again = mount(boxed(&disks), &Opener::alone(&ring.timeline));
                assert!(again.is_ok(), "{data}+{parity}, after {after}, {times} times: {again:?}");
                drop(again);
                ring.check(&disks, acknowledged);
            }
        }
    }
}

#[test]
fn nobody_goes_on_with_fewer_members_than_data_columns() {
    for is_recorded in [false, true] {
        let mut ring = Ring::new(2, 1);
        if is_recorded {
            let mut writer = ring.mount();
            ring.append(&mut writer, 5).unwrap();
            writer.drain(&ring.timeline).unwrap();
        }
        let refused = mount_without(
            boxed(&ring.disks[..1]),
            &[MemberId(1), MemberId(2)],
            &Opener::alone(&ring.timeline),
        );
        assert!(matches!(refused, Err(Error::Quorum { needed: 2, .. })), "{refused:?}");
        let allowed =
            mount_without(boxed(&ring.disks[..2]), &[MemberId(2)], &Opener::alone(&ring.timeline));
        assert!(allowed.is_ok(), "{allowed:?}");
    }
}

#[test]
fn members_that_stand_still_together_are_not_expelled() {
    let mut ring = Ring::new(4, 2);
    let mut writer = ring.mount();
    ring.append(&mut writer, 20).unwrap();
    for (number, disk) in (0..).zip(&ring.disks) {
        disk.stall(4_000_000_000 + number * 300_000_000);
    }
    ring.append(&mut writer, 40).unwrap();
    writer.drain(&ring.timeline).unwrap();
    assert!(writer.expelled().is_empty(), "{:?}", writer.expelled());
}

#[test]
fn a_member_that_hangs_while_superblocks_are_stored_takes_nobody_with_it() {
    for (fails, hangs) in [(None, 1), (Some(0), 3), (Some(3), 1)] {
        let mut ring = Ring::new(4, 2);
        let mut writer = ring.mount();
        ring.append(&mut writer, 20).unwrap();
        ring.disks[hangs].stall(3_600_000_000_000);
        if let Some(fails) = fails {
            ring.disks[fails].add_rule(Rule::new(Fault::Error, MUTATIONS));
        }
        let began_ns = ring.timeline.now_ns();
        let retention = Retention { max_age_ns: 7, erases: false };
        writer.expire_by_clock(retention, 5, &ring.timeline).unwrap();
        let took_ns = ring.timeline.now_ns() - began_ns;
        assert!((2_000_000_000..5_000_000_000).contains(&took_ns), "{took_ns}");
        ring.append(&mut writer, 20).unwrap();
        writer.drain(&ring.timeline).unwrap();
        let mut expelled: Vec<u8> =
            writer.expelled().iter().map(|gone| gone.member.get()).collect();
        expelled.sort_unstable();
        let mut expected: Vec<usize> = fails.into_iter().chain([hangs]).collect();
        expected.sort_unstable();
        assert!(expelled.iter().map(|&member| usize::from(member)).eq(expected.iter().copied()));
        assert_eq!(writer.superblock().max_age_ns, 7);
        let left = (0..).zip(&ring.disks).filter(|(member, _)| !expected.contains(member));
        let left: Vec<Modelled> = left.map(|(_, disk)| disk.crash(Crash::LoseAll)).collect();
        let acknowledged = writer.acknowledged();
        drop(mount(boxed(&left), &Opener::alone(&ring.timeline)).unwrap());
        ring.check(&left, acknowledged);
    }
}

#[test]
fn superblocks_are_stored_on_all_members_at_the_same_time() {
    let took_ns = |data, parity| {
        let ring = Ring::on_hard_disks(data, parity);
        let mut writer = ring.mount();
        let began_ns = ring.timeline.now_ns();
        writer.expire_by_clock(Retention::default(), 5, &ring.timeline).unwrap();
        ring.timeline.now_ns() - began_ns
    };
    let (two, six) = (took_ns(1, 1), took_ns(4, 2));
    assert!(two > 10_000_000, "a disk with moving parts: {two} ns");
    assert!(six < 2 * two, "two members in {two} ns, six in {six}");
}

#[test]
fn more_failures_than_parity_stop_the_writer() {
    let mut ring = Ring::new(3, 1);
    let mut writer = ring.mount();
    ring.append(&mut writer, 10).unwrap();
    for disk in &ring.disks[..2] {
        disk.add_rule(Rule::new(Fault::Error, MUTATIONS));
    }
    let result = ring.append(&mut writer, 10).and_then(|()| writer.drain(&ring.timeline));
    let Err(Error::TooFewLeft { present: 2, needed: 3, failed }) = result else {
        panic!("{result:?}")
    };
    assert_eq!(failed.iter().map(|failed| failed.member.get()).collect::<Vec<_>>(), [0, 1]);
    assert!(failed.iter().all(|failed| failed.reason.contains("cannot write")), "{failed:?}");
    assert!(matches!(writer.drain(&ring.timeline), Err(Error::Stopped)), "and it stays so");
}

#[test]
fn a_member_that_hangs_holds_up_neither_a_reader_nor_a_mount() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    for (data, parity) in [(2, 1), (2, 2), (4, 2)] {
        let mut ring = Ring::new(data, parity);
        let mut writer = ring.mount();
        ring.append(&mut writer, 30).unwrap();
        writer.drain(&ring.timeline).unwrap();
        let acknowledged = writer.acknowledged();
        writer.close(&ring.timeline).unwrap();
        // While it is read: what it holds is computed.
        let reader = ring.reader();
        ring.disks[1].stall(HOUR_NS);
        let begun_ns = ring.timeline.boottime_ns();
        let report = verify(&reader, &mut |_, _| ControlFlow::Continue(()));
        assert!(report.damage.iter().all(|damage| damage.repairable), "{report:?}");
        // While it is opened: it is absent.
        ring.check(&ring.disks, acknowledged);
        let members =
            MemberId::all().zip(boxed(&ring.disks)).map(|(member, disk)| (member, Ok(disk)));
        let (writer, recovery) =
            mount_members(members.collect(), &[], &Opener::alone(&ring.timeline)).unwrap();
        let failed: Vec<u8> = recovery.failed.iter().map(|failed| failed.member.get()).collect();
        assert_eq!(failed, [1], "{recovery:?}");
        assert!(writer.membership().of(MemberId(1)).is_none());
        let waited_ns = ring.timeline.boottime_ns() - begun_ns;
        assert!(waited_ns < 60_000_000_000, "{waited_ns}");
    }
}
