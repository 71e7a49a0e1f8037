//! Which byte lies where: columns, each on the next member.

use crate::number::{to_u64, to_usize};

/// How data lies on members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Members that hold data.
    pub(super) columns: usize,
    /// Bytes of a column.
    pub(super) column_bytes: u64,
}

/// Bytes that lie together on one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Which one.
    pub(super) member: usize,
    /// Where on it.
    pub(super) offset: u64,
    /// How many.
    pub(super) len: usize,
}

impl Layout {
    /// Bytes of data, of members of this size: whole columns.
    pub(super) fn size_bytes(self, member_bytes: u64) -> u64 {
        member_bytes / self.column_bytes * self.column_bytes * to_u64(self.columns)
    }

    /// The member of a byte, and where on it.
    pub(super) fn place(self, offset: u64) -> (usize, u64) {
        let (column, within) = (offset / self.column_bytes, offset % self.column_bytes);
        let columns = to_u64(self.columns);
        (to_usize(column % columns), column / columns * self.column_bytes + within)
    }

    /// The pieces of `len` bytes from `offset` on, in their order.
    pub(super) fn pieces(self, offset: u64, len: usize) -> impl Iterator<Item = Piece> {
        let end = offset + to_u64(len);
        let mut at = offset;
        core::iter::from_fn(move || {
            let to_column_end = self.column_bytes - at % self.column_bytes;
            let len = to_column_end.min(end - at);
            let (member, offset) = self.place(at);
            at += len;
            (len > 0).then(|| Piece { member, offset, len: to_usize(len) })
        })
    }
}
