//! Long stretches of the ring that say nothing, wherever they lie: the end of the ring is found
//! behind them, readers and mounts agree on it, and nothing that can be read is written over.

#![expect(clippy::unwrap_used, clippy::as_conversions, reason = "a test may stop at once")]

use core::ops::{ControlFlow, Range};

use device::{Device, Modelled, Pool, ROW_SIZE, ReadAt};
use format::geometry::PIECE_BYTES_MIN;
use format::head::{HeadKey, Kind, StripeId, VolumeId};
use format::superblock::{
    Mark, MemberEntry, SUPERBLOCK_BYTES, SUPERBLOCK_COPIES, Superblock, copy_offset,
};
use units::{EachSequence, ManualClock, Sequence, Timestamp};
use volume::{CreateOptions, Identity, Reader, create};
use writer::{Filled, Opener, Recovery, Writer, mount, verify};

/// How the writer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    InOrder,
    ByCrash,
}

struct Ring {
    disks: Vec<Modelled>,
    clock: ManualClock,
    pool: Pool,
    slots: u64,
    /// The last stripe that was acknowledged.
    newest: StripeId,
    end: End,
}

impl Ring {
    /// A ring of as many data and parity columns.
    fn new(data: u8, parity: u8, size: u64) -> Self {
        let members = usize::from(data + parity);
        let disks: Vec<Modelled> = (0..members).map(|_| Modelled::instant(size)).collect();
        let entry = |member| MemberEntry::new([member; 16], String::new());
        let identity = Identity {
            volume_id: VolumeId([1; 16]),
            head_key: HeadKey([2; 32]),
            members: (1..=data + parity).map(entry).collect(),
            spares: Vec::new(),
            created: Timestamp(0),
        };
        let options = CreateOptions {
            piece_bytes: PIECE_BYTES_MIN,
            parity_columns: parity,
            ..CreateOptions::default()
        };
        let clock = ManualClock::new(Timestamp(1));
        let mut boxes: Vec<Box<dyn Device>> =
            disks.iter().map(|disk| Box::new(disk.clone()) as _).collect();
        let made = create(&mut boxes, &options, &identity).unwrap();
        let piece_bytes = usize::try_from(PIECE_BYTES_MIN).unwrap();
        let pool = Pool::new(16 * members, piece_bytes).unwrap();
        let slots = made.geometry.slots;
        Self { disks, clock, pool, slots, newest: StripeId::default(), end: End::InOrder }
    }

