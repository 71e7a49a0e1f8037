//! Computing a piece of a stripe from the pieces of the other columns, row by row.

use format::checksum::body_crc;
use format::head::{HEAD_BYTES, Kind, PieceHead, StripeHead};
use parity::{Codec, Column};

use crate::membership::Membership;
use crate::seal::row_crcs;
use crate::slot_view::{SlotBytes, StripeView, body_of};

/// A piece as far as it can be had.
#[derive(Debug)]
pub struct Rebuilt {
    /// The part of the head that is its own.
    pub piece: PieceHead,
    /// Its body.
    pub body: Vec<u8>,
    /// Rows of which too few columns are good, ascending; their bytes mean nothing.
    pub lost_rows: Vec<u16>,
}

/// The piece in `column`: its own good rows, and the others computed. What was computed is checked
/// against the manifest as far as the whole body is there.
pub fn rebuild(
    membership: &Membership,
    view: &StripeView,
    bytes: &SlotBytes,
    column: u8,
) -> Rebuilt {
    let piece = view.pieces.get(usize::from(column)).expect("a view has every column");
    let is_known = piece.head.is_some() || piece.bad_rows.is_empty();
    let own = body_of(&view.stripe, bytes.of(piece.member)).filter(|_| is_known);
    let mut body = vec![0; usize::from(view.stripe.rows) * HEAD_BYTES];
    if let Some(own) = own {
        body.copy_from_slice(own);
    }
    let mut lost_rows = Vec::new();
    for run in runs(view, &piece.bad_rows) {
        let begin = usize::from(run.first) * HEAD_BYTES;
        let range = begin..begin + usize::from(run.count) * HEAD_BYTES;
        let out = body.get_mut(range.clone()).expect("rows lie inside the body");
        if !solve(view, bytes, run, (column, range), out) {
            lost_rows.extend(run.first..run.first + run.count);
        }
    }
    let crc = view.stripe.manifest.get(usize::from(column));
    if lost_rows.is_empty() && crc != Some(&body_crc(&body)) {
        // The rows that were computed from are good each for itself, and still the whole is not
        // what was sealed: nothing of it is believed.
        lost_rows = (0..view.stripe.rows).collect();
    }
    let packets = packets_in(view, column, &body, lost_rows.is_empty());
    let piece = PieceHead {
        member: piece.member,
        column,
        packets: piece.head.as_ref().map_or(packets, |own| own.packets),
        member_uuid: membership.uuid(piece.member).expect("a view is of this volume's members"),
        row_crcs: row_crcs(&view.stripe, column, &body),
    };
    Rebuilt { piece, body, lost_rows }
}

/// The count that a lost head had: of the packets in its body.
fn packets_in(view: &StripeView, column: u8, body: &[u8], whole: bool) -> u32 {
    let StripeHead { kind, key_id, geometry, .. } = &view.stripe;
    let is_plain = *kind == Kind::Data && key_id.is_none();
    let holds_packets = is_plain && column < geometry.data_columns && whole;
    let count = if holds_packets { format::piece::packets(body).flatten().count() } else { 0 };
    u32::try_from(count).expect("a piece has fewer than 2^32 packets")
}

/// Consecutive rows of which the same columns are bad.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    first: u16,
    count: u16,
    /// Bit c stands for column c.
    bad_columns: u32,
}

fn runs(view: &StripeView, rows: &[u16]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for &row in rows {
        let bad =
            (0..).zip(&view.pieces).filter(|(_, piece)| piece.bad_rows.binary_search(&row).is_ok());
        let bad_columns = bad.fold(0, |bits, (column, _)| bits | 1_u32 << column);
        match runs.last_mut() {
            Some(run) if run.first + run.count == row && run.bad_columns == bad_columns => {
                run.count += 1;
            }
            _ => runs.push(Run { first: row, count: 1, bad_columns }),
        }
    }
    runs
}

/// Computes the rows of one run of `column` into `out`; false when too few columns are good.
fn solve(
    view: &StripeView,
    bytes: &SlotBytes,
    run: Run,
    (wanted, range): (u8, core::ops::Range<usize>),
    out: &mut [u8],
) -> bool {
    let Ok(codec) = Codec::new() else { return false };
    let geometry = &view.stripe.geometry;
    let mut out = Some(out);
    // P and Q have their places always; one that this geometry lacks is missing.
    let mut columns: Vec<Column<'_>> = (0..geometry.data_columns + 2)
        .map(|column| {
            if column == wanted {
                return out.take().map_or(Column::Missing, Column::Wanted);
            }
            let good = column < geometry.columns() && run.bad_columns & (1 << column) == 0;
            let piece = view.pieces.get(usize::from(column)).filter(|_| good);
            let body = piece.and_then(|piece| body_of(&view.stripe, bytes.of(piece.member)));
            let rows = body.and_then(|body| body.get(range.clone()));
            rows.map_or(Column::Missing, Column::Known)
        })
        .collect();
    codec.reconstruct(&mut columns).is_ok()
}
