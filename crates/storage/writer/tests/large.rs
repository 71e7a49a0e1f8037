//! Mounting rings of 48 TB on one modelled disk, and of 128 TB on ten: reads are counted and
//! modelled time is measured. The disks compute what they hold, so no head of it takes memory.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

use core::ops::Range;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Mutex;

use device::{Device, Modelled, ROW_SIZE, Timeline, Timing, Work, ZoneProfile};
use format::checksum::{RowAddress, body_crc};
use format::geometry::{Geometry, ROW_BYTES};
use format::head::{Head, HeadKey, Kind, PieceHead, StripeHead, StripeId, Totals, VolumeId};
use format::superblock::{
    Mark, MemberEntry, SUPERBLOCK_COPIES, Superblock, TimeKnown, copy_offset,
};
use units::{Epoch, MemberId, Sequence, Timestamp};
use volume::{CreateOptions, Layout, Reader, geometry_for};
use writer::{Opener, Recovery, mount};

const SIZE: u64 = 48_000_000_000_000 / 4096 * 4096;
const SIZE_OF_TEN: u64 = 16_000_000_000_000 / 4096 * 4096;
/// 25 steps of the search, each with up to 8 neighbours of an unwritten slot, and windows of W = 32
/// on both sides of its answer.
const READS_MAX: u64 = 25 * 9 + 8 * 32 + 100;
const KEY: HeadKey = HeadKey([2; 32]);

fn uuid(member: MemberId) -> [u8; 16] {
    [3 + member.get(); 16]
}

/// Of so many rows: as long to compute as all else of a head, and the same for each.
fn body_crc_of_zeros(rows: u16) -> u64 {
    static KNOWN: Mutex<BTreeMap<u16, u64>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap();
    *known.entry(rows).or_insert_with(|| body_crc(&vec![0; ROW_SIZE * usize::from(rows)]))
}

/// A member's head of the only stripe of a slot: DATA of full length over a body of zeros.
fn head(geometry: Geometry, member: MemberId, sequence: Sequence) -> [u8; ROW_SIZE] {
    let rows = geometry.rows_per_slot() - 1;
    let zeros = vec![0; ROW_SIZE];
    let column = geometry.column_of(sequence, member);
    let address = RowAddress { epoch: Epoch(1), sequence, sub: 0, column };
    let columns = usize::from(geometry.columns());
    let id = |sequence| StripeId { sequence, sub: 0 };
    let stripe = StripeHead {
        volume_id: VolumeId([1; 16]),
        geometry,
        kind: Kind::Data,
        clean_stop: false,
        extra_blocks: false,
        key_id: None,
        epoch: Epoch(1),
        stripe: id(sequence),
        first_row: 0,
        rows,
        acknowledged: id(sequence - 16),
        previous: id(sequence - 1),
        index: StripeId::default(),
        time_min: Timestamp(0),
        time_max: Timestamp(0),
        realtime: Timestamp(0),
        boottime_ns: 0,
        totals: Totals::default(),
        previous_cid: [0; 32],
        manifest: vec![body_crc_of_zeros(rows); columns],
        previous_manifest: vec![0; columns],
        recorded: None,
    };
    let row_crcs = (0..rows).map(|row| address.row_crc(row, &zeros)).collect();
    let member_uuid = uuid(member);
    let piece = PieceHead { member, column, packets: 0, member_uuid, row_crcs };
    Head::new(stripe, piece).encode(&KEY)
}

/// The disks of a ring, and its newest stripe, which is not the last to be acknowledged.
#[derive(Clone, Copy, Debug)]
struct Ring {
    member_bytes: u64,
    members: u8,
    parity_columns: u8,
    zones: u16,
    newest: Sequence,
}

impl Ring {
    fn of_one(zones: u16) -> Self {
        Self { member_bytes: SIZE, members: 1, parity_columns: 0, zones, newest: Sequence(0) }
    }

    fn of_ten() -> Self {
        let member_bytes = SIZE_OF_TEN;
        Self { member_bytes, members: 10, parity_columns: 2, zones: 1, newest: Sequence(0) }
    }