    fn mount(&self) -> (Writer, Recovery) {
        let boxes = self.disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn Device>);
        mount(boxes.collect(), &Opener::alone(&self.clock)).unwrap()
    }

    /// A stripe of the whole slot.
    fn append(&self, writer: &mut Writer) -> StripeId {
        self.append_rows(writer, writer.geometry().rows_per_slot() - 1)
    }

    fn append_rows(&self, writer: &mut Writer, rows: u16) -> StripeId {
        let columns = (0..writer.geometry().data_columns).map(|_| {
            let mut column = self.pool.take().unwrap();
            format::local::fill_with_padding(column.get_mut(ROW_SIZE..).unwrap());
            column
        });
        let filled = Filled::without_packets(columns.collect(), Kind::Data, rows);
        let appended = writer.append(filled, &self.clock).unwrap();
        writer.drain(&self.clock).unwrap();
        appended.stripe
    }

    /// As many full stripes in one recording.
    fn record(&mut self, stripes: u64, end: End) {
        let (mut writer, _) = self.mount();
        (0..stripes).for_each(|_| self.newest = self.append(&mut writer));
        self.end = end;
        if end == End::InOrder {
            writer.close(&self.clock).unwrap();
            self.newest = StripeId { sequence: self.newest.sequence + 1, sub: 0 };
        }
    }

    /// The same where these sequences are zeroed on every member, as far as the ring holds them.
    fn without(&self, hole: Range<Sequence>) -> Self {
        let disks: Vec<Modelled> = self.disks.iter().map(Modelled::snapshot).collect();
        let clock = ManualClock::new(Timestamp(2));
        let pool = self.pool.clone();
        let (slots, newest, end) = (self.slots, self.newest, self.end);
        let ring = Self { disks, clock, pool, slots, newest, end };
        let geometry = *ring.reader().geometry();
        for sequence in hole.each() {
            for row in 0..u64::from(geometry.rows_per_slot()) {
                let offset = geometry.slot_offset(sequence) + row * 4096;
                ring.disks.iter().for_each(|disk| disk.damage(offset, |bytes| bytes.fill(0)));
            }
        }
        ring
    }

    /// The superblocks are as a writer left them that knew no marks.
    fn forget_marks(&self) {
        for disk in &self.disks {
            let size = ReadAt::size_bytes(disk);
            for copy in 0..SUPERBLOCK_COPIES {
                let (offset, mut page) = (copy_offset(copy, size), [0; SUPERBLOCK_BYTES]);
                ReadAt::read_at(disk, offset, &mut page).unwrap();
                let known = Superblock::decode(&page, copy).unwrap();
                let without = Superblock { mark: Mark::default(), ..known };
                disk.damage(offset, |bytes| *bytes = without.encode(copy));
            }
        }
    }

    fn reader(&self) -> Reader {
        let boxes = self.disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>);
        Reader::open(boxes.collect()).unwrap()
    }

    /// What is in `hole` is lost, is called damaged, and nothing else comes to harm.
    fn check(&self, hole: Range<Sequence>) {
        let what = format!("{hole:?} of {} slots, {:?} at {:?}", self.slots, self.end, self.newest);
        let damaged = self.without(hole.clone());
        let reader = damaged.reader();
        let (found, shown) = (reader.newest().unwrap(), reader.span().unwrap().acknowledged);
        let last_readable = (Sequence(0)..=self.newest.sequence)
            .each()
            .rev()
            .find(|at| !hole.contains(at))
            .unwrap();
        // A reader looks at one slot in W / 4 of a long hole, a mount at each.
        let is_seen = hole.end - hole.start <= 128 || self.newest.sequence + 1 - hole.end >= 16;
        let at_least = if is_seen { last_readable } else { hole.start - 1 };
        assert!(found.sequence >= at_least, "{what}: found {found:?}");
        assert!(shown <= self.newest, "{what}: shown up to {shown:?}");
        if self.end == End::InOrder {
            assert_eq!(shown, self.newest, "{what}: what was acknowledged is known");
        }
        let report = verify(&reader, &mut |_, _| ControlFlow::Continue(()));
        let span = reader.span().unwrap();
        let span = span.tail..=span.acknowledged.sequence;
        // Where the end itself is lost, a slot may hold no more what was a lap before.
        let is_lost = |at: Sequence| hole.contains(&at) || hole.contains(&(at + self.slots));
        let named: Vec<Sequence> =
            report.damage.iter().map(|found| found.stripe.sequence).collect();
        assert_eq!(named, span.each().filter(|at| is_lost(*at)).collect::<Vec<_>>(), "{what}");

        let (mut writer, recovery) = damaged.mount();
        assert_eq!(recovery.clean, self.end == End::InOrder, "{what}");
        assert!(recovery.last_alive.is_some(), "{what}: it is no new volume");
        let next = damaged.append(&mut writer);
        assert!(next.sequence > last_readable, "{what}: goes on at {next:?}");
        writer.close(&damaged.clock).unwrap();
        let after = damaged.reader();
        let mut kept = (after.span().unwrap().tail..=self.newest.sequence)
            .each()
            .filter(|sequence| !is_lost(*sequence));
        let gone = kept.find(|&sequence| after.head(sequence).is_none());
        assert_eq!(gone, None, "{what}: could be read, and was written over");
    }

    /// Holes of many sizes all over the ring, and close around its end.
    fn check_all(&self) {
        let newest = self.newest.sequence;
        let first = Sequence(self.slots).max(newest + 1 - self.slots);
        let begins = [first, first + (newest - first) / 2, newest - (newest - first) / 5];
        let ends = [1, 2, 5, 20, 40, 100].map(|back| newest.saturating_sub(back).max(first));
        for begin in begins.into_iter().chain(ends) {
            for len in [1, 3, 20, 60, 131, 300] {
                let hole = begin..(begin + len).min(newest + 1);
                if hole.end - hole.start < newest + 1 - first {
                    self.check(hole);
                }
            }
        }
    }
}

