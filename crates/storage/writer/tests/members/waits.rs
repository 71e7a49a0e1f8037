//! What is asked of many members is asked of all of them at the same time: ten cost hardly more
//! waits than one, and one that hangs costs one deadline and not one for each read.

use core::ops::ControlFlow;
use core::time::Duration;

use device::{Device, Fault, Modelled, Operation, PATIENCE, ReadAt, ReadBudget, Rule, Timeline};
use format::head::StripeId;
use units::MemberId;
use volume::{GivenUp, Reader, RowsWanted, salvage};
use writer::{Opener, ScrubOptions, mount_members, scrub, verify};

use crate::ring::{Ring, boxed};

const READ_NS: u64 = 100_000_000;
const STRIPES: u8 = 12;

fn boxed_readers(disks: &[Modelled]) -> Vec<Box<dyn ReadAt>> {
    disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>).collect()
}

/// A volume that was recorded to and stopped in order.
fn recorded(data_columns: u8, parity_columns: u8) -> Ring {
    let mut ring = Ring::new(data_columns, parity_columns);
    let mut writer = ring.mount();
    ring.append(&mut writer, STRIPES).unwrap();
    writer.close(&ring.timeline).unwrap();
    ring
}

/// Something that is asked of a volume, with a reader of it where it needs one.
type Ask = fn(&Ring, Option<&mut Reader>);

/// Each with whether it needs a reader that is open.
const ASKED: [(&str, bool, Ask); 9] = [
    ("open", false, |ring, _| drop(Reader::open(boxed_readers(&ring.disks)).unwrap())),
    ("mount", false, |ring, _| {
        let members =
            MemberId::all().zip(boxed(&ring.disks)).map(|(member, disk)| (member, Ok(disk)));
        drop(mount_members(members.collect(), &[], &Opener::alone(&ring.timeline)).unwrap());
    }),
    ("salvage", false, |ring, _| drop(salvage(boxed_readers(&ring.disks)).unwrap())),
    ("refresh", true, |_, reader| reader.unwrap().refresh().unwrap()),
    ("slots", true, |ring, reader| {
        let reader = reader.unwrap();
        let columns: Vec<u8> = (0..reader.geometry().data_columns).collect();
        let mut memory = vec![Vec::new(); columns.len()];
        let (stripe, ..) = ring.appended[2];
        for slot in reader.slots(stripe.sequence, &columns, &mut memory) {
            assert!(slot.unwrap().stripes.iter().all(|it| it.bad_rows.is_empty()));
        }
    }),
    ("rows", true, |ring, reader| {
        let reader = reader.unwrap();
        let columns = reader.geometry().data_columns;
        let wanted = |&(stripe, ..): &(StripeId, u8, u8)| {
            let column = u8::try_from(stripe.sequence.get() % u64::from(columns)).unwrap();
            RowsWanted { stripe, column, rows: Vec::from([core::ops::Range { start: 0, end: 1 }]) }
        };
        let wanted: Vec<RowsWanted> = ring.appended.iter().take(2).map(wanted).collect();
        // The caller reads the slot whole where rows are not to be had.
        drop(reader.rows(&wanted));
    }),
    ("look", true, |ring, reader| drop(reader.unwrap().look(ring.appended[2].0.sequence))),
    ("verify", true, |_, reader| {
        drop(verify(reader.unwrap(), &mut |_, _| ControlFlow::Continue(())));
    }),
    ("scrub", true, |_, reader| {
        let options = ScrubOptions { slots_ahead: 0 };
        let go_on = &mut |_, _| ControlFlow::Continue(());
        drop(scrub(reader.unwrap(), None, options, go_on).unwrap());
    }),
];

/// The time that it takes, where the disks do what `rule` says of each by number.
fn time(
    ring: &Ring,
    (has_reader, ask): (bool, Ask),
    rule: impl Fn(usize) -> Option<Rule>,
) -> Duration {
    let mut reader = has_reader.then(|| Reader::open(boxed_readers(&ring.disks)).unwrap());
    for (number, disk) in ring.disks.iter().enumerate() {
        disk.clear_rules();
        if let Some(rule) = rule(number) {
            disk.add_rule(rule);
        }
    }
    let since_ns = now_ns(&ring.timeline);
    ask(ring, reader.as_mut());
    ring.disks.iter().for_each(Modelled::clear_rules);
    Duration::from_nanos((now_ns(&ring.timeline) - since_ns).unsigned_abs())
}

fn now_ns(timeline: &Timeline) -> i64 {
    timeline.now_ns()
}

fn slow() -> Rule {
    Rule::new(Fault::Slow { latency_ns: READ_NS }, &[Operation::Read])
}

#[test]
fn ten_members_cost_hardly_more_waits_than_one() {
    for (what, has_reader, ask) in ASKED {
        let one = time(&recorded(1, 0), (has_reader, ask), |_| Some(slow()));
        let ten = time(&recorded(8, 2), (has_reader, ask), |_| Some(slow()));
        // The others are asked whether they agree: once, all together.
        let most = one * 3 / 2 + 2 * Duration::from_nanos(READ_NS);
        assert!(one >= Duration::from_nanos(READ_NS), "{what} reads: {one:?}");
        assert!(ten <= most, "{what}: {ten:?} of ten, {one:?} of one");
    }
}

