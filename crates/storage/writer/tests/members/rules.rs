//! Rules of which histories hardly come to what they are for: each case is one that fails at once
//! without its rule.

use device::{Crash, Fault, MUTATIONS, Modelled, Pool, ReadAt, Rule};
use format::head::HEAD_BYTES;
use units::{MemberId, Sequence};
use volume::{Error, Reader};
use writer::{Opener, Repair, Resilver, Returning, Writer, mount};

use crate::life::{make_whole, spare};
use crate::ring::{Ring, boxed, disk};

fn readers(disks: &[Modelled]) -> Vec<Box<dyn ReadAt>> {
    disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>).collect()
}

/// In one epoch the blank one and the one that was left would be a quorum that holds too little.
#[test]
fn a_member_leaves_in_one_epoch_and_a_blank_one_comes_by_the_next() {
    for (data, parity) in [(1, 1), (2, 1), (3, 2)] {
        let mut ring = Ring::new(data, parity);
        let mut writer = ring.mount();
        ring.append(&mut writer, 20).unwrap();
        let before = writer.epoch();
        let blank = Box::new(disk(&ring.timeline, 77));
        writer.replace((MemberId(1), spare(77)), blank, &ring.timeline).unwrap();
        assert!(writer.epoch() >= before.next().next());
        let superblock = writer.superblock();
        assert_eq!(superblock.previous_members & 0b10, 0, "an epoch went by without member 1");
        assert_eq!(superblock.joined_members, (1 << (data + parity)) - 1);
    }
}

/// A user who names the blank device can find it: it knew who it is before.
#[test]
fn who_is_named_can_be_found_wherever_replacing_was_cut_short() {
    for (data, parity) in [(1, 1), (2, 1)] {
        let mut named = 0;
        for after in 0..40 {
            let mut ring = Ring::new(data, parity);
            let mut writer = ring.mount();
            ring.append(&mut writer, 10).unwrap();
            writer.drain(&ring.timeline).unwrap();
            let acknowledged = writer.acknowledged();
            let blank = disk(&ring.timeline, 77);
            for disk in ring.disks.iter().chain([&blank]) {
                disk.add_rule(Rule::new(Fault::Error, MUTATIONS).after(after));
            }
            // It may come to nothing.
            let _interrupted =
                writer.replace((MemberId(1), spare(77)), Box::new(blank.clone()), &ring.timeline);
            drop(writer);
            let crash = |disk: &Modelled| disk.crash(Crash::Rows { seed: after });
            let mut left: Vec<Modelled> = ring.disks.iter().map(crash).collect();
            let (old, blank) = (left.remove(1), crash(&blank));
            let reader = Reader::open(readers(&left)).unwrap();
            let is_named = reader.membership().superblock().members[1].uuid == [77; 16];
            named += u32::from(is_named);
            left.insert(1, if is_named { blank } else { old });
            let mounted = mount(boxed(&left), &Opener::alone(&ring.timeline));
            let (writer, _) = mounted.unwrap_or_else(|error| panic!("{after}: {error}"));
            assert!(writer.membership().of(MemberId(1)).is_some(), "{after}");
            writer.close(&ring.timeline).unwrap();
            ring.check(&left, acknowledged);
        }
        assert!(named > 5, "{named} crashes came behind a JOIN");
    }
}

/// A writer that has taken member 1 back, which misses the last `missed` stripes.
fn with_a_gap(ring: &mut Ring, missed: u64) -> Writer {
    let mut writer = ring.mount();
    ring.append(&mut writer, 20).unwrap();
    ring.disks[1].vanish(Crash::Rows { seed: 5 });
    for _ in 0..missed {
        ring.append(&mut writer, 1).unwrap();
        writer.drain(&ring.timeline).unwrap();
    }
    ring.disks[1].come_back();
    assert!(writer.has_let_go());
    let returning = Returning::open(Box::new(ring.disks[1].clone())).unwrap();
    writer.take_back(returning, &ring.timeline).unwrap();
    writer
}