const MIB: u64 = 1 << 20;

#[test]
fn nothing_is_written_over_a_stripe_behind_a_head_that_cannot_be_read() {
    let mut ring = Ring::new(1, 0, 8 << 20);
    let (mut writer, _) = ring.mount();
    while ring.newest.sub == 0 {
        ring.newest = ring.append_rows(&mut writer, 1);
    }
    drop(writer);
    let first_head = ring.reader().geometry().slot_offset(ring.newest.sequence);
    ring.disks.iter().for_each(|disk| disk.damage(first_head, |bytes| bytes.fill(0)));
    let (writer, _) = ring.mount();
    let epoch = writer.acknowledged();
    assert!(epoch.sequence > ring.newest.sequence, "{epoch:?} over {:?}", ring.newest);
}

#[test]
fn a_hole_on_the_first_lap_hides_nothing_behind_it() {
    for end in [End::InOrder, End::ByCrash] {
        let mut ring = Ring::new(1, 0, 24 * MIB);
        ring.record(ring.slots * 3 / 5, end);
        ring.check_all();
    }
}

#[test]
fn a_hole_on_a_later_lap_hides_nothing_behind_it() {
    for end in [End::InOrder, End::ByCrash] {
        let mut ring = Ring::new(1, 0, 24 * MIB);
        ring.record(ring.slots * 2 + ring.slots / 3, end);
        ring.check_all();
    }
}

#[test]
fn a_hole_hides_nothing_where_the_ring_has_come_round() {
    for (stripes, end) in [(3, End::InOrder), (3, End::ByCrash), (40, End::ByCrash)] {
        let mut ring = Ring::new(1, 0, 24 * MIB);
        ring.record(ring.slots + stripes, end);
        ring.check_all();
    }
}

#[test]
fn a_hole_over_several_short_recordings_hides_none_of_them() {
    let mut ring = Ring::new(2, 1, 12 * MIB);
    for end in [End::InOrder, End::ByCrash, End::InOrder, End::ByCrash, End::InOrder] {
        ring.record(ring.slots / 3, End::InOrder);
        ring.record(3, end);
        ring.check_all();
    }
}

#[test]
fn a_hole_between_the_mark_and_the_end_is_looked_through_slot_by_slot() {
    for ahead in [130, 140, 150, 155] {
        let mut ring = Ring::new(1, 0, 24 * MIB);
        ring.record(4 * (ring.slots / 8) + ahead, End::ByCrash);
        let newest = ring.newest.sequence;
        for left in [1, 2, 5, 9] {
            ring.check(newest - 140..newest + 1 - left);
        }
    }
}

#[test]
fn without_marks_the_search_sees_past_as_many_slots_as_a_crash_may_tear() {
    let mut ring = Ring::new(1, 0, 24 * MIB);
    ring.record(ring.slots * 2 + ring.slots / 3, End::ByCrash);
    let (newest, window) = (ring.newest.sequence, 64);
    // Where the first probes are, all of them of the lap before.
    for slot in [ring.slots / 2, ring.slots * 3 / 4] {
        let sequence = newest - (newest.get() - slot) % ring.slots;
        for len in [1, 2, window - 1] {
            let damaged = ring.without(sequence - len / 2..sequence + len.div_ceil(2));
            damaged.forget_marks();
            let (writer, recovery) = damaged.mount();
            assert_eq!(writer.acknowledged().sequence, newest + 1, "{len} slots at {sequence}");
            assert!(!recovery.scanned_all, "{len} slots at {sequence}");
        }
    }
}
