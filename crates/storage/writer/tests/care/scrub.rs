//! Scrubbing: what is damaged within redundancy is as it was before, on the medium; what is beyond
//! it is named exactly and not touched.

use core::ops::ControlFlow;
use std::collections::BTreeSet;

use device::{Fault, MUTATIONS, ReadAt, Rule};
use format::geometry::{PIECE_BYTES_MIN, ROW_BYTES};
use format::head::{HEAD_BYTES, Head, StripeId};
use format::superblock::{Superblock, copy_offset};
use units::{EachSequence, MemberId, Sequence};
use volume::Error;
use writer::{Opener, Outcome, Owner, Patrol, ScrubOptions, Writer, mount, patrol, scrub};

use crate::ring::{KEY, Ring, SIZE, devices, go_on};

#[test]
fn a_whole_volume_is_clean_and_stays_as_it_is() {
    for (data, parity) in [(1, 0), (1, 1), (3, 1), (4, 2)] {
        let ring = Ring::recorded(data, parity);
        let slots_ahead = usize::from(parity) * 3;
        let report = ring.scrub(slots_ahead);
        assert!(report.is_clean() && report.is_complete, "{data}+{parity}: {report:?}");
        assert!(report.verified.read.index_stripes > 200, "{report:?}");
        ring.is_as_before();
    }
}

#[test]
fn copies_of_an_earlier_state_are_brought_up_to_date_and_are_no_damage() {
    let ring = Ring::recorded(2, 1);
    let mut page = [0; HEAD_BYTES];
    ReadAt::read_at(&ring.disks[1], copy_offset(0, SIZE), &mut page).unwrap();
    let before = Superblock::decode(&page, 0).unwrap();
    // The power failed behind the first copy of a change.
    let next = Superblock { generation: before.generation + 1, ..before };
    ring.disks[1].damage(copy_offset(0, SIZE), |row| row.copy_from_slice(&next.encode(0)));
    let looked = ring.look();
    let old: Vec<(u8, u8, bool)> =
        looked.copies.iter().map(|copy| (copy.member.get(), copy.copy, copy.is_old)).collect();
    assert_eq!(old, [(1, 1, true), (1, 2, true), (1, 3, true)]);
    assert!(looked.is_clean() && looked.is_sound(), "{looked:?}");
    let report = ring.scrub(0);
    assert!(report.is_clean() && report.is_sound(), "{report:?}");
    assert!(report.copies.iter().all(|copy| copy.outcome.is_repaired()), "{report:?}");
    assert!(ring.look().copies.is_empty());
}

/// Every row of every slot that may be repaired, on one member after the other.
#[test]
fn any_row_of_any_member_is_repaired_to_what_it_was() {
    let ring = Ring::recorded(2, 1);
    let (first, last) = ring.repairable();
    let rows = u64::from(PIECE_BYTES_MIN / ROW_BYTES);
    for row in 0..rows {
        let reader = ring.reader();
        let means_something =
            |sequence: &Sequence| Ring::rows_of(&reader, *sequence).contains(&row);
        let damaged: Vec<Sequence> = (first..=last).each().filter(means_something).collect();
        for sequence in damaged {
            // The last four bytes end the block of a closing head; the others may be anything.
            let member = usize::try_from((sequence.get() + row) % 3).unwrap();
            let at = ring.row(sequence, row);
            ring.disks[member].damage(at, |row| row[HEAD_BYTES - 1] ^= 4);
        }
        let report = ring.scrub(usize::try_from(row).unwrap());
        assert!(!report.is_clean() && report.is_sound(), "row {row}: {report:?}");
        ring.is_as_before();
        assert!(ring.look().is_clean());
    }
}

#[test]
fn as_many_members_as_parity_may_be_blank() {
    let ring = Ring::recorded(4, 2);
    let (first, last) = ring.repairable();
    for sequence in (first..=last).each() {
        for member in [1, 4] {
            for row in 0..u64::from(PIECE_BYTES_MIN / ROW_BYTES) {
                ring.disks[member].damage(ring.row(sequence, row), |row| row.fill(0));
            }
        }
    }
    let report = ring.scrub(2);
    assert!(report.is_sound() && report.findings.len() > 200, "{report:?}");
    let reader = ring.reader();
    assert!(ring.look().is_clean());
    // Behind a head that closes its slot lies whatever an older lap left there, in one member's
    // slots or another's; all else is equal.
    for sequence in (first..=last).each() {
        for row in Ring::rows_of(&reader, sequence) {
            let at = usize::try_from(ring.row(sequence, row)).unwrap();
            for (disk, before) in ring.disks.iter().zip(&ring.before) {
                let mut now = [0; HEAD_BYTES];
                ReadAt::read_at(disk, ring.row(sequence, row), &mut now).unwrap();
                assert!(now[..] == before[at..at + HEAD_BYTES], "{sequence}, row {row}");
            }
        }
    }
}

