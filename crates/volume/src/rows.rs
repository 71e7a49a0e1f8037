//! A few rows of pieces, many pieces at a time, where reading whole slots would cost more.
//!
//! Every row is verified by its own checksum, in a head that is verified by its MAC and on which as
//! many members agree as there are data columns. Whatever is not as it should be is not given:
//! whoever asks reads the slot whole then, where damage is repaired from other members, or named.

use core::ops::Range;

use device::Read;
use format::geometry::ROW_BYTES;
use format::head::{HEAD_BYTES, Head, StripeId};

use crate::Reader;
use crate::heads::{Heads, row_address};

/// So many stripes of a slot are stepped over to find a later one's head: more cost as much as
/// reading the slot.
const STEPS_MAX: u16 = 8;

/// Rows wanted of a piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowsWanted {
    /// Its stripe.
    pub stripe: StripeId,
    /// Its column.
    pub column: u8,
    /// Body rows, ascending, not overlapping; cut to those that the piece has.
    pub rows: Vec<Range<u16>>,
}

/// Rows of a piece, each verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PieceRows {
    /// The piece's head.
    pub head: Head,
    /// The first row of each run, and its bytes.
    pub runs: Vec<(u16, Vec<u8>)>,
}

/// A piece that is being read: its place, and its head and rows one behind the other.
struct Pending {
    place: usize,
    member: u8,
    sequence: u64,
    first_row: u16,
    /// The head before it in its slot.
    before: Option<Head>,
    /// Rows of the slot: the head and the runs.
    runs: Vec<Range<u16>>,
    bytes: Vec<u8>,
    failed: bool,
}

impl Reader {
    /// Reads rows of pieces at the same time. `None` for a piece that is not acknowledged, of which
    /// anything could not be read or did not match, or whose head takes too many steps to find.
    pub fn rows(&self, wanted: &[RowsWanted]) -> Vec<Option<PieceRows>> {
        let pending = (0..).zip(wanted).filter_map(|(place, wanted)| self.pending(place, wanted));
        let mut pending: Vec<Pending> = pending.collect();
        for member in self.membership().numbers() {
            let of_member = pending.iter_mut().filter(|pending| pending.member == member);
            self.read_pending(member, of_member);
        }
        let mut read: Vec<Option<PieceRows>> = wanted.iter().map(|_| None).collect();
        for pending in pending.into_iter().filter(|pending| !pending.failed) {
            let place = read.get_mut(pending.place).zip(wanted.get(pending.place));
            let (place, wanted) = place.expect("a place of what is wanted");
            *place = self.verified(wanted, &pending);
        }
        read
    }

    /// Where the rows lie; `None` where they are not to be had this way.
    fn pending(&self, place: usize, wanted: &RowsWanted) -> Option<Pending> {
        let StripeId { sequence, .. } = wanted.stripe;
        let span = self.span()?;
        let member = self.geometry().member_of(sequence, wanted.column);
        let is_held = sequence >= span.tail && wanted.stripe <= span.acknowledged;
        if !is_held || !self.membership().is_whole_at(member, sequence) {
            return None;
        }
        let (first_row, before) = self.place_of(wanted.stripe)?;
        let end = self.geometry().rows_per_slot();
        let head = first_row..first_row + 1;
        let mut runs = Vec::from([head]);
        for rows in &wanted.rows {
            let in_slot = |row: u16| (first_row + 1).saturating_add(row).min(end);
            let (begin, end) = (in_slot(rows.start), in_slot(rows.end));
            match runs.last_mut() {
                Some(last) if last.end == begin => last.end = end,
                _ if begin < end => runs.push(begin..end),
                _ => {}
            }
        }
        let rows: usize = runs.iter().map(|run| usize::from(run.end - run.start)).sum();
        let bytes = vec![0; rows * HEAD_BYTES];
        let failed = false;
        Some(Pending { place, member, sequence, first_row, before, runs, bytes, failed })
    }

    /// The row of the stripe's head, and the head before it: the place of the first is known, later
    /// ones lie behind those before them.
    fn place_of(&self, stripe: StripeId) -> Option<(u16, Option<Head>)> {
        let mut place: (u16, Option<Head>) = (0, None);
        if stripe.sub > STEPS_MAX {
            return None;
        }
        for sub in 0..stripe.sub {
            let (row, before) = place;
            let head = self.with_heads(|heads| {
                let head = heads.head_at(stripe.sequence, row)?;
                follows(heads, before.as_ref(), &head).then_some(head)
            })?;
            let behind = row + 1 + head.stripe.rows;
            let is_next = head.stripe.stripe.sub == sub && !head.stripe.kind.closes_slot();
            if !is_next || behind >= self.geometry().rows_per_slot() {
                return None;
            }
            place = (behind, Some(head));
        }
        Some(place)
    }

    fn read_pending<'p>(&self, member: u8, pending: impl Iterator<Item = &'p mut Pending>) {
        let Some(device) = self.device(member) else { return };
        let mut pending: Vec<&mut Pending> = pending.collect();
        let mut reads = Vec::new();
        let mut owners = Vec::new();
        for (owner, pending) in pending.iter_mut().enumerate() {
            let slot = self.geometry().slot_offset(pending.sequence);
            let mut rest = pending.bytes.as_mut_slice();
            for run in &pending.runs {
                let (bytes, behind) =
                    rest.split_at_mut(usize::from(run.end - run.start) * HEAD_BYTES);
                rest = behind;
                reads.push(Read::new(slot + u64::from(run.start) * u64::from(ROW_BYTES), bytes));
                owners.push(owner);
            }
        }
        device.read_many(&mut reads);
        let failed = reads.into_iter().zip(owners).filter(|(read, _)| read.result.is_err());
        let failed: Vec<usize> = failed.map(|(_, owner)| owner).collect();
        for owner in failed {
            if let Some(pending) = pending.get_mut(owner) {
                pending.failed = true;
            }
        }
    }

    fn verified(&self, wanted: &RowsWanted, pending: &Pending) -> Option<PieceRows> {
        let (page, mut rest) = pending.bytes.split_first_chunk::<HEAD_BYTES>()?;
        let head = self.with_heads(|heads| {
            let head = heads.decode(pending.member, page)?;
            let believed = follows(heads, pending.before.as_ref(), &head) && heads.is_agreed(&head);
            believed.then_some(head)
        })?;
        let stripe = &head.stripe;
        if stripe.stripe != wanted.stripe || stripe.first_row != pending.first_row {
            return None;
        }
        let address = row_address(&head);
        let mut runs = Vec::new();
        for run in &pending.runs {
            // The head leads the first run.
            let first = run.start.saturating_sub(pending.first_row + 1);
            let count = run.end - run.start - u16::from(run.start == pending.first_row);
            let (bytes, behind) = rest.split_at(usize::from(count) * HEAD_BYTES);
            rest = behind;
            let kept = stripe.rows.saturating_sub(first).min(count);
            let bytes = bytes.get(..usize::from(kept) * HEAD_BYTES)?;
            let crcs = head.piece.row_crcs.get(usize::from(first)..)?;
            let rows = (first..).zip(bytes.chunks_exact(HEAD_BYTES)).zip(crcs);
            for ((row, bytes), &crc) in rows {
                if address.row_crc(row, bytes) != crc {
                    return None;
                }
            }
            if !bytes.is_empty() {
                runs.push((first, bytes.to_vec()));
            }
        }
        Some(PieceRows { head, runs })
    }
}

fn follows(heads: &Heads<'_>, before: Option<&Head>, head: &Head) -> bool {
    heads.follows(before.map(|before| (&before.stripe, &before.cid)), head)
}