    /// Its geometry and its window.
    fn shape(self) -> (Geometry, u16) {
        let layout = Layout { zones: self.zones, ..Layout::default() };
        let parity_columns = self.parity_columns;
        let options = CreateOptions { layout, parity_columns, ..CreateOptions::default() };
        geometry_for(self.member_bytes, self.members.into(), &options).unwrap()
    }

    fn slots(self) -> u64 {
        self.shape().0.slots
    }

    /// At several fills of the first lap and of a later one.
    fn fills(self) -> impl Iterator<Item = Self> {
        let slots = self.slots();
        let shares = [100, slots / 1000, slots / 3, slots / 2, slots - 100];
        let newest = shares.into_iter().flat_map(move |share| [slots + share, 7 * slots + share]);
        newest.map(move |newest| Self { newest: Sequence(newest), ..self })
    }
}

/// What a disk holds nothing of, though it was written, and what its superblocks say of the ring.
#[derive(Clone, Debug, Default)]
struct Hole {
    sequences: Range<Sequence>,
    mark: Mark,
}

/// The disks of a ring, which hold nothing in so many slots before its newest.
fn disks(ring: Ring, timing: &Timing, discarded: u64, hole: &Hole) -> (Vec<Modelled>, Timeline) {
    let timeline = Timeline::new(Timestamp(0));
    let disk = |member| disk(ring, member, (timing, &timeline), (discarded, hole.clone()));
    (MemberId::first(ring.members).map(disk).collect(), timeline)
}

fn disk(
    ring: Ring,
    member: MemberId,
    (timing, timeline): (&Timing, &Timeline),
    (discarded, hole): (u64, Hole),
) -> Modelled {
    let (geometry, window) = ring.shape();
    let Ring { newest, member_bytes, .. } = ring;
    let Hole { sequences: hole, mark } = hole;
    let original = move |offset: u64, row: &mut [u8; ROW_SIZE]| {
        let Some(slot) = geometry.slot_at(offset) else { return };
        let sequence = geometry.last_of_slot(slot, newest);
        let is_head = geometry.offset_of_slot(slot) == offset;
        let is_head = is_head && !hole.contains(&sequence);
        if is_head
            && sequence >= geometry.first_sequence().max(newest - geometry.slots + discarded + 1)
        {
            *row = head(geometry, member, sequence);
        }
    };
    let mut disk =
        Modelled::new(member_bytes, timing.clone(), timeline, 1 + u64::from(member.get()))
            .with_original(original);
    let superblock = Superblock {
        volume_id: VolumeId([1; 16]),
        head_key: KEY,
        member,
        generation: 1,
        geometry,
        prepared_epoch: Epoch(1),
        joined_epoch: Epoch(1),
        joined_start: geometry.first_sequence(),
        previous_epoch: Epoch(0),
        previous_start: Sequence(0),
        previous_members: 0,
        joined_members: (1 << ring.members) - 1,
        expired_through: Timestamp::MIN,
        max_age_ns: 0,
        erases: false,
        qualified: None,
        given_up_before: Sequence(0),
        forgetting: None,
        erased_before: Sequence(0),
        mark,
        time: TimeKnown::default(),
        created: Timestamp(0),
        window,
        is_encrypted: false,
        parent: [0; 32],
        members: MemberId::first(ring.members)
            .map(|member| MemberEntry::new(uuid(member), String::new()))
            .collect(),
        spares: Vec::new(),
        earlier: Vec::new(),
    };
    for copy in 0..SUPERBLOCK_COPIES {
        disk.write_at(copy_offset(copy, member_bytes), &superblock.encode(copy)).unwrap();
    }
    disk.flush().unwrap();
    disk
}

struct Mounted {
    time: Duration,
    /// Of the member that was asked most.
    reads: u64,
    jumps: u64,
    recovery: Recovery,
    /// Where the new epoch begins.
    epoch: Sequence,
}

