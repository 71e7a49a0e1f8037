//! Packets into columns: one copy each, and every one of them counted.

use std::sync::atomic::{AtomicBool, Ordering};

use core::time::Duration;

use capture::{Counters, Interface, Packet};
use device::{Buffer, Pool};
use format::directory::{Gap, GapCause};
use format::head::Totals;
use format::pcapng::{ByteOrder, Options, put_comment, put_option};
use format::piece::{EncodedInterface, Frame, InterfaceFields, PacketParts, PieceBuilder};
use selection::{Selected, Selection};
use stage::Sender;
use units::{Clock, InterfaceId, QueueId, Timestamp, plural, start_of};
use wire::LinkType;

use crate::claim::Claim;
use crate::control::Control;
use crate::ledger::{InterfaceCounts, Ledger};
use crate::task::{FilledColumn, Task};
use crate::waits::{Wait, Waits};

/// Bytes kept of an interface's name where its description is too long for a piece.
const NAME_BYTES_MAX: usize = 256;
/// How often the ring writer hears how far time has come while no packet does.
const CLAIM_NS: i64 = 200_000_000;

/// The ring writer is gone; nothing can be stored any more.
#[derive(Debug)]
pub(crate) struct WriterGone;

/// One interface of the recording.
#[derive(Debug)]
struct InterfaceState {
    encoded: EncodedInterface,
    link_type: LinkType,
    captured_len_max: usize,
    /// For captured bytes and options together.
    packet_room: usize,
    counts: InterfaceCounts,
    /// The stretch of writer drops since the last packet that found a column.
    dropping: Option<Gap>,
    /// When the interface was found to be away.
    away_since: Option<Timestamp>,
}

#[derive(Debug)]
struct OpenColumn {
    column: Buffer,
    builder: PieceBuilder,
    opened_ns: i64,
}

/// Fills columns with the packets of one queue and sends them to the ring writer.
pub(crate) struct Intake<'a> {
    queue: QueueId,
    name: &'a str,
    ledger: &'a Ledger,
    pool: Pool,
    frame: Frame,
    /// Gone when the packets have ended.
    tasks: Option<Sender<Task>>,
    clock: &'a dyn Clock,
    /// A file waits for a free column; a link does not, its packet is a writer drop.
    may_wait: bool,
    cut_after_ns: i64,
    writer_failed: &'a AtomicBool,
    states: Vec<InterfaceState>,
    /// Number of the first interface of the source under way.
    base: usize,
    open: Option<OpenColumn>,
    gaps: Vec<Gap>,
    losses: Totals,
    counted_at: Timestamp,
    /// Every packet up to this time was given to this intake.
    seen: Timestamp,
    /// Columns sent so far.
    sent: u64,
    claimed_ns: i64,
    selection: Selection,
    control: Control,
    waits: Waits,
    /// The newest question that was answered.
    answered: u64,
    /// Slots that the ring writer had under way when packets began to be dropped.
    unfinished_slots: usize,
    /// Bytes of packets that were stored so far, and when writer drops began.
    stored_bytes: u64,
    stored_at_loss: u64,
    left_out: LeftOut,
}

/// What came with packets and is not stored, because it is longer than a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct LeftOut {
    /// Options, and the packets that had them.
    pub(crate) options: u64,
    pub(crate) packets: u64,
    /// Blocks of names or secrets.
    pub(crate) blocks: u64,
    /// Interfaces whose descriptions are stored without their options.
    pub(crate) descriptions: u64,
}

impl LeftOut {
    /// One line for each kind.
    pub(crate) fn notes(self) -> impl Iterator<Item = String> {
        let Self { options, packets, blocks, descriptions } = self;
        let lines = [
            (options, format!("{} of {}", plural(options, "option"), plural(packets, "packet"))),
            (blocks, format!("{} of names or secrets", plural(blocks, "block"))),
            (descriptions, format!("the options of {}", plural(descriptions, "interface"))),
        ];
        let told = lines.into_iter().filter(|(count, _)| *count > 0);
        told.map(|(_, line)| {
            format!("left out: {line}: they do not fit into a piece of the volume")
        })
    }
}