#[test]
fn more_damage_than_parity_is_named_row_by_row_and_the_rest_is_repaired() {
    let ring = Ring::recorded(4, 1);
    let (first, last) = ring.repairable();
    let reader = ring.reader();
    let full =
        |sequence: &Sequence| reader.heads(*sequence).is_some_and(|it| it[0].stripe.rows == 3);
    let sequence = (first..=last).each().find(full).unwrap();
    // Row 0 of the body on two members, row 2 on one of them.
    for (member, row) in [(0, 1), (3, 1), (3, 3)] {
        ring.flip(member, ring.row(sequence, row));
    }
    let report = ring.scrub(1);
    assert!(!report.is_sound());
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|found| {
            (found.damage.member.unwrap().get(), found.damage.rows.clone(), &found.outcome)
        })
        .collect();
    assert!(
        matches!(
            &found[..],
            [(_, one, Outcome::Lost), (3, two, Outcome::Partly { lost_rows, repaired: true })]
            | [(3, two, Outcome::Partly { lost_rows, repaired: true }), (_, one, Outcome::Lost)]
                if *one == [0] && *two == [0, 2] && *lost_rows == [0]
        ),
        "{found:?}"
    );
    ring.flip(0, ring.row(sequence, 1));
    ring.flip(3, ring.row(sequence, 1));
    ring.is_as_before();
}

#[test]
fn without_parity_a_head_comes_back_from_its_siblings_and_a_row_does_not() {
    let ring = Ring::recorded(3, 0);
    let (first, last) = ring.repairable();
    // One of K heads is gone, and so too few are left to be sure; with parity one more is.
    ring.flip(1, ring.row(first, 0));
    assert!(!ring.scrub(1).is_sound());
    let ring = Ring::recorded(3, 1);
    ring.flip(1, ring.row(last - 2, 0));
    ring.flip(2, ring.row(last - 2, 1));
    let report = ring.scrub(1);
    assert!(report.is_sound(), "the body behind the bad head counts: {report:?}");
    ring.is_as_before();
}

#[test]
fn a_dry_run_writes_nothing_and_says_what_could_be_repaired() {
    let ring = Ring::recorded(2, 2);
    let (first, last) = ring.repairable();
    ring.flip(0, ring.row(first, 0));
    ring.flip(1, ring.row(last, 0));
    ring.flip(3, copy_offset(1, SIZE));
    for disk in &ring.disks {
        disk.add_rule(Rule::new(Fault::Error, MUTATIONS));
    }
    let report = ring.look();
    assert!(!report.is_clean() && !report.is_sound());
    let outcomes = report.findings.iter().map(|found| &found.outcome);
    let outcomes = outcomes.chain(report.copies.iter().map(|copy| &copy.outcome));
    assert!(outcomes.clone().all(|outcome| matches!(outcome, Outcome::Repairable)), "{report:?}");
    assert_eq!(outcomes.count(), 3);
}

#[test]
fn superblock_copies_come_back_from_the_newest() {
    let ring = Ring::recorded(2, 1);
    for (member, kept) in [(0, 0), (1, 2), (2, 3)] {
        for copy in (0..4).filter(|&copy| copy != kept) {
            ring.flip(member, copy_offset(copy, SIZE));
        }
    }
    let report = ring.scrub(1);
    assert!(report.copies.len() == 9 && report.is_sound(), "{report:?}");
    ring.is_as_before();
}

#[test]
fn what_the_ring_is_about_to_overwrite_is_left_alone() {
    let ring = Ring::recorded(2, 1);
    let (first, _) = ring.repairable();
    ring.flip(0, ring.row(first - 1, 0));
    ring.flip(0, ring.row(first, 0));
    let report = ring.scrub(1);
    let outcome = |sequence| {
        let found = report.findings.iter();
        &{ found }.find(|found| found.damage.stripe.sequence == sequence).unwrap().outcome
    };
    assert!(matches!(outcome(first - 1), Outcome::Passing), "{report:?}");
    assert!(outcome(first).is_repaired());
}

#[test]
fn a_member_that_refuses_the_repair_is_named() {
    let ring = Ring::recorded(2, 1);
    let (first, _) = ring.repairable();
    ring.flip(1, ring.row(first, 0));
    ring.flip(2, ring.row(first + 1, 0));
    let mut owner = Owner::claim(devices(&ring.disks), &Opener::alone(&ring.timeline)).unwrap();
    ring.disks[1].add_rule(Rule::new(Fault::Lost, MUTATIONS));
    ring.disks[2].add_rule(Rule::new(Fault::Error, MUTATIONS));
    let options = ScrubOptions::default();
    let report = scrub(&ring.reader(), Some(&mut owner), options, &mut go_on).unwrap();
    let outcomes: Vec<_> = report.findings.iter().map(|found| &found.outcome).collect();
    assert!(
        matches!(
            outcomes[..],
            [
                Outcome::Failed(Error::NotTaken { member: MemberId(1), .. }),
                Outcome::Failed(Error::Device(_))
            ]
        ),
        "{outcomes:?}"
    );
}

