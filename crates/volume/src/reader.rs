//! Reading without writing: what is acknowledged, verified byte by byte.
//!
//! A reader takes no lock and may run beside the writer. It shows nothing above the watermark it
//! found (or was told by [`Reader::refresh`]), and nothing that the ring has passed: a slot with a
//! newer sequence than asked for means overwritten, not damaged.

use device::ReadAt;
use format::geometry::Geometry;
use format::head::{Head, StripeId};
use format::superblock::Superblock;

use crate::ahead::Ahead;
use crate::heads::{Heads, Slot, body_in};
use crate::search::{self, Known, Newest};
use crate::{Error, Writer, superblocks};

/// The acknowledged part of a ring, oldest and newest sequence included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Oldest sequence that the ring may still hold.
    pub tail: u64,
    /// Watermark: the newest acknowledged stripe.
    pub acknowledged: StripeId,
}

/// Oldest sequence that a ring whose newest head is `newest` holds for certain. Up to W slots ahead
/// of it may hold the remains of stripes that were in flight when a writer crashed, and so neither
/// the old nor a new stripe. Lap 0 is never written: the first sequence is N.
pub(crate) fn tail_behind(newest: u64, superblock: &Superblock) -> u64 {
    let slots = superblock.geometry.slots;
    (newest + 1 + u64::from(superblock.window)).saturating_sub(slots).max(slots)
}

/// What the search may take from the superblock.
pub(crate) fn known(superblock: &Superblock) -> Known {
    Known {
        ever_prepared: superblock.prepared_epoch > 0,
        window: superblock.window,
        joined_start: superblock.joined_start,
        joined_epoch: superblock.joined_epoch,
    }
}

/// One member opened for reading.
#[derive(Debug)]
pub struct Reader {
    device: Box<dyn ReadAt>,
    superblock: Superblock,
    newest: Option<Newest>,
    last_head: Option<Head>,
}

impl Reader {
    /// Reads the superblock and finds the newest acknowledged stripe.
    pub fn open(device: Box<dyn ReadAt>) -> Result<Self, Error> {
        let superblock =
            superblocks::load(&|offset, into| device.read_at(offset, into), device.size_bytes())?;
        let mut reader = Self { device, superblock, newest: None, last_head: None };
        reader.search()?;
        Ok(reader)
    }

    /// A reader of what a mount has found, without another search.
    pub fn of_mounted(device: Box<dyn ReadAt>, writer: &Writer) -> Self {
        let acknowledged = writer.acknowledged();
        let newest = Newest {
            sequence: acknowledged.sequence,
            acknowledged,
            epoch: writer.epoch(),
            scanned_all: false,
        };
        let superblock = writer.superblock().clone();
        Self { device, superblock, newest: Some(newest), last_head: None }
    }

    /// Looks again for the newest acknowledged stripe: the writer may have gone on.
    pub fn refresh(&mut self) -> Result<(), Error> {
        let read = |offset: u64, into: &mut [u8]| self.device.read_at(offset, into);
        self.superblock = superblocks::load(&read, self.device.size_bytes())?;
        self.search()
    }

    fn search(&mut self) -> Result<(), Error> {
        let stride = u64::from(self.superblock.geometry.piece_bytes);
        let ahead = Ahead::new(self.device.as_ref(), stride);
        let read = |offset: u64, into: &mut [u8]| ahead.read(offset, into);
        let heads = Heads::new(&read, &self.superblock);
        let mut newest = search::newest(&heads, known(&self.superblock))?;
        let mut last_head = None;
        if let Some(found) = &mut newest {
            // The watermark rises within a slot: its last stripe knows most, and one damaged head
            // before it must not hide it.
            let slot = self.superblock.geometry.slot(found.sequence);
            let mut stripes = self.heads(found.sequence).unwrap_or_else(|| {
                let mut buffer = vec![0; self.piece_bytes()];
                heads.read_slot(slot, &mut buffer);
                heads.all_in_slot(slot, &buffer)
            });
            let joined = self.superblock.joined_epoch;
            stripes.retain(|head| {
                head.stripe.epoch <= joined && head.stripe.stripe.sequence == found.sequence
            });
            let watermarks = stripes.iter().map(|head| head.stripe.acknowledged);
            found.acknowledged = watermarks.fold(found.acknowledged, StripeId::max);
            last_head = stripes.pop();
        }
        self.last_head = last_head;
        self.newest = newest;
        Ok(())
    }

    /// The superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Shape of the volume.
    pub fn geometry(&self) -> &Geometry {
        &self.superblock.geometry
    }

