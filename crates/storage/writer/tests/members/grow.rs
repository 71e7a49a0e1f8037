//! Volumes that get more members, whatever fails meanwhile.

use device::{Crash, Device, Fault, MUTATIONS, Modelled, Rule};
use writer::{Opener, Writer, mount};

use crate::life::{check_without, spare};
use crate::ring::{Ring, boxed, disk};

#[test]
fn a_volume_grows_and_its_older_stripes_stay() {
    // Members, and of them parity, from step to step.
    for steps in [&[(1, 0), (2, 0), (3, 1)][..], &[(2, 1), (3, 1), (4, 1), (6, 2)]] {
        let (members, parity) = steps[0];
        let mut ring = Ring::new(members - parity, parity);
        let mut writer = ring.mount();
        ring.append(&mut writer, 30).unwrap();
        for &(members, parity) in &steps[1..] {
            grow_to(&mut ring, &mut writer, (members - parity, parity));
            let shape = (writer.geometry().columns(), writer.geometry().parity_columns);
            assert_eq!(shape, (members, parity));
            ring.append(&mut writer, 30).unwrap();
            writer.close(&ring.timeline).unwrap();
            writer = ring.mount();
            ring.check(&ring.disks, writer.acknowledged());
        }
        // Once round: nothing of an earlier shape is left, and the parity of now holds for all.
        let lap = writer.geometry().slots + 20;
        let end = writer.acknowledged().sequence + lap;
        while writer.acknowledged().sequence < end {
            ring.append(&mut writer, 50).unwrap();
        }
        writer.drain(&ring.timeline).unwrap();
        check_without(&ring, writer, usize::from(steps.last().unwrap().1));
    }
}

/// Data and parity columns.
type Shape = (u8, u8);

/// Grows by blank disks to another shape.
fn grow_to(ring: &mut Ring, writer: &mut Writer, (data, parity): Shape) {
    let now = u8::try_from(ring.disks.len()).unwrap();
    let fresh: Vec<Modelled> =
        (now..data + parity).map(|number| disk(&ring.timeline, number)).collect();
    let newcomers = (now..).zip(&fresh).map(|(number, disk)| {
        let device: Box<dyn Device> = Box::new(disk.clone());
        (spare(number), device)
    });
    writer.grow(newcomers.collect(), parity, &ring.timeline).unwrap();
    ring.disks.extend(fresh);
}

/// What each shape may grow to by one to three members.
fn larger_than((data, parity): Shape) -> impl Iterator<Item = Shape> {
    let parities = (parity..=2).flat_map(move |more| (data..=data + 3).map(move |it| (it, more)));
    parities.filter(move |it| (data + parity + 1..=data + parity + 3).contains(&(it.0 + it.1)))
}

/// Stripes of each of these shapes lie in one ring: every way to read one gives what was written,
/// from all disks and from those that are left when as many as the oldest parity are lost.
fn check_ways_to_read(shapes: &[Shape]) {
    let (first, later) = shapes.split_first().unwrap();
    let mut ring = Ring::new(first.0, first.1);
    let mut writer = ring.mount();
    ring.append(&mut writer, 9).unwrap();
    for &shape in later {
        grow_to(&mut ring, &mut writer, shape);
        ring.append(&mut writer, 9).unwrap();
    }
    writer.drain(&ring.timeline).unwrap();
    let acknowledged = writer.acknowledged();
    writer.close(&ring.timeline).unwrap();
    ring.check(&ring.disks, acknowledged);
    let (given, refused) = ring.check_rows(&ring.disks);
    assert_eq!(refused, 0, "{shapes:?}: rows of {given} pieces were given");
    for lost in 0..ring.disks.len() {
        let mut left = ring.disks.clone();
        if first.1 > 0 {
            left.remove(lost);
            ring.check(&left, acknowledged);
            assert!(ring.check_rows(&left).0 > 0, "{shapes:?}");
        }
    }
}

#[test]
fn every_way_to_read_finds_stripes_of_older_shapes() {
    let firsts = (1..=6).flat_map(|data| (0..=2).map(move |parity| (data, parity)));
    for first in firsts {
        for second in larger_than(first) {
            check_ways_to_read(&[first, second]);
        }
    }
}

