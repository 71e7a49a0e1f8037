//! What is given up is erased on every member that takes part, no reader gets it back, and nothing
//! else is touched.

use core::ops::ControlFlow;

use device::{Crash, Fault, MUTATIONS, Modelled, ReadAt, Rule};
use format::head::{HEAD_BYTES, StripeId};
use units::{EachSequence, MemberId, Sequence, Timestamp};
use volume::{Error, Reader, Retention, salvage};
use writer::{
    Erased, Forgotten, Opener, Owner, Repair, ScrubOptions, Writer, erase, mount, resilver, scrub,
};

use crate::ring::{Ring, boxed};

const SHAPES: [(u8, u8); 5] = [(1, 0), (2, 0), (1, 1), (2, 1), (3, 2)];

fn open(disks: &[Modelled]) -> impl Fn(&Writer) -> Result<Reader, Error> {
    move |_| Reader::of_members(readers(disks))
}

fn readers(disks: &[Modelled]) -> Vec<Box<dyn ReadAt>> {
    disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>).collect()
}

fn erase_all(ring: &Ring, disks: &[Modelled], writer: &mut Writer) -> Erased {
    let proceed = &mut |_, _| ControlFlow::Continue(());
    erase(writer, (1, false), &open(disks), &ring.timeline, proceed).unwrap()
}

/// Slots of the disk in which a body of any stripe is left, and the oldest sequence in their heads.
fn bodies_left(reader: &Reader, disk: &Modelled) -> usize {
    let geometry = *reader.geometry();
    let left = |sequence: &Sequence| {
        let mut slot = vec![0; reader.piece_bytes()];
        disk.clone().read_at(geometry.slot_offset(*sequence), &mut slot).unwrap();
        let rows = slot.chunks_exact(HEAD_BYTES);
        // Bodies of these stripes are rows of one byte; heads and ends of blocks are not.
        rows.into_iter().any(|row| row[0] != 0 && row.iter().all(|byte| *byte == row[0]))
    };
    (geometry.slots..2 * geometry.slots).map(Sequence).filter(left).count()
}

fn check_sound(disks: &[Modelled]) {
    let mut owner = Owner::claim(boxed(disks), &Opener::alone(disks[0].timeline())).unwrap();
    let reader = Reader::open(readers(disks)).unwrap();
    let options = ScrubOptions { slots_ahead: 0 };
    let proceed = &mut |_, _| ControlFlow::Continue(());
    let report = scrub(&reader, Some(&mut owner), options, proceed).unwrap();
    assert!(report.is_clean() && report.is_complete, "{report:?}");
}

#[test]
fn what_is_erased_is_on_no_member_and_nothing_else_is_touched() {
    for (data, parity) in SHAPES {
        let mut ring = Ring::new(data, parity);
        let mut writer = ring.mount();
        // More than once round.
        for _ in 0..6 {
            ring.append(&mut writer, 200).unwrap();
        }
        let erased = erase_all(&ring, &ring.disks, &mut writer);
        assert!(erased.slots >= writer.geometry().slots - 1 && !erased.is_stopped, "{erased:?}");
        let reader = ring.reader();
        // What an older lap left in the slot that is open goes when that is closed.
        assert!(ring.disks.iter().all(|disk| bodies_left(&reader, disk) <= 1), "{data}+{parity}");
        let floor = writer.superblock().given_up_before;
        assert_eq!((reader.span().unwrap().tail, writer.tail()), (floor, floor));

        writer.close(&ring.timeline).unwrap();
        assert!(ring.disks.iter().all(|disk| bodies_left(&reader, disk) == 0), "{data}+{parity}");

        let mut writer = ring.mount();
        ring.append(&mut writer, 40).unwrap();
        writer.drain(&ring.timeline).unwrap();
        let acknowledged = writer.acknowledged();
        writer.close(&ring.timeline).unwrap();
        check_sound(&ring.disks);
        ring.check(&ring.disks, acknowledged);

        // The heads are there: a mount finds the end of the ring without reading all of it.
        let (writer, recovery) = mount(boxed(&ring.disks), &Opener::alone(&ring.timeline)).unwrap();
        assert!(recovery.clean && !recovery.scanned_all && recovery.damaged == 0, "{recovery:?}");
        assert_eq!(writer.superblock().given_up_before, floor);
        assert_eq!(writer.left_to_erase(), 0);
    }
}