#[test]
fn what_was_given_back_is_durable_before_anybody_is_told() {
    let mut ring = Ring::new(2, 1);
    let mut writer = with_a_gap(&mut ring, 20);
    let reader = writer.reader(readers(&ring.disks)).unwrap();
    let mut work = Resilver::new(reader, MemberId(1)).unwrap();
    let batch = work.next_batch(writer.repairable().start).unwrap();
    assert!(!batch.rows.is_empty());
    for repair in batch.rows {
        writer.repair(repair, &ring.timeline).unwrap();
    }
    assert!(!writer.is_all_durable());
    writer.set_clean_from(work.seat(), work.clean_from(), &ring.timeline).unwrap();
    assert!(writer.is_all_durable());
}

/// The two never write one slot at a time, and the head does not wait for a repair.
#[test]
fn a_repair_keeps_off_the_slots_that_the_writer_takes_next() {
    let mut ring = Ring::new(2, 1);
    let mut writer = ring.mount();
    let slots = writer.geometry().slots;
    while writer.next().sequence < Sequence(2 * slots + slots / 2) {
        ring.append_rows(&mut writer, 3).unwrap();
        writer.drain(&ring.timeline).unwrap();
    }
    let repairable = writer.repairable();
    let window = u64::from(writer.superblock().window);
    assert_eq!(repairable.start, writer.next().sequence + 2 * window + 1 - slots);
    let seat = writer.membership().seat(MemberId(1)).unwrap();
    let memory = Pool::new(1, HEAD_BYTES).unwrap();
    let mut repair = |sequence| {
        let data = memory.take().unwrap().freeze();
        let repair = Repair { seat, sequence, first_row: 0, data, len: HEAD_BYTES };
        let done = writer.repair(repair, &ring.timeline);
        writer.drain(&ring.timeline).unwrap();
        done
    };
    for outside in [repairable.start - 1, repairable.end] {
        let refused = repair(outside);
        assert!(matches!(refused, Err(Error::Overwritten(_))), "{outside}: {refused:?}");
    }
    assert!(repair(repairable.start).is_ok());
}

/// No member can give back a slot of another, if those in `away` do not come.
fn with_a_lost_slot(ring: &mut Ring, away: Option<usize>) -> (Writer, u64) {
    let mut writer = with_a_gap(ring, 20);
    if let Some(away) = away {
        ring.disks[away].vanish(Crash::LoseAll);
        ring.append(&mut writer, 3).unwrap();
        writer.drain(&ring.timeline).unwrap();
    }
    let gap = writer.membership().gap(MemberId(1));
    let offset = writer.geometry().slot_offset(gap.end - 5);
    for row in 0..u64::from(writer.geometry().rows_per_slot()) {
        let offset = offset + row * u64::try_from(HEAD_BYTES).unwrap();
        ring.disks[0].damage(offset, |row| row.fill(0));
        ring.disks[1].damage(offset, |row| row.fill(7));
    }
    (writer, offset)
}

/// It would be believed, once others are given up.
#[test]
fn what_nobody_can_give_back_is_erased() {
    let mut ring = Ring::new(2, 1);
    let (mut writer, offset) = with_a_lost_slot(&mut ring, None);
    let done = make_whole(&ring, &ring.disks, &mut writer);
    assert!(!done.lost.is_empty() && done.is_complete, "{done:?}");
    let mut row = [1; HEAD_BYTES];
    ReadAt::read_at(&ring.disks[1].clone(), offset, &mut row).unwrap();
    assert!(row.iter().all(|&byte| byte == 0));
    assert!(writer.membership().gap(MemberId(1)).is_empty());
}

