//! QUIC Initial packets (RFC 9000 17.2.2, RFC 9369): decrypted with the keys that every observer
//! can derive, for the hellos in them.
//!
//! A session's keys come from the destination id of the client's first Initial, and change with a
//! Retry. The hello may lie in several CRYPTO frames, packets and datagrams, in any order.

mod crypto;
mod keys;
mod packet;

use wire::{App, Names};

use crate::payload::Datagram;
use crate::{Budget, Side, tls};

use crypto::Crypto;
use keys::{Keys, Version};
use packet::Initial;

/// Packets of one session that are decrypted, or tried.
const PACKET_COUNT_MAX: u8 = 24;

/// Derivations of keys for one session: each costs as much as some hundred packets elsewhere.
const DERIVATION_COUNT_MAX: u8 = 4;

/// A client's Initial comes in a datagram of at least so many bytes (RFC 9000 14.1): who wants keys
/// to be derived has to send as much each time.
const DATAGRAM_LEN_MIN: usize = 1200;

/// Whether the datagram begins with a packet of a long header, with the fixed bit, of a version
/// whose keys are known.
pub(crate) fn begins(payload: &[u8]) -> bool {
    match payload.split_first_chunk() {
        Some((&[first, a, b, c, d], _)) => {
            first & 0xc0 == 0xc0 && Version::of(u32::from_be_bytes([a, b, c, d])).is_some()
        }
        None => false,
    }
}

/// Whether the datagram is as long as one that begins a connection.
pub(crate) fn may_begin_connection(payload: &[u8]) -> bool {
    payload.len() >= DATAGRAM_LEN_MIN
}

/// What a client says at the beginning of a connection, as far as this datagram has it without a
/// gap; nothing where it is no such datagram.
pub(crate) fn client_stream(datagram: &[u8]) -> Option<Vec<u8>> {
    if !begins(datagram) || !may_begin_connection(datagram) {
        return None;
    }
    let (mut rest, mut keys, mut stream) = (datagram, None, Crypto::default());
    let mut budget = Budget::new(datagram.len(), 0);
    while let Some((initial, after)) = packet::next(rest) {
        rest = after;
        let Some(initial) = initial else { continue };
        let keys = keys.get_or_insert_with(|| Keys::derive(initial.version, initial.destination));
        if let Some(frames) = initial.decrypt(&keys.client) {
            crypto::each(&frames, |offset, data| stream.add(offset, data, &mut budget));
        }
    }
    Some(stream.in_order().to_vec())
}

/// The beginning of one QUIC connection.
#[derive(Debug, Default)]
pub(crate) struct Quic {
    /// The keys, and who is the client.
    keys: Option<(Keys, Side)>,
    derivations: u8,
    /// The datagram is one that may give keys, and has not done so yet.
    may_derive: bool,
    packets: u8,
    streams: [Crypto; 2],
    has_hello: [bool; 2],
}

impl Quic {
    /// Reads the Initial packets of a datagram; true when all is read that can be.
    pub(crate) fn read(
        &mut self,
        datagram: &Datagram<'_>,
        names: &mut Names,
        budget: &mut Budget,
    ) -> bool {
        let mut rest = datagram.payload;
        // One derivation a datagram: all that is in it belongs to one connection.
        self.may_derive = may_begin_connection(rest);
        while let Some((initial, after)) = packet::next(rest) {
            rest = after;
            if let Some(initial) = initial {
                self.packets += 1;
                if let Some(frames) = self.decrypt(&initial, datagram.side) {
                    names.app.get_or_insert(App::Quic);
                    self.take(&frames, datagram.side, names, budget);
                }
            }
            if self.packets == PACKET_COUNT_MAX {
                return true;
            }
        }
        let is_given_up = self.keys.is_none() && self.derivations == DERIVATION_COUNT_MAX;
        self.has_hello == [true; 2] || is_given_up
    }

    /// The frames of a packet; its own destination id gives the keys where those known do not fit.
    fn decrypt(&mut self, initial: &Initial<'_>, side: Side) -> Option<Vec<u8>> {
        if let Some((keys, client)) = &self.keys {
            let key = if *client == side { &keys.client } else { &keys.server };
            if let Some(frames) = initial.decrypt(key) {
                return Some(frames);
            }
        }
        if self.derivations == DERIVATION_COUNT_MAX || !core::mem::take(&mut self.may_derive) {
            return None;
        }
        self.derivations += 1;
        let keys = Keys::derive(initial.version, initial.destination);
        let frames = initial.decrypt(&keys.client)?;
        self.keys = Some((keys, side));
        Some(frames)
    }

    fn take(&mut self, frames: &[u8], side: Side, names: &mut Names, budget: &mut Budget) {
        let stream = side.of(&mut self.streams);
        crypto::each(frames, |offset, data| stream.add(offset, data, budget));
        let bytes = stream.in_order();
        if !*side.of(&mut self.has_hello) && tls::read_bare(bytes, names) {
            *side.of(&mut self.has_hello) = !tls::is_bare_retry_request(bytes);
        }
    }

    /// Bytes of memory that it takes, besides the streams' data.
    pub(crate) fn memory_bytes(&self) -> usize {
        let [orig, resp] = &self.streams;
        size_of::<Self>() + orig.memory_bytes() + resp.memory_bytes()
    }

    /// Gives the space back.
    pub(crate) fn free(self, budget: &mut Budget) {
        for stream in self.streams {
            stream.free(budget);
        }
    }
}

#[cfg(test)]
mod tests;