#[test]
fn a_slot_that_a_mount_would_judge_is_not_given_up() {
    let mut ring = Ring::new(2, 1);
    let mut writer = ring.mount();
    ring.append(&mut writer, 30).unwrap();
    let before = writer.acknowledged();
    writer.give_up_before(Sequence::MAX, &ring.timeline).unwrap();
    assert!(writer.superblock().given_up_before <= before.sequence);
    drop(writer);
    ring.disks = ring.disks.iter().map(|disk| disk.crash(Crash::LoseAll)).collect();
    let writer = ring.mount();
    assert!(writer.acknowledged() > before);
    assert!(writer.superblock().given_up_before <= before.sequence);
}

#[test]
fn what_a_crash_left_undone_the_next_writer_finishes() {
    let mut ring = Ring::new(2, 1);
    let mut writer = ring.mount();
    ring.append(&mut writer, 200).unwrap();
    writer.leave_slot(&ring.timeline).unwrap();
    writer.give_up_before(Sequence::MAX, &ring.timeline).unwrap();
    let left = writer.left_to_erase();
    assert!(left > 10, "{left}");
    writer.erase_next(&ring.timeline).unwrap();
    drop(writer);
    ring.disks = ring.disks.iter().map(|disk| disk.crash(Crash::Rows { seed: 3 })).collect();
    // No reader is shown what is half erased, and no writer repairs it.
    let span = ring.reader().span().unwrap();
    assert!(ring.appended.iter().all(|(stripe, ..)| stripe.sequence < span.tail));
    check_sound(&ring.disks);

    let mut writer = ring.mount();
    assert_eq!(writer.left_to_erase(), left);
    erase_all(&ring, &ring.disks, &mut writer);
    assert_eq!(writer.left_to_erase(), 0);
    let reader = ring.reader();
    assert!(ring.disks.iter().all(|disk| bodies_left(&reader, disk) == 0));
}

#[test]
fn a_member_that_was_away_is_erased_when_it_returns() {
    for (data, parity) in [(1, 1), (2, 1), (3, 2)] {
        let mut ring = Ring::new(data, parity);
        let mut writer = ring.mount();
        ring.append(&mut writer, 200).unwrap();
        let mut left = ring.disks.clone();
        let away = left.remove(1);
        away.vanish(Crash::Rows { seed: 5 });
        ring.append(&mut writer, 30).unwrap();
        assert_eq!(writer.expelled().len(), 1);
        away.come_back();
        erase_all(&ring, &left, &mut writer);
        ring.append(&mut writer, 30).unwrap();
        writer.close(&ring.timeline).unwrap();

        let mut writer = ring.mount();
        let reader = ring.reader();
        assert!(bodies_left(&reader, &away) > 10, "it holds what the others have erased");
        assert!(writer.left_to_erase() > 0);
        erase_all(&ring, &ring.disks, &mut writer);
        let open = |writer: &Writer| writer.reader(readers(&ring.disks));
        let proceed = &mut |_, _| ControlFlow::Continue(());
        resilver(&mut writer, &open, &ring.timeline, proceed).unwrap();
        erase_all(&ring, &ring.disks, &mut writer);
        writer.close(&ring.timeline).unwrap();
        assert!(ring.disks.iter().all(|disk| bodies_left(&reader, disk) == 0));
        let mut writer = ring.mount();
        ring.append(&mut writer, 30).unwrap();
        writer.drain(&ring.timeline).unwrap();
        let acknowledged = writer.acknowledged();
        writer.close(&ring.timeline).unwrap();
        check_sound(&ring.disks);
        ring.check(&ring.disks, acknowledged);
    }
}