    /// Bytes of a piece: the length of the buffers that [`Reader::slot`] needs.
    pub fn piece_bytes(&self) -> usize {
        usize::try_from(self.superblock.geometry.piece_bytes).expect("at most 2 MiB")
    }

    /// The newest head and watermark; `None` on a volume that was never written.
    pub fn newest(&self) -> Option<&Newest> {
        self.newest.as_ref()
    }

    /// The newest head on the ring. Its stripe may lie above the watermark; what it says of the
    /// stripes before it holds: the newest INDEX, and whether the writer stopped in order.
    pub fn last_head(&self) -> Option<&Head> {
        self.last_head.as_ref()
    }

    /// What may be read; `None` while nothing is acknowledged.
    pub fn span(&self) -> Option<Span> {
        let newest = self.newest.as_ref()?;
        let tail = tail_behind(newest.sequence, &self.superblock);
        (newest.acknowledged.sequence >= tail)
            .then_some(Span { tail, acknowledged: newest.acknowledged })
    }

    /// Reads and verifies the acknowledged stripes of a slot. Damaged rows are named, not hidden.
    ///
    /// # Errors
    /// [`Error::Overwritten`] when the ring has passed it; [`Error::Damaged`] when nothing valid is
    /// there.
    ///
    /// # Panics
    /// When the buffer is not as long as a piece.
    pub fn slot(&self, sequence: u64, buffer: &mut [u8]) -> Result<Slot, Error> {
        let first = StripeId { sequence, sub: 0 };
        let span = self.span().ok_or(Error::Damaged(first))?;
        if sequence < span.tail {
            return Err(Error::Overwritten(first));
        }
        let mut slot =
            self.with_heads(|heads| heads.walk_slot(sequence, span.acknowledged, buffer));
        let shown = slot
            .stripes
            .iter()
            .take_while(|stripe| stripe.head.stripe.stripe <= span.acknowledged)
            .count();
        slot.stripes.truncate(shown);
        if slot.stripes.is_empty() {
            let now = self.with_heads(|heads| heads.first_of_slot(self.geometry().slot(sequence)));
            let passed = now.is_some_and(|head| head.stripe.stripe.sequence > sequence);
            return Err(if passed { Error::Overwritten(first) } else { Error::Damaged(first) });
        }
        Ok(slot)
    }

    /// The first head of the slot of `sequence`, without its body: for tables and directories.
    pub fn head(&self, sequence: u64) -> Option<Head> {
        let slot = self.geometry().slot(sequence);
        self.with_heads(|heads| heads.first_of_slot(slot))
            .filter(|head| head.stripe.stripe.sequence == sequence)
    }

    /// The heads of all stripes of a slot, read one by one without the bodies. `None` where one of
    /// them cannot be read or the slot is not used to its end.
    pub fn heads(&self, sequence: u64) -> Option<Vec<Head>> {
        let mut heads: Vec<Head> = Vec::new();
        let (mut row, mut sub) = (0, 0);
        while row < self.geometry().rows_per_slot() {
            let head = self.with_heads(|heads| heads.head_at(sequence, row))?;
            if head.stripe.stripe != (StripeId { sequence, sub }) {
                return None;
            }
            let is_last = head.stripe.kind.closes_slot();
            (row, sub) = (row + 1 + head.stripe.rows, sub + 1);
            heads.push(head);
            if is_last {
                break;
            }
        }
        Some(heads)
    }

    /// The head of the last acknowledged stripe of a slot.
    pub(crate) fn last_head_of(&self, sequence: u64) -> Option<Head> {
        let acknowledged = self.span()?.acknowledged;
        let mut heads = self.heads(sequence).or_else(|| {
            let mut buffer = vec![0; self.piece_bytes()];
            let slot = self.slot(sequence, &mut buffer).ok()?;
            Some(slot.stripes.into_iter().map(|stripe| stripe.head).collect())
        })?;
        heads.retain(|head| head.stripe.stripe <= acknowledged);
        heads.pop()
    }

    /// The body of a stripe found by [`Reader::slot`] in the same buffer.
    pub fn body<'a>(head: &Head, buffer: &'a [u8]) -> &'a [u8] {
        body_in(head, buffer).unwrap_or_default()
    }

    fn with_heads<T>(&self, run: impl FnOnce(&Heads<'_>) -> T) -> T {
        let read = |offset: u64, into: &mut [u8]| self.device.read_at(offset, into);
        run(&Heads::new(&read, &self.superblock))
    }
}
