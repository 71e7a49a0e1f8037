//! The TCP state machine of both ends, in Zeek's states and letters, and what sequence numbers show
//! about loss.
//!
//! States and history follow `TCPSessionAdapter` and `conn/main.zeek` of Zeek. Checksums are not
//! verified, so there is no letter C: hosts that offload them make captured ones wrong. The history
//! keeps its first 31 letters.

use app::Side;
use format::session_row::{History, State};
use units::Timestamp;
use wire::{TcpHeader, TcpOptions};

use crate::seen::Seen;

mod resumed;
mod steady;

pub(crate) use steady::Steady;

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// Bytes of a direction in which order matters to a reader of payload.
const BEGINNING_LEN: u32 = 64 << 10;

pub(crate) fn is_syn_ack(header: &TcpHeader) -> bool {
    header.flags & (SYN | ACK) == SYN | ACK
}

/// Letters that appear once a direction, and again only where the comment in `Tcp::flag_letters`
/// says so.
mod once {
    pub(super) const SYN: u8 = 1;
    pub(super) const FIN: u8 = 2;
    pub(super) const RST: u8 = 4;
    pub(super) const DATA: u8 = 8;
    pub(super) const ACK: u8 = 16;
    pub(super) const MULTI_FLAG: u8 = 32;
    pub(super) const FIN_RST: u8 = 64;
    /// No letter: payload was seen, whatever the flags beside it.
    pub(super) const PAYLOAD: u8 = 128;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum End {
    #[default]
    Inactive,
    SynSent,
    SynAckSent,
    Partial,
    Established,
    Closed,
    Reset,
}

/// Zeek's `/^\^?S[^HAFGIQ]*R/`: the originator's SYN and RST with nothing of its own between that
/// says more.
fn is_syn_then_reset(history: &History) -> bool {
    let letters = history.as_str();
    let Some(rest) = letters.strip_prefix('^').unwrap_or(letters).strip_prefix('S') else {
        return false;
    };
    rest.bytes().find(|letter| b"RHAFGIQ".contains(letter)) == Some(b'R')
}

/// Appends a letter, in lower case for the responder.
fn note(history: &mut History, side: Side, letter: u8) {
    history.push(if side == Side::Orig { letter } else { letter.to_ascii_lowercase() });
}

/// Counts an event whose letter stands for 1, 10, 100, ... occurrences.
#[derive(Clone, Copy, Debug, Default)]
struct Scaled(u32);

impl Scaled {
    /// Counts one; true when a letter is due.
    fn count(&mut self) -> bool {
        self.0 = self.0.saturating_add(1);
        10_u32.pow(self.0.ilog10()) == self.0
    }
}

/// Counters of the slice, which has fewer than 2^32 packets; taken with every row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) missed_bytes: u64,
    pub(crate) retransmitted_bytes: u64,
    pub(crate) retransmitted_packets: u32,
    pub(crate) zero_windows: u32,
    pub(crate) out_of_order_packets: u32,
    pub(crate) resets: u32,
}

/// One direction of a connection; what segments out of order touch comes first, in one cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    seen: Seen,
    /// The initial sequence number, seen or inferred from the first segment of either side.
    initial: Option<u32>,
    state: End,
    state_before: End,
    once: u8,
    /// The other direction's SYN-ACK was seen.
    is_answered: bool,
    gaps: Scaled,
    pub(crate) evidence: Evidence,
    retransmissions: Scaled,
    zero_windows: Scaled,
    last_syn: u32,
    last_fin: u32,
    last_rst: u32,
    pub(crate) syn_options: Option<TcpOptions>,
}

const _: () = assert!(core::mem::offset_of!(Flow, evidence.retransmitted_bytes) == 64);

#[cfg(test)]
impl Flow {
    pub(crate) fn fill_counters(&mut self) {
        self.evidence = Evidence {
            missed_bytes: u64::MAX,
            retransmitted_bytes: u64::MAX,
            retransmitted_packets: u32::MAX,
            zero_windows: u32::MAX,
            out_of_order_packets: u32::MAX,
            resets: u32::MAX,
        };
        let full = || Scaled(u32::MAX);
        (self.gaps, self.retransmissions, self.zero_windows) = (full(), full(), full());
    }
}

