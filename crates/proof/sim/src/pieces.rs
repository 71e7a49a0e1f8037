//! A piece as it lies on a disk, against what was handed over. Where it is not known from what
//! happened whether a member holds a stripe (it left in the middle, or a scrub may have repaired
//! it), its disk can.

use device::{Modelled, ReadAt};
use format::checksum::RowAddress;
use format::geometry::Geometry;
use format::head::{HEAD_BYTES, Head, HeadKey, Kind, StripeId};
use units::MemberId;
use units::number::to_u64;

use crate::content::{ENCRYPTED, RowOf};
use crate::truth::Fact;

/// Where a piece of a stripe belongs, and whose it must be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) geometry: &'a Geometry,
    pub(crate) key: &'a HeadKey,
    pub(crate) id: StripeId,
    /// Of the stripe's identity, as all its heads have it.
    pub(crate) cid: [u8; 32],
    pub(crate) first_row: u16,
    pub(crate) member: u8,
}

impl Place<'_> {
    /// What of the piece is not as it was handed over; `None`: nothing. Body rows, or none where it
    /// is the head.
    pub(crate) fn damage(self, fact: &Fact, disk: &Modelled) -> Option<Vec<u16>> {
        if !self.has_head(disk) {
            return Some(Vec::new());
        }
        let is_wrong = |row: &u16| {
            let found = self.row(disk, self.first_row + 1 + row);
            found.is_none_or(|found| !self.is_expected(fact, *row, (disk, &found)))
        };
        let wrong: Vec<u16> = (0..fact.rows).filter(is_wrong).collect();
        (!wrong.is_empty()).then_some(wrong)
    }

    /// What an encrypted row must be only its head says.
    fn is_expected(self, fact: &Fact, row: u16, (disk, found): (&Modelled, &[u8])) -> bool {
        if fact.kind != Kind::Data || fact.mark & ENCRYPTED == 0 {
            return found == self.expected(fact, row);
        }
        let Some(Head { stripe, piece, .. }) = self.head(disk) else { return false };
        let StripeId { sequence, sub } = self.id;
        let address = RowAddress { epoch: stripe.epoch, sequence, sub, column: self.column() };
        piece.row_crcs.get(usize::from(row)) == Some(&address.row_crc(row, found))
    }

    fn head(self, disk: &Modelled) -> Option<Head> {
        Head::decode(&self.row(disk, self.first_row)?, Some(self.key)).ok()
    }

    fn has_head(self, disk: &Modelled) -> bool {
        self.head(disk).is_some_and(|Head { stripe, piece, cid }| {
            (stripe.stripe, stripe.first_row, cid) == (self.id, self.first_row, self.cid)
                && (piece.member, piece.column) == (MemberId(self.member), self.column())
        })
    }

    fn column(self) -> u8 {
        self.geometry.column_of(self.id.sequence, MemberId(self.member))
    }

    fn row(self, disk: &Modelled, row: u16) -> Option<[u8; HEAD_BYTES]> {
        let in_slot = u64::from(row) * to_u64(HEAD_BYTES);
        let mut page = [0; HEAD_BYTES];
        let offset = self.geometry.slot_offset(self.id.sequence) + in_slot;
        ReadAt::read_at(disk, offset, &mut page).ok()?;
        Some(page)
    }

    /// A row of the body: of data by its mark, of parity by the sum of the data, each column of it
    /// multiplied once more by 2 for Q.
    fn expected(self, fact: &Fact, row: u16) -> [u8; HEAD_BYTES] {
        let mut of_data = [0; HEAD_BYTES];
        let fill = |column: u8, into: &mut [u8]| {
            let rows = fact.rows;
            RowOf { kind: fact.kind, mark: fact.mark, column, row, rows }.fill(into);
        };
        let (own, data_columns) = (self.column(), self.geometry.data_columns);
        if own < data_columns {
            fill(own, &mut of_data);
            return of_data;
        }
        let mut sum = [0; HEAD_BYTES];
        for column in (0..data_columns).rev() {
            fill(column, &mut of_data);
            for (sum, byte) in sum.iter_mut().zip(&of_data) {
                *sum = byte ^ if own == data_columns { *sum } else { doubled(*sum) };
            }
        }
        sum
    }
}

/// Times 2 in GF(2^8) with the polynomial 0x11d.
fn doubled(byte: u8) -> u8 {
    byte << 1 ^ if byte & 0x80 == 0 { 0 } else { 0x1d }
}
