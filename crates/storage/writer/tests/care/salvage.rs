//! Volumes without superblocks, or with too few members: what is there is found and no more.

use device::{Modelled, ReadAt, Timing};
use format::geometry::{Geometry, PIECE_BYTES_MIN, RESERVED_BYTES, ROW_BYTES};
use format::head::{HEAD_BYTES, Head, HeadKey, StripeId};
use format::superblock::{Spare, copy_offset};
use units::{EachSequence, MemberId, Sequence};
use volume::{Error, Reader, Salvaged, salvage};
use writer::{Opener, mount};

use crate::ring::{KEY, Ring, SIZE, devices};

impl Ring {
    fn zero_superblocks(&self, member: usize, copies: impl IntoIterator<Item = u8>) {
        for copy in copies {
            self.disks[member].damage(copy_offset(copy, SIZE), |page| page.fill(0));
        }
    }

    /// A member more, and so many parity columns.
    fn grow(&mut self, parity_columns: u8) {
        let newcomer = Modelled::new(SIZE, Timing::instant(), &self.timeline, 99);
        let spare = Spare { uuid: [99; 16], path: String::new() };
        let (mut writer, _) = mount(devices(&self.disks), &Opener::alone(&self.timeline)).unwrap();
        let device = Box::new(newcomer.clone());
        writer.grow(vec![(spare, device)], parity_columns, &self.timeline).unwrap();
        writer.close(&self.timeline).unwrap();
        self.disks.push(newcomer);
    }

    fn without_superblocks(data_columns: u8, parity_columns: u8) -> Self {
        let ring = Self::recorded(data_columns, parity_columns);
        (0..ring.disks.len()).for_each(|member| ring.zero_superblocks(member, 0..4));
        ring
    }

    fn readers(&self) -> Vec<Box<dyn ReadAt>> {
        self.disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>).collect()
    }

    fn salvage(&self) -> Salvaged {
        // In no order that means anything.
        let mut readers = self.readers();
        readers.reverse();
        salvage(readers).unwrap()
    }
}

type Piece = (StripeId, u8, Vec<u8>);

/// Every stripe that a reader shows in every column, with its verified bytes.
fn contents(reader: &Reader) -> Vec<Piece> {
    let span = reader.span().unwrap();
    let mut found = Vec::new();
    let mut buffer = vec![0; reader.piece_bytes()];
    for sequence in (span.tail..=span.acknowledged.sequence).each() {
        for column in 0..reader.membership().geometry_at(sequence).data_columns {
            let Ok(slot) = reader.slot(sequence, column, &mut buffer) else { continue };
            for stripe in slot.stripes.iter().filter(|it| it.bad_rows.is_empty()) {
                let body = Reader::body(&stripe.head, &buffer).to_vec();
                found.push((stripe.head.stripe.stripe, column, body));
            }
        }
    }
    found
}

/// The same up to the last of `before`: salvage shows the head that closes the volume, too, which
/// is whole though no watermark covers it.
fn contents_up_to(before: &[Piece], reader: &Reader) -> Vec<Piece> {
    let last = before.last().unwrap().0;
    let mut found = contents(reader);
    found.retain(|(stripe, _, body)| {
        assert!(*stripe <= last || body.is_empty(), "{stripe}");
        *stripe <= last
    });
    found
}

#[test]
fn a_volume_whose_superblocks_are_all_zeroed_is_salvaged_completely() {
    for (data, parity) in [(1, 0), (1, 1), (3, 1), (4, 2)] {
        let before = contents(&Ring::recorded(data, parity).reader());
        let salvaged = Ring::without_superblocks(data, parity).salvage();
        assert!(!salvaged.has_key && salvaged.strangers.is_empty());
        let found = contents_up_to(&before, &salvaged.reader);
        assert!(found == before, "{data}+{parity}: {} of {}", found.len(), before.len());
    }
}

