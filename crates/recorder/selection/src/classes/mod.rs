//! Traffic classes: what is kept of the packets that a filter chooses.
//!
//! The first class whose filter a packet passes decides. What is left out is counted as cut, never
//! as lost. Sessions have the key of the index; how much of each was kept is remembered for a
//! bounded number of them, and who is forgotten begins anew: more is kept then, never less.

mod handshake;
mod kept;

use core::fmt;
use core::str::FromStr;

use capture::Packet;
use filters::PacketFilter;
use session::Keyer;
use units::ByteSize;
use units::number::to_u64;
use wire::{Decoded, LinkType, Transport, decode_into};

use kept::KeptOfSessions;

/// Kept of a packet whose transport is not known, where headers are asked for.
const UNKNOWN_HEADERS_BYTES: usize = 64;
/// TCP flags (RFC 9293).
const SYN: u8 = 2;
const ACK: u8 = 16;

/// What is kept of the packets of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// The whole packet.
    All,
    /// The packets of a session, whole, until they have so many bytes both ways.
    Bytes(u64),
    /// The first packets of a session, both ways, whole.
    Packets(u64),
    /// Every packet up to the end of its transport header.
    Headers,
    /// The same of packets with encrypted data of TLS or QUIC; others whole.
    Handshake,
    /// Nothing of the packet.
    Nothing,
}

/// A traffic class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class {
    /// In the words of pcap-filter(7); empty: all packets.
    pub filter: String,
    /// What is kept of it.
    pub keep: Keep,
}

/// A class that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a class is FILTER=WHAT, where WHAT is all, a size as 64k, a number of packets as 20p, \
     headers, handshake or nothing: 'port 443=64k', 'host 10.0.0.9=nothing', '=handshake' for all \
     that is left"
)]
pub struct ClassError;

impl FromStr for Class {
    type Err = ClassError;

    fn from_str(text: &str) -> Result<Self, ClassError> {
        let (filter, keep) = text.rsplit_once('=').ok_or(ClassError)?;
        let keep = match keep.trim() {
            "all" => Keep::All,
            "headers" => Keep::Headers,
            "handshake" => Keep::Handshake,
            "nothing" => Keep::Nothing,
            amount => match amount.strip_suffix('p') {
                Some(packets) => Keep::Packets(packets.trim().parse().map_err(|_| ClassError)?),
                None => Keep::Bytes(amount.parse::<ByteSize>().map_err(|_| ClassError)?.0),
            },
        };
        Ok(Self { filter: filter.trim().to_owned(), keep })
    }
}

/// As it is read.
impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.filter)?;
        match self.keep {
            Keep::All => f.write_str("all"),
            Keep::Bytes(bytes) => write!(f, "{bytes}"),
            Keep::Packets(packets) => write!(f, "{packets}p"),
            Keep::Headers => f.write_str("headers"),
            Keep::Handshake => f.write_str("handshake"),
            Keep::Nothing => f.write_str("nothing"),
        }
    }
}

/// Bytes of memory at most that each queue needs to remember sessions for these classes.
pub fn memory_bytes_max(classes: &[Class]) -> u64 {
    let counts = |keep| matches!(keep, Keep::Bytes(_) | Keep::Packets(_) | Keep::Handshake);
    let counts = classes.iter().any(|class| counts(class.keep));
    if counts { to_u64(kept::MEMORY_BYTES_MAX) } else { 0 }
}

/// What is kept of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kept {
    Whole,
    /// So many bytes of it.
    First(usize),
    Nothing,
}

/// The classes of a recording, at work.
#[derive(Clone)]
pub(crate) struct Classes {
    /// In the order in which they are asked.
    rules: Vec<(Option<PacketFilter>, Keep)>,
    keyer: Keyer,
    kept: KeptOfSessions,
    /// The bytes of a packet that lies in several parts.
    joined: Vec<u8>,
}

impl Classes {
    /// # Errors
    /// Those of the filters.
    pub(crate) fn new(classes: &[Class], vlan_in_key: bool) -> Result<Self, filters::Error> {
        let compile = |class: &Class| {
            let filter = (!class.filter.is_empty()).then(|| PacketFilter::new(&class.filter));
            Ok((filter.transpose()?, class.keep))
        };
        Ok(Self {
            rules: classes.iter().map(compile).collect::<Result<_, filters::Error>>()?,
            keyer: Keyer::new(vlan_in_key),
            kept: KeptOfSessions::default(),
            joined: Vec::new(),
        })
    }

    /// What is kept of a packet. A filter that means nothing for a link type chooses none of its
    /// packets.
    pub(crate) fn keep(&mut self, link_type: LinkType, packet: &Packet<'_>) -> Kept {
        let chosen = self.rules.iter_mut().find_map(|(filter, keep)| {
            let is_chosen = filter
                .as_mut()
                .is_none_or(|filter| packet.passes(filter, link_type).unwrap_or(false));
            is_chosen.then_some(*keep)
        });
        let (bytes_max, packets_max) = match chosen {
            None | Some(Keep::All) => return Kept::Whole,
            Some(Keep::Nothing) => return Kept::Nothing,
            Some(Keep::Headers | Keep::Handshake) => (u64::MAX, u64::MAX),
            Some(Keep::Bytes(bytes)) => (bytes, u64::MAX),
            Some(Keep::Packets(packets)) => (u64::MAX, packets),
        };
        let bytes = contiguous(packet, &mut self.joined);
        let mut decoded = Decoded::default();
        decode_into(&mut decoded, link_type, bytes, packet.original_len);
        if chosen == Some(Keep::Headers) {
            return headers(bytes, &decoded);
        }
        let (key, turn) = self.keyer.key_and_turn(packet.timestamp, &decoded);
        let begins = matches!(decoded.transport, Transport::Tcp(header)
            if header.flags & (SYN | ACK) == SYN);
        let session = self.kept.of(key, packet.timestamp, begins);
        if chosen == Some(Keep::Handshake) {
            let [first, second] = &mut session.sides;
            let side = if turn { second } else { first };
            let is_encrypted = side.is_encrypted(&decoded);
            return if is_encrypted { headers(bytes, &decoded) } else { Kept::Whole };
        }
        if session.bytes >= bytes_max || session.packets >= packets_max {
            return Kept::Nothing;
        }
        session.bytes += u64::from(packet.original_len);
        session.packets += 1;
        Kept::Whole
    }
}

/// A packet up to the end of its transport header.
fn headers(bytes: &[u8], decoded: &Decoded<'_>) -> Kept {
    let is_known = !matches!(decoded.transport, Transport::Other);
    let len = if is_known && !decoded.payload.is_empty() {
        decoded.payload.as_ptr().addr() - bytes.as_ptr().addr()
    } else if is_known {
        // Without payload it is all headers, but for what pads it to the least length.
        bytes.len()
    } else {
        UNKNOWN_HEADERS_BYTES
    };
    if len < bytes.len() { Kept::First(len) } else { Kept::Whole }
}

/// The captured bytes in one piece.
fn contiguous<'a>(packet: &'a Packet<'_>, joined: &'a mut Vec<u8>) -> &'a [u8] {
    if packet.tag.is_none() && packet.tail.is_empty() {
        return packet.head;
    }
    joined.resize(packet.captured_len(), 0);
    packet.copy_to(joined);
    joined
}

#[cfg(test)]
mod tests;
