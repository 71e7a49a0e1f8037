//! The extract job: the packets of the sessions that match, verified and merged by time.
//!
//! Rows are taken part by part; the pieces in front of the next part are read, each slot once, in
//! ring order, when its rows are known, because rows may name pieces of the part before theirs.

use core::ops::{ControlFlow, RangeInclusive};
use std::collections::{BTreeMap, BTreeSet};

use format::head::{Head, StripeId};
use format::piece::{InterfaceInPiece, StoredPacket};
use format::slice::PieceId;
use index::Columns;
use query::Query;
use session::Keyer;
use units::{Clock, Timestamp};
use wire::{Decoded, LinkType, decode_into};

use crate::archive::Archive;
use crate::explain::{Explain, Stopwatch};
use crate::few::{self, FewRows};
use crate::losses::Losses;
use crate::matching::{Matching, PieceMatch};
use crate::merge::Merger;
use crate::output::{Outputs, Target, describe};
use crate::scan::{Identity, Scan, Step, Wanted};
use crate::slots::Place;
use crate::statement::{Manifest, PieceRead};
use crate::walk::{DataStripe, Notes, body_crc_of, each_data_stripe};
use crate::{Error, Options};

/// Pieces are read when so many are due: several at a time come faster than one by one.
const PIECES_MIN: usize = 32;
/// So many of them are read at a time: rows of them wait in memory.
const PIECES_AT_ONCE: usize = 64;
/// What a row has to say, besides which session it is of, for its packets to be found.
const PLACES: [&str; 7] = [
    "orig_packets",
    "resp_packets",
    "piece_sequences",
    "piece_subs",
    "piece_columns",
    "piece_begins",
    "piece_lengths",
];

/// What to extract.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Selects sessions; its times cut their packets too.
    pub query: &'a Query,
    /// The query as it was given.
    pub query_text: &'a str,
    /// All packets of the sessions selected, whatever their time.
    pub whole_sessions: bool,
    /// Packets in slots of these sequences alone: each packet of the ring lies in one.
    pub slots: Option<RangeInclusive<u64>>,
}

/// How far an extract is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Rows selected so far.
    pub rows: u64,
    /// Pieces read so far.
    pub pieces: u64,
    /// Packets selected so far.
    pub packets: u64,
}

/// What [`extract`] did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtractReport {
    /// Packets written.
    pub packets: u64,
    /// Everything that can be checked later.
    pub manifest: Manifest,
    /// What it cost.
    pub explain: Explain,
    /// Every reader of the output went away before its end.
    pub reader_gone: bool,
}

/// Writes the packets of the sessions that match. `progress` is asked after every piece and may
/// stop the run in order.
pub fn extract(
    options: &Options,
    request: &Request<'_>,
    target: Target<'_>,
    clock: &dyn Clock,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<ExtractReport, Error> {
    let watch = Stopwatch::start(clock);
    let mut archive = Archive::open(options, clock.realtime())?;
    run(&mut archive, watch, request, target, Telling { progress, losses: None })
}

/// Who is told of a run.
pub(crate) struct Telling<'a> {
    /// After every piece.
    pub(crate) progress: &'a mut dyn FnMut(&Progress) -> ControlFlow<()>,
    /// Of every data piece, where everything is extracted.
    pub(crate) losses: Option<&'a mut Losses>,
}

/// As [`extract`], from an archive that is open.
pub(crate) fn run<'a>(
    archive: &mut Archive,
    mut watch: Stopwatch<'a>,
    request: &Request<'_>,
    target: Target<'_>,
    telling: Telling<'a>,
) -> Result<ExtractReport, Error> {
    let mut notes = Notes::default();
    notes.explain.open_ns = watch.lap();
    let times = if request.whole_sessions {
        Timestamp::MIN..=Timestamp::MAX
    } else {
        let (from, to) = request.query.packet_time_range();
        from..=to
    };
    notes.completeness.erased_through = archive.erased_through(&times);
    let job = Extractor {
        times: times.clone(),
        slots: request.slots.clone().unwrap_or(0..=u64::MAX),
        expired: archive.expired,
        matching: Matching::default(),
        keyers: [Keyer::new(false), Keyer::new(true)],
        lanes: BTreeMap::new(),
        outputs: Outputs::begin(target, request.query_text)?,
        merger: Merger::new(),
        blocks: BTreeSet::new(),
        pieces: Vec::new(),
        done: Progress::default(),
        telling,
        watch,
    };
    let volume = archive.volume();
    let finished = job.run(archive, request, &mut notes)?;
    let Notes { completeness, explain } = notes;
    let Finished { rows, outputs, pieces, reader_gone } = finished;
    let manifest = Manifest {
        query: request.query_text.to_owned(),
        volume,
        from: *times.start(),
        to: *times.end(),
        rows,
        outputs,
        pieces,
        completeness,
    };
    let packets = manifest.outputs.iter().map(|output| output.packets).sum();
    Ok(ExtractReport { packets, manifest, explain, reader_gone })
}

