//! One payload, and careful looks into it.

use crate::Side;

/// Bytes of a payload that are looked at.
pub(super) const LOOK_LEN_MAX: usize = 1024;

/// Bytes by which text is recognised: as many as the shortest command with its blank.
const TEXT_LEN: usize = 4;

/// What carries the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// The payload of a segment.
    Tcp,
    /// The payload of a datagram.
    Udp,
}

/// The payload of one packet.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// Transport that carries it.
    pub carrier: Carrier,
    /// Side that sent it.
    pub side: Side,
    /// Ports of originator and responder.
    pub ports: (u16, u16),
    /// Its bytes, as far as they were captured.
    pub bytes: &'a [u8],
    /// Its length on the wire, in bytes.
    pub len: usize,
}

impl<'a> Payload<'a> {
    /// The bytes that are looked at.
    pub(super) fn seen(&self) -> &'a [u8] {
        self.bytes.get(..LOOK_LEN_MAX).unwrap_or(self.bytes)
    }

    pub(super) fn from(&self, at: usize) -> &'a [u8] {
        self.seen().get(at..).unwrap_or_default()
    }

    /// Whether the first bytes are letters as text has them.
    pub(super) fn begins_like_text(&self) -> bool {
        let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n');
        self.bytes.iter().take(TEXT_LEN).all(is_text)
    }

    pub(super) fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.from(at).first_chunk().copied()
    }

    pub(super) fn u8(&self, at: usize) -> Option<u8> {
        self.seen().get(at).copied()
    }

    pub(super) fn u16(&self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_be_bytes)
    }

    pub(super) fn u16_le(&self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    pub(super) fn u24(&self, at: usize) -> Option<u32> {
        let [high, middle, low] = self.array(at)?;
        Some(u32::from_be_bytes([0, high, middle, low]))
    }

    pub(super) fn u32(&self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_be_bytes)
    }

    pub(super) fn u32_le(&self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    pub(super) fn has(&self, at: usize, bytes: &[u8]) -> bool {
        self.from(at).starts_with(bytes)
    }

    pub(super) fn is_zero(&self, at: usize, len: usize) -> bool {
        self.from(at).get(..len).is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0))
    }

    /// Whether a length in the payload, and what stands around it, make the length on the wire.
    pub(super) fn is_len(&self, stated: impl TryInto<usize>, around: usize) -> bool {
        stated.try_into().is_ok_and(|stated| stated.checked_add(around) == Some(self.len))
    }

    /// Whether a stated length reaches to the end or, in a stream, beyond it.
    pub(super) fn reaches_end(&self, stated: impl TryInto<usize>, around: usize) -> bool {
        stated.try_into().is_ok_and(|stated: usize| {
            let end = stated.saturating_add(around);
            end == self.len || self.carrier == Carrier::Tcp && end > self.len
        })
    }

    /// Whether either end has this port.
    pub(super) fn is_on(&self, ports: &[u16]) -> bool {
        ports.contains(&self.ports.0) || ports.contains(&self.ports.1)
    }

    /// The first line without its end, as far as it is looked at; not if it is no text.
    pub(super) fn line(&self) -> Option<&'a [u8]> {
        let line = self.seen().split(|&byte| byte == b'\n').next()?.trim_ascii_end();
        let is_text = |&byte: &u8| byte >= b' ' && byte != 0x7f || byte == b'\t';
        (!line.is_empty() && line.iter().all(is_text)).then_some(line)
    }

    /// Whether the payload ends with a line's end, as the messages of line protocols do.
    pub(super) fn ends_line(&self) -> bool {
        self.bytes.len() < self.len || self.bytes.last() == Some(&b'\n')
    }
}

/// Whether bytes may be random: of such one in 256 is zero, and more than one in 16 is not to be
/// believed.
pub(super) fn is_random(bytes: &[u8]) -> bool {
    let zeros: usize = bytes.iter().map(|&byte| usize::from(byte == 0)).sum();
    zeros * 16 < bytes.len()
}

/// Whether the words stand somewhere in the text, in any case.
pub(super) fn contains(text: &[u8], words: &[u8]) -> bool {
    let Some(first) = words.first() else {
        return true;
    };
    let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == lower || byte == upper) {
        rest = rest.get(at..).unwrap_or_default();
        let Some(start) = rest.get(..words.len()) else {
            return false;
        };
        if start.eq_ignore_ascii_case(words) {
            return true;
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    false
}
