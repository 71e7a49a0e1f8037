//! Stripes with packets in ring order, verified; and all packets of a volume without any index.

use core::ops::ControlFlow;

use completeness::{Completeness, DamageKind};
use format::checksum::body_crc;
use format::directory::Gap;
use format::head::{Head, Kind, StripeId};
use format::piece::{self, InterfaceInPiece, StoredPacket};
use found::Explain;
use units::number::to_u64;
use units::{Clock, Epoch, Sequence, Times, Timestamp};
use volume::{Reader, StripeInSlot};

use crate::archive::Archive;
use crate::met::NamesMet;
use crate::slots::{ColumnRead, Place, SlotRead, read_slots};
use crate::{Error, Options};

/// Bytes of a row.
const ROW_BYTES: usize = format::head::HEAD_BYTES;

/// Whether to go on.
pub(crate) type Flow = Result<ControlFlow<()>, Error>;

/// What a run found out besides its answer.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) completeness: Completeness,
    pub(crate) explain: Explain,
    pub(crate) met: NamesMet,
}

impl Notes {
    /// All of it, at the end of a run: with the members that could not be read to the end, and the
    /// interfaces that heads name.
    pub(crate) fn settled(mut self, archive: &Archive) -> Self {
        self.completeness.add_given_up(archive.reader.given_up());
        let met = self.met.with_heads(&self.completeness);
        Self { met, ..self }
    }

    /// For a look besides the one that answers.
    pub(crate) fn aside(&self) -> Self {
        Self { explain: self.explain, ..Self::default() }
    }

    /// Adds what such a look lacked and cost.
    pub(crate) fn add_aside(&mut self, own: Self) {
        self.explain = self.explain.with_cost_of(own.explain);
        self.met.add(&own.met);
        self.completeness.add_aside(own.completeness);
    }

    /// Adds what a search lacked and cost that has found the sessions of the answer.
    pub(crate) fn add_search(&mut self, own: Self, asked: (Timestamp, Timestamp)) {
        self.explain = self.explain.with_cost_of(own.explain);
        self.met.add(&own.met);
        self.completeness.add_search(own.completeness, asked);
    }

    /// Adds what a look lacked and cost that has answered.
    pub(crate) fn add(&mut self, own: &Self) {
        self.explain = own.explain;
        self.completeness.add(&own.completeness);
        self.met.add(&own.met);
    }
}

/// A data stripe, as much of it as is verified.
pub(crate) struct DataStripe<'a> {
    pub(crate) head: &'a Head,
    /// The body in front of the first bad row.
    pub(crate) body: &'a [u8],
    /// The body is shorter than it was.
    pub(crate) is_cut: bool,
}

impl<'a> DataStripe<'a> {
    pub(crate) fn id(&self) -> StripeId {
        self.head.stripe.stripe
    }

    fn new(stripe: &'a StripeInSlot, slot: &'a [u8]) -> Self {
        let body = Reader::body(&stripe.head, slot);
        let whole = stripe.bad_rows.first().map_or(body.len(), |&row| usize::from(row) * ROW_BYTES);
        let body = body.get(..whole).unwrap_or(body);
        Self { head: &stripe.head, body, is_cut: !stripe.bad_rows.is_empty() }
    }

    /// Calls `visit` with the packets in their order. Malformed blocks end the walk and are noted,
    /// except where the body is cut, which is noted already.
    pub(crate) fn packets(
        &self,
        notes: &mut Notes,
        mut visit: impl FnMut(&StoredPacket<'a>, &[InterfaceInPiece]) -> Flow,
    ) -> Result<Walked<'a>, Error> {
        let mut walk = piece::packets(self.body);
        while let Some(packet) = walk.next() {
            match packet {
                Ok(packet) => {
                    notes.explain.packets_seen += 1;
                    if visit(&packet, walk.interfaces())?.is_break() {
                        break;
                    }
                }
                Err(_) if self.is_cut => break,
                Err(error) => {
                    let kind = DamageKind::Malformed(error.offset);
                    notes.completeness.add_damage(self.id(), kind);
                    break;
                }
            }
        }
        let (gaps, blocks) = (walk.gaps().to_vec(), walk.extra_blocks().collect());
        Ok(Walked { gaps, blocks })
    }
}

/// What lies in a body besides packets.
pub(crate) struct Walked<'a> {
    pub(crate) gaps: Vec<Gap>,
    /// Name resolution and secrets blocks.
    pub(crate) blocks: Vec<&'a [u8]>,
}

/// Receives data stripes.
pub(crate) type VisitStripe<'v> =
    &'v mut dyn FnMut(&DataStripe<'_>, &mut Notes) -> Result<ControlFlow<()>, Error>;

