//! The search for the end of a ring, and nothing else: rings of up to 2^24 slots whose heads are
//! computed where they are read, at any fill of any lap, with a hole of any size anywhere.
//!
//! Whatever the hole hides, a mount goes on behind everything that can still be read and behind
//! what the superblocks say was acknowledged; a reader sees what it looks for; both read little.

use core::ops::Range;

use device::{Device, Modelled, ROW_SIZE, ReadAt, Timeline, Timing, ZoneProfile};
use format::checksum::{RowAddress, body_crc};
use format::geometry::Geometry;
use format::head::{Head, HeadKey, Kind, PieceHead, StripeHead, StripeId, Totals, VolumeId};
use format::superblock::{
    Mark, MemberEntry, SUPERBLOCK_COPIES, Superblock, TimeKnown, copy_offset,
};
use units::{Epoch, MemberId, Sequence, Timestamp, mix};
use volume::{CreateOptions, Layout, Reader, geometry_for};
use writer::{Opener, mount};

use crate::check::{Verdict, Violation, broken};
use crate::counters::Counters;
use crate::history::Outcome;
use crate::random::Random;

const KEY: HeadKey = HeadKey([2; 32]);
const SHAPES: [(u8, u8); 6] = [(1, 0), (1, 0), (2, 0), (1, 1), (2, 1), (4, 2)];
/// Slots of the largest ring.
const SLOTS_MAX_POWER: u64 = 24;
/// Rings that are looked at with one seed.
const RINGS: u64 = 4;
/// Watermark in a head: so many stripes before it.
const BEHIND: u64 = 16;
/// docs/format.md, Mark: slots between two marks, on the first lap and on a later one.
const FIRST_LAP: u64 = 576;
const LATER_SHARE: u64 = 8;

/// A ring and what it has been through.
#[derive(Clone, Debug)]
struct Ring {
    geometry: Geometry,
    window: u16,
    member_bytes: u64,
    newest: Sequence,
    /// Slots of these sequences hold nothing on any member.
    hole: Range<Sequence>,
    mark: Mark,
}

/// Looks at a few rings.
pub(crate) fn run(seed: u64, trace: bool) -> Outcome {
    let mut random = Random::new(seed ^ 0x0005_ea4c);
    let (mut counters, mut digest) = (Counters::default(), 0);
    let mut all = || -> Verdict {
        for _ in 0..RINGS {
            let ring = Ring::new(&mut random);
            if trace {
                eprintln!("{ring:?}");
            }
            let found = look(&ring, &mut random, &mut counters);
            digest = mix(digest ^ found.map_err(|Violation(what)| {
                let Ring { geometry, window, newest, hole, mark, .. } = &ring;
                let Geometry { slots, data_columns, parity_columns, .. } = geometry;
                Violation(format!(
                    "search {data_columns}+{parity_columns}, {slots} slots of {} rows, W {window}, \
                     newest {newest}, hole {hole:?}, {mark:?}: {what}",
                    geometry.rows_per_slot()
                ))
            })?);
        }
        Ok(())
    };
    let verdict = all();
    Outcome { counters, digest, verdict }
}

impl Ring {
    fn new(random: &mut Random) -> Self {
        let (data, parity) = random.pick(&SHAPES);
        // Heads of 511 rows take long to compute.
        let piece_bytes: u32 = match random.below(8) {
            0 if data + parity < 3 => 2 << 20,
            1..3 => 64 << 10,
            _ => 16 << 10,
        };
        let power = 6 + random.below(SLOTS_MAX_POWER - 5);
        let slots = (1_u64 << power) - random.below(1 << (power - 1));
        let zones = random.pick(&[1, 1, 4]);
        let layout = Layout { zones, ..Layout::default() };
        let options = CreateOptions {
            piece_bytes,
            parity_columns: parity,
            layout: if slots < 4096 { Layout::default() } else { layout },
            ..CreateOptions::default()
        };
        let mut member_bytes = (8 << 20) + slots * u64::from(piece_bytes);
        let (geometry, window) = loop {
            match geometry_for(member_bytes, usize::from(data + parity), &options) {
                Ok(made) => break made,
                Err(_) => member_bytes += member_bytes / 8 / 4096 * 4096,
            }
        };
        let slots = geometry.slots;
        let lap = random.pick(&[1, 1, 2, 3, 7, 1_000_000]);
        let place = match random.below(4) {
            0 => random.below(300.min(slots)),
            1 => slots - 1 - random.below(300.min(slots)),
            _ => random.below(slots),
        };
        let newest = Sequence(lap * slots + place);
        let first = geometry.first_sequence().max(newest.next().saturating_sub(slots));
        let mark = mark(&geometry, (newest, u64::from(window)), random);
        let hole =
            if random.percent(20) { Range::default() } else { hole((first, newest), random) };
        Self { geometry, window, member_bytes, newest, hole, mark }
    }

    /// Oldest sequence that the ring may hold.
    fn first(&self) -> Sequence {
        let oldest = self.newest.next().saturating_sub(self.geometry.slots);
        self.geometry.first_sequence().max(oldest)
    }

