//! The recorder's own engine on the modelled disk: `writer::Writer` with full stripes.

use core::time::Duration;

use anyhow::Result;
use device::{Device, Modelled, Pool, Timeline};
use format::claim::INTERVAL_ROTATING_MS;
use format::geometry::ROW_BYTES;
use format::head::{HeadKey, Kind, VolumeId};
use format::superblock::{
    Mark, MemberEntry, SUPERBLOCK_COPIES, Superblock, TimeKnown, copy_offset,
};
use units::number::real;
use units::{Epoch, MemberId, Sequence, Timestamp};
use writer::{Filled, Opener, Writer, mount};

use super::setting::{PIECE_BYTES, Ring};
use super::trace::Trace;

/// An engine that writes full stripes into a ring of its own.
struct Engine {
    writer: Writer,
    timeline: Timeline,
    pool: Pool,
    bytes_per_piece: u64,
    appended: u64,
}

impl Engine {
    fn new(ring: &Ring<'_>) -> Result<Self> {
        let (disk, timeline) = ring.disk();
        let superblock = create(disk.clone(), ring)?;
        let interval_ms = INTERVAL_ROTATING_MS;
        let opener = Opener { interval_ms, ..Opener::alone(&timeline) };
        let (writer, _) = mount(vec![Box::new(disk)], &opener)?;
        anyhow::ensure!(*writer.geometry() == superblock.geometry, "mounted as created");
        let pool = Pool::new(usize::from(ring.window()) + 1, usize::try_from(PIECE_BYTES)?)?;
        Ok(Self { writer, timeline, pool, bytes_per_piece: ring.bytes_per_piece(), appended: 0 })
    }

    /// Waits for a column while all of them are being written.
    fn append(&mut self) -> Result<()> {
        let column = loop {
            match self.pool.take() {
                Some(column) => break column,
                None => self.writer.poll(Some(Duration::from_secs(1)), &self.timeline)?,
            }
        };
        let rows = u16::try_from(PIECE_BYTES / ROW_BYTES - 1)?;
        let filled = Filled::without_packets(vec![column], Kind::Data, rows);
        self.writer.append(filled, &self.timeline)?;
        self.appended += 1;
        Ok(())
    }

    /// Bytes of the published disk whose columns are back in the pool.
    fn written_bytes(&self) -> u64 {
        let lent = u64::try_from(self.pool.count() - self.pool.free_count());
        (self.appended - lent.expect("a pool is small")) * self.bytes_per_piece
    }
}

/// The superblock of exactly this ring. `volume::create` would keep a share of the disk free.
fn create(mut disk: Modelled, ring: &Ring<'_>) -> Result<Superblock> {
    let superblock = Superblock {
        volume_id: VolumeId([1; 16]),
        head_key: HeadKey([2; 32]),
        member: MemberId(0),
        generation: 1,
        geometry: ring.geometry(),
        prepared_epoch: Epoch::NONE,
        joined_epoch: Epoch::NONE,
        joined_start: Sequence(0),
        previous_epoch: Epoch::NONE,
        previous_start: Sequence(0),
        previous_members: 0,
        joined_members: 0,
        expired_through: Timestamp::MIN,
        max_age_ns: 0,
        erases: false,
        qualified: None,
        time: TimeKnown::default(),
        given_up_before: Sequence(0),
        forgetting: None,
        erased_before: Sequence(0),
        mark: Mark::default(),
        created: Timestamp(0),
        window: ring.window(),
        is_encrypted: false,
        parent: [0; 32],
        members: vec![MemberEntry::new([3; 16], String::new())],
        spares: Vec::new(),
        earlier: Vec::new(),
    };
    for copy in 0..SUPERBLOCK_COPIES {
        disk.write_at(copy_offset(copy, ring.size_bytes()), &superblock.encode(copy))?;
    }
    disk.flush()?;
    Ok(superblock)
}

/// One lap as fast as the disk takes it; a step whenever columns come back.
pub(super) fn saturated(ring: &Ring<'_>) -> Result<Trace> {
    let mut engine = Engine::new(ring)?;
    let slots = ring.geometry().slots;
    let (mut trace, mut before_ns, mut before) = (Trace::default(), engine.timeline.now_ns(), 0);
    for _ in 0..slots - 1 {
        engine.append()?;
        let (now_ns, written) = (engine.timeline.now_ns(), engine.written_bytes());
        if written > before {
            trace.push((now_ns - before_ns).unsigned_abs(), written - before);
            (before_ns, before) = (now_ns, written);
        }
    }
    Ok(trace)
}

/// Two laps of a constant arrival of `rate` bytes a second; the most bytes that had arrived and
/// were not written.
pub(super) fn arriving(ring: &Ring<'_>, rate: f64) -> Result<u64> {
    let mut engine = Engine::new(ring)?;
    let piece_bytes = ring.bytes_per_piece();
    let piece_ns = u64::try_from(Duration::from_secs_f64(real(piece_bytes) / rate).as_nanos())?;
    let begin_ns = engine.timeline.now_ns();
    let mut worst = 0;
    let arrived = |now_ns: i64| (now_ns - begin_ns).unsigned_abs() / piece_ns;
    while engine.appended < 2 * ring.geometry().slots {
        while engine.appended >= arrived(engine.timeline.now_ns()) {
            let next_ns = begin_ns.saturating_add_unsigned((engine.appended + 1) * piece_ns);
            let now_ns = engine.timeline.now_ns();
            let wait = Duration::from_nanos((next_ns - now_ns).unsigned_abs());
            engine.writer.poll(Some(wait), &engine.timeline)?;
            if engine.timeline.now_ns() == now_ns {
                // Nothing is in flight; a flush may yet become due.
                engine.timeline.advance_to(next_ns.min(now_ns + 1_000_000));
            }
        }
        engine.append()?;
        let in_pool = arrived(engine.timeline.now_ns()) * piece_bytes;
        worst = worst.max(in_pool.saturating_sub(engine.written_bytes()));
    }
    Ok(worst)
}
