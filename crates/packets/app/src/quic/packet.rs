//! Packets with a long header in a datagram (RFC 9000 17.2).

use super::keys::{Key, Version};
use crate::reader::Reader;

/// Longest connection id of versions 1 and 2.
const ID_LEN_MAX: usize = 20;

/// A decrypted payload is at most so long: a datagram of a jumbo frame.
const PAYLOAD_LEN_MAX: usize = 16 << 10;

const SAMPLE_LEN: usize = 16;

/// A packet number takes one to four bytes; the sample begins behind four.
const NUMBER_LEN_MAX: usize = 4;

/// An Initial packet, still protected.
#[derive(Debug)]
pub(crate) struct Initial<'a> {
    pub(crate) version: Version,
    /// Destination connection id.
    pub(crate) destination: &'a [u8],
    /// The header up to the packet number.
    header: &'a [u8],
    /// Packet number and payload.
    protected: &'a [u8],
}

/// A variable-length integer (RFC 9000 16).
pub(crate) fn integer(reader: &mut Reader<'_>) -> Option<u64> {
    let first = reader.u8()?;
    let mut value = u64::from(first & 0x3f);
    for _ in 1..1 << (first >> 6) {
        value = value << 8 | u64::from(reader.u8()?);
    }
    Some(value)
}

/// The packet at the start of `bytes` if it is an Initial, and the bytes after it; nothing where
/// there is no packet whose end is known.
pub(crate) fn next(bytes: &[u8]) -> Option<(Option<Initial<'_>>, &[u8])> {
    let mut reader = Reader::new(bytes);
    let first = reader.u8()?;
    if first & 0xc0 != 0xc0 {
        return None;
    }
    let version = Version::of(reader.u32()?)?;
    let destination = reader.vector8().filter(|id| id.len() <= ID_LEN_MAX)?;
    reader.vector8().filter(|id| id.len() <= ID_LEN_MAX)?;
    // Types are numbered from the Initial; the third after it is Retry, which has no length.
    let kind = (first >> 4 & 3).wrapping_sub(version.initial_type) & 3;
    if kind == 3 {
        return None;
    }
    if kind == 0 {
        let token_len = integer(&mut reader)?;
        reader.take(usize::try_from(token_len).ok()?)?;
    }
    let len = usize::try_from(integer(&mut reader)?).ok()?;
    let header_len = bytes.len() - reader.rest().len();
    let protected = reader.take(len)?;
    let header = bytes.get(..header_len)?;
    let initial = Initial { version, destination, header, protected };
    Some(((kind == 0).then_some(initial), reader.rest()))
}

impl Initial<'_> {
    /// The frames; nothing when the key is not the one it was protected with.
    pub(crate) fn decrypt(&self, key: &Key) -> Option<Vec<u8>> {
        let sample = self.protected.get(NUMBER_LEN_MAX..NUMBER_LEN_MAX + SAMPLE_LEN)?;
        let mask = key.mask(*sample.first_chunk()?);
        let [first_mask, number_mask @ ..] = mask;
        let first = self.header.first()? ^ (first_mask & 0x0f);
        let number_len = usize::from(first & 3) + 1;
        let (number, payload) = self.protected.split_at_checked(number_len)?;
        if payload.len() > PAYLOAD_LEN_MAX {
            return None;
        }
        let mut header = self.header.to_vec();
        *header.first_mut()? = first;
        header.extend(number.iter().zip(number_mask).map(|(byte, mask)| byte ^ mask));
        // Initial packets are the first ones: their whole numbers fit into what is sent of them.
        let bytes = header.get(self.header.len()..)?;
        let number = bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        key.open(number, &header, payload.to_vec())
    }
}
