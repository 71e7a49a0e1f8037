//! Slots that members show differently: each case is one that a rule decides, and that
//! comes out otherwise without it.

use device::{Device, Modelled};
use format::head::{HeadKey, Kind, VolumeId};
use format::superblock::{MemberEntry, Superblock};
use units::{Epoch, ManualClock, MemberId, Sequence, Timestamp};

use super::*;
use crate::heads::Unreadable;
use crate::seal::{Sealed, empty_head, to_slot_end};
use crate::{CreateOptions, Identity, create, superblocks};

/// The slot that the members show; it lies before the newest epoch, which all have joined.
const SEQUENCE: Sequence = Sequence(1000);

/// Two data columns and one of parity.
struct Story {
    superblock: Superblock,
    /// Of each member: its slot.
    slots: [Vec<u8>; 3],
}

impl Story {
    fn new() -> Self {
        let disks: Vec<Modelled> = (0..3).map(|_| Modelled::instant(8 << 20)).collect();
        let boxed = |disk: &Modelled| -> Box<dyn Device> { Box::new(disk.clone()) };
        let mut devices: Vec<_> = disks.iter().map(boxed).collect();
        let options = CreateOptions {
            piece_bytes: format::geometry::PIECE_BYTES_MIN,
            parity_columns: 1,
            ..CreateOptions::default()
        };
        let identity = Identity {
            volume_id: VolumeId([1; 16]),
            head_key: HeadKey([2; 32]),
            members: (1..4).map(|it| MemberEntry::new([it; 16], String::new())).collect(),
            spares: Vec::new(),
            created: Timestamp(0),
        };
        create(&mut devices, &options, &identity).unwrap();
        let made = superblocks::load_from(&disks[0]).unwrap();
        let superblock = Superblock {
            prepared_epoch: Epoch(9),
            joined_epoch: Epoch(9),
            joined_start: SEQUENCE + 10,
            joined_members: 0b111,
            ..made
        };
        let slot = vec![0; usize::try_from(superblock.geometry.piece_bytes).unwrap()];
        Self { superblock, slots: [slot.clone(), slot.clone(), slot] }
    }

    /// A stripe without a body.
    fn seal(&self, kind: Kind, epoch: Epoch, (sub, row): (u16, u16)) -> Sealed {
        let clock = ManualClock::new(Timestamp(1));
        let place = (StripeId { sequence: SEQUENCE, sub }, row);
        Sealed::new(StripeHead { epoch, ..empty_head(&self.superblock, kind, place, &clock) })
    }

    /// Puts it on a member, into any row.
    fn put_in_row(&mut self, sealed: &Sealed, member: u8, row: u16) {
        let stripe = sealed.stripe();
        let column = stripe.geometry.column_of(SEQUENCE, MemberId(member));
        let page = sealed.page(&self.superblock, column, 0, Vec::new());
        let bytes = if stripe.kind.closes_slot() {
            to_slot_end(stripe, Some(&page), row)
        } else {
            page.to_vec()
        };
        let at = usize::from(row) * HEAD_BYTES;
        self.slots[usize::from(member)][at..at + bytes.len()].copy_from_slice(&bytes);
    }

    fn put(&mut self, sealed: &Sealed, members: &[u8]) {
        for &member in members {
            self.put_in_row(sealed, member, sealed.stripe().first_row);
        }
    }

    /// What a member has there may be of a past that the others replaced.
    fn doubt(&mut self, member: u8) {
        let entry = &mut self.superblock.members[usize::from(member)];
        (entry.stale_from, entry.clean_from) = (SEQUENCE - 5, SEQUENCE + 5);
    }

