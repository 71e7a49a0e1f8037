//! Other addresses for packets that leave the organisation: the same address becomes the same one
//! everywhere, and addresses with a common prefix keep one of the same length.
//!
//! IP addresses go through Crypto-PAn (`prefix`), stations through AES; both with a key that the
//! user keeps, so that two extracts fit together. Checksums stay as right as they were. What the
//! application says of addresses (names, DNS answers, headers of HTTP) is not touched; frames that
//! are neither IP nor ARP lose what is behind their link layer.
//!
//! Called by extracts, packet by packet. Nothing here reads a key's file or writes a packet.

mod addresses;
mod frame;
mod met;
mod prefix;
#[cfg(test)]
mod tests;

use thiserror::Error;
use wire::{Address, FiveTuple, LinkType};

use addresses::Addresses;
use frame::Frame;
pub use met::{Met, Stations};

/// The text is no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a key for addresses is 64 hex digits, such as `openssl rand -hex 32` prints")]
pub struct AddressKeyError;

/// It is not known where frames of a link type have their addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("packets of link type {0} cannot be anonymised: extract them without it, or not")]
pub struct UnknownLinkType(pub LinkType);

/// Gives packets other addresses.
#[derive(Clone)]
pub struct Anonymiser {
    addresses: Addresses,
    /// The frame at work.
    bytes: Vec<u8>,
}

/// Without the key.
impl core::fmt::Debug for Anonymiser {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Anonymiser").finish_non_exhaustive()
    }
}

impl Anonymiser {
    /// From the text of a key file.
    pub fn from_text(text: &str) -> Result<Self, AddressKeyError> {
        let mut key = [0; 32];
        let (pairs, rest) = text.trim().as_bytes().as_chunks::<2>();
        if pairs.len() != key.len() || !rest.is_empty() {
            return Err(AddressKeyError);
        }
        for (byte, pair) in key.iter_mut().zip(pairs) {
            let pair = str::from_utf8(pair).ok().filter(|pair| !pair.contains('+'));
            let value = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
            *byte = value.ok_or(AddressKeyError)?;
        }
        Ok(Self::new(&key))
    }

    /// Of a key.
    pub fn new(key: &[u8; 32]) -> Self {
        Self { addresses: Addresses::new(key), bytes: Vec::new() }
    }

    /// Puts down the stations that it meets, and copies of it: there is no other way back to them.
    #[must_use]
    pub fn noting(mut self, met: Met) -> Self {
        self.addresses.met = Some(met);
        self
    }

    /// The way back: packets get the addresses again that they had. Stations that were not put down
    /// stay what they became, and what was blanked stays blank.
    #[must_use]
    pub fn reversed(self, stations: Stations) -> Self {
        Self { addresses: self.addresses.reversed(stations), bytes: Vec::new() }
    }

    /// The packet with other addresses, as long as it was.
    ///
    /// # Errors
    /// It is not known where packets of this link type have addresses.
    pub fn packet(&mut self, link_type: LinkType, data: &[u8]) -> Result<&[u8], UnknownLinkType> {
        self.bytes.clear();
        self.bytes.extend_from_slice(data);
        let Self { addresses, bytes } = self;
        let is_known = Frame { names: addresses, old: data, new: bytes, layers: 0 }.link(link_type);
        if is_known { Ok(&self.bytes) } else { Err(UnknownLinkType(link_type)) }
    }

    /// Other ends of a session.
    pub fn tuple(&mut self, tuple: &mut FiveTuple) {
        tuple.orig = self.address(tuple.orig);
        tuple.resp = self.address(tuple.resp);
    }

    /// Another address.
    pub fn address(&mut self, address: Address) -> Address {
        let addresses = &mut self.addresses;
        match address {
            Address::None => Address::None,
            Address::Mac(station) => Address::Mac(addresses.station(station)),
            Address::V4(ip) => Address::V4(addresses.ipv4(ip.octets()).into()),
            Address::V6(ip) => Address::V6(addresses.ipv6(ip.octets()).into()),
        }
    }
}