#[test]
fn a_reader_that_the_writer_passes_blames_nobody() {
    let ring = Ring::recorded(2, 1);
    let reader = ring.reader();
    let slots = reader.geometry().slots;
    ring.record(2, u16::try_from(2 * slots / 3).unwrap());
    let report = scrub(&reader, None, ScrubOptions::default(), &mut go_on).unwrap();
    assert!(report.is_clean() && report.verified.overwritten > 10, "{report:?}");
}

#[test]
fn a_break_stops_between_two_slots_and_says_so() {
    let ring = Ring::recorded(2, 1);
    let mut told = Vec::new();
    let options = ScrubOptions::default();
    let report = scrub(&ring.reader(), None, options, &mut |done, total| {
        told.push((done, total));
        if told.len() == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let report = report.unwrap();
    assert!(!report.is_complete && report.verified.read.slots == 5);
    assert_eq!(told.last().unwrap().0, report.verified.read.bytes);
    let totals: BTreeSet<u64> = told.iter().map(|told| told.1).collect();
    assert_eq!(totals.len(), 1);
}

/// Parity that was computed wrongly and sealed: all checksums match.
#[test]
fn parity_that_does_not_follow_from_the_data_is_found() {
    let ring = Ring::recorded(2, 2);
    let (first, last) = ring.repairable();
    let reader = ring.reader();
    let full =
        |sequence: &Sequence| reader.heads(*sequence).is_some_and(|it| it[0].stripe.rows == 3);
    let sequence = (first..last).each().rev().find(full).unwrap();
    let at = ring.row(sequence, 0);
    let member = |column| ring.geometry.member_of(sequence, column).place();
    // The last column is Q.
    let q = &ring.disks[member(3)];
    q.damage(at + 4096, |row| row[7] ^= 1);
    let mut body = vec![0; 3 * HEAD_BYTES];
    ReadAt::read_at(q, at + 4096, &mut body).unwrap();
    for column in 0..4 {
        let disk = &ring.disks[member(column)];
        disk.damage(at, |page| {
            let mut head = Head::decode(page[..].first_chunk().unwrap(), Some(&KEY)).unwrap();
            head.stripe.manifest[3] = format::checksum::body_crc(&body);
            if column == 3 {
                let address = format::checksum::RowAddress {
                    epoch: head.stripe.epoch,
                    sequence,
                    sub: 0,
                    column,
                };
                head.piece.row_crcs[0] = address.row_crc(0, &body[..HEAD_BYTES]);
            }
            let sealed = Head::new(head.stripe, head.piece).encode(&KEY);
            page.copy_from_slice(&sealed);
        });
    }
    let report = ring.scrub(1);
    assert_eq!(report.findings.len(), 0, "{report:?}");
    assert_eq!(report.verified.parity_wrong, [StripeId { sequence, sub: 0 }]);
    assert!(!report.is_sound());
}

#[test]
fn too_few_members_to_say_what_was_acknowledged_write_nothing() {
    let mut ring = Ring::recorded(2, 2);
    ring.disks.truncate(2);
    let mut owner = Owner::claim(devices(&ring.disks), &Opener::alone(&ring.timeline)).unwrap();
    let options = ScrubOptions::default();
    let result = scrub(&ring.reader(), Some(&mut owner), options, &mut go_on);
    assert!(matches!(result, Err(Error::Quorum { .. })), "{result:?}");
    assert!(ring.look().is_clean(), "looking is allowed");
}

/// Rows and heads rot while a writer is at work; the process that writes repairs them, and goes on
/// from where it was after a restart.
#[test]
fn damage_is_repaired_beside_a_writer() {
    let ring = Ring::recorded(3, 1);
    let (first, last) = ring.repairable();
    let (mut writer, _) = mount(devices(&ring.disks), &Opener::alone(&ring.timeline)).unwrap();
    let reader = |writer: &Writer| {
        let readers = ring.disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>);
        writer.reader(readers.collect()).unwrap()
    };
    // Behind the slots that the mount has brought near the head.
    let first = first + 4;
    let damaged = (first..=last).each().step_by(7);
    for (number, sequence) in damaged.clone().enumerate() {
        ring.flip(number % 4, ring.row(sequence, u64::from(number % 2 == 0)));
    }
    let mut next = Sequence(0);
    let mut repaired = 0;
    loop {
        let mut work = Patrol::new(reader(&writer), next).unwrap();
        let mut is_done = false;
        for _ in 0..50 {
            let Some(findings) = patrol(&mut work, &mut writer, &ring.timeline).unwrap() else {
                is_done = true;
                break;
            };
            assert!(findings.iter().all(|it| it.outcome.is_repaired()), "{findings:?}");
            repaired += findings.len();
        }
        next = work.next();
        if is_done {
            break;
        }
    }
    assert_eq!(repaired, damaged.count());
    assert!(writer.counters().repaired_bytes > 0);
    writer.close(&ring.timeline).unwrap();
    assert!(ring.look().is_clean());
}