struct Finished {
    rows: u64,
    outputs: Vec<crate::OutputSummary>,
    pieces: Vec<PieceRead>,
    reader_gone: bool,
}

/// An interface in the output: its number in its epoch, link type, and description.
type LaneKey = (u32, LinkType, Vec<u8>);

struct Extractor<'a, 't> {
    /// Packets outside are left out.
    times: RangeInclusive<Timestamp>,
    slots: RangeInclusive<u64>,
    expired: Timestamp,
    matching: Matching,
    /// Without VLAN ids, and with.
    keyers: [Keyer; 2],
    lanes: BTreeMap<LaneKey, usize>,
    outputs: Outputs<'t>,
    merger: Merger,
    /// Hashes of the name resolution and secrets blocks written.
    blocks: BTreeSet<[u8; 32]>,
    pieces: Vec<PieceRead>,
    done: Progress,
    telling: Telling<'a>,
    watch: Stopwatch<'a>,
}

impl Extractor<'_, '_> {
    fn run(
        mut self,
        archive: &mut Archive,
        request: &Request<'_>,
        notes: &mut Notes,
    ) -> Result<Finished, Error> {
        let flow = if *request.query == Query::all() {
            self.everything(archive, notes)?
        } else {
            self.sessions(archive, request, notes)?
        };
        let (merger, outputs) = (&mut self.merger, &mut self.outputs);
        merger.finish(&mut |lane, bytes| outputs.emit(lane, bytes))?;
        let reader_gone = self.outputs.are_gone();
        notes.completeness.stopped = flow.is_break();
        notes.explain.packets_ns += self.watch.lap();
        let outputs = self.outputs.finish(&notes.completeness.to_string())?;
        Ok(Finished { rows: self.done.rows, outputs, pieces: self.pieces, reader_gone })
    }

    /// No session is left out, so none needs to be looked for.
    fn everything(
        &mut self,
        archive: &Archive,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        let places = archive.places().filter(|place| self.slots.contains(&place.sequence));
        let places: Vec<Place> = places.collect();
        let flow = each_data_stripe(archive, &places, notes, &|_| true, &mut |stripe, notes| {
            let before = notes.explain.packets_seen;
            let flow = self.piece(stripe, None, notes)?;
            if let Some(losses) = self.telling.losses.as_deref_mut() {
                losses.note(stripe.head, notes.explain.packets_seen - before);
                losses.take(&mut notes.completeness);
            }
            Ok(flow)
        })?;
        if let Some(losses) = self.telling.losses.as_deref_mut() {
            losses.finish(&mut notes.completeness);
        }
        Ok(flow)
    }

