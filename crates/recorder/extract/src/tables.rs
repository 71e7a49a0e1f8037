//! What the ring holds besides sessions, as tables: its pieces, and its gaps.

use core::ops::{ControlFlow, RangeInclusive};

use completeness::Completeness;
use format::directory::Gap;
use format::head::{Head, Kind, StripeId};
use units::{Clock, Epoch, Sequence, Times, Timestamp};

use crate::archive::Archive;
use crate::find::Opened;
use crate::scan::Scan;
use crate::walk::Notes;
use crate::wanted::Wanted;
use crate::{Error, Options};

/// First heads that are asked for at once.
const HEADS_AT_ONCE: usize = 256;

/// A piece with packets, as the head of its stripe says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PieceRow {
    /// Stripe of the piece.
    pub stripe: StripeId,
    /// Column of the piece within its stripe.
    pub column: u8,
    /// Opening of the volume that wrote it.
    pub epoch: Epoch,
    /// Earliest packet of the stripe.
    pub time_min: Timestamp,
    /// Latest packet of the stripe.
    pub time_max: Timestamp,
    /// When the stripe was sealed.
    pub sealed: Timestamp,
    /// Rows of its body, 4 KiB each.
    pub rows: u16,
    /// CRC-64/NVME of its body.
    pub body_crc: u64,
    /// Packets of the stripe; in its first piece only, so that a sum counts them once.
    pub stripe_packets: Option<u64>,
    /// Captured bytes of those; likewise.
    pub stripe_captured_bytes: Option<u64>,
}

/// Whether there is a volume that can be read.
pub fn check(options: &Options, clock: &dyn Clock) -> Result<(), Error> {
    Archive::without_index(options, clock.realtime()).map(drop)
}

/// Calls `visit` with the pieces of stripes that may hold packets within `times`, in ring order.
pub fn pieces(
    options: &Options,
    times: &RangeInclusive<Timestamp>,
    clock: &dyn Clock,
    visit: &mut dyn FnMut(&PieceRow) -> ControlFlow<()>,
) -> Result<(), Error> {
    let archive = Archive::without_index(options, clock.realtime())?;
    let Some(span) = archive.span() else { return Ok(()) };
    let sequences: Vec<Sequence> = archive.sequences().collect();
    for chunk in sequences.chunks(HEADS_AT_ONCE) {
        for (first, &sequence) in archive.reader.first_heads(chunk).into_iter().zip(chunk) {
            let heads = match first {
                Some(head) if archive.fills_slot(&head) => vec![head],
                _ => archive.reader.leading_heads(sequence),
            };
            let held = heads.iter().filter(|head| head.stripe.stripe <= span.acknowledged);
            for row in held.flat_map(|head| rows_of(&archive, head)) {
                let is_expired = row.time_max <= archive.expired;
                let overlaps = row.time_min <= *times.end() && row.time_max >= *times.start();
                if overlaps && !is_expired && visit(&row).is_break() {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// One row for each data column of a stripe with packets.
fn rows_of(archive: &Archive, head: &Head) -> Vec<PieceRow> {
    let stripe = &head.stripe;
    if stripe.kind != Kind::Data || stripe.totals.packets == 0 {
        return Vec::new();
    }
    let columns = archive.reader.membership().geometry_at(stripe.stripe.sequence).data_columns;
    let row = |(column, &body_crc): (u8, &u64)| PieceRow {
        stripe: stripe.stripe,
        column,
        epoch: stripe.epoch,
        time_min: stripe.time_min,
        time_max: stripe.time_max,
        sealed: stripe.realtime,
        rows: stripe.rows,
        body_crc,
        stripe_packets: (column == 0).then_some(stripe.totals.packets),
        stripe_captured_bytes: (column == 0).then_some(stripe.totals.captured_bytes),
    };
    (0..columns).zip(&stripe.manifest).map(row).collect()
}

/// Result of [`gaps`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GapsReport {
    /// Stretches in which packets are missing, as recorders noted them.
    pub gaps: Vec<Gap>,
    /// What is missing besides.
    pub completeness: Completeness,
}

/// The gaps that overlap `times`, by their begin, and what else is missing of these times.
pub fn gaps(
    options: &Options,
    times: &RangeInclusive<Timestamp>,
    clock: &dyn Clock,
) -> Result<GapsReport, Error> {
    let Opened { mut archive, mut notes, .. } = Opened::of(options, times, clock)?;
    let columns = index::Columns::Named(&[]);
    let mut scan = Scan::new(&mut archive, Wanted::Nothing, columns, times.clone());
    let _all = scan.run(&mut notes, &mut |_, _, _| Ok(ControlFlow::Continue(())))?;
    let Notes { mut completeness, .. } = notes.settled(&archive);
    completeness.forget_but(&Times::of(*times.start(), *times.end()));
    let mut gaps = core::mem::take(&mut completeness.gaps);
    gaps.sort_by_key(|gap| (gap.from, gap.to));
    Ok(GapsReport { gaps, completeness })
}
