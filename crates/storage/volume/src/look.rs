//! A quick look at one slot: what its heads say, without reading and verifying bodies.

use format::head::{HEAD_BYTES, Head};
use units::{MemberId, Sequence};

use crate::Reader;
use crate::heads::Heads;

/// What a slot shows without its bodies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Look {
    /// The head of its first stripe, as any member shows it.
    pub first: Option<Head>,
    /// Where a VOID or EPOCH head left the slot: its row. `None` when the slot is used to its end,
    /// still open, or its last row cannot be read.
    pub left_at: Option<u16>,
    /// Members that are at hand, should hold the slot, and do not show its first head.
    pub damaged: Vec<MemberId>,
}

impl Reader {
    /// Looks at the slot of `sequence`: a head from each member, and the two rows that say how far
    /// it is used.
    pub fn look(&self, sequence: Sequence) -> Look {
        let membership = self.membership();
        self.with_heads(|heads| {
            let slot = heads.geometry().slot(sequence);
            heads.expect_ends(sequence);
            let shown = |member: MemberId| {
                let head = heads.first_on(member, slot)?;
                (head.stripe.stripe.sequence == sequence).then_some(head)
            };
            let (mut first, mut damaged) = (None, Vec::new());
            for member in membership.present() {
                match shown(member) {
                    Some(head) => first = first.or(Some(head)),
                    None if self.shows(member, sequence) => damaged.push(member),
                    None => {}
                }
            }
            Look { first, left_at: left_at(heads, sequence), damaged }
        })
    }
}

/// The last bytes of a slot are the length of the block that reaches to its end. Where a closing
/// head opened that block, the length says in which row.
fn left_at(heads: &Heads<'_>, sequence: Sequence) -> Option<u16> {
    let mut members = heads.membership().present();
    members.find_map(|member| {
        let mut row = [0; HEAD_BYTES];
        heads.last_row(member, sequence, &mut row)?;
        let length = u64::from(u32::from_le_bytes(*row.last_chunk()?));
        let geometry = heads.geometry();
        let (piece, row_bytes) = (u64::from(geometry.piece_bytes), 4096);
        // Length = piece_bytes - (row + 1) * 4096 + 12: docs/format.md, Head.
        let before =
            (piece + 12).checked_sub(length).filter(|rows| rows.is_multiple_of(row_bytes))?;
        let row = u16::try_from((before / row_bytes).checked_sub(1)?).ok()?;
        let head = heads.head_at(sequence, row).filter(|_| row < geometry.rows_per_slot())?;
        head.stripe.kind.closes_slot().then_some(row)
    })
}