    fn sessions(
        &mut self,
        archive: &mut Archive,
        request: &Request<'_>,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        let (from, to) = request.query.time_range();
        let columns = [&Identity::COLUMNS[..], &PLACES].concat();
        let columns = Columns::Named(&columns);
        let mut partial = BTreeSet::new();
        if request.whole_sessions {
            let wanted = Wanted::Query(request.query);
            let slots = None;
            let mut scan = Scan { archive, wanted, columns, times: from..=to, slots };
            let flow = scan.run(notes, &mut |step, _, _| {
                if let Step::Row(_, row) = step {
                    partial.insert(Identity::of(&row));
                }
                Ok((self.telling.progress)(&self.done))
            })?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        let (wanted, times) = if request.whole_sessions {
            (Wanted::Sessions(&partial), Timestamp::MIN..=Timestamp::MAX)
        } else {
            (Wanted::Query(request.query), from..=to)
        };
        let (tail, mut vlan_in_key) = (archive.tail(), archive.vlan_in_key);
        let slots = request.slots.clone();
        let mut scan = Scan { archive, wanted, columns, times, slots };
        let flow = scan.run(notes, &mut |step, archive, notes| match step {
            Step::Part { first, vlan_in_key: of_part, .. } => {
                vlan_in_key = of_part;
                if self.matching.piece_count() >= PIECES_MIN {
                    return self.take_pieces(archive, first, notes);
                }
                Ok(ControlFlow::Continue(()))
            }
            Step::Progress { .. } => Ok((self.telling.progress)(&self.done)),
            Step::Row(_, row) => {
                self.done.rows += 1;
                notes.completeness.retired_pieces +=
                    self.matching.add(&row, vlan_in_key, (&self.slots, tail));
                Ok(ControlFlow::Continue(()))
            }
        })?;
        if flow.is_break() {
            return Ok(flow);
        }
        self.take_pieces(scan.archive, StripeId { sequence: u64::MAX, sub: u16::MAX }, notes)
    }

    /// Reads the pieces in front of `until` and takes their packets.
    fn take_pieces(
        &mut self,
        archive: &Archive,
        until: StripeId,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        notes.explain.select_ns += self.watch.lap();
        let mut due = self.matching.take_before(until);
        let mut flow = ControlFlow::Continue(());
        while !due.is_empty() && flow.is_continue() {
            let behind = due.keys().nth(PIECES_AT_ONCE).copied();
            let later = behind.map(|piece| due.split_off(&piece)).unwrap_or_default();
            flow = self.take(archive, due, notes)?;
            due = later;
        }
        notes.explain.packets_ns += self.watch.lap();
        Ok(flow)
    }

    /// Takes the packets of some pieces, in ring order: from a few rows where that is enough.
    fn take(
        &mut self,
        archive: &Archive,
        mut due: BTreeMap<PieceId, PieceMatch>,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        let mut few = few::read(archive, due.iter());
        let mut columns = BTreeMap::<u64, u32>::new();
        let mut stripes = BTreeSet::new();
        for piece in due.keys().filter(|piece| !few.contains_key(piece)) {
            *columns.entry(piece.sequence).or_default() |= 1 << piece.column;
            stripes.insert(stripe_of(*piece));
        }
        let places = columns.into_iter().map(|(sequence, columns)| Place { sequence, columns });
        let places: Vec<Place> = places.collect();
        let wanted = |stripe| stripes.contains(&stripe);
        let flow = each_data_stripe(archive, &places, notes, &wanted, &mut |stripe, notes| {
            let StripeId { sequence, sub } = stripe.id();
            let piece = PieceId { sequence, sub, column: stripe.head.piece.column };
            if few.contains_key(&piece) || !due.contains_key(&piece) {
                // Another column of this stripe is read whole.
                return Ok(ControlFlow::Continue(()));
            }
            let behind = few.split_off(&piece);
            let before = core::mem::replace(&mut few, behind);
            if self.take_few(before, &mut due, notes)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let mut wanted = due.remove(&piece).expect("it was there");
            let flow = self.piece(stripe, Some(&mut wanted), notes)?;
            let is_cut = stripe.is_cut || self.is_expired(stripe.head);
            notes.completeness.missing_packets += self.matching.done(wanted, is_cut);
            Ok(flow)
        })?;
        let flow = if flow.is_break() { flow } else { self.take_few(few, &mut due, notes)? };
        for lost in due.into_values() {
            notes.completeness.missing_packets += self.matching.done(lost, true);
        }
        Ok(flow)
    }

    /// Takes the packets of pieces of which a few rows were read.
    fn take_few(
        &mut self,
        pieces: BTreeMap<PieceId, FewRows>,
        due: &mut BTreeMap<PieceId, PieceMatch>,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        for (piece, few) in pieces {
            let mut wanted = due.remove(&piece).expect("rows are read of what is due");
            if self.is_expired(few.head()) {
                notes.completeness.withhold(self.expired);
                notes.completeness.missing_packets += self.matching.done(wanted, true);
                continue;
            }
            let (mut lanes, mut withheld) = (Vec::new(), false);
            let mut decoded = Decoded::default();
            for (packet, block) in few.packets().expect("checked when they were read") {
                let interface = few.interfaces().get(packet.interface);
                let interface = interface.expect("the walk checks the number");
                notes.explain.packets_seen += 1;
                if self.is_wanted(&mut wanted, &packet, interface, &mut decoded) {
                    let described = (interface, few.front());
                    withheld |= !self.push(&mut lanes, &packet, block, described)?;
                }
            }
            if withheld {
                notes.completeness.withhold(self.expired);
            }
            let bytes = u64::try_from(few.len_bytes()).expect("lengths fit 64 bits");
            notes.explain.bytes_read += bytes;
            notes.explain.pieces_read += 1;
            notes.completeness.missing_packets += self.matching.done(wanted, false);
            if self.settle(few.head())?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Takes the packets that `wanted` asks for, or all.
    fn piece(
        &mut self,
        stripe: &DataStripe<'_>,
        mut wanted: Option<&mut PieceMatch>,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        if self.is_expired(stripe.head) {
            // Names and secrets that lie beside the packets are as old.
            notes.completeness.withhold(self.expired);
            return Ok(ControlFlow::Continue(()));
        }
        let (mut lanes, mut withheld) = (Vec::new(), false);
        let mut decoded = Decoded::default();
        let walked = stripe.packets(notes, |packet, interfaces| {
            let interface = interfaces.get(packet.interface).expect("the walk checks the number");
            if let Some(wanted) = wanted.as_deref_mut()
                && !self.is_wanted(wanted, packet, interface, &mut decoded)
            {
                return Ok(ControlFlow::Continue(()));
            }
            let block = stripe.body.get(packet.begin..packet.end);
            let block = block.expect("a packet lies in its body");
            withheld |= !self.push(&mut lanes, packet, block, (interface, stripe.body))?;
            Ok(ControlFlow::Continue(()))
        })?;
        if withheld {
            notes.completeness.withhold(self.expired);
        }
        for block in walked.blocks {
            if self.blocks.insert(*blake3::hash(block).as_bytes()) {
                self.outputs.block(block)?;
            }
        }
        if wanted.is_none() {
            let (from, to) = (*self.times.start(), *self.times.end());
            notes.completeness.add_gaps(&walked.gaps, from, to);
        }
        self.settle(stripe.head)
    }

    /// Whether a row has this packet.
    fn is_wanted<'p>(
        &mut self,
        wanted: &mut PieceMatch,
        packet: &StoredPacket<'p>,
        interface: &InterfaceInPiece,
        decoded: &mut Decoded<'p>,
    ) -> bool {
        let (begin, _) = packet.span();
        if !wanted.covers(begin) {
            return false;
        }
        let StoredPacket { data, original_len, timestamp, .. } = *packet;
        decode_into(decoded, interface.link_type, data, original_len);
        let [plain, with_vlan] = &mut self.keyers;
        let keyer = if wanted.vlan_in_key() { with_vlan } else { plain };
        let key = keyer.key(timestamp, decoded);
        wanted.takes(&key, begin)
    }

    /// Hands out a packet in time, with its block; its interface is described in the bytes beside
    /// that. `lanes` are those of its piece. False when the packet is expired, and withheld.
    fn push(
        &mut self,
        lanes: &mut Vec<Option<usize>>,
        packet: &StoredPacket<'_>,
        block: &[u8],
        (interface, body): (&InterfaceInPiece, &[u8]),
    ) -> Result<bool, Error> {
        if packet.timestamp <= self.expired {
            return Ok(false);
        }
        if self.times.contains(&packet.timestamp) {
            let lane = self.lane(lanes, packet.interface, interface, body)?;
            let outputs = &mut self.outputs;
            let encode = |out: &mut Vec<u8>| outputs.encode(lane, block, packet, out);
            self.merger.push(lane, packet.timestamp, encode)?;
            self.done.packets += 1;
        }
        Ok(true)
    }

    /// A piece is done.
    fn settle(&mut self, head: &Head) -> Result<ControlFlow<()>, Error> {
        let StripeId { sequence, sub } = head.stripe.stripe;
        let piece = PieceId { sequence, sub, column: head.piece.column };
        self.pieces.push(PieceRead { piece, body_crc: body_crc_of(head) });
        self.done.pieces += 1;
        let outputs = &mut self.outputs;
        self.merger.settle(&mut |lane, bytes| outputs.emit(lane, bytes))?;
        if self.outputs.are_gone() {
            Ok(ControlFlow::Break(()))
        } else {
            Ok((self.telling.progress)(&self.done))
        }
    }

    /// Whether all packets of the stripe are expired.
    fn is_expired(&self, head: &Head) -> bool {
        head.stripe.totals.packets > 0 && head.stripe.time_max <= self.expired
    }

    /// The lane of an interface; `lanes` are those of this piece by their number in it.
    fn lane(
        &mut self,
        lanes: &mut Vec<Option<usize>>,
        number: usize,
        interface: &InterfaceInPiece,
        body: &[u8],
    ) -> Result<usize, Error> {
        if lanes.len() <= number {
            lanes.resize(number + 1, None);
        }
        let place = lanes.get_mut(number).expect("just resized");
        if let Some(lane) = *place {
            return Ok(lane);
        }
        let description = describe(interface, body);
        let key = (interface.id, interface.link_type, description.clone());
        let next = self.lanes.len();
        let lane = *self.lanes.entry(key).or_insert(next);
        if lane == next {
            self.outputs.add_lane(interface.link_type, &description)?;
        }
        *place = Some(lane);
        Ok(lane)
    }
}

fn stripe_of(piece: PieceId) -> StripeId {
    StripeId { sequence: piece.sequence, sub: piece.sub }
}
