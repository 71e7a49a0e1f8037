//! A few rows of pieces, many pieces at a time, where reading whole slots would cost more.
//!
//! Every row is verified by its own checksum, in a head that is verified by its MAC and on which as
//! many members agree as there are data columns. Whatever is not as it should be is not given:
//! the caller reads the slot whole then, where damage is repaired from other members, or named.

use core::ops::Range;

use device::LentRead;
use encryption::CHUNK_BYTES;
use format::geometry::ROW_BYTES;
use format::head::{HEAD_BYTES, Head, StripeId};
use units::{MemberId, Sequence};

use crate::Reader;
use crate::heads::{Heads, row_address};

/// So many stripes of a slot are stepped over to find a later one's head: more cost as much as
/// reading the slot.
const STEPS_MAX: u16 = 8;

/// Rows that are encrypted together.
const CHUNK_ROWS: u16 = 16;

const _: () = assert!(CHUNK_ROWS == 16 && 16 * HEAD_BYTES == CHUNK_BYTES);

/// Rows wanted of a piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowsWanted {
    /// Stripe of the piece.
    pub stripe: StripeId,
    /// Column of the piece within its stripe.
    pub column: u8,
    /// Body rows, ascending, not overlapping; cut to those that the piece has.
    pub rows: Vec<Range<u16>>,
}

/// Rows of a piece, each verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PieceRows {
    /// Head of the piece.
    pub head: Head,
    /// The first row of each run, and its bytes.
    pub runs: Vec<(u16, Vec<u8>)>,
}

/// The row of a stripe's head, and the head before it in its slot.
type Place = (u16, Option<Head>);

/// A piece that is being read: its place, and its head and rows one behind the other.
struct Pending {
    place: usize,
    member: MemberId,
    sequence: Sequence,
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
    ///
    /// Of an encrypted piece more rows may come than were wanted.
    pub fn rows(&self, wanted: &[RowsWanted]) -> Vec<Option<PieceRows>> {
        if !self.superblock().is_encrypted {
            let read = self.rows_as_they_lie(wanted).into_iter();
            return read.map(|rows| rows.filter(|it| it.head.stripe.key_id.is_none())).collect();
        }
        let wanted =
            wanted.iter().map(|it| RowsWanted { rows: whole_chunks(&it.rows), ..it.clone() });
        let read = self.rows_as_they_lie(&wanted.collect::<Vec<_>>());
        read.into_iter().map(|rows| self.decrypt_rows(rows?)).collect()
    }

    fn rows_as_they_lie(&self, wanted: &[RowsWanted]) -> Vec<Option<PieceRows>> {
        let places = self.places_of(wanted);
        let pending = (0..).zip(wanted).zip(places);
        let pending = pending.filter_map(|((at, wanted), place)| self.pending(at, wanted, place?));
        let mut pending: Vec<Pending> = pending.collect();
        self.read_pending(&mut pending);
        let mut read: Vec<Option<PieceRows>> = wanted.iter().map(|_| None).collect();
        self.with_heads(|heads| {
            let whole = || pending.iter().filter(|pending| !pending.failed);
            let decoded: Vec<_> = whole().map(|pending| pending.head(heads)).collect();
            heads.expect_agreement(decoded.iter().flatten());
            for (pending, head) in whole().zip(decoded) {
                let place = read.get_mut(pending.place).zip(wanted.get(pending.place));
                let (place, wanted) = place.expect("a place of what is wanted");
                *place = head.and_then(|head| verified(heads, wanted, pending, head));
            }
        });
        read
    }

    /// Where the rows lie; `None` where they are not to be had this way.
    fn pending(&self, place: usize, wanted: &RowsWanted, stripe: Place) -> Option<Pending> {
        let StripeId { sequence, .. } = wanted.stripe;
        // By the shape in force then: a volume that has grown holds older stripes.
        let geometry = self.membership().geometry_at(sequence);
        let has_column = wanted.column < geometry.columns();
        let member = has_column.then(|| geometry.member_of(sequence, wanted.column))?;
        if !self.shows(member, sequence) {
            return None;
        }
        let (first_row, before) = stripe;
        let end = geometry.rows_per_slot();
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
        Some(Pending {
            place,
            member,
            sequence,
            first_row,
            before,
            runs,
            bytes: Vec::new(),
            failed: false,
        })
    }

