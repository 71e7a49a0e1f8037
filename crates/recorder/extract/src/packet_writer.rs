//! The packets of pieces, past the filters of the request, to the outputs in the order of time.

use core::ops::{ControlFlow, RangeInclusive};
use std::collections::{BTreeMap, BTreeSet};

use completeness::Completeness;
use format::head::Head;
use format::piece::{InterfaceInPiece, StoredPacket};
use found::Windows;
use logs::Beside;
use packet_output::{Dressed, MergeMemory, Merger, Outputs, describe};
use session::Keyer;
use units::number::to_u64;
use units::{InterfaceId, Timestamp};
use wire::{Decoded, LinkType, decode, decode_into};

use crate::Error;
use crate::identity::Identity;
use crate::losses::Losses;
use crate::matching::{Matching, Owner, PieceMatch};
use crate::read_pieces::ReadPieces;
use crate::request::Request;
use crate::row_reads::RowRead;
use crate::sieve::Sieve;
use crate::walk::{DataStripe, Notes};

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
type InputKey = (Option<usize>, InterfaceId, LinkType, Vec<u8>);

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
    /// The row that has it, by its number, and whose that is.
    owner: Option<(u64, &'d Owner)>,
}

/// What is wanted of a piece: the packets that rows have in it.
pub(crate) struct OfRows<'m> {
    pub(crate) wanted: &'m mut PieceMatch,
    /// Knows whose the rows are.
    pub(crate) matching: &'m Matching,
}

/// Sessions with packets that pass.
#[derive(Default)]
pub(crate) struct Hits {
    pub(crate) sessions: BTreeSet<Identity>,
    limit: Option<u64>,
    pub(crate) is_limited: bool,
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

/// Where the packets of an extract go.
pub(crate) struct PacketWriter<'a, 't> {
    /// Packets outside are left out.
    windows: Windows,
    expired: Timestamp,
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
}

impl<'a, 't> PacketWriter<'a, 't> {
    pub(crate) fn new(
        request: &Request<'_>,
        expired: Timestamp,
        outputs: Outputs<'t>,
        telling: Telling<'a>,
    ) -> Self {
        let (from, to) = if request.whole_sessions {
            (Timestamp::MIN, Timestamp::MAX)
        } else {
            request.query.packet_time_range()
        };
        let beside = Beside::new(request.gives_everything(), outputs.take_blocks());
        Self {
            windows: Windows::one(from..=to),
            expired,
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
        }
    }

    /// With so much memory for packets that wait for others.
    pub(crate) fn with_memory(mut self, memory: MergeMemory) -> Self {
        self.merger = Merger::new(memory.most_bytes);
        Self { memory, ..self }
    }

    /// The most bytes of packets that wait for others.
    pub(crate) fn most_bytes(&self) -> usize {
        self.memory.most_bytes
    }

    /// More waits for the order of time than slots are read for as they lie in the ring.
    pub(crate) fn is_much_held(&self) -> bool {
        self.merger.held_bytes() > self.memory.ring_order_bytes
    }

    /// It has to be known which packet is of which session.
    pub(crate) fn is_by_session(&self) -> bool {
        self.outputs.are_by_session()
    }

    /// The reader of the outputs is gone, or has as much as it asked for.
    pub(crate) fn is_gone(&self) -> bool {
        self.outputs.are_gone() || self.outputs.are_full()
    }

    /// Nothing at or before this time is given out.
    pub(crate) fn expire(&mut self, through: Timestamp) {
        self.expired = through;
    }

    /// Packets outside of these stretches are left out.
    pub(crate) fn keep_within(&mut self, windows: Windows) {
        self.windows = windows;
    }

    /// A further row is selected.
    pub(crate) fn count_row(&mut self) {
        self.done.rows += 1;
    }

    /// Says how far it is; breaks where that is far enough.
    pub(crate) fn go_on(&mut self) -> ControlFlow<()> {
        (self.telling.progress)(&self.done)
    }

    /// From here on the sessions are wanted that have packets which pass, at most so many.
    pub(crate) fn look_for_hits(&mut self, limit: Option<u64>) {
        self.hits = Some(Hits { limit, ..Hits::default() });
    }

    /// The sessions that were found. All of their packets go out from here on.
    pub(crate) fn take_hits(&mut self) -> Hits {
        self.keyers = [Keyer::new(false), Keyer::new(true)];
        (self.pieces, self.done) = Default::default();
        self.sieve.payload = None;
        self.hits.take().unwrap_or_default()
    }

    /// Where losses are listed, `found` packets of this piece could be read.
    pub(crate) fn note_losses(&mut self, head: &Head, found: u64, completeness: &mut Completeness) {
        if let Some(losses) = self.telling.losses.as_deref_mut() {
            losses.note(head, found);
            losses.take(completeness);
        }
    }

    /// No piece follows.
    pub(crate) fn finish_losses(&mut self, completeness: &mut Completeness) {
        if let Some(losses) = self.telling.losses.as_deref_mut() {
            losses.finish(completeness);
        }
    }