fn mounted(ring: Ring, timing: &Timing, discarded: u64, hole: &Hole) -> Mounted {
    let (disks, timeline) = disks(ring, timing, discarded, hole);
    let before: Vec<Work> = disks.iter().map(Modelled::work).collect();
    let before_ns = timeline.now_ns();
    let devices = disks.iter().map(|disk| -> Box<dyn Device> { Box::new(disk.clone()) });
    let (writer, recovery) = mount(devices.collect(), &Opener::alone(&timeline)).unwrap();
    let time = Duration::from_nanos((timeline.now_ns() - before_ns).unsigned_abs());
    let most = |of: fn(&Work) -> u64| {
        disks.iter().zip(&before).map(|(disk, before)| of(&disk.work()) - of(before)).max().unwrap()
    };
    let (reads, jumps) = (most(|work| work.reads), most(|work| work.jumps));
    Mounted { time, reads, jumps, recovery, epoch: writer.acknowledged().sequence }
}

#[test]
fn large_rings_are_mounted_within_the_promised_time_at_any_fill() {
    let hard_disk = Timing::hard_disk(ZoneProfile::level(SIZE, 200e6));
    let (five, one) = (Duration::from_secs(5), Duration::from_secs(1));
    for (name, timing, ring, discarded, most) in [
        ("hard disk", &hard_disk, Ring::of_one(1), 0, five),
        ("hard disk in 8 zones", &hard_disk, Ring::of_one(8), 0, five),
        ("ten hard disks", &hard_disk, Ring::of_ten(), 0, five),
        ("flash", &Timing::flash(SIZE), Ring::of_one(1), 0, one),
        ("flash, W slots discarded", &Timing::flash(SIZE), Ring::of_one(1), 32, one),
    ] {
        for ring in ring.fills() {
            let mounted = mounted(ring, timing, discarded, &Hole::default());
            let Mounted { time, reads, jumps, recovery, epoch } = mounted;
            let newest = ring.newest;
            println!("{name}, newest {newest}: {time:.2?}, {reads} reads, {jumps} jumps");
            assert_eq!(epoch, newest + 1, "the EPOCH stripe is behind the newest");
            assert_eq!((recovery.kept, recovery.voided, recovery.damaged), (16, 0, 0));
            assert!(!recovery.scanned_all && reads < READS_MAX, "{reads} reads");
            assert!(time <= most, "{name}: {time:?}");
        }
    }
}

#[test]
fn the_search_sees_past_a_short_hole_wherever_it_asks() {
    // As many slots as make the first step of the search one of 15 places.
    let ring = Ring { member_bytes: 5000 * (2 << 20), ..Ring::of_one(1) };
    let ((_, window), slots) = (ring.shape(), ring.slots());
    assert!(slots > 4096, "{slots} slots");
    let lens = [1, u64::from(window) - 1];
    for (share, len) in [1, 8, 15].into_iter().flat_map(|share| lens.map(|len| (share, len))) {
        let asked = Sequence(7 * slots + slots * share / 16);
        // In the lap before, behind the newest; and in the newest lap, before it.
        let behind = Ring { newest: asked - 1, ..ring };
        let before = Ring { newest: asked + len, ..ring };
        for (ring, first) in [(behind, asked - slots), (before, asked)] {
            let sequences = first..first + len;
            let hole = Hole { sequences: sequences.clone(), mark: Mark::default() };
            let mounted = mounted(ring, &Timing::flash(ring.member_bytes), 0, &hole);
            let newest = ring.newest;
            assert_eq!(mounted.epoch, newest + 1, "newest {newest}, hole {sequences:?}");
            assert!(!mounted.recovery.scanned_all, "newest {newest}, hole {sequences:?}");
        }
    }
}