/// What an intake is made of.
pub(crate) struct IntakeParts<'a> {
    pub(crate) queue: QueueId,
    /// What the recording is called; empty: nothing.
    pub(crate) name: &'a str,
    pub(crate) ledger: &'a Ledger,
    pub(crate) pool: Pool,
    pub(crate) frame: Frame,
    pub(crate) tasks: Sender<Task>,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) may_wait: bool,
    pub(crate) cut_after_ns: i64,
    pub(crate) writer_failed: &'a AtomicBool,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) selection: Selection,
    pub(crate) control: Control,
    pub(crate) waits: Waits,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(parts: IntakeParts<'a>) -> Self {
        let IntakeParts { queue, name, ledger, pool, frame, tasks, clock, may_wait, .. } = parts;
        let IntakeParts { cut_after_ns, writer_failed, gaps, selection, control, .. } = parts;
        Self {
            queue,
            name,
            ledger,
            pool,
            frame,
            tasks: Some(tasks),
            clock,
            may_wait,
            cut_after_ns,
            writer_failed,
            states: Vec::new(),
            base: 0,
            open: None,
            gaps,
            losses: Totals::default(),
            counted_at: clock.realtime(),
            seen: Timestamp::MIN,
            sent: 0,
            claimed_ns: i64::MIN,
            selection,
            control,
            waits: parts.waits,
            answered: 0,
            unfinished_slots: 0,
            stored_bytes: 0,
            stored_at_loss: 0,
            left_out: LeftOut::default(),
        }
    }

    /// What was left out since the last call.
    pub(crate) fn take_left_out(&mut self) -> LeftOut {
        core::mem::take(&mut self.left_out)
    }

    /// Another source begins: its interfaces get the next numbers.
    pub(crate) fn begin_source(&mut self) {
        self.base = self.states.len();
    }

    /// Learns of interfaces that a source has met since.
    pub(crate) fn know(&mut self, interfaces: &[Interface]) {
        for interface in interfaces.iter().skip(self.states.len() - self.base) {
            let id = InterfaceId::at(self.states.len());
            let texts = (self.name, self.selection.note());
            let (encoded, is_whole) = encode(id, interface, texts, self.pool.buffer_size());
            self.left_out.descriptions += u64::from(!is_whole);
            let capacity = PieceBuilder::framed(self.pool.buffer_size(), self.frame);
            self.ledger.know(id, &interface.name);
            self.states.push(InterfaceState {
                captured_len_max: capacity.captured_len_max(&encoded),
                packet_room: capacity.packet_room(&encoded),
                encoded,
                link_type: interface.link_type,
                counts: InterfaceCounts::default(),
                dropping: None,
                away_since: None,
            });
        }
    }

    /// Stores one packet, or counts it as lost.
    #[inline]
    pub(crate) fn packet(&mut self, packet: &Packet<'_>) -> Result<(), WriterGone> {
        let place = self.base + usize::try_from(packet.interface).expect("few interfaces");
        let state = self.states.get_mut(place).expect("interfaces are known before packets");
        let len_max = match self.selection.of(state.link_type, packet) {
            Selected::Whole => usize::MAX,
            Selected::First(len) => len,
            Selected::Cut => {
                state.counts.cut += 1;
                return Ok(());
            }
            Selected::Copy => {
                state.counts.copies += 1;
                return Ok(());
            }
        };
        let (mut parts, is_cut) = parts_of(packet, state.captured_len_max.min(len_max));
        let fitted;
        if !parts.options.is_empty() && len_bytes(&parts) > state.packet_room {
            let count;
            (fitted, count) = options_that_fit(&parts, state.packet_room);
            parts.options = &fitted;
            self.left_out.options += count;
            self.left_out.packets += 1;
        }
        for _ in 0..2 {
            if self.open.is_none() && !self.open_column()? {
                self.drop_packet(place, packet);
                return Ok(());
            }
            let state = self.states.get_mut(place).expect("interfaces are known before packets");
            let open = self.open.as_mut().expect("just opened");
            if open.builder.push(&mut open.column, &state.encoded, &parts) {
                let is_too_long = is_cut && state.captured_len_max < len_max;
                state.counts.taken += 1;
                let behind = self.stored_bytes;
                self.stored_bytes += u64::from(packet.original_len);
                state.counts.too_long += u64::from(is_too_long);
                state.counts.headers_only += u64::from(is_cut && !is_too_long);
                if let Some(gap) = state.dropping.take() {
                    // What was lost found none free.
                    let standing = (0, self.unfinished_slots, [self.stored_at_loss, behind]);
                    self.ledger.lose(self.queue, gap.clone(), standing);
                    self.gaps.push(gap);
                }
                return Ok(());
            }
            self.send(false)?;
        }
        unreachable!("a packet fits an empty column")
    }

    /// Counts a packet that another recorder of the same interface stores.
    pub(crate) fn leave(&mut self, packet: &Packet<'_>) {
        let place = self.base + usize::try_from(packet.interface).expect("few interfaces");
        let state = self.states.get_mut(place).expect("interfaces are known before packets");
        state.counts.copies += 1;
    }

    /// Keeps a name resolution or secrets block in the piece of the moment.
    pub(crate) fn block(&mut self, block: &[u8]) -> Result<(), WriterGone> {
        let longest = PieceBuilder::framed(self.pool.buffer_size(), self.frame).block_len_max();
        // One that fits nowhere does not end the piece of the moment.
        let tries = if block.len() > longest { 0 } else { 2 };
        for _ in 0..tries {
            if self.open.is_none() && !self.open_column()? {
                break;
            }
            let open = self.open.as_mut().expect("just opened");
            if open.builder.push_block(&mut open.column, block) {
                return Ok(());
            }
            self.send(false)?;
        }
        self.left_out.blocks += 1;
        Ok(())
    }

    /// Cuts a column that has been open for too long, or is asked for. Between two calls at most
    /// one batch is taken. A writer that is gone is noticed here even when no packet comes.
    pub(crate) fn cut_if_due(&mut self) -> Result<(), WriterGone> {
        self.check_writer()?;
        let asked = self.control.asked();
        if asked != self.answered {
            self.send(true)?;
            return self.answer(asked);
        }
        let now = self.clock.boottime_ns();
        let due = |open: &OpenColumn| now.saturating_sub(open.opened_ns) >= self.cut_after_ns;
        if self.open.as_ref().is_some_and(due) {
            return self.send(true);
        }
        if self.open.is_none() && now.saturating_sub(self.claimed_ns) >= CLAIM_NS {
            self.claimed_ns = now;
            self.claim();
        }
        Ok(())
    }

    /// Every packet up to this time was given to this intake.
    pub(crate) fn has_seen(&mut self, through: Timestamp) {
        self.seen = through;
    }

    /// Up to when every packet is in a column, or in a gap that was sent.
    fn through(&self) -> Timestamp {
        let dropping = self.states.iter().filter_map(|state| state.dropping.as_ref());
        let gaps = self.gaps.iter().chain(dropping).map(|gap| gap.from.plus_nanos(-1));
        // Of an interface that is away the rest is reported when it is back.
        let away = self.states.iter().filter_map(|state| state.away_since);
        gaps.chain(away).fold(self.seen.min(self.counted_at), Timestamp::min)
    }

    /// Nothing is open: says so to the ring writer.
    fn claim(&self) {
        let claim = Claim { sent: self.sent, through: self.through() };
        self.ledger.claim(self.queue, claim);
    }

    /// Everything taken so far was sent.
    fn answer(&mut self, number: u64) -> Result<(), WriterGone> {
        self.answered = number;
        let tasks = self.tasks.as_ref().ok_or(WriterGone)?;
        tasks.send(Task::UpTo { queue: self.queue, number }).map_err(|_| WriterGone)
    }

    /// Takes over the totals of the source under way; new losses become gaps between the last look
    /// and this one.
    pub(crate) fn count(&mut self, counters: &[Counters]) {
        let now = self.clock.realtime();
        let before = core::mem::replace(&mut self.counted_at, now);
        // The clock may have been set back.
        let (from, to) = (before.min(now), before.max(now));
        let stored = [self.stored_bytes; 2];
        let standing = (self.pool.free_count(), self.ledger.unfinished_slots(), stored);
        for (place, now_counted) in (self.base..).zip(counters) {
            let Some(state) = self.states.get_mut(place) else { continue };
            let before = core::mem::replace(&mut state.counts.counters, *now_counted);
            let kernel = now_counted.kernel_drops - before.kernel_drops;
            let known = now_counted.interface_drops.zip(before.interface_drops);
            let interface = known.map_or(0, |(now, before)| now.saturating_sub(before));
            self.losses.kernel_drops += kernel;
            self.losses.interface_drops += interface;
            let causes = [(GapCause::KernelDrops, kernel), (GapCause::InterfaceDrops, interface)];
            for (cause, packets) in causes.into_iter().filter(|&(_, packets)| packets > 0) {
                let (interface, packets) = (Some(state.encoded.id), Some(packets));
                let gap = Gap { cause, interface, packets, bytes: None, from, to };
                self.ledger.lose(self.queue, gap.clone(), standing);
                self.gaps.push(gap);
            }
            // The first queue reports for all. At once, for a recorder that is killed, and the rest
            // when the interface is back. It may also have been down between two looks.
            let is_away = now_counted.is_away;
            let was_down = now_counted.times_down > before.times_down && !is_away;
            if self.queue == QueueId(0) && (was_down || is_away != state.away_since.is_some()) {
                let since = state.away_since.take().unwrap_or(from);
                state.away_since = is_away.then_some(to);
                self.gaps.push(away_gap(state.encoded.id, since, to));
            }
        }
        self.enter();
    }

    /// Shows the other threads what was counted so far.
    fn enter(&self) {
        self.ledger.enter(self.queue, self.states.iter().map(|state| state.counts));
    }

    /// Sends what is left. Losses that no packet followed are stored with an interface alone.
    pub(crate) fn finish(&mut self) -> Result<(), WriterGone> {
        let now = self.clock.realtime();
        for state in &mut self.states {
            let id = state.encoded.id;
            let away = state.away_since.take().map(|since| away_gap(id, since, now));
            if let Some(gap) = &state.dropping {
                let stored = [self.stored_at_loss, self.stored_bytes];
                self.ledger.lose(self.queue, gap.clone(), (0, self.unfinished_slots, stored));
            }
            self.gaps.extend(state.dropping.take().into_iter().chain(away));
        }
        while self.open.is_some() || !self.gaps.is_empty() {
            let before = self.gaps.len();
            if self.open.is_none() {
                let Some(state) = self.states.first() else { break };
                let encoded = state.encoded.clone();
                if !self.wait_for_column()? {
                    break;
                }
                let open = self.open.as_mut().expect("just opened");
                assert!(
                    open.builder.push_interface(&mut open.column, &encoded),
                    "an interface fits an empty piece"
                );
            }
            self.send(true)?;
            if self.gaps.len() == before && before > 0 {
                break;
            }
        }
        if self.open.is_none() {
            self.claim();
        }
        self.answer(u64::MAX)
    }

    /// Takes a column from the pool; false when there is none and this source cannot wait.
    fn open_column(&mut self) -> Result<bool, WriterGone> {
        if self.may_wait {
            return self.wait_for_column();
        }
        let column = self.pool.take();
        Ok(self.open_with(column))
    }

    fn wait_for_column(&mut self) -> Result<bool, WriterGone> {
        let _waiting = self.waits.begin(Wait::IntakeForColumn, self.clock);
        loop {
            self.check_writer()?;
            let column = self.pool.take_timeout(Duration::from_millis(100));
            if self.open_with(column) {
                return Ok(true);
            }
        }
    }

    fn check_writer(&self) -> Result<(), WriterGone> {
        if self.writer_failed.load(Ordering::Relaxed) { Err(WriterGone) } else { Ok(()) }
    }

    fn open_with(&mut self, column: Option<Buffer>) -> bool {
        let (opened_ns, frame) = (self.clock.boottime_ns(), self.frame);
        self.open = column.map(|column| {
            let builder = PieceBuilder::framed(column.len(), frame);
            OpenColumn { column, builder, opened_ns }
        });
        self.open.is_some()
    }

    fn drop_packet(&mut self, place: usize, packet: &Packet<'_>) {
        let state = self.states.get_mut(place).expect("interfaces are known before packets");
        state.counts.writer_drops += 1;
        self.losses.writer_drops += 1;
        if state.dropping.is_none() {
            self.unfinished_slots = self.ledger.unfinished_slots();
            self.stored_at_loss = self.stored_bytes;
        }
        let gap = state.dropping.get_or_insert(Gap {
            cause: GapCause::WriterDrops,
            interface: Some(state.encoded.id),
            packets: Some(0),
            bytes: Some(0),
            from: packet.timestamp,
            to: packet.timestamp,
        });
        gap.packets = gap.packets.map(|packets| packets + 1);
        gap.bytes = gap.bytes.map(|bytes| bytes + u64::from(packet.original_len));
        gap.from = gap.from.min(packet.timestamp);
        gap.to = gap.to.max(packet.timestamp);
    }

    fn send(&mut self, cut: bool) -> Result<(), WriterGone> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let OpenColumn { column, builder, opened_ns } = open;
        // Before the ring writer hears of the column: see the ledger's invariant.
        self.enter();
        let statistics = self.ledger.statistics();
        let stored = self.gaps.len().min(PieceBuilder::GAPS_PER_PIECE);
        let gaps = self.gaps.drain(..stored).collect();
        let losses = core::mem::take(&mut self.losses);
        let claim = (self.queue, self.through());
        self.sent += 1;
        let filled =
            FilledColumn { column, builder, cut, statistics, gaps, losses, opened_ns, claim };
        let tasks = self.tasks.as_ref().ok_or(WriterGone)?;
        tasks.send(Task::Packets(filled)).map_err(|_| WriterGone)
    }

    /// No packets will follow. A writer that is gone need not hear it.
    pub(crate) fn end(&mut self) {
        if let Some(tasks) = self.tasks.take() {
            drop(tasks.send(Task::EndOfPackets));
        }
    }
}

