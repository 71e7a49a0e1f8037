//! Mounting a ring of 48 TB on one modelled disk: reads are counted and modelled time is measured.
//! The disk computes what it holds, so no head of it takes memory.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

use core::ops::Range;
use core::time::Duration;

use device::{Device, Modelled, ROW_SIZE, Timeline, Timing, Work, ZoneProfile};
use format::checksum::{RowAddress, body_crc};
use format::geometry::{Geometry, ROW_BYTES};
use format::head::{Head, HeadKey, Kind, PieceHead, StripeHead, StripeId, Totals, VolumeId};
use format::superblock::{Mark, MemberEntry, SUPERBLOCK_COPIES, Superblock, copy_offset};
use units::Timestamp;
use volume::{CreateOptions, Layout, Opener, Reader, Recovery, geometry_for, mount};

const SIZE: u64 = 48_000_000_000_000 / 4096 * 4096;
/// 25 steps of the search, each with up to 8 neighbours of an unwritten slot, and windows of W = 32
/// on both sides of its answer.
const READS_MAX: u64 = 25 * 9 + 8 * 32 + 100;
const KEY: HeadKey = HeadKey([2; 32]);
const UUID: [u8; 16] = [3; 16];

/// The head of the only stripe of a slot: DATA of full length over a body of zeros.
fn head(geometry: Geometry, sequence: u64) -> [u8; ROW_SIZE] {
    let rows = geometry.rows_per_slot() - 1;
    let zeros = vec![0; ROW_SIZE];
    let address = RowAddress { epoch: 1, sequence, sub: 0, column: 0 };
    let id = |sequence| StripeId { sequence, sub: 0 };
    let stripe = StripeHead {
        volume_id: VolumeId([1; 16]),
        geometry,
        kind: Kind::Data,
        clean_stop: false,
        extra_blocks: false,
        epoch: 1,
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
        manifest: vec![body_crc(&zeros.repeat(usize::from(rows)))],
        previous_manifest: vec![0],
    };
    let row_crcs = (0..rows).map(|row| address.row_crc(row, &zeros)).collect();
    let piece = PieceHead { member: 0, column: 0, packets: 0, member_uuid: UUID, row_crcs };
    Head::new(stripe, piece).encode(&KEY)
}

/// A ring in as many zones, and its window.
fn ring(zones: u16) -> (Geometry, u16) {
    let layout = Layout { zones, ..Layout::default() };
    geometry_for(SIZE, 1, &CreateOptions { layout, ..CreateOptions::default() }).unwrap()
}

/// What a disk holds nothing of, though it was written, and what its superblocks say of the ring.
#[derive(Clone, Debug, Default)]
struct Hole {
    sequences: Range<u64>,
    mark: Mark,
}

/// A disk with this ring, whose newest stripe, not the last to be acknowledged, is `newest`, and
/// which holds nothing in so many slots before it.
fn disk(timing: Timing, (zones, newest): (u16, u64), discarded: u64) -> (Modelled, Timeline) {
    disk_with(timing, (zones, newest), discarded, Hole::default())
}

fn disk_with(
    timing: Timing,
    (zones, newest): (u16, u64),
    discarded: u64,
    hole: Hole,
) -> (Modelled, Timeline) {
    let (geometry, window) = ring(zones);
    let Hole { sequences: hole, mark } = hole;
    let timeline = Timeline::new(Timestamp(0));
    let original = move |offset: u64, row: &mut [u8; ROW_SIZE]| {
        let Some(slot) = geometry.slot_at(offset) else { return };
        let sequence = newest - (newest - slot) % geometry.slots;
        let is_head = geometry.slot_offset(slot) == offset;
        let is_head = is_head && !hole.contains(&sequence);
        if is_head && sequence >= geometry.slots.max(newest - geometry.slots + discarded + 1) {
            *row = head(geometry, sequence);
        }
    };
    let mut disk = Modelled::new(SIZE, timing, &timeline, 1).with_original(original);
    let superblock = Superblock {
        volume_id: VolumeId([1; 16]),
        head_key: KEY,
        member: 0,
        generation: 1,
        geometry,
        prepared_epoch: 1,
        joined_epoch: 1,
        joined_start: geometry.slots,
        previous_epoch: 0,
        previous_start: 0,
        previous_members: 0,
        joined_members: 1,
        expired_through: Timestamp::MIN,
        max_age_ns: 0,
        erases: false,
        qualified: None,
        given_up_before: 0,
        erased_before: 0,
        mark,
        created: Timestamp(0),
        window,
        parent: [0; 32],
        members: vec![MemberEntry::new(UUID, String::new())],
        spares: Vec::new(),
        earlier: Vec::new(),
    };
    for copy in 0..SUPERBLOCK_COPIES {
        disk.write_at(copy_offset(copy, SIZE), &superblock.encode(copy)).unwrap();
    }
    disk.flush().unwrap();
    (disk, timeline)
}

/// Newest sequences at several fills of the first lap and of a later one.
fn fills(zones: u16) -> Vec<u64> {
    let slots = ring(zones).0.slots;
    let shares = [100, slots / 1000, slots / 3, slots / 2, slots - 100];
    shares.iter().flat_map(|share| [slots + share, 7 * slots + share]).collect()
}