#[test]
fn who_may_have_what_is_missing_is_waited_for() {
    let mut ring = Ring::new(2, 2);
    let (mut writer, _) = with_a_lost_slot(&mut ring, Some(3));
    let done = make_whole(&ring, &ring.disks, &mut writer);
    assert_eq!((done.waits_for, done.lost), (vec![MemberId(3)], vec![]));
    assert!(!writer.membership().gap(MemberId(1)).is_empty());
}

/// What the writer is about to take may still be read until then.
#[test]
fn where_a_resilver_stops_for_the_writer_the_gap_stays() {
    let mut ring = Ring::new(2, 1);
    let slots = ring.mount().geometry().slots;
    let mut writer = with_a_gap(&mut ring, slots + 50);
    let first = writer.repairable().start;
    let before = writer.membership().gap(MemberId(1));
    assert!(before.start < first && first < before.end, "{before:?}");
    let done = make_whole(&ring, &ring.disks, &mut writer);
    assert!(done.is_complete && done.bytes > 0, "{done:?}");
    let after = writer.membership().gap(MemberId(1));
    assert_eq!(after, before.start..first);
}

/// The rows that some of the disks do not give back of the data in a stripe that begins its slot;
/// `None`: nothing of it.
fn lost_rows(disks: &[Modelled], sequence: Sequence) -> Option<Vec<u16>> {
    let reader = Reader::open(readers(disks)).unwrap();
    let mut buffer = vec![0; reader.piece_bytes()];
    let mut lost = Vec::new();
    for column in 0..reader.geometry().data_columns {
        let slot = reader.slot(sequence, column, &mut buffer).ok()?;
        lost.extend(slot.stripes.first()?.bad_rows.clone());
    }
    Some(lost)
}

/// A member that leaves again has one gap, and what it holds between its two is still needed.
#[test]
fn a_piece_serves_inside_the_gap_of_its_member() {
    let mut ring = Ring::new(2, 1);
    let mut writer = with_a_gap(&mut ring, 20);
    ring.append(&mut writer, 5).unwrap();
    writer.drain(&ring.timeline).unwrap();
    let between = writer.acknowledged().sequence;
    ring.disks[1].vanish(Crash::Rows { seed: 5 });
    ring.append(&mut writer, 5).unwrap();
    writer.drain(&ring.timeline).unwrap();
    ring.disks[1].come_back();
    writer.close(&ring.timeline).unwrap();
    let writer = ring.mount();
    assert!(writer.membership().gap(MemberId(1)).contains(&between));
    let row = writer.geometry().slot_offset(between) + 2 * u64::try_from(HEAD_BYTES).unwrap();
    drop(writer);
    assert_eq!(lost_rows(&ring.disks[1..], between), Some(vec![]));
    // Without its head the piece would be one whole.
    ring.disks[1].rot(row);
    let lost = lost_rows(&ring.disks[1..], between).unwrap();
    assert!(!lost.is_empty() && lost.iter().all(|&row| row == 1), "{lost:?}");
}

/// Of 2+1 the one that returned and one of the others are a quorum of the epoch that kept it.
#[test]
fn what_a_mount_keeps_is_written_to_who_returns() {
    let mut ring = Ring::new(2, 1);
    let mut writer = ring.mount();
    ring.append(&mut writer, 20).unwrap();
    ring.disks[1].vanish(Crash::Rows { seed: 5 });
    ring.append(&mut writer, 20).unwrap();
    writer.drain(&ring.timeline).unwrap();
    ring.append(&mut writer, 1).unwrap();
    let (kept, ..) = *ring.appended.last().unwrap();
    drop(writer);
    ring.disks[1].come_back();
    ring.disks = ring.disks.iter().map(|disk| disk.crash(Crash::Kill)).collect();
    let (writer, recovery) = mount(boxed(&ring.disks), &Opener::alone(&ring.timeline)).unwrap();
    assert!(recovery.kept > 0 && writer.acknowledged() > kept);
    drop(writer);
    assert_eq!(lost_rows(&ring.disks[1..], kept.sequence), Some(vec![]));
}