/// What passed an interface while it was down, or not there, was not counted.
fn away_gap(id: InterfaceId, since: Timestamp, now: Timestamp) -> Gap {
    let (from, to) = (since.min(now), since.max(now));
    let (cause, interface) = (GapCause::InterfaceDrops, Some(id));
    Gap { cause, interface, packets: None, bytes: None, from, to }
}

/// An interface's description, and whether it has all that was said of the interface: at most a
/// quarter of a piece, which each repeats it.
fn encode(
    id: InterfaceId,
    interface: &Interface,
    (recording, note): (&str, Option<&str>),
    piece_bytes: usize,
) -> (EncodedInterface, bool) {
    let mut options = Vec::new();
    if let Some(note) = note {
        put_comment(&mut options, note);
    }
    interface.put_options(&mut options);
    let (link_type, snaplen) = (interface.link_type, interface.snaplen);
    let described = |name: &str, options: &[u8]| {
        EncodedInterface::new(&InterfaceFields { id, link_type, snaplen, name, recording, options })
    };
    let whole = described(&interface.name, &options);
    if whole.len_bytes() <= piece_bytes / 4 {
        return (whole, true);
    }
    (described(start_of(&interface.name, NAME_BYTES_MAX), &[]), false)
}

/// Bytes of a packet as [`PieceBuilder::packet_room`] counts them.
fn len_bytes(parts: &PacketParts<'_>) -> usize {
    let captured: usize = parts.parts.iter().map(|part| part.len()).sum();
    captured.next_multiple_of(4) + parts.options.len() + 4
}