/// The superblocks were written half of the way that they allow before the newest stripe.
fn mark_before(ring: Ring) -> Mark {
    let ((geometry, window), newest) = (ring.shape(), ring.newest);
    let is_first_lap = newest < Sequence(2 * geometry.slots);
    let way = if is_first_lap { 576 } else { geometry.slots / 8 };
    let sequence = (newest - way / 2).max(geometry.first_sequence());
    let until = sequence + way + 2 * u64::from(window) + 2;
    let acknowledged = StripeId { sequence, sub: 0 };
    Mark { acknowledged, until, is_stopped: false, at: Timestamp(1) }
}

#[test]
fn a_hole_of_most_of_a_ring_is_seen_past_without_a_look_at_every_slot() {
    let slots = Ring::of_one(1).slots();
    let ring = Ring { newest: Sequence(7 * slots + slots / 3), ..Ring::of_one(1) };
    for percent in [51, 60, 75, 88, 97] {
        let sequences = ring.newest + 1 - slots / 100 * percent..ring.newest + 1;
        let begin = sequences.start;
        let hole = Hole { sequences, mark: mark_before(ring) };
        let mounted = mounted(ring, &Timing::flash(SIZE), 0, &hole);
        let known = begin.max(hole.mark.acknowledged.sequence);
        assert!(mounted.epoch > known && mounted.epoch <= ring.newest + 2, "{percent} %");
        assert!(!mounted.recovery.scanned_all && mounted.reads < 4000, "{}", mounted.reads);
    }
}

#[test]
fn a_ring_with_a_hole_of_a_hundredth_is_mounted_within_ten_seconds_wherever_that_lies() {
    mounted_with_holes(Ring::of_one(1).fills());
}

#[test]
fn so_is_one_of_ten_disks() {
    mounted_with_holes(Ring::of_ten().fills().step_by(3));
}

#[expect(clippy::print_stdout, reason = "they are the figures of docs/benchmarks.md")]
fn mounted_with_holes(rings: impl Iterator<Item = Ring>) {
    for ring in rings {
        let (slots, newest) = (ring.slots(), ring.newest);
        let hard_disk = Timing::hard_disk(ZoneProfile::level(ring.member_bytes, 200e6));
        let len = slots / 100;
        let first = (newest + 1 - slots).max(Sequence(slots));
        let begins =
            [first, newest - 2 * len, newest + 1 - len, newest + 1 - len / 2, newest - 600]
                .into_iter()
                .chain([first + (newest - first) / 2, newest - len - 300, newest + 200 - slots]);
        let leaves_something = |begin: &Sequence| {
            *begin >= first && *begin + 300 < newest && (*begin > first || first + len <= newest)
        };
        for begin in begins.filter(leaves_something) {
            // A hole that reaches beyond the end lies in the oldest slots, too.
            let sequences = begin..begin + len;
            let hole = Hole { sequences: sequences.clone(), mark: mark_before(ring) };
            let Mounted { time, reads, recovery, epoch, .. } = mounted(ring, &hard_disk, 0, &hole);
            println!("newest {newest}, hole {sequences:?}: {time:.2?}, {reads} reads");
            let readable = if sequences.contains(&newest) { begin - 1 } else { newest };
            let known = readable.max(hole.mark.acknowledged.sequence);
            assert!(epoch > known && epoch <= newest + 2, "{epoch} after {known}");
            assert!(!recovery.scanned_all, "every slot was read");
            assert!(time <= Duration::from_secs(10), "{time:?}");
        }
    }
}

#[test]
fn a_reader_opens_a_ring_of_48_terabytes_in_as_few_reads() {
    for ring in [1, 8].into_iter().flat_map(|zones| Ring::of_one(zones).fills()) {
        let (mut disks, _) = disks(ring, &Timing::flash(SIZE), 32, &Hole::default());
        let disk = disks.pop().unwrap();
        let reader = Reader::open(vec![Box::new(disk.clone())]).unwrap();
        assert_eq!(reader.newest().unwrap().sequence, ring.newest);
        assert!(disk.work().reads < READS_MAX, "{} reads", disk.work().reads);
        let piece = u64::from(reader.geometry().piece_bytes / ROW_BYTES);
        assert!(disk.work().read_bytes / 4096 < READS_MAX + 2 * piece);
    }
}