    /// Newest sequence of which something can be read; `None`: nothing at all.
    fn newest_readable(&self) -> Option<Sequence> {
        let newest =
            if self.hole.contains(&self.newest) { self.hole.start - 1 } else { self.newest };
        (newest >= self.first()).then_some(newest)
    }
}

/// Of any size, anywhere, often around the end.
fn hole((first, newest): (Sequence, Sequence), random: &mut Random) -> Range<Sequence> {
    let count = newest + 1 - first;
    let len = (1 << random.below(u64::from(count.ilog2()) + 1)) + random.below(3) - 1;
    let len = len.clamp(1, count);
    let begin = match random.below(3) {
        0 => newest - random.below((2 * len + 200).min(count)),
        1 => first + random.below(300.min(count)),
        _ => first + random.below(count),
    };
    begin..(begin + len).min(newest + 1)
}

/// What a writer that came to `newest` has last put into the superblocks.
fn mark(geometry: &Geometry, (newest, window): (Sequence, u64), random: &mut Random) -> Mark {
    let slots = geometry.slots;
    let interval = |sequence: Sequence| {
        let first_lap = if slots < FIRST_LAP { (slots / 4).max(1) } else { FIRST_LAP };
        let is_first = sequence < Sequence(2 * slots);
        if is_first { first_lap } else { first_lap.max(slots / LATER_SHARE) }
    };
    // On a later lap marks are rarer: the last one may still be of the lap before.
    let back = random.below(interval(newest).min(newest - geometry.first_sequence()) + 1);
    let sequence = newest - back;
    let back = back.min(interval(sequence));
    let sequence = sequence.max(newest - back);
    let until = sequence + interval(sequence) + 2 * window + 2;
    let acknowledged = StripeId { sequence, sub: 0 };
    Mark { acknowledged, until, is_stopped: false, at: Timestamp(1) }
}

/// Sums of rows of zeros, which every body is.
struct Bodies {
    row: Vec<u8>,
    body: u64,
}

fn uuid(member: u8) -> [u8; 16] {
    [3 + member; 16]
}

/// A member's head of the only stripe of a slot: DATA of full length over a body of zeros.
fn head(geometry: Geometry, member: u8, sequence: Sequence, zeros: &Bodies) -> [u8; ROW_SIZE] {
    let rows = geometry.rows_per_slot() - 1;
    let column = geometry.column_of(sequence, MemberId(member));
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
        acknowledged: id(sequence - BEHIND),
        previous: id(sequence - 1),
        index: StripeId::default(),
        time_min: Timestamp(0),
        time_max: Timestamp(0),
        realtime: Timestamp(0),
        boottime_ns: 0,
        totals: Totals::default(),
        previous_cid: [0; 32],
        manifest: vec![zeros.body; columns],
        previous_manifest: vec![0; columns],
        recorded: None,
    };
    let row_crcs = (0..rows).map(|row| address.row_crc(row, &zeros.row)).collect();
    let member_uuid = uuid(member);
    let piece = PieceHead { member: MemberId(member), column, packets: 0, member_uuid, row_crcs };
    Head::new(stripe, piece).encode(&KEY)
}

fn disks(ring: &Ring, random: &mut Random) -> (Vec<Modelled>, Timeline) {
    let timeline = Timeline::new(Timestamp(0));
    let timing = match random.below(3) {
        0 => Timing::hard_disk(ZoneProfile::level(ring.member_bytes, 200e6)),
        1 => Timing::flash(ring.member_bytes),
        _ => Timing::instant(),
    };
    let disk = |member| disk(ring, member, (&timing, &timeline));
    ((0..ring.geometry.columns()).map(disk).collect(), timeline)
}

fn disk(ring: &Ring, member: u8, (timing, timeline): (&Timing, &Timeline)) -> Modelled {
    let Ring { geometry, newest, hole, .. } = ring.clone();
    let first = ring.first();
    let row = vec![0; ROW_SIZE];
    let body = body_crc(&row.repeat(usize::from(geometry.rows_per_slot()) - 1));
    let zeros = Bodies { row, body };
    let original = move |offset: u64, row: &mut [u8; ROW_SIZE]| {
        let Some(slot) = geometry.slot_at(offset) else { return };
        let sequence = geometry.last_of_slot(slot, newest);
        let is_head = geometry.offset_of_slot(slot) == offset;
        if is_head && sequence >= first && !hole.contains(&sequence) {
            *row = head(geometry, member, sequence, &zeros);
        }
    };
    let seed = 1 + u64::from(member);
    let size_bytes = ring.member_bytes;
    let mut disk =
        Modelled::new(size_bytes, timing.clone(), timeline, seed).with_original(original);
    let superblock = superblock(ring, member);
    for copy in 0..SUPERBLOCK_COPIES {
        disk.write_at(copy_offset(copy, size_bytes), &superblock.encode(copy))
            .expect("a disk without faults");
    }
    disk.flush().expect("a disk without faults");
    disk
}