/// Old stripes and new ones are of different shapes, and no superblock says where one ends.
#[test]
fn a_volume_that_has_grown_is_salvaged_completely() {
    for (data, parity, to_data, to_parity) in [(1, 1, 2, 1), (2, 1, 2, 2), (2, 0, 2, 1)] {
        let mut ring = Ring::recorded(data, parity);
        ring.grow(to_parity);
        ring.record(to_data, 120);
        let reader = ring.reader();
        let span = reader.span().unwrap();
        let shape_of = |sequence| {
            let geometry = reader.membership().geometry_at(sequence);
            (geometry.data_columns, geometry.parity_columns)
        };
        assert_eq!(shape_of(span.tail), (data, parity), "some of the old shape is held");
        assert_eq!(shape_of(span.acknowledged.sequence), (to_data, to_parity));
        let before = contents(&reader);
        (0..ring.disks.len()).for_each(|member| ring.zero_superblocks(member, 0..4));
        let salvaged = ring.salvage();
        assert!(!salvaged.has_key && salvaged.strangers.is_empty());
        let found = contents_up_to(&before, &salvaged.reader);
        assert!(found == before, "{data}+{parity}: {} of {}", found.len(), before.len());
        // With as many members as the newest shape may lose, as far as the old one could, too.
        for lost in (0..ring.disks.len()).filter(|_| parity > 0) {
            let mut readers = ring.readers();
            readers.remove(lost);
            let salvaged = salvage(readers).unwrap();
            let found = contents_up_to(&before, &salvaged.reader);
            assert!(found == before, "without {lost}: {} of {}", found.len(), before.len());
        }
    }
}

/// One copy on any member is enough; the others are known from their heads.
#[test]
fn any_combination_of_copies_is_enough_or_salvaged() {
    let ring = Ring::recorded(2, 1);
    let before = contents(&ring.reader());
    for member in 0..3 {
        for lost in 0_u8..16 {
            let damaged = Ring {
                disks: ring.disks.iter().map(Modelled::snapshot).collect(),
                before: Vec::new(),
                timeline: ring.timeline.clone(),
                geometry: ring.geometry,
            };
            let copies = (0..4).filter(|copy| lost & (1 << copy) != 0);
            damaged.zero_superblocks(member, copies);
            if lost == 15 {
                assert!(Reader::open(damaged.readers()).is_err());
            } else {
                assert!(contents(&damaged.reader()) == before, "{member}, {lost:04b}");
            }
            let salvaged = damaged.salvage();
            assert!(salvaged.has_key && salvaged.strangers.is_empty());
            assert_eq!(salvaged.reader.membership().present().count(), 3);
            assert!(contents_up_to(&before, &salvaged.reader) == before, "{member}, {lost:04b}");
            // On all members but this one.
            let others = (0..3).filter(|&other| other != member);
            others.for_each(|other| damaged.zero_superblocks(other, 0..4));
            let salvaged = damaged.salvage();
            assert_eq!(salvaged.has_key, lost != 15);
            let found = contents_up_to(&before, &salvaged.reader);
            assert!(found == before, "only {member}, {lost:04b}");
        }
    }
}

#[test]
fn with_too_few_members_every_surviving_piece_reads_alone() {
    let ring = Ring::recorded(4, 2);
    let before = contents(&ring.reader());
    for with_superblocks in [true, false] {
        let mut ring = Ring::recorded(4, 2);
        ring.disks = [1, 3, 4].map(|member: usize| ring.disks[member].clone()).to_vec();
        if !with_superblocks {
            (0..3).for_each(|member| ring.zero_superblocks(member, 0..4));
        }
        let salvaged = ring.salvage();
        let held = |stripe: StripeId, column| {
            [1, 3, 4].contains(&ring.geometry.member_of(stripe.sequence, column).get())
        };
        // The superblocks alone say that the newest was acknowledged. Without a body there is
        // nothing to lose.
        let is_known = |stripe| with_superblocks || stripe <= salvaged.acknowledged;
        let expected = before
            .iter()
            .filter(|(stripe, ..)| is_known(*stripe))
            .filter(|(stripe, column, body)| body.is_empty() || held(*stripe, *column));
        let found = contents(&salvaged.reader);
        let missing = expected.filter(|piece| !found.contains(piece));
        let missing: Vec<_> = missing.map(|(stripe, column, _)| (*stripe, *column)).collect();
        assert_eq!(missing, [], "with superblocks: {with_superblocks}");
        let of_others = found
            .iter()
            .filter(|(stripe, column, body)| !body.is_empty() && !held(*stripe, *column));
        assert_eq!(of_others.count(), 0);
    }
}

#[test]
fn devices_with_nothing_of_the_volume_are_named() {
    let ring = Ring::without_superblocks(2, 1);
    let blank = Modelled::instant(SIZE);
    let mut readers = ring.readers();
    readers[1] = Box::new(blank.clone());
    let salvaged = salvage(readers).unwrap();
    assert_eq!(salvaged.strangers, [1]);
    let whole = contents(&Ring::recorded(2, 1).reader());
    assert!(contents_up_to(&whole, &salvaged.reader) == whole);
    assert!(matches!(salvage(vec![Box::new(blank)]), Err(Error::NothingFound)));
}