    /// The row of each stripe's head, and the head before it: the place of the first is known,
    /// later ones lie behind those before them. All slots are stepped through together. `None` for
    /// what the ring does not hold or shows in too many steps.
    fn places_of(&self, wanted: &[RowsWanted]) -> Vec<Option<Place>> {
        let Some(span) = self.span() else { return wanted.iter().map(|_| None).collect() };
        let first = |wanted: &RowsWanted| {
            let is_held = wanted.stripe.sequence >= span.tail && wanted.stripe <= span.acknowledged;
            (is_held && wanted.stripe.sub <= STEPS_MAX).then_some((0, None))
        };
        let mut places: Vec<Option<Place>> = wanted.iter().map(first).collect();
        let steps = wanted.iter().zip(&places).filter(|(_, place)| place.is_some());
        let steps = steps.map(|(wanted, _)| wanted.stripe.sub).max().unwrap_or(0);
        for sub in 0..steps {
            self.with_heads(|heads| {
                let stepped = wanted.iter().zip(&mut places);
                let mut stepped: Vec<_> =
                    stepped.filter(|(it, place)| it.stripe.sub > sub && place.is_some()).collect();
                let rows = stepped
                    .iter()
                    .filter_map(|(it, place)| Some((it.stripe.sequence, place.as_ref()?.0)));
                heads.expect_at(&rows.collect::<Vec<_>>());
                for (wanted, place) in &mut stepped {
                    **place = place.take().and_then(|at| self.step(heads, wanted.stripe, sub, at));
                }
            });
        }
        places
    }

    /// From the place of stripe `sub` of a slot to the next.
    fn step(&self, heads: &Heads<'_>, stripe: StripeId, sub: u16, at: Place) -> Option<Place> {
        let (row, before) = at;
        let head = heads.head_at(stripe.sequence, row)?;
        let behind = row + 1 + head.stripe.rows;
        let is_next = head.stripe.stripe.sub == sub && !head.stripe.kind.closes_slot();
        let is_inside = behind < self.geometry().rows_per_slot();
        (is_next && is_inside && follows(heads, before.as_ref(), &head))
            .then_some((behind, Some(head)))
    }

    /// Reads all of them, from all members at the same time.
    fn read_pending(&self, pending: &mut [Pending]) {
        let members = self.membership().numbers();
        let begun = members.filter_map(|member| {
            let device = self.device(member)?;
            let (mut reads, mut owners) = (Vec::new(), Vec::new());
            for (owner, pending) in pending.iter().enumerate().filter(|(_, it)| it.member == member)
            {
                let slot = self.geometry().slot_offset(pending.sequence);
                for run in &pending.runs {
                    let len = usize::from(run.end - run.start) * HEAD_BYTES;
                    let at = slot + u64::from(run.start) * u64::from(ROW_BYTES);
                    reads.push(LentRead::new(at, vec![0; len]));
                    owners.push(owner);
                }
            }
            Some((owners, device.begin(reads)))
        });
        let begun: Vec<_> = begun.collect();
        for (owners, reading) in begun {
            for (owner, read) in owners.into_iter().zip(reading.end()) {
                let pending = pending.get_mut(owner).expect("a place of what is read");
                pending.failed |= read.result.is_err();
                pending.bytes.extend(read.bytes);
            }
        }
    }
}

impl Pending {
    /// Its head, where it may be believed if others agree.
    fn head(&self, heads: &Heads<'_>) -> Option<Head> {
        let (page, _) = self.bytes.split_first_chunk::<HEAD_BYTES>()?;
        let head = heads.decode(self.member, page)?;
        follows(heads, self.before.as_ref(), &head).then_some(head)
    }
}

fn verified(
    heads: &Heads<'_>,
    wanted: &RowsWanted,
    pending: &Pending,
    head: Head,
) -> Option<PieceRows> {
    let stripe = &head.stripe;
    let is_there = stripe.first_row == pending.first_row && head.piece.column == wanted.column;
    if stripe.stripe != wanted.stripe || !is_there || !heads.is_agreed(&head) {
        return None;
    }
    let (_, mut rest) = pending.bytes.split_first_chunk::<HEAD_BYTES>()?;
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

fn follows(heads: &Heads<'_>, before: Option<&Head>, head: &Head) -> bool {
    heads.follows(before.map(|before| (&before.stripe, &before.cid)), head)
}

/// The rows that must be read to decrypt these: whole chunks, and those of the first row, which has
/// the tags.
fn whole_chunks(rows: &[Range<u16>]) -> Vec<Range<u16>> {
    let chunk = |row: u16| row / CHUNK_ROWS * CHUNK_ROWS;
    let mut whole: Vec<Range<u16>> = Vec::from([Range { start: 0, end: CHUNK_ROWS }]);
    for rows in rows.iter().filter(|rows| !rows.is_empty()) {
        let begin = chunk(rows.start);
        let end = chunk(rows.end - 1).saturating_add(CHUNK_ROWS);
        match whole.last_mut() {
            Some(last) if begin <= last.end => last.end = last.end.max(end),
            _ => whole.push(begin..end),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_by_chunks_with_the_first_one() {
        let check = |rows: &[(u16, u16)], expect: &[(u16, u16)]| {
            let rows: Vec<Range<u16>> = rows.iter().map(|&(start, end)| start..end).collect();
            let whole: Vec<_> =
                whole_chunks(&rows).into_iter().map(|it| (it.start, it.end)).collect();
            assert_eq!(whole, expect, "{rows:?}");
        };
        check(&[], &[(0, 16)]);
        check(&[(0, 1), (15, 17)], &[(0, 32)]);
        check(&[(0, 1), (40, 41), (47, 49)], &[(0, 16), (32, 64)]);
        check(&[(510, 511)], &[(0, 16), (496, 512)]);
    }
}