fn mounted(timing: &Timing, ring: (u16, u64), discarded: u64) -> (Duration, Work, Recovery) {
    let newest = ring.1;
    let (disk, timeline) = disk(timing.clone(), ring, discarded);
    let (before_ns, before) = (timeline.now_ns(), disk.work());
    let (writer, recovery) =
        mount(vec![Box::new(disk.clone())], &Opener::alone(&timeline)).unwrap();
    assert_eq!(writer.acknowledged().sequence, newest + 1, "the EPOCH stripe is behind the newest");
    let (ns, work) = (timeline.now_ns() - before_ns, disk.work());
    let work = Work { reads: work.reads - before.reads, jumps: work.jumps - before.jumps, ..work };
    (Duration::from_nanos(ns.unsigned_abs()), work, recovery)
}

#[test]
fn a_ring_of_48_terabytes_is_mounted_within_the_promised_time_at_any_fill() {
    let hard_disk = Timing::hard_disk(ZoneProfile::level(SIZE, 200e6));
    for (name, timing, zones, discarded, most) in [
        ("hard disk", hard_disk.clone(), 1, 0, Duration::from_secs(5)),
        ("hard disk in 8 zones", hard_disk, 8, 0, Duration::from_secs(5)),
        ("flash", Timing::flash(SIZE), 1, 0, Duration::from_secs(1)),
        ("flash, W slots discarded", Timing::flash(SIZE), 1, 32, Duration::from_secs(1)),
    ] {
        for newest in fills(zones) {
            let (time, work, recovery) = mounted(&timing, (zones, newest), discarded);
            let Work { reads, jumps, .. } = work;
            println!("{name}, newest {newest}: {time:.2?}, {reads} reads, {jumps} jumps");
            assert_eq!((recovery.kept, recovery.voided, recovery.damaged), (16, 0, 0));
            assert!(!recovery.scanned_all && reads < READS_MAX, "{reads} reads");
            assert!(time <= most, "{name}: {time:?}");
        }
    }
}

/// The superblocks were written half of the way that they allow before the newest stripe.
fn mark_before(newest: u64) -> Mark {
    let (geometry, window) = ring(1);
    let is_first_lap = newest < 2 * geometry.slots;
    let way = if is_first_lap { 1024 } else { geometry.slots / 8 };
    let sequence = (newest - way / 2).max(geometry.slots);
    let until = sequence + way + 2 * u64::from(window) + 2;
    let acknowledged = StripeId { sequence, sub: 0 };
    Mark { acknowledged, until, is_stopped: false, at: Timestamp(1) }
}

#[test]
fn a_ring_with_a_hole_of_a_hundredth_is_mounted_within_ten_seconds_wherever_that_lies() {
    let (slots, hard_disk) = (ring(1).0.slots, Timing::hard_disk(ZoneProfile::level(SIZE, 200e6)));
    let len = slots / 100;
    for newest in fills(1) {
        let first = (newest + 1 - slots).max(slots);
        let begins =
            [first, newest - 2 * len, newest + 1 - len, newest + 1 - len / 2, newest - 600]
                .into_iter()
                .chain([u64::midpoint(first, newest), newest - len - 300, newest + 200 - slots]);
        let leaves_something = |begin: &u64| {
            *begin >= first && begin + 300 < newest && (*begin > first || first + len <= newest)
        };
        for begin in begins.filter(leaves_something) {
            // A hole that reaches beyond the end lies in the oldest slots, too.
            let sequences = begin..begin + len;
            let hole = Hole { sequences: sequences.clone(), mark: mark_before(newest) };
            let (disk, timeline) = disk_with(hard_disk.clone(), (1, newest), 0, hole.clone());
            let (before_ns, before) = (timeline.now_ns(), disk.work().reads);
            let opener = Opener::alone(&timeline);
            let (writer, recovery) = mount(vec![Box::new(disk.clone())], &opener).unwrap();
            let elapsed_ns = timeline.now_ns() - before_ns;
            let time = Duration::from_nanos(elapsed_ns.unsigned_abs());
            let reads = disk.work().reads - before;
            println!("newest {newest}, hole {sequences:?}: {time:.2?}, {reads} reads");
            let readable = if sequences.contains(&newest) { begin - 1 } else { newest };
            let known = readable.max(hole.mark.acknowledged.sequence);
            let epoch = writer.acknowledged().sequence;
            assert!(epoch > known && epoch <= newest + 2, "{epoch} after {known}");
            assert!(!recovery.scanned_all, "every slot was read");
            assert!(time <= Duration::from_secs(10), "{time:?}");
        }
    }
}

#[test]
fn a_reader_opens_a_ring_of_48_terabytes_in_as_few_reads() {
    for (zones, newest) in [1, 8]
        .into_iter()
        .flat_map(|zones| fills(zones).into_iter().map(move |newest| (zones, newest)))
    {
        let (disk, _) = disk(Timing::flash(SIZE), (zones, newest), 32);
        let reader = Reader::open(vec![Box::new(disk.clone())]).unwrap();
        assert_eq!(reader.newest().unwrap().sequence, newest);
        assert!(disk.work().reads < READS_MAX, "{} reads", disk.work().reads);
        let piece = u64::from(reader.geometry().piece_bytes / ROW_BYTES);
        assert!(disk.work().read_bytes / 4096 < READS_MAX + 2 * piece);
    }
}