impl Flow {
    /// Bytes of the heap that it takes at most.
    pub(crate) const HEAP_BYTES_MAX: usize = Seen::HEAP_BYTES_MAX;

    /// Something of it, so that its memory is read.
    pub(crate) fn warm(&self) -> u8 {
        self.once
    }

    fn enter(&mut self, state: End) {
        if self.state != state {
            self.state_before = self.state;
            self.state = state;
        }
    }

    /// Whether the letter is a new one; notes it.
    fn first(&mut self, bit: u8) -> bool {
        let is_first = self.once & bit == 0;
        self.once |= bit;
        is_first
    }
}

/// Both directions of a TCP connection; what most segments touch comes first.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Tcp {
    pub(crate) orig: Flow,
    pub(crate) resp: Flow,
    pub(crate) history: History,
    syn_time: Option<Timestamp>,
    pub(crate) handshake_ns: Option<u64>,
}

impl Tcp {
    /// A connection whose roles were turned round because its first packet is a SYN-ACK (Zeek's
    /// `^`).
    pub(crate) fn turned() -> Self {
        let mut tcp = Self::default();
        note(&mut tcp.history, Side::Orig, b'^');
        tcp
    }

    fn ends(&mut self, side: Side) -> (&mut Flow, &mut Flow, &mut History) {
        let Self { orig, resp, history, .. } = self;
        match side {
            Side::Orig => (orig, resp, history),
            Side::Resp => (resp, orig, history),
        }
    }

    /// Whether this SYN begins another connection on the same tuple: its sequence number is not the
    /// initial one of its direction, known or inferred. A retransmitted SYN has the same.
    pub(crate) fn is_reused_by(&self, side: Side, header: &TcpHeader) -> bool {
        let flow = if side == Side::Orig { &self.orig } else { &self.resp };
        header.flags & (SYN | ACK) == SYN
            && flow.initial.is_some_and(|initial| initial != header.tcp_seq)
    }

    /// Whether bytes before this number are missing so far, near the beginning of the stream. Of a
    /// connection without a SYN it is not known where that is: its first segment may come from
    /// anywhere, and what is missing before the next ones begins no message.
    pub(crate) fn is_ahead(&self, side: Side, start: u32) -> bool {
        if (self.orig.once | self.resp.once) & once::SYN == 0 {
            return false;
        }
        let flow = side.of([&self.orig, &self.resp]);
        let offset = flow.initial.map(|initial| start.wrapping_sub(initial));
        offset.is_some_and(|offset| offset <= BEGINNING_LEN)
            && flow
                .seen
                .first_missing()
                .is_some_and(|first| start.wrapping_sub(first).cast_signed() > 0)
    }

    /// Takes one segment into account.
    pub(crate) fn segment(
        &mut self,
        side: Side,
        timestamp: Timestamp,
        header: &TcpHeader,
        payload_len: u32,
    ) {
        let flags = header.flags;
        // Payload of a RST is not part of the stream (RFC 9293 3.5.3 lets it carry a reason).
        let len = if flags & RST == 0 { payload_len } else { 0 };
        self.handshake(side, timestamp, flags);
        let (me, peer, _) = self.ends(side);
        me.initial.get_or_insert(header.tcp_seq.wrapping_sub(u32::from(flags & SYN == 0)));
        me.once |= if len > 0 { once::PAYLOAD } else { 0 };
        if flags & ACK != 0 {
            peer.initial.get_or_insert(header.tcp_ack.wrapping_sub(1));
        }
        if flags & SYN != 0 {
            me.syn_options = Some(header.options);
        }
        self.flag_letters(side, header, len);
        self.window(side, header);
        self.sequence(side, header, len);
        self.advance(side, flags, len);
        if flags & (ACK | RST) == ACK {
            self.acknowledge(side, header.tcp_ack);
        }
    }