#[test]
fn every_way_to_read_finds_stripes_of_a_volume_that_has_grown_twice() {
    let firsts = (1..=4).flat_map(|data| (0..=2).map(move |parity| (data, parity)));
    for first in firsts {
        for second in larger_than(first).step_by(2) {
            larger_than(second).step_by(3).for_each(|it| check_ways_to_read(&[first, second, it]));
        }
    }
}

/// A volume of so many members, of which some are for parity, is to grow to another shape.
type Growth = ((u8, u8), (u8, u8));

const GROWTHS: [Growth; 5] =
    [((1, 0), (2, 0)), ((2, 0), (3, 1)), ((3, 1), (4, 1)), ((3, 1), (5, 2)), ((3, 1), (6, 1))];

/// Grows while the disk `bad` fails for good after so many writes and flushes; whether it did.
fn grow_while_a_disk_fails(
    ((members, parity), (more, more_parity)): Growth,
    bad: u8,
    after: u64,
) -> bool {
    let mut ring = Ring::new(members - parity, parity);
    let mut writer = ring.mount();
    ring.append(&mut writer, 8).unwrap();
    writer.drain(&ring.timeline).unwrap();
    let before = writer.acknowledged();
    let fresh: Vec<Modelled> = (members..more).map(|number| disk(&ring.timeline, number)).collect();
    let all = [&ring.disks[..], &fresh].concat();
    let failing = &all[usize::from(bad)];
    let done = |disk: &Modelled| disk.work().writes + disk.work().flushes;
    let mutations = done(failing);
    failing.add_rule(Rule::new(Fault::Error, MUTATIONS).after(after));
    let newcomers = (members..).zip(&fresh).map(|(number, disk)| {
        let device: Box<dyn Device> = Box::new(disk.clone());
        (spare(number), device)
    });
    let case = format!("{members}-{parity} to {more}-{more_parity}, disk {bad} after {after}");
    let grown = writer.grow(newcomers.collect(), more_parity, &ring.timeline);
    let has_failed = done(failing) - mutations > after;
    let shape = (writer.geometry().columns(), writer.geometry().parity_columns);
    if grown.is_ok() {
        assert_eq!(shape, (more, more_parity), "{case}");
    } else {
        assert!(shape == (members, parity) || writer.geometry().columns() == more, "{case}");
    }
    // One disk of the shape that is in force fails: parity makes up for it.
    let is_stopped = (if shape.0 == more { more_parity } else { parity }) == 0 && bad < shape.0;
    let went_on = ring.append(&mut writer, 8).and_then(|()| writer.drain(&ring.timeline));
    assert!(went_on.is_ok() || is_stopped, "{case}: {grown:?}, {went_on:?}");
    let acknowledged = if went_on.is_ok() { writer.acknowledged() } else { before };
    drop(writer);
    let all: Vec<Modelled> = all.iter().map(|disk| disk.crash(Crash::Kill)).collect();
    ring.disks.clone_from(&all);
    ring.disks.truncate(usize::from(shape.0));
    if went_on.is_ok() && parity > 0 && bad < shape.0 {
        let mut left = ring.disks.clone();
        left.remove(usize::from(bad));
        drop(mount(boxed(&left), &Opener::alone(&ring.timeline)).unwrap());
        ring.check(&left, acknowledged);
    }
    let opener = Opener::alone(&ring.timeline);
    let mounted = mount(boxed(&ring.disks), &opener).or_else(|error| {
        // Who stopped in the middle may have grown, or not.
        assert!(went_on.is_err(), "{case}: {error}");
        ring.disks = all;
        mount(boxed(&ring.disks), &opener)
    });
    let (mut writer, _) = mounted.unwrap();
    ring.check(&ring.disks, acknowledged);
    ring.append(&mut writer, 8).unwrap();
    writer.drain(&ring.timeline).unwrap();
    let acknowledged = writer.acknowledged();
    writer.close(&ring.timeline).unwrap();
    ring.check(&ring.disks, acknowledged);
    has_failed
}

#[test]
fn a_disk_that_fails_anywhere_while_a_volume_grows_costs_nothing() {
    for growth in GROWTHS {
        for bad in 0..growth.1.0 {
            let failed = (0..64).take_while(|&after| grow_while_a_disk_fails(growth, bad, after));
            let count = failed.count();
            assert!((8..64).contains(&count), "{count} writes and flushes of disk {bad}");
        }
    }
}
