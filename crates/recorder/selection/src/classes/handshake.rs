//! Where the handshake of a session ends: what is sent behind it is encrypted, and nobody who has
//! no key learns more from it than from its headers.
//!
//! Only the headers of records (RFC 8446 5.1) and the first bytes of datagrams (RFC 9000 17) are
//! looked at. Whatever is not surely encrypted is kept: a session whose greeting was not seen, what
//! lies before the first record with data in the order of the bytes, other protocols.

use wire::{Decoded, Transport};

/// Bytes of the header of a record.
const RECORD_HEADER_BYTES: usize = 5;
/// A record's payload: 2^14, and what older versions allowed on top (RFC 5246 6.2.3).
const RECORD_BYTES_MAX: usize = (1 << 14) + 2048;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
/// Types of records, from a change of the cipher to a heartbeat (RFC 6520).
const RECORD_TYPES: core::ops::RangeInclusive<u8> = 20..=24;
/// Messages that a handshake begins with.
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
/// Half of the sequence numbers: what lies further ahead lies behind.
const BEHIND: u32 = 1 << 31;
/// How far behind the newest bytes the begin of what is encrypted is remembered.
const REMEMBERED_BYTES: u32 = 1 << 29;

/// What one end of a session has said so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Side {
    /// No greeting.
    #[default]
    Silent,
    /// A hello of TLS.
    Greeted,
    /// Data behind its handshake; bytes from this sequence number on are encrypted.
    Encrypted(u32),
    /// Packets of the handshake of QUIC.
    Quic,
}

impl Side {
    /// Whether the payload of this packet is encrypted, and nothing in it is of a handshake.
    pub(crate) fn is_encrypted(&mut self, decoded: &Decoded<'_>) -> bool {
        match decoded.transport {
            Transport::Tcp(header) => self.is_encrypted_stream(header.tcp_seq, decoded.payload),
            Transport::Udp => self.is_encrypted_datagram(decoded.payload),
            _ => false,
        }
    }

    fn is_encrypted_stream(&mut self, sequence: u32, payload: &[u8]) -> bool {
        if payload.is_empty() {
            return false;
        }
        if let Self::Encrypted(from) = self {
            let ahead = sequence.wrapping_sub(*from);
            if ahead < BEHIND && ahead > 2 * REMEMBERED_BYTES {
                *from = sequence.wrapping_sub(REMEMBERED_BYTES);
            }
            return ahead < BEHIND;
        }
        if *self == Self::Silent {
            if !is_hello(payload) {
                return false;
            }
            *self = Self::Greeted;
        }
        let Some(at) = first_data(payload) else { return false };
        let before = u32::try_from(at).expect("a segment is shorter");
        *self = Self::Encrypted(sequence.wrapping_add(before));
        at == 0
    }

    fn is_encrypted_datagram(&mut self, payload: &[u8]) -> bool {
        if is_long_header(payload) {
            *self = Self::Quic;
            return false;
        }
        *self == Self::Quic && !payload.is_empty()
    }
}

/// Type of the record that the bytes begin with, and all its bytes.
fn record(bytes: &[u8]) -> Option<(u8, usize)> {
    let [kind, major, minor, high, low] = *bytes.first_chunk::<RECORD_HEADER_BYTES>()?;
    let len = usize::from(u16::from_be_bytes([high, low]));
    let is_record = RECORD_TYPES.contains(&kind) && major == 3 && minor <= 4;
    (is_record && len <= RECORD_BYTES_MAX).then_some((kind, RECORD_HEADER_BYTES + len))
}

/// Whether a record with a hello is there.
fn is_hello(payload: &[u8]) -> bool {
    let is_handshake = record(payload).is_some_and(|(kind, _)| kind == HANDSHAKE);
    let message = payload.get(RECORD_HEADER_BYTES);
    is_handshake && message.is_some_and(|kind| [CLIENT_HELLO, SERVER_HELLO].contains(kind))
}

/// Where the first record with data begins, of those that follow one another here.
fn first_data(payload: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let (kind, len) = record(payload.get(at..)?)?;
        if kind == APPLICATION_DATA {
            return Some(at);
        }
        at += len;
    }
}

/// Whether a datagram begins as those do that set up a connection of QUIC: the versions 1 (RFC
/// 9000), 2 (RFC 9369) and drafts.
fn is_long_header(payload: &[u8]) -> bool {
    let Some([first, version @ ..]) = payload.first_chunk::<5>() else { return false };
    let is_known = matches!(version, [0, 0, 0, 1] | [0x6b, 0x33, 0x43, 0xcf] | [0xff, 0, 0, _]);
    first & 0x80 != 0 && is_known
}
