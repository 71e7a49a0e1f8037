//! Which pieces an extract reads, and in which order: by their earliest packets, as rows name them.

use core::ops::{ControlFlow, RangeInclusive};
use std::collections::{BTreeMap, BTreeSet};

use format::head::StripeId;
use format::session_row::PieceId;
use index::Columns;
use units::{Sequence, Timestamp};

use crate::Error;
use crate::ahead::Ahead;
use crate::archive::Archive;
use crate::choice::{Admitted, Chosen, choose, columns};
use crate::matching::{DuePieces, Matching, Owner, PieceMatch};
use crate::packet_writer::{OfRows, PacketWriter, Taken};
use crate::request::Request;
use crate::row_reads::{self, RowRead};
use crate::scan::{Scan, Step};
use crate::slots::Place;
use crate::stopwatch::Stopwatch;
use crate::walk::{Notes, each_data_stripe};

/// Pieces are read when so many are due: several at a time come faster than one by one.
const PIECES_MIN: usize = 32;
/// So many of them are read at a time: rows of them wait in memory.
const PIECES_AT_ONCE: usize = 64;
/// Places in pieces that rows have and that wait for earlier rows: 200 MB. With more, pieces are
/// read though earlier ones may follow.
const WAITING_MAX: usize = 4 << 20;

/// The job under way.
pub(crate) struct PacketReader<'a, 't> {
    slots: RangeInclusive<Sequence>,
    matching: Matching,
    writer: PacketWriter<'a, 't>,
    watch: Stopwatch<'a>,
}

impl<'a, 't> PacketReader<'a, 't> {
    pub(crate) fn new(
        request: &Request<'_>,
        writer: PacketWriter<'a, 't>,
        watch: Stopwatch<'a>,
    ) -> Self {
        let slots = request.slots.clone().unwrap_or(Sequence(0)..=Sequence::MAX);
        Self { slots, matching: Matching::default(), writer, watch }
    }

    /// Hands out what is held back.
    pub(crate) fn finish(
        mut self,
        flow: ControlFlow<()>,
        notes: &mut Notes,
    ) -> Result<Taken<'t>, Error> {
        let taken = self.writer.finish(flow, notes)?;
        notes.explain.packets_ns += self.watch.lap();
        Ok(taken)
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
            if self.writer.is_much_held() {
                ahead.learn(archive);
                self.writer.emit_before(ahead.floor(archive))?;
            }
            flow = match self.batch(archive, &mut ahead, notes)? {
                Some(flow) => flow,
                None => break,
            };
        }
        self.writer.finish_losses(&mut notes.completeness);
        Ok(flow)
    }

    /// Takes all packets of the slots that come next; `None` where there are none.
    fn batch(
        &mut self,
        archive: &Archive,
        ahead: &mut Ahead,
        notes: &mut Notes,
    ) -> Result<Option<ControlFlow<()>>, Error> {
        let Some(mut batch) = ahead.next(archive, self.writer.is_much_held()) else {
            return Ok(None);
        };
        let (places, mut until) = (core::mem::take(&mut batch.places), None);
        let flow = each_data_stripe(archive, &places, notes, &|_| true, &mut |stripe, notes| {
            let is_new_slot = batch.is_new_slot(stripe.head);
            if let Some(floor) = ahead.comes(archive, &mut batch, stripe.head) {
                self.writer.emit_before(floor)?;
            }
            if is_new_slot && batch.is_in_ring_order() && self.writer.is_much_held() {
                until = Some(stripe.id().sequence);
                return Ok(ControlFlow::Break(()));
            }
            let before = notes.explain.packets_seen;
            let flow = self.writer.piece(stripe, None, notes)?;
            let found = notes.explain.packets_seen - before;
            self.writer.note_losses(stripe.head, found, &mut notes.completeness);
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
        let goes_on = &mut || self.writer.go_on();
        let chosen = match choose(archive, request, &mut admitted, notes, goes_on)? {
            ControlFlow::Continue(chosen) => chosen,
            ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
        };
        if let Chosen::Around(windows) = &chosen {
            self.writer.keep_within(windows.clone());
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
        self.writer.look_for_hits(request.limits.sessions);
        let mut own = notes.aside();
        let flow = self.rows(archive, (request, &chosen), &mut Admitted::new(None), &mut own)?;
        let hits = self.writer.take_hits();
        if flow.is_break() {
            return Ok(flow);
        }
        notes.completeness.limited |= hits.is_limited;
        // What could not be searched may have been a hit.
        notes.add_search(own, request.query.time_range());
        self.matching = Matching::default();
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
        let scan = Scan { slots, ..Scan::new(archive, wanted, columns, times) };
        let mut scan = if is_limited { scan } else { scan.by_time() };
        let mut visit = |step, archive: &Archive, notes: &mut Notes| match step {
            Step::Part { edge, is_apart, vlan_in_key: of_part, .. } => {
                vlan_in_key = of_part;
                let are_all = is_apart || self.are_too_many();
                if are_all && self.matching.piece_count() >= PIECES_MIN {
                    return self.take_pieces(archive, edge, notes);
                }
                Ok(ControlFlow::Continue(()))
            }
            Step::Progress { .. } => Ok(self.writer.go_on()),
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
                self.writer.count_row();
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
        let most = self.writer.most_bytes() / 2 / archive.reader.piece_bytes();
        let most = most.clamp(1, PIECES_AT_ONCE);
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue() {
            let until = if self.are_too_many() { Timestamp::MAX } else { time };
            if self.writer.is_much_held() {
                self.matching.due.look(archive, until);
            }
            let due = self.matching.take_before(until, most);
            if due.slots.is_empty() {
                break;
            }
            flow = self.take(archive, due, notes)?;
            self.writer.emit_before(time.min(self.matching.due.earliest()))?;
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
        let mut columns = BTreeMap::<Sequence, u32>::new();
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
        let floors: BTreeMap<Sequence, Timestamp> =
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
            self.writer.emit_before(floor)?;
            let of_rows = OfRows { wanted: &mut wanted, matching: &self.matching };
            let flow = self.writer.piece(stripe, Some(of_rows), notes)?;
            let is_cut = stripe.is_cut || self.writer.is_expired(stripe.head);
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
            if self.writer.is_expired(row_read.head()) {
                self.writer.withhold(row_read.head(), notes);
                notes.completeness.miss(self.matching.done(wanted, true));
                continue;
            }
            let of_rows = OfRows { wanted: &mut wanted, matching: &self.matching };
            let flow = self.writer.rows(&row_read, of_rows, notes)?;
            notes.completeness.miss(self.matching.done(wanted, false));
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn stripe_of(piece: PieceId) -> StripeId {
    StripeId { sequence: piece.sequence, sub: piece.sub }
}
