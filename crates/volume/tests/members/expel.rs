//! A member fails or stalls while a writer is at work: the writer goes on without it, and whatever
//! it acknowledged is there when that member is gone for good, and when it comes back.

use device::{Crash, Fault, MUTATIONS, Modelled, Rule};
use volume::{Error, mount};

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
        for (data, parity) in [(1, 1), (2, 1), (4, 2)] {
            let mut ring = Ring::new(data, parity);
            let mut writer = ring.mount();
            let epoch = writer.epoch();
            ring.append(&mut writer, 20).unwrap();
            strike(&ring.disks[1]);
            ring.append(&mut writer, 40).unwrap();
            writer.drain(&ring.timeline).unwrap();
            let expelled: Vec<u8> = writer.expelled().iter().map(|gone| gone.member).collect();
            assert_eq!(expelled, [1], "{what}, {data}+{parity}");
            assert!(writer.epoch() > epoch);
            let acknowledged = writer.acknowledged();
            assert!(acknowledged >= ring.appended.last().unwrap().0);

            // The power fails, and the member is gone for good.
            let crashed: Vec<Modelled> =
                ring.disks.iter().map(|disk| disk.crash(Crash::LoseAll)).collect();
            let mut left = crashed.clone();
            left.remove(1);
            let (writer, _) = mount(boxed(&left), &ring.timeline).unwrap();
            drop(writer);
            ring.check(&left, acknowledged);

            // It comes back as it was: stale, and no harm.
            let (writer, _) = mount(boxed(&crashed), &ring.timeline).unwrap();
            let entry = &writer.superblock().members[1];
            assert!(entry.stale_from < entry.clean_from && entry.clean_from < u64::MAX);
            drop(writer);
            ring.check(&crashed, acknowledged);
        }
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
fn more_failures_than_parity_stop_the_writer() {
    let mut ring = Ring::new(3, 1);
    let mut writer = ring.mount();
    ring.append(&mut writer, 10).unwrap();
    for disk in &ring.disks[..2] {
        disk.add_rule(Rule::new(Fault::Error, MUTATIONS));
    }
    let result = ring.append(&mut writer, 10).and_then(|()| writer.drain(&ring.timeline));
    assert!(result.is_err());
    assert!(matches!(writer.drain(&ring.timeline), Err(Error::Stopped)), "and it stays so");
}