    /// From the last SYN before the SYN-ACK to the ACK of the SYN-ACK, where all three were seen.
    fn handshake(&mut self, side: Side, timestamp: Timestamp, flags: u8) {
        match (side, flags & (SYN | ACK)) {
            (Side::Orig, SYN) if !self.orig.is_answered => self.syn_time = Some(timestamp),
            (Side::Resp, both) if both == SYN | ACK => self.orig.is_answered = true,
            (Side::Orig, ACK) if self.orig.is_answered && self.handshake_ns.is_none() => {
                let elapsed = self.syn_time.map(|syn_time| timestamp.since(syn_time));
                self.handshake_ns = elapsed.and_then(|elapsed| u64::try_from(elapsed).ok());
            }
            _ => {}
        }
    }

    /// S, H, F and R come again when their sequence number differs from the last such packet's; A,
    /// D, I and Q never.
    fn flag_letters(&mut self, side: Side, header: &TcpHeader, len: u32) {
        let (flags, seq) = (header.flags, header.tcp_seq);
        let (me, _, history) = self.ends(side);
        match flags & (SYN | FIN | RST) {
            0 if len > 0 => {
                if me.first(once::DATA) {
                    note(history, side, b'D');
                }
            }
            0 => {
                if flags & ACK != 0 && me.first(once::ACK) {
                    note(history, side, b'A');
                }
            }
            SYN => {
                if me.first(once::SYN) || seq != me.last_syn {
                    note(history, side, if flags & ACK == 0 { b'S' } else { b'H' });
                }
                me.last_syn = seq;
            }
            FIN => {
                let end = seq.wrapping_add(len);
                if me.first(once::FIN) || end != me.last_fin {
                    note(history, side, b'F');
                }
                me.last_fin = end;
            }
            RST => {
                if me.first(once::RST) || seq != me.last_rst {
                    note(history, side, b'R');
                }
                me.last_rst = seq;
            }
            several if several & (FIN | RST) == FIN | RST => {
                if me.first(once::FIN_RST) {
                    note(history, side, b'I');
                }
            }
            _ => {
                if me.first(once::MULTI_FLAG) {
                    note(history, side, b'Q');
                }
            }
        }
    }

    /// A zero window means nothing in a RST, after a RST, or when the peer has no more to send.
    fn window(&mut self, side: Side, header: &TcpHeader) {
        let (me, peer, history) = self.ends(side);
        if header.window == 0
            && header.flags & RST == 0
            && peer.state != End::Closed
            && me.state != End::Reset
        {
            me.evidence.zero_windows = me.evidence.zero_windows.saturating_add(1);
            if me.zero_windows.count() {
                note(history, side, b'W');
            }
        }
    }

    fn sequence(&mut self, side: Side, header: &TcpHeader, len: u32) {
        let (me, _, history) = self.ends(side);
        let syn = header.flags & SYN != 0;
        if syn && me.initial != Some(header.tcp_seq) {
            // A SYN-ACK that contradicts what was inferred: the numbering begins anew.
            me.initial = Some(header.tcp_seq);
            me.seen = Seen::default();
        }
        let start = header.tcp_seq.wrapping_add(u32::from(syn));
        // Evidence is written only where there is some: most of it lies in memory of its own.
        if header.flags & RST != 0 {
            me.evidence.resets = me.evidence.resets.saturating_add(1);
            return;
        }
        if me.state == End::Reset {
            return;
        }
        let is_behind = me.seen.is_behind(start);
        let repeated = me.seen.add(start, len);
        if is_behind && repeated < len {
            me.evidence.out_of_order_packets = me.evidence.out_of_order_packets.saturating_add(1);
        }
        if header.flags & FIN != 0 {
            me.seen.add_fin(start.wrapping_add(len));
        }
        if repeated > 0 {
            me.evidence.retransmitted_packets = me.evidence.retransmitted_packets.saturating_add(1);
            me.evidence.retransmitted_bytes =
                me.evidence.retransmitted_bytes.saturating_add(repeated.into());
            if me.retransmissions.count() {
                note(history, side, b'T');
            }
        }
    }

    fn acknowledge(&mut self, side: Side, ack: u32) {
        let other = if side == Side::Orig { Side::Resp } else { Side::Orig };
        let (sender, receiver, history) = self.ends(other);
        let missed = sender.seen.acknowledge(ack);
        if missed == 0 {
            return;
        }
        sender.evidence.missed_bytes = sender.evidence.missed_bytes.saturating_add(missed.into());
        let at_the_end = matches!(sender.state, End::Closed | End::Reset)
            || matches!(receiver.state, End::Closed | End::Reset);
        if !at_the_end && sender.gaps.count() {
            note(history, other, b'G');
        }
    }