fn superblock(ring: &Ring, member: u8) -> Superblock {
    let Ring { geometry, window, mark, .. } = ring.clone();
    let members = geometry.columns();
    Superblock {
        volume_id: VolumeId([1; 16]),
        head_key: KEY,
        member: MemberId(member),
        generation: 1,
        geometry,
        prepared_epoch: Epoch(1),
        joined_epoch: Epoch(1),
        joined_start: geometry.first_sequence(),
        previous_epoch: Epoch(0),
        previous_start: Sequence(0),
        previous_members: 0,
        joined_members: (1 << members) - 1,
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
        members: (0..members).map(|member| MemberEntry::new(uuid(member), String::new())).collect(),
        spares: Vec::new(),
        earlier: Vec::new(),
    }
}

/// Opens the ring for reading and for writing.
fn look(ring: &Ring, random: &mut Random, counters: &mut Counters) -> Verdict<u64> {
    let Some(readable) = ring.newest_readable() else { return Ok(0) };
    let (disks, timeline) = disks(ring, random);
    let most = |before: &[u64]| {
        let reads = disks.iter().zip(before).map(|(disk, before)| disk.work().reads - before);
        reads.max().unwrap_or(0)
    };
    let reads = || disks.iter().map(|disk| disk.work().reads).collect::<Vec<_>>();
    let before = reads();
    let readers = disks.iter().map(|disk| -> Box<dyn ReadAt> { Box::new(disk.clone()) });
    let reader = Reader::open(readers.collect())
        .map_err(|error| Violation(format!("a reader cannot open it: {error}")))?;
    let seen = reader.newest().map_or(Sequence(0), |newest| newest.sequence);
    let Range { start, end } = ring.hole;
    // A reader looks at one slot in a few of a long hole.
    let is_seen = end - start <= 2 * u64::from(ring.window) || ring.newest + 1 - end >= 16;
    let at_least = if is_seen { readable } else { start.saturating_sub(1).min(readable) };
    let known = ring.mark.acknowledged.sequence;
    if seen < at_least.max(known) || seen > ring.newest {
        return broken(format!("LOST: a reader sees {seen}, readable is {readable}"));
    }
    counters.peak("search: most reads of a reader on a member", most(&before));
    drop(reader);

    let before = reads();
    let devices = disks.iter().map(|disk| -> Box<dyn Device> { Box::new(disk.clone()) });
    let begin_ns = timeline.now_ns();
    let (writer, recovery) = mount(devices.collect(), &Opener::alone(&timeline))
        .map_err(|error| Violation(format!("a mount fails: {error}")))?;
    let epoch = writer.acknowledged().sequence;
    let took_ns = (timeline.now_ns() - begin_ns).unsigned_abs();
    if epoch <= readable.max(known) {
        return broken(format!("LOST: the epoch begins at {epoch}, readable is {readable}"));
    }
    if epoch > ring.newest + 2 {
        return broken(format!("the epoch begins at {epoch}, behind what was never written"));
    }
    let reads = most(&before);
    let bound = reads_max(ring);
    // Where next to nothing is left of a lap, all of it is looked through.
    let lap = ring.newest + 1 - ring.first();
    let left = lap - (ring.hole.end - ring.hole.start);
    counters.add("search: all slots are looked through", u64::from(recovery.scanned_all));
    if recovery.scanned_all && left < lap / 100 + 64 {
        counters.add("excused: a hole leaves less than a hundredth of the ring", 1);
    } else if reads > bound {
        return broken(format!("a mount reads {reads} times, the bound is {bound}: {recovery:?}"));
    }
    counters.peak("search: most reads of a mount on a member", reads);
    counters.peak("search: longest mount, ms", took_ns / 1_000_000);
    count(ring, counters);
    Ok(epoch.get())
}

/// The steps of the search, the windows around its answer, judgement, and what is looked at of a
/// hole.
fn reads_max(ring: &Ring) -> u64 {
    let window = u64::from(ring.window);
    let steps = 64 * u64::from(ring.geometry.slots.ilog2() + 1);
    let of_hole = if ring.hole.is_empty() { 0 } else { 256 + 768 + FIRST_LAP };
    100 + steps + 12 * window + of_hole + FIRST_LAP
}

fn count(ring: &Ring, counters: &mut Counters) {
    let Ring { geometry, newest, hole, .. } = ring;
    counters.add("search: rings", 1);
    let is = |condition: bool| u64::from(condition);
    counters.add("search: rings of 2^23 slots and more", is(geometry.slots >= 1 << 23));
    counters.add("search: slots of 512 rows", is(geometry.rows_per_slot() == 512));
    counters.add("search: W of 64", is(ring.window == 64));
    counters.add("search: on the first lap", is(*newest < Sequence(2 * geometry.slots)));
    counters.add("search: holes", is(!hole.is_empty()));
    counters.add("search: holes over the newest stripe", is(hole.contains(newest)));
    let share = (hole.end - hole.start) * 100 / geometry.slots;
    counters.add("search: holes of more than a tenth of the ring", is(share >= 10));
    let is_in_window = hole.end > newest.saturating_sub(64) && !hole.contains(newest);
    counters.add("search: holes close before the newest stripe", is(is_in_window));
}