#[test]
fn a_repair_of_what_is_given_up_is_refused() {
    let mut ring = Ring::new(2, 1);
    let mut writer = ring.mount();
    ring.append(&mut writer, 200).unwrap();
    writer.drain(&ring.timeline).unwrap();
    let first = writer.repairable().start;
    let row = || device::Pool::new(1, HEAD_BYTES).unwrap().take().unwrap().freeze();
    let seat = writer.membership().seat(MemberId(0)).unwrap();
    let repair = |sequence| Repair { seat, sequence, first_row: 1, data: row(), len: HEAD_BYTES };
    writer.repair(repair(first), &ring.timeline).unwrap();
    writer.give_up_before(first + 2, &ring.timeline).unwrap();
    let refused = writer.repair(repair(first + 1), &ring.timeline).unwrap_err();
    assert!(matches!(refused, Error::Overwritten(at) if at.sequence == first + 1), "{refused:?}");
    // The one that was under way lands first.
    while writer.erase_next(&ring.timeline).unwrap() || !writer.is_all_durable() {
        writer.drain(&ring.timeline).unwrap();
    }
    let head = ring.reader().first_heads(&[first]).pop().flatten().unwrap();
    assert!(head.stripe.kind.closes_slot() && head.stripe.stripe.sub == 0);
}

#[test]
fn a_salvage_without_superblocks_brings_nothing_back() {
    let mut ring = Ring::new(2, 1);
    let mut writer = ring.mount();
    ring.append(&mut writer, 200).unwrap();
    erase_all(&ring, &ring.disks, &mut writer);
    let floor = writer.superblock().given_up_before;
    ring.append(&mut writer, 10).unwrap();
    writer.close(&ring.timeline).unwrap();
    let mut disks = ring.disks.clone();
    for disk in &mut disks {
        let zeros = [0; 2 * HEAD_BYTES];
        let end = ReadAt::size_bytes(disk) - 8192;
        for offset in [0, end] {
            device::Device::write_at(disk, offset, &zeros).unwrap();
        }
    }
    let salvaged = salvage(readers(&disks)).unwrap();
    let reader = salvaged.reader;
    let span = reader.span().unwrap();
    let mut buffer = vec![0; reader.piece_bytes()];
    let mut bodies: Vec<StripeId> = Vec::new();
    for sequence in (span.tail..=span.acknowledged.sequence).each() {
        let Ok(slot) = reader.slot(sequence, 0, &mut buffer) else { continue };
        bodies.extend(
            slot.stripes
                .iter()
                .filter(|it| it.head.stripe.rows > 0)
                .map(|it| it.head.stripe.stripe),
        );
    }
    assert!(
        !bodies.is_empty() && bodies.iter().all(|stripe| stripe.sequence >= floor),
        "{bodies:?}"
    );
}

#[test]
fn a_running_reader_takes_what_is_erased_for_overwritten() {
    let mut ring = Ring::new(1, 0);
    let mut writer = ring.mount();
    ring.append(&mut writer, 100).unwrap();
    writer.drain(&ring.timeline).unwrap();
    let reader = ring.reader();
    let tail = reader.span().unwrap().tail;
    let retention = Retention { max_age_ns: 5, erases: true };
    writer.expire_by_clock(retention, 5, &ring.timeline).unwrap();
    writer.give_up_before(tail + 3, &ring.timeline).unwrap();
    // Half erased: the head is gone.
    let offset = reader.geometry().slot_offset(tail + 1);
    let mut disk = ring.disks[0].clone();
    device::Device::write_at(&mut disk, offset, &[0; HEAD_BYTES]).unwrap();
    let mut buffer = vec![0; reader.piece_bytes()];
    let error = reader.slot(tail + 1, 0, &mut buffer).unwrap_err();
    assert!(matches!(error, Error::Overwritten(_)), "{error:?}");
}

