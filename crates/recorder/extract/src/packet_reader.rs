//! Rows into packets: pieces are read by their earliest packets, and the packets that rows have in
//! them go to the outputs, past the filters of the request, in the order of time.

use core::ops::{ControlFlow, RangeInclusive};
use std::collections::{BTreeMap, BTreeSet};

use format::head::{Head, StripeId};
use format::piece::{InterfaceInPiece, StoredPacket};
use format::session_row::PieceId;
use index::Columns;
use logs::Beside;
use session::Keyer;
use units::Timestamp;
use units::number::to_u64;
use wire::{Decoded, LinkType, decode, decode_into};

use crate::Error;
use crate::ahead::Ahead;
use crate::archive::Archive;
use crate::choice::{Admitted, Chosen, choose, columns};
use crate::explain::Stopwatch;
use crate::identity::Identity;
use crate::losses::Losses;
use crate::matching::{DuePieces, Matching, Owner, PieceMatch};
use crate::merge::{MergeMemory, Merger};
use crate::order::Order;
use crate::output::{Dressed, Outputs, describe};
use crate::read_pieces::ReadPieces;
use crate::request::Request;
use crate::row_reads::{self, RowRead};
use crate::scan::{Scan, Step};
use crate::sieve::Sieve;
use crate::slots::Place;
use crate::walk::{DataStripe, Notes, each_data_stripe};
use crate::windows::Windows;

/// Pieces are read when so many are due: several at a time come faster than one by one.
const PIECES_MIN: usize = 32;
/// So many of them are read at a time: rows of them wait in memory.
const PIECES_AT_ONCE: usize = 64;
/// Places in pieces that rows have and that wait for earlier rows: 200 MB. With more, pieces are
/// read though earlier ones may follow.
const WAITING_MAX: usize = 4 << 20;

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

/// The callbacks of a run.
pub(crate) struct Telling<'a> {
    /// After every piece.
    pub(crate) progress: &'a mut dyn FnMut(&Progress) -> ControlFlow<()>,
    /// Of every data piece, where everything is extracted.
    pub(crate) losses: Option<&'a mut Losses>,
}

/// What came of it.
pub(crate) struct Taken<'t> {
    pub(crate) times: RangeInclusive<Timestamp>,
    pub(crate) rows: u64,
    pub(crate) outputs: Outputs<'t>,
    pub(crate) pieces: ReadPieces,
}

/// An interface in an output: its number in its epoch, link type, and description; the session
/// where each has an output of its own.
type InputKey = (Option<usize>, u32, LinkType, Vec<u8>);

/// The inputs of a piece's interfaces, by session and number in the piece.
#[derive(Default)]
struct PieceInputs {
    known: Vec<Option<usize>>,
    of_sessions: BTreeMap<(usize, usize), usize>,
}

impl PieceInputs {
    fn get(&self, session: Option<usize>, number: usize) -> Option<usize> {
        match session {
            None => self.known.get(number).copied().flatten(),
            Some(session) => self.of_sessions.get(&(session, number)).copied(),
        }
    }

    fn set(&mut self, session: Option<usize>, number: usize, input: usize) {
        if let Some(session) = session {
            self.of_sessions.insert((session, number), input);
            return;
        }
        if self.known.len() <= number {
            self.known.resize(number + 1, None);
        }
        *self.known.get_mut(number).expect("just resized") = Some(input);
    }
}

/// A packet on its way, and where it comes from.
struct Candidate<'p, 'd> {
    packet: &'p StoredPacket<'p>,
    /// Its block in the volume.
    block: &'p [u8],
    interface: &'p InterfaceInPiece,
    /// The bytes in which the interface is described.
    body: &'p [u8],
    /// What it is, where that is known already.
    decoded: Option<&'d Decoded<'p>>,
    /// The row that has it.
    row: Option<u64>,
}

/// The job under way.
pub(crate) struct PacketReader<'a, 't> {
    /// Packets outside are left out.
    windows: Windows,
    slots: RangeInclusive<u64>,
    expired: Timestamp,
    matching: Matching,
    /// Without VLAN ids, and with.
    keyers: [Keyer; 2],
    sieve: Sieve,
    comments: bool,
    /// Packets are not given out: the sessions that have any are wanted.
    hits: Option<Hits>,
    inputs: BTreeMap<InputKey, usize>,
    /// Numbers of the sessions that have outputs of their own.
    sessions: BTreeMap<Identity, usize>,
    outputs: Outputs<'t>,
    memory: MergeMemory,
    merger: Merger,
    beside: Beside,
    pieces: ReadPieces,
    done: Progress,
    telling: Telling<'a>,
    watch: Stopwatch<'a>,
}

