//! Which payload is shown to the parsers, and how.

use app::signature::{self, Payload};
use app::{Budget, Datagram, Segment, Side};
use wire::{Decoded, TcpHeader, Transport};

use crate::record::{Arrival, Detail, Hot, carrier};
use crate::tcp::{RST, SYN};

/// Looks for names in a datagram that was put together from fragments. It counts nothing: the
/// fragments were counted.
pub(crate) fn at_whole(
    (hot, detail): (&mut Hot, &mut Detail),
    arrival: &Arrival<'_>,
    budget: &mut Budget,
) {
    let side = hot.side(arrival);
    if hot.looked < signature::PAYLOAD_COUNT_MAX {
        recognise((hot, detail), arrival, side);
    }
    match &arrival.decoded.transport {
        Transport::Tcp(header) => {
            let place = Place { side, start: begin_of(header), is_ahead: false };
            at_segment((hot, detail), arrival, &place, budget);
        }
        Transport::Udp => at_datagram((hot, detail), arrival, side, budget),
        _ => {}
    }
}

/// Sequence number of a segment's first payload byte.
pub(crate) fn begin_of(header: &TcpHeader) -> u32 {
    header.tcp_seq.wrapping_add(u32::from(header.flags & SYN != 0))
}

/// Whether there is payload of a segment that may have names: not what comes with a reset.
pub(crate) fn is_searched(decoded: &Decoded<'_>) -> bool {
    let is_reset = matches!(decoded.transport, Transport::Tcp(header) if header.flags & RST != 0);
    !decoded.payload.is_empty() && !is_reset
}

/// Where in its stream a segment belongs.
pub(crate) struct Place {
    pub(crate) side: Side,
    /// Sequence number of the first payload byte.
    pub(crate) start: u32,
    /// Bytes before it are missing so far.
    pub(crate) is_ahead: bool,
}

/// Looks for names in a segment, if there may be any.
pub(crate) fn at_segment(
    (hot, detail): (&mut Hot, &mut Detail),
    arrival: &Arrival<'_>,
    place: &Place,
    budget: &mut Budget,
) {
    let decoded = arrival.decoded;
    if hot.interest.is_none() || !is_searched(decoded) {
        return;
    }
    let segment = Segment {
        side: place.side,
        time_ns: arrival.packet.timestamp.0,
        start: place.start,
        payload: decoded.payload,
        is_truncated: is_cut(decoded),
        is_ahead: place.is_ahead,
        ports: ports(arrival),
    };
    app::segment(&mut detail.findings, &mut hot.interest, &segment, budget);
}

/// Looks for names in a datagram, if there may be any.
pub(crate) fn at_datagram(
    (hot, detail): (&mut Hot, &mut Detail),
    arrival: &Arrival<'_>,
    side: Side,
    budget: &mut Budget,
) {
    if hot.interest.is_none() {
        return;
    }
    let datagram = Datagram {
        side,
        time_ns: arrival.packet.timestamp.0,
        ports: ports(arrival),
        payload: arrival.decoded.payload,
    };
    app::datagram(&mut detail.findings, &mut hot.interest, &datagram, budget);
}

/// Looks at a payload for the protocol of its session.
pub(crate) fn recognise((hot, detail): (&mut Hot, &mut Detail), arrival: &Arrival<'_>, side: Side) {
    let decoded = arrival.decoded;
    let Some(carrier) = carrier(hot.key.proto()) else {
        hot.looked = signature::PAYLOAD_COUNT_MAX;
        return;
    };
    let is_later_part = decoded.fragment.is_some_and(|fragment| fragment.offset > 0);
    if !is_searched(decoded) || is_later_part {
        return;
    }
    let tuple = hot.tuple();
    let payload = Payload {
        carrier,
        side,
        ports: (tuple.orig_port, tuple.resp_port),
        bytes: decoded.payload,
        len: usize::try_from(decoded.payload_len).unwrap_or(usize::MAX),
    };
    hot.looked += 1;
    let sight = signature::look(&payload);
    hot.has_sight |= !sight.is_nothing();
    if !sight.is_nothing() && detail.watch.take(side, &sight) {
        hot.looked = signature::PAYLOAD_COUNT_MAX;
    } else if hot.looked == signature::PAYLOAD_COUNT_MAX && hot.has_sight {
        // Where nothing was seen, the detail is not touched: it lies in memory of its own.
        detail.watch.give_up();
    }
}

fn ports(arrival: &Arrival<'_>) -> (u16, u16) {
    let tuple = arrival.decoded.tuple;
    (tuple.orig_port, tuple.resp_port)
}

/// Less payload was captured than was on the wire.
fn is_cut(decoded: &Decoded<'_>) -> bool {
    usize::try_from(decoded.payload_len).is_ok_and(|len| decoded.payload.len() < len)
}