/// Sequences of held slots that cannot be read in full.
fn unreadable(reader: &Reader) -> Vec<Sequence> {
    let span = reader.span().unwrap();
    let columns: Vec<u8> = (0..reader.geometry().data_columns).collect();
    let mut memory = vec![Vec::new(); columns.len()];
    let held = span.tail..=span.acknowledged.sequence;
    let mut is_bad = |sequence: &Sequence| {
        let slots = reader.sealed_slots(*sequence, &columns, &mut memory);
        slots.into_iter().any(|slot| {
            let slot = slot.unwrap();
            !slot.missing(*sequence, span.acknowledged).is_empty()
                || slot.stripes.iter().any(|stripe| !stripe.bad_rows.is_empty())
        })
    };
    held.each().filter(|sequence| is_bad(sequence)).collect()
}

#[test]
fn what_a_broken_off_forgetting_made_unreadable_is_known_and_can_be_finished() {
    let forgotten = |sequence| Forgotten {
        sequence,
        times: (Timestamp(1), Timestamp(2)),
        index: StripeId::default(),
    };
    let mut seen = [0; 3];
    for after in 0..36 {
        let mut ring = Ring::new(2, 1);
        let mut writer = ring.mount();
        ring.append(&mut writer, 20).unwrap();
        writer.leave_slot(&ring.timeline).unwrap();
        let wanted: Vec<Sequence> = writer.erasable().each().skip(1).step_by(2).take(3).collect();
        let slots: Vec<Forgotten> = wanted.iter().copied().map(forgotten).collect();
        for disk in &ring.disks {
            disk.add_rule(Rule::new(Fault::Error, MUTATIONS).after(after));
        }
        // It may come to nothing.
        let _interrupted = writer.forget(&slots, &ring.timeline);
        drop(writer);
        let crash = |disk: &Modelled| disk.crash(Crash::Rows { seed: after });
        let left: Vec<Modelled> = ring.disks.iter().map(crash).collect();
        let (mut writer, _) = mount(boxed(&left), &Opener::alone(&ring.timeline)).unwrap();
        let reader = Reader::open(readers(&left)).unwrap();
        let (bad, begun) = (unreadable(&reader), reader.superblock().forgetting);
        let may_be = |at: &Sequence| begun.is_some_and(|(first, last)| (first..=last).contains(at));
        assert!(bad.iter().all(may_be), "{after}: {bad:?} of {begun:?}");
        assert!(bad.iter().all(|sequence| wanted.contains(sequence)), "{after}: {bad:?}");
        seen[usize::from(begun.is_some()) + usize::from(!bad.is_empty())] += 1;
        writer.leave_slot(&ring.timeline).unwrap();
        let rest: Vec<Forgotten> = bad.into_iter().map(forgotten).collect();
        writer.forget(&rest, &ring.timeline).unwrap();
        assert_eq!(writer.superblock().forgetting, None);
        drop(writer);
        assert_eq!(unreadable(&Reader::open(readers(&left)).unwrap()), []);
    }
    assert!(seen.iter().all(|count| *count > 0), "all come: {seen:?}");
}

#[test]
fn nothing_of_an_older_lap_stays_in_front_of_the_head() {
    let mut ring = Ring::new(2, 1);
    let mut writer = ring.mount();
    // Three laps, and a slot that is left in the middle.
    ring.append(&mut writer, 200).unwrap();
    writer.leave_slot(&ring.timeline).unwrap();
    writer.erase_older_lap(&ring.timeline).unwrap();
    writer.close(&ring.timeline).unwrap();
    let reader = ring.reader();
    let (span, geometry) = (reader.span().unwrap(), *reader.geometry());
    let promised: Vec<u64> = (span.tail..=span.acknowledged.sequence)
        .each()
        .map(|it| geometry.slot_offset(it))
        .collect();
    let mut slot = vec![0; reader.piece_bytes()];
    let mut others = 0;
    for number in 0..geometry.slots {
        let offset = geometry.slot_offset(Sequence(number));
        if promised.contains(&offset) {
            continue;
        }
        others += 1;
        for disk in &ring.disks {
            ReadAt::read_at(disk, offset, &mut slot).unwrap();
            let behind = &slot[HEAD_BYTES..slot.len() - 4];
            assert!(behind.iter().all(|byte| *byte == 0), "slot {number}");
        }
    }
    assert!(others > 0, "some are in front of the head");
    assert_eq!(unreadable(&reader), [], "nothing that is promised is gone");
}