/// Sessions with packets that pass.
#[derive(Default)]
struct Hits {
    sessions: BTreeSet<Identity>,
    limit: Option<u64>,
    is_limited: bool,
}

impl Hits {
    fn add(&mut self, session: Identity) {
        let count = to_u64(self.sessions.len());
        if self.limit.is_none_or(|limit| count < limit) {
            self.sessions.insert(session);
        } else {
            self.is_limited |= !self.sessions.contains(&session);
        }
    }
}

impl<'a, 't> PacketReader<'a, 't> {
    pub(crate) fn new(
        request: &Request<'_>,
        expired: Timestamp,
        outputs: Outputs<'t>,
        telling: Telling<'a>,
        watch: Stopwatch<'a>,
    ) -> Self {
        let (from, to) = if request.whole_sessions {
            (Timestamp::MIN, Timestamp::MAX)
        } else {
            request.query.packet_time_range()
        };
        let beside = Beside::new(request.gives_everything(), outputs.take_blocks());
        Self {
            windows: Windows::one(from..=to),
            slots: request.slots.clone().unwrap_or(0..=u64::MAX),
            expired,
            matching: Matching::default(),
            keyers: [Keyer::new(false), Keyer::new(true)],
            sieve: Sieve::new(request),
            comments: request.comments,
            hits: None,
            inputs: BTreeMap::new(),
            sessions: BTreeMap::new(),
            outputs,
            memory: MergeMemory::default(),
            merger: Merger::new(MergeMemory::default().most_bytes),
            beside,
            pieces: ReadPieces::default(),
            done: Progress::default(),
            telling,
            watch,
        }
    }

    /// With so much memory for packets that wait for others.
    pub(crate) fn with_memory(mut self, memory: MergeMemory) -> Self {
        self.merger = Merger::new(memory.most_bytes);
        Self { memory, ..self }
    }

    /// It has to be known which packet is of which session.
    pub(crate) fn is_by_session(&self) -> bool {
        self.outputs.are_by_session()
    }

    /// Nothing at or before this time is given out.
    pub(crate) fn expire(&mut self, through: Timestamp) {
        self.expired = through;
    }

    /// Takes all packets of a piece.
    pub(crate) fn all_of(
        &mut self,
        stripe: &DataStripe<'_>,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        self.piece(stripe, None, notes)
    }

    /// Hands out what is held back, while more may follow. What was read is not remembered.
    pub(crate) fn hand_out(&mut self) -> Result<(), Error> {
        self.emit_all()?;
        self.pieces.forget();
        self.outputs.flush()
    }