/// The options of a packet, in their order, as far as there is space for them, with a comment
/// behind them that says how many are missing; and that number.
#[cold]
fn options_that_fit(parts: &PacketParts<'_>, room: usize) -> (Vec<u8>, u64) {
    // The text with the longest numbers, and its header.
    const COMMENT_BYTES: usize = 96;
    let without = len_bytes(&PacketParts { options: &[], ..*parts });
    let room = room.saturating_sub(without);
    let (mut fitted, mut count, mut bytes) = (Vec::new(), 0_u64, 0);
    for option in Options::new(parts.options, ByteOrder::Little) {
        let len = 4 + option.value.len().next_multiple_of(4);
        if fitted.len() + len + COMMENT_BYTES <= room {
            put_option(&mut fitted, option.code, option.value);
        } else {
            count += 1;
            bytes += len;
        }
    }
    if COMMENT_BYTES <= room {
        put_comment(&mut fitted, &format!("wirespool: {count} options left out, {bytes} bytes"));
    }
    (fitted, count)
}

/// The packet's bytes, cut at the longest that a piece can hold; true when that was necessary.
///
/// The lengths come from the slices: [`Packet::captured_len`] reads the tag out of the packet just
/// put together, which waits until all stores before it have left for the cache, a whole packet.
#[inline]
fn parts_of<'p>(packet: &'p Packet<'_>, captured_len_max: usize) -> (PacketParts<'p>, bool) {
    let whole = packet.parts();
    let is_too_long = whole.iter().map(|part| part.len()).sum::<usize>() > captured_len_max;
    let mut room = captured_len_max;
    let parts = whole.map(|part| {
        let kept = part.get(..part.len().min(room)).unwrap_or_default();
        room -= kept.len();
        kept
    });
    let (timestamp, original_len, options) =
        (packet.timestamp, packet.original_len, packet.options);
    (PacketParts { timestamp, original_len, parts, options }, is_too_long)
}