    fn advance(&mut self, side: Side, flags: u8, len: u32) {
        let orig_state = self.orig.state;
        let (me, peer, _) = self.ends(side);
        match me.state {
            End::Inactive => inactive(me, peer, side, flags),
            End::SynSent | End::SynAckSent => {
                if flags & FIN != 0 {
                    me.enter(End::Closed);
                }
                if flags & RST != 0 {
                    me.enter(End::Reset);
                }
            }
            End::Established | End::Partial => established(me, peer, flags),
            End::Closed => {
                if flags & RST != 0 && peer.state != End::Closed {
                    me.enter(End::Reset);
                }
            }
            End::Reset => {}
        }
        if me.state == End::Inactive {
            // An ACK of the SYN before the SYN-ACK does not make a partial connection.
            let early_ack = side == Side::Resp && len == 0 && orig_state == End::SynSent;
            if flags & ACK != 0 && peer.state == End::Established {
                // Only the SYN is missing: the SYN-ACK was seen.
                me.enter(End::Established);
            } else if !early_ack {
                me.enter(End::Partial);
            }
        }
    }

    /// Nothing but stragglers is to be expected.
    pub(crate) fn is_over(&self) -> bool {
        let (orig, resp) = (self.orig.state, self.resp.state);
        orig == End::Reset || resp == End::Reset || (orig == End::Closed && resp == End::Closed)
    }

    /// Zeek's `conn_state`.
    pub(crate) fn state(&self) -> State {
        let quiet = |flow: &Flow| matches!(flow.state, End::Inactive | End::Partial);
        let (orig, resp) = (&self.orig, &self.resp);
        match (orig.state, resp.state) {
            (End::SynSent | End::SynAckSent, End::Reset) => State::Rej,
            (End::Reset, End::Reset) if (orig.once | resp.once) & once::PAYLOAD == 0 => State::Rej,
            (_, End::Reset) => {
                if quiet(orig) {
                    State::Rstrh
                } else {
                    State::Rstr
                }
            }
            (End::Reset, _) if !quiet(resp) => State::Rsto,
            (End::Reset, _) if is_syn_then_reset(&self.history) => State::Rstos0,
            (End::Reset, _) => State::Oth,
            (End::Closed, End::Closed) => State::Sf,
            (End::Closed, _) => {
                if quiet(resp) {
                    State::Sh
                } else {
                    State::S2
                }
            }
            (_, End::Closed) => {
                if quiet(orig) {
                    State::Shr
                } else {
                    State::S3
                }
            }
            (End::SynSent, End::Inactive) => State::S0,
            (End::Established, End::Established) => State::S1,
            _ => State::Oth,
        }
    }
}

/// The first segment of an end.
fn inactive(me: &mut Flow, peer: &mut Flow, side: Side, flags: u8) {
    if flags & SYN != 0 {
        match side {
            Side::Orig if flags & ACK != 0 => me.enter(End::SynAckSent),
            // The SYN-ACK overtook its SYN in the capture.
            Side::Orig if peer.state == End::Established => me.enter(End::Established),
            Side::Orig => me.enter(End::SynSent),
            Side::Resp => {
                if peer.state == End::SynSent {
                    peer.enter(End::Established);
                }
                me.enter(End::Established);
            }
        }
    }
    if flags & FIN != 0 {
        me.enter(End::Closed);
    }
    if flags & RST != 0 {
        me.enter(End::Reset);
    }
}

fn established(me: &mut Flow, peer: &mut Flow, flags: u8) {
    if flags & (SYN | ACK) == SYN && me.state == End::Partial && peer.state == End::Inactive {
        me.enter(End::SynSent);
    }
    if flags & (FIN | RST) == FIN {
        me.enter(End::Closed);
        if peer.state == End::Reset && peer.state_before == End::Closed {
            // The peer sent a FIN and then a RST; with this FIN it was a normal end.
            peer.enter(End::Closed);
        }
    }
    if flags & RST != 0 {
        me.enter(End::Reset);
    }
}

#[cfg(test)]
mod tests;
