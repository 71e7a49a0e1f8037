//! What puts a damaged piece right: the bytes, and where they go.
//!
//! A piece without a valid head is written whole, or its head alone where the body is good. Of a
//! piece whose head is good only the rows that do not match are written, and only with what its own
//! checksums ask for.

use device::Device;
use format::geometry::ROW_BYTES;
use format::head::{HEAD_BYTES, Head};
use units::MemberId;
use units::number::to_u64;
use volume::repair::rebuild;
use volume::seal::{Sealed, row_offset, to_slot_end};
use volume::slot_view::{PieceView, SlotBytes, StripeView};
use volume::{Error, Reader};

use super::outcome::Outcome;

/// The repair of one piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mend {
    member: MemberId,
    /// Byte offset on the member, and what belongs there.
    writes: Vec<(u64, Vec<u8>)>,
    /// Body rows that the others do not give.
    lost_rows: Vec<u16>,
}

impl Mend {
    /// The repair of the piece of `view` on `member`.
    pub(super) fn of(
        reader: &Reader,
        view: &StripeView,
        bytes: &SlotBytes,
        member: MemberId,
    ) -> Result<Self, Outcome> {
        let piece = view.pieces.iter().find(|piece| piece.member == member);
        let piece = piece.ok_or(Outcome::Lost)?;
        let heads = view.pieces.iter().filter(|piece| piece.head.is_some()).count();
        if heads < usize::from(view.stripe.geometry.data_columns) {
            // So few may be of a past that the other members have not seen.
            return Err(Outcome::Lost);
        }
        let column = view.stripe.geometry.column_of(view.stripe.stripe.sequence, member);
        if view.stripe.kind.closes_slot() {
            return Ok(Self::of_closing(reader, view, piece, column));
        }
        let rebuilt = rebuild(reader.membership(), view, bytes, column);
        let mut lost_rows = rebuilt.lost_rows;
        let stripe = &view.stripe;
        let Some(own) = &piece.head else {
            if !lost_rows.is_empty() {
                // The checksums of its rows are lost, too: nothing of it can be vouched for.
                return Err(Outcome::Lost);
            }
            let head = Head { stripe: stripe.clone(), piece: rebuilt.piece, cid: view.cid };
            let mut whole = head.encode(&reader.superblock().head_key).to_vec();
            if !piece.bad_rows.is_empty() {
                whole.extend_from_slice(&rebuilt.body);
            }
            let writes = vec![(row_offset(stripe, stripe.first_row), whole)];
            return Ok(Self { member, writes, lost_rows });
        };
        let mut writes: Vec<(u64, Vec<u8>)> = Vec::new();
        for &row in &piece.bad_rows {
            let at = usize::from(row);
            let computed = rebuilt.piece.row_crcs.get(at);
            if lost_rows.contains(&row) || computed != own.row_crcs.get(at) {
                lost_rows.push(row);
                continue;
            }
            let body = rebuilt.body.get(at * HEAD_BYTES..).and_then(|rest| rest.get(..HEAD_BYTES));
            let body = body.expect("a rebuilt body has all rows");
            let offset = row_offset(stripe, stripe.first_row + 1 + row);
            match writes.last_mut() {
                Some((start, run)) if *start + to_u64(run.len()) == offset => {
                    run.extend_from_slice(body);
                }
                _ => writes.push((offset, body.to_vec())),
            }
        }
        lost_rows.sort_unstable();
        lost_rows.dedup();
        if writes.is_empty() { Err(Outcome::Lost) } else { Ok(Self { member, writes, lost_rows }) }
    }

    /// A head that closes its slot is followed by nothing but zeros and the end of its block.
    fn of_closing(reader: &Reader, view: &StripeView, piece: &PieceView, column: u8) -> Self {
        let sealed = Sealed::new(view.stripe.clone());
        let stripe = sealed.stripe();
        let page = sealed.page(reader.superblock(), column, 0, Vec::new());
        let (row, page) = match piece.head {
            None => (stripe.first_row, Some(&page)),
            Some(_) => (stripe.first_row + 1, None),
        };
        let whole = to_slot_end(stripe, page, row);
        let writes = vec![(row_offset(stripe, row), whole)];
        Self { member: piece.member, writes, lost_rows: Vec::new() }
    }

    /// What is written, by its first row in the slot at `slot_offset`.
    pub(super) fn rows(&self, slot_offset: u64) -> impl Iterator<Item = (u16, &[u8])> {
        self.writes.iter().map(move |(offset, bytes)| {
            let row = (offset - slot_offset) / u64::from(ROW_BYTES);
            (u16::try_from(row).expect("a slot has at most 512 rows"), bytes.as_slice())
        })
    }

    /// The member that it is for.
    pub(crate) fn member(&self) -> MemberId {
        self.member
    }

    /// Body rows that stay damaged.
    pub(super) fn into_lost_rows(self) -> Vec<u16> {
        self.lost_rows
    }

    /// Writes it durably and reads it back.
    pub(super) fn apply(&self, device: &mut dyn Device) -> Result<(), Error> {
        for (offset, bytes) in &self.writes {
            device.write_at(*offset, bytes)?;
        }
        device.flush()?;
        for (offset, bytes) in &self.writes {
            let mut on_disk = vec![0; bytes.len()];
            device.read_at(*offset, &mut on_disk)?;
            if on_disk != *bytes {
                return Err(Error::NotTaken { member: self.member, offset: *offset });
            }
        }
        Ok(())
    }
}
