//! Sessions from packets, where no index has them.
//!
//! Stripes are taken in stretches of about a segment, so that memory is bounded; sessions go on
//! from one stretch to the next and end with the epoch. The stretches depend on the stripes alone,
//! so rows keep their numbers from query to query as long as nothing else is recorded.

use core::mem;
use core::ops::ControlFlow;
use std::collections::BTreeSet;

use format::directory::Gap;
use format::head::{Head, StripeId};
use format::slice::{PieceId, Slice};
use index::{Encoded, Interface, SegmentMeta};
use session::{Config, PacketView, Table};
use units::Timestamp;

use crate::Error;
use crate::archive::{Archive, Part};
use crate::slots::Place;
use crate::walk::{DataStripe, Notes, each_data_stripe};

/// Body bytes of a stretch: a segment's.
const STRETCH_BYTES: usize = 1 << 30;
/// Rows of a stretch.
const STRETCH_ROWS: usize = 1 << 18;

/// Sessions of a run of stripes.
#[derive(Debug)]
pub(crate) struct Stretch {
    pub(crate) epoch: u32,
    pub(crate) first: StripeId,
    pub(crate) last: StripeId,
    /// In the order of their start, as a segment has them.
    pub(crate) rows: Vec<Slice>,
    pub(crate) packets: u64,
    pub(crate) gaps: Vec<Gap>,
    time_min: Timestamp,
    time_max: Timestamp,
    interfaces: Vec<Interface>,
    bytes: usize,
}

impl Stretch {
    fn new(epoch: u32, first: StripeId) -> Self {
        Self {
            epoch,
            first,
            last: first,
            rows: Vec::new(),
            packets: 0,
            gaps: Vec::new(),
            time_min: Timestamp::MAX,
            time_max: Timestamp::MIN,
            interfaces: Vec::new(),
            bytes: 0,
        }
    }

    /// The Parquet file of the segment `part`, whose stripes these are.
    pub(crate) fn encode(&self, archive: &Archive, part: &Part) -> Result<Encoded, Error> {
        let meta = SegmentMeta {
            volume: archive.volume(),
            epoch: self.epoch,
            first: part.first,
            last: part.last,
            time_min: self.time_min,
            time_max: self.time_max,
            packets: self.packets,
            unindexed_packets: 0,
            unread_packets: 0,
            gaps: self.gaps.clone(),
            interfaces: self.interfaces.clone(),
            recording: None,
            vlan_in_key: archive.vlan_in_key,
        };
        Ok(index::encode(&meta, &self.rows)?)
    }
}

/// Receives stretches.
pub(crate) type Visit<'v> = dyn FnMut(Stretch, &mut Notes) -> Result<ControlFlow<()>, Error> + 'v;

/// Indexes the data stripes of `part` that are not in `indexed`.
pub(crate) fn rebuild(
    archive: &Archive,
    part: &Part,
    indexed: &BTreeSet<StripeId>,
    notes: &mut Notes,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, Error> {
    let mut builder = Builder::new(archive, part.segment.is_some());
    let tail = archive.tail();
    let places: Vec<Place> = (part.first.sequence.max(tail)..=part.last.sequence)
        .filter(|&sequence| archive.may_hold_packets(sequence, part.first..=part.last))
        .map(|sequence| archive.place(sequence))
        .collect();
    let wanted = |id| part.first <= id && id <= part.last && !indexed.contains(&id);
    let flow = each_data_stripe(archive, &places, notes, &wanted, &mut |stripe, notes| {
        if builder.stretch.as_ref().is_some_and(|open| open.epoch != stripe.head.stripe.epoch)
            && builder.end_epoch(notes, visit)?.is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        builder.add(stripe, notes)?;
        if builder.is_full() {
            builder.end_stretch(notes, visit)
        } else {
            Ok(ControlFlow::Continue(()))
        }
    })?;
    if flow.is_break() { Ok(flow) } else { builder.end_epoch(notes, visit) }
}

struct Builder {
    config: Config,
    seed: u64,
    table: Table,
    stretch: Option<Stretch>,
    /// Rows are numbered as in a segment: all of them are one stretch.
    is_segment: bool,
}

impl Builder {
    fn new(archive: &Archive, is_segment: bool) -> Self {
        let config = Config { vlan_in_key: archive.vlan_in_key, ..Config::default() };
        // The secret of the volume keeps senders from choosing tuples that collide.
        let [seed, ..] = archive.reader.superblock().head_key.0.as_chunks().0 else {
            unreachable!("a key has 32 bytes");
        };
        let seed = u64::from_le_bytes(*seed);
        Self { config, seed, table: Table::new(config, seed), stretch: None, is_segment }
    }

    fn add(&mut self, stripe: &DataStripe<'_>, notes: &mut Notes) -> Result<(), Error> {
        let head: &Head = stripe.head;
        let id = stripe.id();
        let stretch = self.stretch.get_or_insert_with(|| Stretch::new(head.stripe.epoch, id));
        let column = head.piece.column;
        let piece = PieceId { sequence: id.sequence, sub: id.sub, column };
        let mut views = Vec::new();
        let mut interfaces = mem::take(&mut stretch.interfaces);
        let walked = stripe.packets(notes, |packet, known| {
            let interface = known.get(packet.interface).expect("the walk checks the number");
            if interfaces.iter().all(|other| other.id != interface.id) {
                let (id, name) = (interface.id, interface.name.clone());
                interfaces.push(Interface { id, link_type: interface.link_type, name });
            }
            let (begin, end) = packet.span();
            views.push(PacketView {
                timestamp: packet.timestamp,
                interface: interface.id,
                link_type: interface.link_type,
                original_len: packet.original_len,
                data: packet.data,
                piece,
                begin,
                end,
            });
            Ok(ControlFlow::Continue(()))
        })?;
        stretch.interfaces = interfaces;
        for view in &views {
            stretch.time_min = stretch.time_min.min(view.timestamp);
            stretch.time_max = stretch.time_max.max(view.timestamp);
        }
        stretch.packets += u64::try_from(views.len()).expect("counts fit 64 bits");
        stretch.gaps.extend(walked.gaps);
        stretch.last = id;
        stretch.bytes += stripe.body.len();
        self.table.push_all(views.iter().copied(), &mut stretch.rows);
        notes.explain.stripes_indexed += 1;
        Ok(())
    }

    fn is_full(&self) -> bool {
        !self.is_segment
            && self.stretch.as_ref().is_some_and(|stretch| {
                stretch.bytes >= STRETCH_BYTES || stretch.rows.len() >= STRETCH_ROWS
            })
    }

    /// Sessions go on.
    fn end_stretch(
        &mut self,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let Some(mut stretch) = self.stretch.take() else { return Ok(ControlFlow::Continue(())) };
        self.table.cut(&mut stretch.rows);
        stretch.rows.sort_by_key(|row| row.start);
        visit(stretch, notes)
    }

    /// Sessions end: another epoch is another recording, with its own interfaces.
    fn end_epoch(
        &mut self,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let Some(mut stretch) = self.stretch.take() else { return Ok(ControlFlow::Continue(())) };
        self.table.finish(&mut stretch.rows);
        self.table = Table::new(self.config, self.seed);
        stretch.rows.sort_by_key(|row| row.start);
        visit(stretch, notes)
    }
}