    /// Hands out what is held back, while more may follow. What was read is not remembered.
    pub(crate) fn hand_out(&mut self) -> Result<(), Error> {
        self.emit_all()?;
        self.pieces.forget();
        Ok(self.outputs.flush()?)
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
        Ok(Taken {
            times: self.windows.hull(),
            rows: self.done.rows,
            outputs: self.outputs,
            pieces: self.pieces,
        })
    }

    fn emit_all(&mut self) -> Result<(), Error> {
        let (merger, outputs) = (&mut self.merger, &mut self.outputs);
        Ok(merger.finish(&mut |input, time, bytes| outputs.emit(input, time, bytes))?)
    }

    /// Hands out what is earlier than `time`: nothing like that comes any more.
    pub(crate) fn emit_before(&mut self, time: Timestamp) -> Result<(), Error> {
        let (merger, outputs) = (&mut self.merger, &mut self.outputs);
        Ok(merger.emit_before(time, &mut |input, time, bytes| outputs.emit(input, time, bytes))?)
    }

    /// Takes the packets of a piece of which a few rows were read.
    pub(crate) fn rows(
        &mut self,
        row_read: &RowRead,
        OfRows { wanted, matching }: OfRows<'_>,
        notes: &mut Notes,
    ) -> Result<ControlFlow<()>, Error> {
        let (mut inputs, mut withheld) = (PieceInputs::default(), false);
        let mut decoded = Decoded::default();
        for (packet, block) in row_read.packets().expect("checked when they were read") {
            let interface = row_read.interfaces().get(packet.interface);
            let interface = interface.expect("the walk checks the number");
            notes.explain.packets_seen += 1;
            if let Some(row) = self.row(wanted, &packet, interface, &mut decoded) {
                let (body, decoded) = (row_read.front(), Some(&decoded));
                let owner = Some((row, matching.owner(row)));
                let found = Candidate { packet: &packet, block, interface, body, decoded, owner };
                withheld |= !self.push(&mut inputs, &found)?;
            }
        }
        if withheld {
            self.withhold(row_read.head(), notes);
        }
        notes.explain.bytes_read += to_u64(row_read.len_bytes());
        notes.explain.pieces_read += 1;
        self.settle(row_read.head())
    }

    /// Takes the packets of a piece that rows have, or all.
    pub(crate) fn piece(
        &mut self,
        stripe: &DataStripe<'_>,
        mut of_rows: Option<OfRows<'_>>,
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
            let mut owner = None;
            if let Some(OfRows { wanted, matching }) = &mut of_rows {
                let Some(row) = self.row(wanted, packet, interface, &mut decoded) else {
                    return Ok(ControlFlow::Continue(()));
                };
                owner = Some((row, matching.owner(row)));
            }
            let block = stripe.body.get(packet.begin..packet.end);
            let block = block.expect("a packet lies in its body");
            let decoded = owner.map(|_| &decoded);
            let body = stripe.body;
            let found = Candidate { packet, block, interface, body, decoded, owner };
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
        if of_rows.is_none() {
            let times = self.windows.hull();
            notes.completeness.add_gaps(&walked.gaps, *times.start(), *times.end());
        }
        self.settle(stripe.head)
    }

    /// The row that has this packet.
    fn row<'p>(
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
        let &Candidate { packet, block, interface, decoded, owner, .. } = found;
        if packet.timestamp <= self.expired {
            return Ok(false);
        }
        if !self.windows.contains(packet.timestamp)
            || !self.sieve.passes(interface.link_type, packet, decoded)?
        {
            return Ok(true);
        }
        self.done.packets += 1;
        let owner = owner.map(|(_, owner)| owner);
        if let Some(hits) = &mut self.hits {
            hits.add(owner.expect("sessions are looked for by their rows").session);
            return Ok(true);
        }
        self.put_beside(found)?;
        let comment = owner.zip(decoded).filter(|_| self.comments);
        let comment = comment.map(|(owner, decoded)| owner.comment(&decoded.tuple));
        let session = owner.filter(|_| self.outputs.are_by_session());
        let session = session.map(|owner| self.session(owner)).transpose()?;
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
        let &Candidate { packet, interface, decoded, owner, .. } = found;
        let StoredPacket { data, original_len, .. } = *packet;
        let decoded = decoded.copied();
        let decoded = decoded.unwrap_or_else(|| decode(interface.link_type, data, original_len));
        let given = self.beside.packet(owner.map(|(row, _)| row), &decoded.tuple, decoded.payload);
        if given.is_empty() { Ok(()) } else { Ok(self.outputs.blocks(&given)?) }
    }

    /// A piece is done.
    fn settle(&mut self, head: &Head) -> Result<ControlFlow<()>, Error> {
        let piece = self.pieces.settle(head);
        self.done.pieces += 1;
        let outputs = &mut self.outputs;
        self.merger.close(piece, &mut |input, time, bytes| outputs.emit(input, time, bytes))?;
        if self.is_gone() { Ok(ControlFlow::Break(())) } else { Ok(self.go_on()) }
    }

    /// Some or all packets of the stripe are expired.
    pub(crate) fn withhold(&self, head: &Head, notes: &mut Notes) {
        let times = (head.stripe.time_min, head.stripe.time_max);
        notes.completeness.withhold(self.expired, times);
    }

    /// Whether all packets of the stripe are expired.
    pub(crate) fn is_expired(&self, head: &Head) -> bool {
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
