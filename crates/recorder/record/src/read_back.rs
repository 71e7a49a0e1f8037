//! Stripes that were recorded, read back from the members into memory that the indexer sees.

use device::{Buffer, Pool, Shared};
use format::head::{Head, Kind, StripeId};
use indexer::{Piece, RunKind, Stripe, Times};
use units::Epoch;
use volume::{Error, Reader};

/// Which of the indexer's memories they lie in.
const MEMORY: u8 = 1;

/// Opens the volume for reading; `None` where that does not succeed now.
pub(crate) type OpenReader<'a> = &'a (dyn Fn() -> Option<Reader> + Sync);

/// A data stripe that was read.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) id: StripeId,
    pub(crate) epoch: Epoch,
    /// All its columns are there, and none of their rows is bad.
    pub(crate) is_whole: bool,
    /// It is encrypted, and not with a key of ours.
    pub(crate) is_locked: bool,
    packets: u64,
    times: Times,
    slot_cid: Option<[u8; 32]>,
    pieces: Vec<Piece>,
}

impl Found {
    pub(crate) fn to_hand_over(&self, run_kind: RunKind) -> Stripe {
        Stripe {
            run_kind,
            id: self.id,
            epoch: self.epoch,
            is_late: false,
            without_names: false,
            packets: self.packets,
            times: self.times,
            slot_cid: self.slot_cid,
            pieces: self.pieces.clone(),
        }
    }
}

/// What a look at a slot gives.
#[derive(Debug)]
pub(crate) enum Slot {
    /// Its data stripes, as far as they can be read, and where parts begin that no member shows;
    /// nothing, where the ring has passed it.
    Read(Vec<Found>, Vec<StripeId>),
    /// It cannot be looked at now: there is no memory, or the members do not show it so far.
    NotNow,
}

/// Reads slots.
pub(crate) struct ReadBack<'a> {
    open: OpenReader<'a>,
    /// Only while something is read: a disk that is pulled keeps its name while a process has it
    /// open.
    reader: Option<Reader>,
    pool: Pool,
    /// What a slot's columns are read into, all at the same time, before they are copied to where
    /// the indexer sees them.
    memory: Vec<Vec<u8>>,
}

impl<'a> ReadBack<'a> {
    /// `pool` has a buffer for each data column of a stripe, twice.
    pub(crate) fn new(open: OpenReader<'a>, pool: Pool) -> Self {
        Self { open, reader: None, pool, memory: Vec::new() }
    }

    /// Nothing needs to be read for now.
    pub(crate) fn rest(&mut self) {
        self.reader = None;
    }

    /// The file of an index that lies in the ring, if it can be read.
    pub(crate) fn index(&mut self, first_part: StripeId) -> Option<Vec<u8>> {
        let mut reader = self.reader.take().or_else(|| (self.open)())?;
        reader.refresh().ok()?;
        reader.index(first_part).ok().map(|file| file.parquet)
    }

    /// Reads the slot of a stripe that was acknowledged.
    pub(crate) fn slot(&mut self, stripe: StripeId) -> Slot {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => match (self.open)() {
                Some(reader) => none.insert(reader),
                None => return Slot::NotNow,
            },
        };
        let shows = |reader: &Reader| reader.span().is_some_and(|span| span.acknowledged >= stripe);
        // The watermark on the members lags behind what was flushed.
        if !shows(reader) && (reader.refresh().is_err() || !shows(reader)) {
            return Slot::NotNow;
        }
        let columns = reader.membership().geometry_at(stripe.sequence).data_columns;
        let buffers: Vec<Buffer> = (0..columns).map_while(|_| self.pool.take()).collect();
        if buffers.len() < usize::from(columns) {
            return Slot::NotNow;
        }
        self.memory.resize_with(buffers.len(), Vec::new);
        let columns: Vec<u8> = (0..columns).collect();
        let slots = reader.slots(stripe.sequence, &columns, &mut self.memory);
        if slots.iter().any(|slot| matches!(slot, Err(Error::Overwritten(_)))) {
            return Slot::Read(Vec::new(), Vec::new());
        }
        let newest = reader.span().map_or(stripe, |span| span.acknowledged);
        let seen = slots.iter().find_map(|slot| slot.as_ref().ok());
        let lost = || Vec::from([StripeId { sequence: stripe.sequence, sub: 0 }]);
        let missing = seen.map_or_else(lost, |slot| slot.missing(stripe.sequence, newest));
        let columns = slots.into_iter().zip(&self.memory).zip(buffers);
        let columns =
            columns.map(|((slot, memory), buffer)| Some((slot.ok()?, copy(memory, buffer))));
        Slot::Read(stripes_of(columns.collect()), missing)
    }
}

fn copy(memory: &[u8], mut buffer: Buffer) -> Shared {
    buffer.copy_from_slice(memory);
    buffer.freeze()
}

/// The data stripes of a slot, of which each column that can be read is given with its bytes.
fn stripes_of(slots: Vec<Option<(volume::Slot, Shared)>>) -> Vec<Found> {
    let columns = slots.len();
    let mut stripes: Vec<Found> = Vec::new();
    let mut slot_cid = None;
    for (column, slot) in (0..).zip(slots) {
        let Some((slot, shared)) = slot else { continue };
        if let Some(first) = slot.stripes.first().map(|first| &first.head) {
            slot_cid = slot_cid.or((first.stripe.stripe.sub == 0).then_some(first.cid));
        }
        for it in slot.stripes.iter().filter(|it| it.head.stripe.kind == Kind::Data) {
            let head: &Head = &it.head;
            let id = head.stripe.stripe;
            let body = Reader::body_range(head);
            let found = match stripes.iter_mut().find(|found| found.id == id) {
                Some(found) => found,
                None => stripes.push_mut(Found {
                    id,
                    epoch: head.stripe.epoch,
                    is_whole: false,
                    is_locked: false,
                    packets: head.stripe.totals.packets,
                    times: Times { min: head.stripe.time_min, max: head.stripe.time_max },
                    slot_cid: None,
                    pieces: Vec::new(),
                }),
            };
            found.is_locked |= it.is_locked;
            if it.bad_rows.is_empty() {
                let (buffer, starts) = (shared.clone(), Vec::new());
                found.pieces.push(Piece { memory: MEMORY, buffer, column, body, starts });
            }
        }
    }
    for found in &mut stripes {
        found.is_whole = found.pieces.len() == columns;
        found.slot_cid = slot_cid;
    }
    stripes.sort_by_key(|found| found.id);
    stripes
}