    fn with_heads<T>(&self, work: impl FnOnce(&Heads<'_>) -> T) -> T {
        let own = MemberId::first(3).map(|member| Superblock { member, ..self.superblock.clone() });
        let membership = Membership::assemble(own.collect()).unwrap();
        let begin = self.superblock.geometry.slot_offset(SEQUENCE);
        let read = |member: MemberId, offset: u64, into: &mut [u8]| {
            let at = usize::try_from(offset - begin).map_err(|_| Unreadable)?;
            let slot = &self.slots[member.place()];
            into.copy_from_slice(slot.get(at..at + into.len()).ok_or(Unreadable)?);
            Ok(())
        };
        work(&Heads::new(&read, &membership))
    }

    /// Kind and epoch of each stripe that is seen.
    fn seen(&self, acknowledged: StripeId) -> Vec<(Kind, Epoch)> {
        self.with_heads(|heads| {
            let bytes = SlotBytes::read(heads, SEQUENCE);
            let view = SlotView::walk(heads, SEQUENCE, acknowledged, &bytes);
            view.stripes.iter().map(|it| (it.stripe.kind, it.stripe.epoch)).collect()
        })
    }
}

const NOTHING: StripeId = StripeId { sequence: Sequence(0), sub: 0 };
const ALL: StripeId = StripeId { sequence: Sequence(SEQUENCE.get() + 10), sub: 0 };

#[test]
fn whole_data_beats_a_void() {
    let mut story = Story::new();
    let (data, void) =
        (story.seal(Kind::Data, Epoch(5), (0, 0)), story.seal(Kind::Void, Epoch(6), (0, 0)));
    story.put(&data, &[0, 1]);
    story.put(&void, &[2]);
    assert_eq!(story.seen(NOTHING), [(Kind::Data, Epoch(5))]);
}

#[test]
fn a_void_beats_data_that_is_not_whole() {
    let mut story = Story::new();
    let (data, void) =
        (story.seal(Kind::Data, Epoch(6), (0, 0)), story.seal(Kind::Void, Epoch(5), (0, 0)));
    story.put(&data, &[0]);
    story.put(&void, &[1]);
    assert_eq!(story.seen(NOTHING), [(Kind::Void, Epoch(5))]);
}

#[test]
fn whole_data_beats_newer_data_that_is_not_whole() {
    let mut story = Story::new();
    let (old, new) =
        (story.seal(Kind::Data, Epoch(5), (0, 0)), story.seal(Kind::Data, Epoch(6), (0, 0)));
    story.put(&old, &[0, 1]);
    story.put(&new, &[2]);
    assert_eq!(story.seen(NOTHING), [(Kind::Data, Epoch(5))]);
}

#[test]
fn data_that_lies_in_gaps_alone_gives_way_to_a_void() {
    let mut story = Story::new();
    let (data, void) =
        (story.seal(Kind::Data, Epoch(5), (0, 0)), story.seal(Kind::Void, Epoch(6), (0, 0)));
    story.put(&data, &[0, 1]);
    story.put(&void, &[2]);
    story.doubt(0);
    story.doubt(1);
    assert_eq!(story.seen(NOTHING), [(Kind::Void, Epoch(6))]);
}

#[test]
fn a_void_that_lies_in_gaps_alone_gives_way_to_whole_data() {
    let mut story = Story::new();
    let (data, void) =
        (story.seal(Kind::Data, Epoch(5), (0, 0)), story.seal(Kind::Void, Epoch(6), (0, 0)));
    story.put(&void, &[0]);
    story.put(&data, &[1, 2]);
    story.doubt(0);
    story.doubt(1);
    story.doubt(2);
    assert_eq!(story.seen(NOTHING), [(Kind::Data, Epoch(5))]);
}

#[test]
fn one_epoch_writes_a_slot_and_only_a_later_void_may_end_it() {
    for (kind, epoch, is_seen) in [
        (Kind::Data, Epoch(5), true),
        (Kind::Data, Epoch(4), false),
        (Kind::Data, Epoch(6), false),
        (Kind::Void, Epoch(6), true),
        (Kind::Void, Epoch(4), false),
    ] {
        let mut story = Story::new();
        let first = story.seal(Kind::Data, Epoch(5), (0, 0));
        let second = story.seal(kind, epoch, (1, 1));
        story.put(&first, &[0, 1, 2]);
        story.put(&second, &[0, 1, 2]);
        let mut expected = vec![(Kind::Data, Epoch(5))];
        expected.extend(is_seen.then_some((kind, epoch)));
        assert_eq!(story.seen(NOTHING), expected, "{kind:?} of {epoch}");
    }
}

#[test]
fn a_head_in_another_row_than_it_names_is_none() {
    let mut story = Story::new();
    let (first, second) =
        (story.seal(Kind::Data, Epoch(5), (0, 0)), story.seal(Kind::Data, Epoch(5), (1, 1)));
    // The first is damaged: what follows is looked for in the rows behind it.
    (0..3).for_each(|member| story.put_in_row(&second, member, 3));
    assert_eq!(story.seen(ALL), []);
    story.put(&second, &[0, 1, 2]);
    assert_eq!(story.seen(ALL), [(Kind::Data, Epoch(5))]);
    story.put(&first, &[0, 1, 2]);
    assert_eq!(story.seen(ALL), [(Kind::Data, Epoch(5)), (Kind::Data, Epoch(5))]);
}

#[test]
fn a_head_is_agreed_that_k_members_have() {
    for (members, is_agreed) in [(&[0][..], false), (&[0, 2], true), (&[0, 1, 2], true)] {
        let mut story = Story::new();
        let (data, other) =
            (story.seal(Kind::Data, Epoch(5), (0, 0)), story.seal(Kind::Data, Epoch(4), (0, 0)));
        story.put(&other, &[1, 2]);
        story.put(&data, members);
        let agreed = story.with_heads(|heads| {
            let bytes = SlotBytes::read(heads, SEQUENCE);
            heads
                .is_agreed(&heads.head_in(MemberId(0), bytes.of(MemberId(0)), 0, SEQUENCE).unwrap())
        });
        assert_eq!(agreed, is_agreed, "{members:?}");
    }
}