    /// The reader of the outputs is gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.outputs.are_gone() || self.outputs.are_full()
    }

    /// Hands out what is held back.
    pub(crate) fn finish(
        mut self,
        flow: ControlFlow<()>,
        notes: &mut Notes,
    ) -> Result<Taken<'t>, Error> {
        self.emit_all()?;
        notes.completeness.disorder = self.outputs.disorder();
        notes.completeness.limited |= self.outputs.are_full();
        notes.completeness.stopped = flow.is_break() && !self.outputs.are_full();
        notes.completeness.secrets_left_out = self.beside.left_out();
        let unjudged = self.sieve.unjudged_packets;
        notes.completeness.unfit_packets = unjudged.saturating_add(self.outputs.unfit_packets());
        notes.explain.packets_ns += self.watch.lap();
        Ok(Taken {
            times: self.windows.hull(),
            rows: self.done.rows,
            outputs: self.outputs,
            pieces: self.pieces,
        })
    }

    fn emit_all(&mut self) -> Result<(), Error> {
        let (merger, outputs) = (&mut self.merger, &mut self.outputs);
        merger.finish(&mut |input, time, bytes| outputs.emit(input, time, bytes))
    }

    /// Hands out what is earlier than `time`: nothing like that comes any more.
    fn emit_before(&mut self, time: Timestamp) -> Result<(), Error> {
        let (merger, outputs) = (&mut self.merger, &mut self.outputs);
        merger.emit_before(time, &mut |input, time, bytes| outputs.emit(input, time, bytes))
    }

    /// More waits for the order of time than slots are read for as they lie in the ring.
    fn is_much_held(&self) -> bool {
        self.merger.held_bytes() > self.memory.ring_order_bytes
    }

    /// More rows wait than may: their pieces are read though earlier ones may follow.
    fn are_too_many(&self) -> bool {
        self.matching.interval_count() > WAITING_MAX
    }

    /// No session is left out, so none needs to be looked for.
    pub(crate) fn everything(
        &mut self,
        archive: &mut Archive,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        let places = archive.places().filter(|place| self.slots.contains(&place.sequence));
        let mut ahead = Ahead::new(places.collect());
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue() {
            if self.is_much_held() {
                ahead.learn(archive);
                self.emit_before(ahead.floor(archive))?;
            }
            flow = match self.batch(archive, &mut ahead, notes)? {
                Some(flow) => flow,
                None => break,
            };
        }
        if let Some(losses) = self.telling.losses.as_deref_mut() {
            losses.finish(&mut notes.completeness);
        }
        Ok(flow)
    }

    /// Takes all packets of the slots that come next; `None` where there are none.
    fn batch(
        &mut self,
        archive: &Archive,
        ahead: &mut Ahead,
        notes: &mut Notes,
    ) -> Result<Option<ControlFlow<()>>, Error> {
        let Some(mut batch) = ahead.next(archive, self.is_much_held()) else { return Ok(None) };
        let (places, mut until) = (core::mem::take(&mut batch.places), None);
        let flow = each_data_stripe(archive, &places, notes, &|_| true, &mut |stripe, notes| {
            let is_new_slot = batch.is_new_slot(stripe.head);
            if let Some(floor) = ahead.comes(archive, &mut batch, stripe.head) {
                self.emit_before(floor)?;
            }
            if is_new_slot && batch.is_in_ring_order() && self.is_much_held() {
                until = Some(stripe.id().sequence);
                return Ok(ControlFlow::Break(()));
            }
            let before = notes.explain.packets_seen;
            let flow = self.piece(stripe, None, notes)?;
            if let Some(losses) = self.telling.losses.as_deref_mut() {
                losses.note(stripe.head, notes.explain.packets_seen - before);
                losses.take(&mut notes.completeness);
            }
            Ok(flow)
        })?;
        ahead.done(&batch, until);
        Ok(Some(if until.is_some() { ControlFlow::Continue(()) } else { flow }))
    }

    /// The packets of the sessions that the request selects.
    pub(crate) fn sessions(
        &mut self,
        archive: &mut Archive,
        request: &Request<'_>,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        // Where the payload decides, sessions are chosen and counted by their packets.
        let is_by_payload = request.whole_sessions && request.payload.is_some();
        let limit = request.limits.sessions.filter(|_| !is_by_payload);
        let mut admitted = Admitted::new(limit);
        let (telling, done) = (&mut self.telling, &self.done);
        let goes_on = &mut || (telling.progress)(done);
        let chosen = match choose(archive, request, &mut admitted, notes, goes_on)? {
            ControlFlow::Continue(chosen) => chosen,
            ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
        };
        if let Chosen::Around(windows) = &chosen {
            self.windows = windows.clone();
        }
        if !is_by_payload {
            // What was counted by the look is let through as it is.
            let is_counted = !matches!(chosen, Chosen::Query);
            let mut all = Admitted::new(None);
            let lets_through = if is_counted { &mut all } else { &mut admitted };
            let flow = self.rows(archive, (request, &chosen), lets_through, notes)?;
            notes.completeness.limited |= admitted.is_limited;
            return Ok(flow);
        }
        self.hits = Some(Hits { limit: request.limits.sessions, ..Hits::default() });
        let mut own = notes.aside();
        let flow = self.rows(archive, (request, &chosen), &mut Admitted::new(None), &mut own)?;
        let hits = self.hits.take().unwrap_or_default();
        if flow.is_break() {
            return Ok(flow);
        }
        notes.completeness.limited |= hits.is_limited;
        // What could not be searched may have been a hit.
        notes.add_search(own, request.query.time_range());
        self.matching = Matching::default();
        self.keyers = [Keyer::new(false), Keyer::new(true)];
        (self.pieces, self.done) = Default::default();
        self.sieve.payload = None;
        let chosen = Chosen::whole(hits.sessions);
        self.rows(archive, (request, &chosen), &mut Admitted::new(None), notes)
    }

    /// Takes the packets of the rows that are chosen.
    fn rows(
        &mut self,
        archive: &mut Archive,
        (request, chosen): (&Request<'_>, &Chosen),
        admitted: &mut Admitted,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        let (wanted, times) = (chosen.wanted(request.query), chosen.times(request.query));
        let (tail, mut vlan_in_key) = (archive.tail(), archive.vlan_in_key);
        let slots = request.slots.clone();
        let columns = columns();
        let columns = Columns::Named(&columns);
        // So many sessions are the first of the ring.
        let is_limited = request.limits.sessions.is_some();
        let order = if is_limited { Order::OldestFirst } else { Order::ByTime };
        let mut scan = Scan { slots, order, ..Scan::new(archive, wanted, columns, times) };
        let mut visit = |step, archive: &Archive, notes: &mut Notes| match step {
            Step::Part { edge, is_apart, vlan_in_key: of_part, .. } => {
                vlan_in_key = of_part;
                let are_all = is_apart || self.are_too_many();
                if are_all && self.matching.piece_count() >= PIECES_MIN {
                    return self.take_pieces(archive, edge, notes);
                }
                Ok(ControlFlow::Continue(()))
            }
            Step::Progress { .. } => Ok((self.telling.progress)(&self.done)),
            Step::Before(_) => Ok(ControlFlow::Continue(())),
            Step::Row(id, row) => {
                if !admitted.admits(&row) {
                    let is_over = admitted.is_full();
                    return Ok(if is_over {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    });
                }
                self.done.rows += 1;
                let (owner, within) = (Owner::new(id, &row), (&self.slots, tail));
                notes.completeness.retired_pieces +=
                    self.matching.add(owner, &row, vlan_in_key, within);
                Ok(ControlFlow::Continue(()))
            }
        };
        let flow = scan.run(notes, &mut visit)?;
        if flow.is_break() && !admitted.is_full() {
            return Ok(flow);
        }
        self.take_pieces(scan.archive, Timestamp::MAX, notes)
    }

    /// Takes the packets of pieces that may have some before `time`, when all rows are known that
    /// begin before it.
    fn take_pieces(
        &mut self,
        archive: &Archive,
        time: Timestamp,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        notes.explain.select_ns += self.watch.lap();
        // All of them may be held, when only rows say how early their packets are.
        let most = self.memory.most_bytes / 2 / archive.reader.piece_bytes();
        let most = most.clamp(1, PIECES_AT_ONCE);
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue() {
            let until = if self.are_too_many() { Timestamp::MAX } else { time };
            if self.is_much_held() {
                self.matching.due.look(archive, until);
            }
            let due = self.matching.take_before(until, most);
            if due.slots.is_empty() {
                break;
            }
            flow = self.take(archive, due, notes)?;
            self.emit_before(time.min(self.matching.due.earliest()))?;
        }
        notes.explain.packets_ns += self.watch.lap();
        Ok(flow)
    }

    /// Takes the packets of some pieces: from a few rows where that is enough, then slot by slot.
    fn take(
        &mut self,
        archive: &Archive,
        DuePieces { pieces: mut due, slots }: DuePieces,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        let row_read = row_reads::read(archive, due.iter());
        let mut columns = BTreeMap::<u64, u32>::new();
        let mut stripes = BTreeSet::new();
        for piece in due.keys().filter(|piece| !row_read.contains_key(piece)) {
            // Rows of a forged index name columns that no stripe has: nothing is found there.
            let there = archive.place(piece.sequence).columns;
            let column = 1_u32.checked_shl(piece.column.into()).unwrap_or(0) & there;
            if column != 0 {
                *columns.entry(piece.sequence).or_default() |= column;
                stripes.insert(stripe_of(*piece));
            }
        }
        if self.take_rows(row_read, &mut due, notes)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let floors: BTreeMap<u64, Timestamp> =
            slots.iter().map(|&(time, sequence)| (sequence, time)).collect();
        let place = |(_, sequence)| Some(Place { sequence, columns: *columns.get(&sequence)? });
        let places: Vec<Place> = slots.into_iter().filter_map(place).collect();
        let wanted = |stripe| stripes.contains(&stripe);
        let flow = each_data_stripe(archive, &places, notes, &wanted, &mut |stripe, notes| {
            let StripeId { sequence, sub } = stripe.id();
            let piece = PieceId { sequence, sub, column: stripe.head.piece.column };
            let Some(mut wanted) = due.remove(&piece) else {
                // Another column of this stripe is read whole.
                return Ok(ControlFlow::Continue(()));
            };
            // What is read behind this slot has later packets, or is of the rows to come.
            let floor = floors.get(&sequence).copied().unwrap_or(Timestamp::MIN);
            self.emit_before(floor)?;
            let flow = self.piece(stripe, Some(&mut wanted), notes)?;
            let is_cut = stripe.is_cut || self.is_expired(stripe.head);
            notes.completeness.miss(self.matching.done(wanted, is_cut));
            Ok(flow)
        })?;
        for lost in due.into_values() {
            notes.completeness.miss(self.matching.done(lost, true));
        }
        Ok(flow)
    }

    /// Takes the packets of pieces of which a few rows were read.
    fn take_rows(
        &mut self,
        pieces: BTreeMap<PieceId, RowRead>,
        due: &mut BTreeMap<PieceId, PieceMatch>,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        for (piece, row_read) in pieces {
            let mut wanted = due.remove(&piece).expect("rows are read of what is due");
            if self.is_expired(row_read.head()) {
                self.withhold(row_read.head(), notes);
                notes.completeness.miss(self.matching.done(wanted, true));
                continue;
            }
            let (mut inputs, mut withheld) = (PieceInputs::default(), false);
            let mut decoded = Decoded::default();
            for (packet, block) in row_read.packets().expect("checked when they were read") {
                let interface = row_read.interfaces().get(packet.interface);
                let interface = interface.expect("the walk checks the number");
                notes.explain.packets_seen += 1;
                if let Some(row) = self.owner(&mut wanted, &packet, interface, &mut decoded) {
                    let (body, decoded, row) = (row_read.front(), Some(&decoded), Some(row));
                    let found = Candidate { packet: &packet, block, interface, body, decoded, row };
                    withheld |= !self.push(&mut inputs, &found)?;
                }
            }
            if withheld {
                self.withhold(row_read.head(), notes);
            }
            let bytes = to_u64(row_read.len_bytes());
            notes.explain.bytes_read += bytes;
            notes.explain.pieces_read += 1;
            notes.completeness.miss(self.matching.done(wanted, false));
            if self.settle(row_read.head())?.is_break() {
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
            self.withhold(stripe.head, notes);
            return Ok(ControlFlow::Continue(()));
        }
        let (mut inputs, mut withheld) = (PieceInputs::default(), false);
        let mut decoded = Decoded::default();
        let walked = stripe.packets(notes, |packet, interfaces| {
            let interface = interfaces.get(packet.interface).expect("the walk checks the number");
            let mut row = None;
            if let Some(wanted) = wanted.as_deref_mut() {
                row = self.owner(wanted, packet, interface, &mut decoded);
                if row.is_none() {
                    return Ok(ControlFlow::Continue(()));
                }
            }
            let block = stripe.body.get(packet.begin..packet.end);
            let block = block.expect("a packet lies in its body");
            let decoded = row.map(|_| &decoded);
            let body = stripe.body;
            let found = Candidate { packet, block, interface, body, decoded, row };
            withheld |= !self.push(&mut inputs, &found)?;
            Ok(ControlFlow::Continue(()))
        })?;
        if withheld {
            self.withhold(stripe.head, notes);
        }
        for block in walked.blocks.into_iter().filter(|_| self.hits.is_none()) {
            let given = self.beside.block(block);
            self.outputs.blocks(&given)?;
        }
        if wanted.is_none() {
            let times = self.windows.hull();
            notes.completeness.add_gaps(&walked.gaps, *times.start(), *times.end());
        }
        self.settle(stripe.head)
    }

    /// The row that has this packet.
    fn owner<'p>(
        &mut self,
        wanted: &mut PieceMatch,
        packet: &StoredPacket<'p>,
        interface: &InterfaceInPiece,
        decoded: &mut Decoded<'p>,
    ) -> Option<u64> {
        let (begin, _) = packet.span();
        if !wanted.covers(begin) {
            return None;
        }
        let StoredPacket { data, original_len, timestamp, .. } = *packet;
        decode_into(decoded, interface.link_type, data, original_len);
        let [plain, with_vlan] = &mut self.keyers;
        let keyer = if wanted.vlan_in_key() { with_vlan } else { plain };
        let key = keyer.key(timestamp, decoded);
        wanted.takes(&key, begin)
    }

    /// Hands out a packet in time that passes the filters. `inputs` are those of its piece. False
    /// when the packet is expired, and withheld.
    fn push(&mut self, inputs: &mut PieceInputs, found: &Candidate<'_, '_>) -> Result<bool, Error> {
        let &Candidate { packet, block, interface, decoded, row, .. } = found;
        if packet.timestamp <= self.expired {
            return Ok(false);
        }
        if !self.windows.contains(packet.timestamp)
            || !self.sieve.passes(interface.link_type, packet, decoded)?
        {
            return Ok(true);
        }
        self.done.packets += 1;
        if self.hits.is_none() {
            self.put_beside(found)?;
        }
        let owner = row.map(|row| self.matching.owner(row));
        if let Some(hits) = &mut self.hits {
            hits.add(owner.expect("sessions are looked for by their rows").session);
            return Ok(true);
        }
        let comment = owner.zip(decoded).filter(|_| self.comments);
        let comment = comment.map(|(owner, decoded)| owner.comment(&decoded.tuple));
        let session = owner.filter(|_| self.outputs.are_by_session()).copied();
        let session = session.map(|owner| self.session(&owner)).transpose()?;
        let input = self.input(inputs, session, found)?;
        self.pieces.gives(block);
        let dressed = Dressed { block, packet, comment: comment.as_deref() };
        let outputs = &mut self.outputs;
        let encode = |out: &mut Vec<u8>| outputs.encode(input, &dressed, out);
        let (place, _) = packet.span();
        self.merger.push(input, (packet.timestamp, place), encode)?;
        Ok(true)
    }

    /// Gives out what lies beside the packet.
    fn put_beside(&mut self, found: &Candidate<'_, '_>) -> Result<(), Error> {
        if !self.beside.looks_at_packets() {
            return Ok(());
        }
        let &Candidate { packet, interface, decoded, row, .. } = found;
        let StoredPacket { data, original_len, .. } = *packet;
        let decoded = decoded.copied();
        let decoded = decoded.unwrap_or_else(|| decode(interface.link_type, data, original_len));
        let given = self.beside.packet(row, &decoded.tuple, decoded.payload);
        if given.is_empty() { Ok(()) } else { self.outputs.blocks(&given) }
    }

    /// A piece is done.
    fn settle(&mut self, head: &Head) -> Result<ControlFlow<()>, Error> {
        let piece = self.pieces.settle(head);
        self.done.pieces += 1;
        let outputs = &mut self.outputs;
        self.merger.close(piece, &mut |input, time, bytes| outputs.emit(input, time, bytes))?;
        if self.outputs.are_gone() || self.outputs.are_full() {
            Ok(ControlFlow::Break(()))
        } else {
            Ok((self.telling.progress)(&self.done))
        }
    }

    /// Some or all packets of the stripe are expired.
    fn withhold(&self, head: &Head, notes: &mut Notes) {
        let times = (head.stripe.time_min, head.stripe.time_max);
        notes.completeness.withhold(self.expired, times);
    }

    /// Whether all packets of the stripe are expired.
    fn is_expired(&self, head: &Head) -> bool {
        head.stripe.totals.packets > 0 && head.stripe.time_max <= self.expired
    }

    /// The number of a session whose packets have an output of their own.
    fn session(&mut self, owner: &Owner) -> Result<usize, Error> {
        if let Some(&known) = self.sessions.get(&owner.session) {
            return Ok(known);
        }
        let number = self.outputs.add_session(&owner.start())?;
        self.sessions.insert(owner.session, number);
        Ok(number)
    }

    /// The input of a packet's interface; `inputs` are those of its piece.
    fn input(
        &mut self,
        inputs: &mut PieceInputs,
        session: Option<usize>,
        found: &Candidate<'_, '_>,
    ) -> Result<usize, Error> {
        let (number, interface) = (found.packet.interface, found.interface);
        if let Some(input) = inputs.get(session, number) {
            return Ok(input);
        }
        let description = describe(interface, found.body, self.outputs.are_anonymous());
        let key = (session, interface.id, interface.link_type, description.clone());
        let next = self.inputs.len();
        let input = *self.inputs.entry(key).or_insert(next);
        if input == next {
            self.outputs.add_input(interface.link_type, &description, session)?;
        }
        inputs.set(session, number, input);
        Ok(input)
    }
}

fn stripe_of(piece: PieceId) -> StripeId {
    StripeId { sequence: piece.sequence, sub: piece.sub }
}