/// Calls `visit` with the data pieces of `places` whose stripes `wanted` asks for, in ring order:
/// stripe by stripe, the columns of each in turn; notes those that are damaged or overwritten.
pub(crate) fn each_data_stripe(
    archive: &Archive,
    places: &[Place],
    notes: &mut Notes,
    wanted: &dyn Fn(StripeId) -> bool,
    visit: VisitStripe<'_>,
) -> Result<ControlFlow<()>, Error> {
    read_slots(&archive.reader, places, &mut |read: SlotRead<'_>| {
        let mut found = Vec::new();
        for column in &read.columns {
            let bytes_read = to_u64(column.bytes.len());
            notes.explain.bytes_read += bytes_read;
            found.extend(found_in(archive, (read.sequence, column), notes, wanted));
        }
        found.sort_by_key(|(stripe, _)| (stripe.head.stripe.stripe, stripe.head.piece.column));
        for (stripe, bytes) in found {
            if !stripe.bad_rows.is_empty() {
                if archive.has_passed(read.sequence) {
                    notes.completeness.retired_pieces += 1;
                    continue;
                }
                let rows = || DamageKind::Rows(stripe.bad_rows.clone());
                let kind = if stripe.is_locked { DamageKind::Locked } else { rows() };
                notes.completeness.add_damage(stripe.head.stripe.stripe, kind);
            }
            notes.explain.pieces_read += 1;
            if visit(&DataStripe::new(stripe, bytes), notes)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// A piece and the bytes of its slot.
type Found<'a> = (&'a StripeInSlot, &'a [u8]);

/// The wanted data pieces of one column of a slot; notes wanted stripes that are not there.
fn found_in<'a>(
    archive: &Archive,
    (sequence, column): (Sequence, &'a ColumnRead<'a>),
    notes: &mut Notes,
    wanted: &dyn Fn(StripeId) -> bool,
) -> Vec<Found<'a>> {
    let mut expected = StripeId { sequence, sub: 0 };
    let slot = match &column.slot {
        Ok(slot) => slot,
        Err(volume::Error::Overwritten(_)) => {
            notes.completeness.retired_pieces += 1;
            return Vec::new();
        }
        Err(_) => {
            lost(archive, expected, notes);
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    for stripe in &slot.stripes {
        let id = stripe.head.stripe.stripe;
        for sub in (expected.sub..id.sub).filter(|&sub| wanted(StripeId { sequence, sub })) {
            lost(archive, StripeId { sequence, sub }, notes);
        }
        expected.sub = id.sub.saturating_add(1);
        if let Some((from, to)) = stripe.head.stripe.forgotten() {
            notes.completeness.forgotten.add(&Times::of(from, to));
        }
        if stripe.head.stripe.kind == Kind::Data && wanted(id) {
            found.push((stripe, column.bytes));
        }
    }
    let newest = archive.span().map(|span| span.acknowledged.sequence);
    if !slot.closed && newest.is_some_and(|newest| sequence < newest) && wanted(expected) {
        lost(archive, expected, notes);
    }
    found
}

/// A stripe is not there: overwritten in the meantime, or damaged.
fn lost(archive: &Archive, stripe: StripeId, notes: &mut Notes) {
    if archive.has_passed(stripe.sequence) {
        notes.completeness.retired_pieces += 1;
    } else {
        notes.completeness.add_damage(stripe, DamageKind::Missing);
    }
}

/// CRC of a stripe's whole body by its head: what a manifest lists.
pub(crate) fn body_crc_of(head: &Head) -> u64 {
    let column = usize::from(head.piece.column);
    head.stripe.manifest.get(column).copied().unwrap_or_else(|| body_crc(&[]))
}

/// One packet of a volume, and where it lies.
#[derive(Clone, Copy, Debug)]
pub struct VolumePacket<'a> {
    /// Stripe of the packet.
    pub stripe: StripeId,
    /// Column of the piece within its stripe.
    pub column: u8,
    /// Opening of the volume that recorded it.
    pub epoch: Epoch,
    /// Interface of the packet.
    pub interface: &'a InterfaceInPiece,
    /// The packet.
    pub packet: &'a StoredPacket<'a>,
}

/// Result of [`packets`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WalkReport {
    /// Packets visited.
    pub packets: u64,
    /// Losses noted, damage and stripes overwritten meanwhile.
    pub completeness: Completeness,
}

/// Visits every acknowledged packet of the volume that is not expired, in the order recorded. Needs
/// no index.
pub fn packets<V>(options: &Options, clock: &dyn Clock, visit: V) -> Result<WalkReport, Error>
where
    V: FnMut(&VolumePacket<'_>) -> ControlFlow<()>,
{
    packets_from(options, Sequence(0), clock, visit)
}

/// The same, of stripes from the sequence `first` on.
pub fn packets_from<V>(
    options: &Options,
    first: Sequence,
    clock: &dyn Clock,
    mut visit: V,
) -> Result<WalkReport, Error>
where
    V: FnMut(&VolumePacket<'_>) -> ControlFlow<()>,
{
    let archive = Archive::without_index(options, clock.realtime())?;
    let (mut notes, mut count, mut expired) = (Notes::default(), 0, None);
    let places: Vec<Place> = archive.places().filter(|place| place.sequence >= first).collect();
    let ended =
        each_data_stripe(&archive, &places, &mut notes, &|_| true, &mut |stripe, notes| {
            let mut flow = ControlFlow::Continue(());
            let walked = stripe.packets(notes, |packet, interfaces| {
                let interface =
                    interfaces.get(packet.interface).expect("the walk checks the number");
                if packet.timestamp <= archive.expired {
                    let (from, to) = expired.unwrap_or((packet.timestamp, packet.timestamp));
                    expired = Some((from.min(packet.timestamp), to.max(packet.timestamp)));
                    return Ok(ControlFlow::Continue(()));
                }
                count += 1;
                flow = visit(&VolumePacket {
                    stripe: stripe.id(),
                    column: stripe.head.piece.column,
                    epoch: stripe.head.stripe.epoch,
                    interface,
                    packet,
                });
                Ok(flow)
            })?;
            notes.completeness.add_gaps(&walked.gaps, Timestamp::MIN, Timestamp::MAX);
            Ok(flow)
        })?;
    notes.completeness.stopped = ended.is_break();
    if let Some(times) = expired {
        notes.completeness.withhold(archive.expired, times);
    }
    Ok(WalkReport { packets: count, completeness: notes.completeness })
}