/// A head for any place, as an attacker would make it who knows everything but the key and what has
/// not happened yet.
fn forged(model: &Head, (stripe, row): (StripeId, u16), geometry: Geometry) -> [u8; HEAD_BYTES] {
    let mut head = model.clone();
    head.stripe.geometry = geometry;
    head.stripe.stripe = stripe;
    head.stripe.first_row = row;
    head.stripe.rows = 0;
    head.piece.row_crcs.clear();
    head.stripe.manifest = vec![0; usize::from(geometry.columns())];
    head.stripe.previous = StripeId { sub: stripe.sub.saturating_sub(1), ..stripe };
    head.stripe.previous_cid = model.cid;
    head.piece.column = geometry.column_of(stripe.sequence, head.piece.member);
    Head::new(head.stripe, head.piece).encode(&HeadKey([0; 32]))
}

/// Forged heads in every body row, on every member, and in the rows behind what was written; then
/// the heads in front of them rot.
#[test]
fn a_packet_that_holds_a_forged_head_does_not_pass() {
    let ring = Ring::recorded(2, 1);
    let reader = ring.reader();
    let span = reader.span().unwrap();
    let before = contents(&reader);
    (0..3).for_each(|member| ring.zero_superblocks(member, 0..4));
    let rows = u16::try_from(PIECE_BYTES_MIN / ROW_BYTES).unwrap();
    for sequence in (span.tail..=span.acknowledged.sequence).each() {
        let heads = reader.heads(sequence).unwrap();
        for member in 0..3_u8 {
            let disk = &ring.disks[usize::from(member)];
            let mut model = heads[0].clone();
            model.piece.member = MemberId(member);
            model.piece.member_uuid = [member + 1; 16];
            for row in 1..rows {
                let place =
                    ring.geometry.slot_offset(sequence) + u64::from(row) * u64::from(ROW_BYTES);
                let is_ours = heads.iter().any(|it| it.stripe.first_row == row);
                let is_closed = heads.iter().any(|it| {
                    it.stripe.kind.closes_slot() && it.stripe.first_row < row && row < rows - 1
                });
                // Every third slot has lost all of its first heads, and holds forgeries behind
                // them; in the others they lie where a closed slot says that nothing does.
                let is_lost = sequence.get() % 3 == 0 && sequence < span.acknowledged.sequence;
                if (is_lost && !is_ours) || is_closed {
                    let stripe = StripeId { sequence, sub: row };
                    let page = forged(&model, (stripe, row), ring.geometry);
                    disk.damage(place, |bytes| *bytes = page);
                }
                if is_lost && row == 1 {
                    let first = ring.geometry.slot_offset(sequence);
                    disk.damage(first, |page| page[50] ^= 1);
                }
            }
        }
    }
    let salvaged = ring.salvage();
    let found = contents(&salvaged.reader);
    let invented: Vec<_> = found
        .iter()
        .filter(|piece| piece.0 <= before.last().unwrap().0 && !before.contains(piece))
        .map(|(stripe, column, _)| (*stripe, *column))
        .collect();
    assert_eq!(invented, [], "nothing but what was recorded");
    let kept = before.iter().filter(|piece| piece.0.sequence.get() % 3 != 0);
    let lost = kept.filter(|piece| !found.contains(piece));
    let lost: Vec<_> = lost.map(|(stripe, column, _)| (*stripe, *column)).collect();
    assert_eq!(lost, [], "the other slots are whole");
}

/// Bodies that are full of small volumes: heads in place by their own word, with rows that match.
#[test]
fn a_forged_volume_inside_of_packets_does_not_win_the_vote() {
    let ring = Ring::without_superblocks(1, 0);
    let disk = &ring.disks[0];
    let other = Geometry { slots: ring.geometry.slots / 2, ..ring.geometry };
    let at = RESERVED_BYTES;
    let mut page = [0; HEAD_BYTES];
    ReadAt::read_at(disk, at, &mut page).unwrap();
    let model = Head::decode(&page, Some(&KEY)).unwrap();
    // The first slots are lost, and what lies there claims another shape.
    for slot in 0..20 {
        let sequence = Sequence(2 * other.slots + slot);
        let mut head = model.clone();
        head.stripe.stripe = StripeId { sequence, sub: 0 };
        head.stripe.geometry = other;
        let body = [7; HEAD_BYTES];
        head.stripe.rows = 1;
        head.stripe.manifest = vec![format::checksum::body_crc(&body)];
        head.piece.row_crcs = vec![0];
        let page = Head::new(head.stripe, head.piece).encode(&HeadKey([0; 32]));
        let place = other.slot_offset(sequence);
        disk.damage(place, |bytes| *bytes = page);
        disk.damage(place + u64::from(ROW_BYTES), |bytes| *bytes = body);
    }
    let salvaged = ring.salvage();
    assert_eq!(*salvaged.reader.geometry(), ring.geometry);
}