#[test]
fn a_member_that_hangs_costs_one_deadline_whatever_is_asked() {
    for (what, has_reader, ask) in ASKED {
        for hung in [0, 4] {
            let ring = recorded(8, 2);
            let hangs = |number| {
                let hour = Fault::Hangs { ns: 3_600_000_000_000 };
                (number == hung).then(|| Rule::new(hour, &[Operation::Read]).times(1))
            };
            let time = time(&ring, (has_reader, ask), hangs);
            // A mount looks whether it hangs before it asks again.
            let most = PATIENCE + 3 * Duration::from_secs(1);
            assert!(time >= PATIENCE, "{what} asks member {hung}: {time:?}");
            assert!(time <= most, "{what} with member {hung} hung: {time:?}");
        }
    }
}

/// What a member that hangs would have given is computed from the others, of all columns at once.
#[test]
fn slots_of_several_columns_are_those_of_each_also_where_a_member_hangs() {
    let ring = recorded(4, 2);
    let columns: Vec<u8> = (0..4).collect();
    for hung in [None, Some(1), Some(3)] {
        let reader = Reader::open(boxed_readers(&ring.disks)).unwrap();
        if let Some(hung) = hung {
            let disk: &Modelled = &ring.disks[hung];
            disk.stall(3_600_000_000_000);
            assert!(Device::in_flight(disk) == 0);
        }
        for &(stripe, _, mark) in &ring.appended {
            let mut memory = vec![Vec::new(); columns.len()];
            let slots = reader.slots(stripe.sequence, &columns, &mut memory);
            for ((slot, memory), column) in slots.into_iter().zip(&memory).zip(0..) {
                let slot = slot.unwrap();
                let piece = &slot.stripes[usize::from(stripe.sub)];
                assert_eq!(piece.bad_rows, Vec::<u16>::new(), "{stripe}.{column}");
                let body = Reader::body(&piece.head, memory);
                assert!(body.iter().all(|&byte| byte == mark ^ column), "{stripe}.{column}");
            }
        }
        ring.timeline.wait_until(ring.timeline.now_ns() + 7_200_000_000_000);
    }
}

/// A disk that takes two seconds for every row that it cannot read, and cannot read any of the
/// ring. It is given up, named, and everything comes from the others.
#[test]
fn a_disk_that_fails_slowly_is_given_up_and_named() {
    let most = ReadBudget::AMONG_OTHERS.time + Duration::from_secs(30);
    let columns: Vec<u8> = (0..4).collect();
    for is_verified in [false, true] {
        let ring = recorded(4, 2);
        let mut reader = Reader::open(boxed_readers(&ring.disks)).unwrap();
        let disk = &ring.disks[2];
        let geometry = *reader.geometry();
        let end = geometry.slot0_offset + geometry.slots * u64::from(geometry.piece_bytes);
        (geometry.slot0_offset..end).step_by(4096).for_each(|row| disk.spoil(row));
        let lags = Fault::Slow { latency_ns: 2_000_000_000 };
        let lags = Rule::new(lags, &[Operation::Read]).within(geometry.slot0_offset..end);
        disk.add_rule(lags);
        assert_eq!(reader.given_up(), []);
        let since_ns = now_ns(&ring.timeline);
        let seconds = || (now_ns(&ring.timeline) - since_ns).unsigned_abs() / 1_000_000_000;
        if is_verified {
            let report = verify(&reader, &mut |_, _| ControlFlow::Continue(()));
            assert_eq!(report.given_up, reader.given_up());
            // What was read before it was given up is damage, what came later was not looked at.
            assert!(!report.damage.is_empty() && report.degraded > 0, "{report:?}");
            assert!(report.damage.iter().all(|it| it.member == Some(MemberId(2)) && it.repairable));
        } else {
            for &(stripe, _, mark) in &ring.appended {
                let mut memory = vec![Vec::new(); columns.len()];
                let slots = reader.slots(stripe.sequence, &columns, &mut memory);
                for ((slot, memory), column) in slots.into_iter().zip(&memory).zip(0..) {
                    let slot = slot.unwrap();
                    let piece = &slot.stripes[usize::from(stripe.sub)];
                    assert_eq!(piece.bad_rows, Vec::<u16>::new(), "{stripe}.{column}");
                    let body = Reader::body(&piece.head, memory);
                    assert!(body.iter().all(|&byte| byte == mark ^ column), "{stripe}.{column}");
                }
            }
        }
        assert!(seconds() <= most.as_secs(), "{} s", seconds());
        let given_up = reader.given_up();
        assert!(
            matches!(given_up[..], [GivenUp { member: MemberId(2), failed: 20.., .. }]),
            "{given_up:?}"
        );
        assert!(given_up[0].to_string().starts_with("member 2, after "));
        // The next question may find it well again.
        disk.clear_rules();
        reader.refresh().unwrap();
        assert_eq!(reader.given_up(), []);
    }
}

/// Where no other member has it, a disk that fails slowly is read for longer.
#[test]
fn the_last_member_that_has_something_is_not_given_up_as_soon() {
    let ring = recorded(2, 0);
    let reader = Reader::open(boxed_readers(&ring.disks)).unwrap();
    let geometry = *reader.geometry();
    let disk = &ring.disks[1];
    // A first row of every second slot.
    for slot in geometry.all_slots().step_by(2) {
        disk.spoil(geometry.offset_of_slot(slot));
    }
    let slow = Fault::Slow { latency_ns: 30_000_000_000 };
    disk.add_rule(Rule::new(slow, &[Operation::Read]));
    let report = verify(&reader, &mut |_, _| ControlFlow::Continue(()));
    assert!(report.given_up.is_empty() && !report.damage.is_empty(), "{report:?}");
    assert!(ReadBudget::AMONG_OTHERS.time < ReadBudget::LAST_RESORT.time);
}
