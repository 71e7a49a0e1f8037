//! Other addresses for packets that leave the organisation: the same address becomes the same one
//! everywhere, and addresses with a common prefix keep one of the same length.
//!
//! IP addresses go through Crypto-PAn ([`prefix`]), stations through AES; both with a key that the
//! user keeps, so that two extracts fit together. Checksums stay as right as they were. What the
//! application says of addresses (names, DNS answers, headers of HTTP) is not touched; frames that
//! are neither IP nor ARP lose what is behind their link layer.

mod frame;
mod prefix;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use aes::Aes128;
use aes::cipher::{BlockEncrypt as _, KeyInit as _};
use thiserror::Error;
use wire::{Address, FiveTuple, LinkType};

use crate::Error;
use frame::Frame;
use prefix::{Pinned, Prefixes};

/// Addresses remembered: one costs up to 128 encryptions.
const REMEMBERED_MAX: usize = 1 << 18;

/// The text is no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a key for addresses is 64 hex digits, such as `openssl rand -hex 32` prints")]
pub struct AddressKeyError;

/// Gives packets other addresses.
#[derive(Clone)]
pub struct Anonymiser {
    prefixes: Prefixes,
    stations: Aes128,
    v4: HashMap<[u8; 4], [u8; 4]>,
    v6: HashMap<[u8; 16], [u8; 16]>,
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

    fn new(key: &[u8; 32]) -> Self {
        let prefixes = Prefixes::new(key);
        // A key of its own: no block that one of them encrypts says anything of the other.
        let mut stations = [0x6d; 16].into();
        prefixes.encrypt(&mut stations);
        let stations = Aes128::new(&stations);
        Self { prefixes, stations, v4: HashMap::new(), v6: HashMap::new(), bytes: Vec::new() }
    }

    /// The packet with other addresses, as long as it was.
    ///
    /// # Errors
    /// It is not known where packets of this link type have addresses.
    pub fn packet(&mut self, link_type: LinkType, data: &[u8]) -> Result<&[u8], Error> {
        self.bytes.clear();
        self.bytes.extend_from_slice(data);
        let mut bytes = core::mem::take(&mut self.bytes);
        let is_known = Frame { names: self, old: data, new: &mut bytes, layers: 0 }.link(link_type);
        self.bytes = bytes;
        if is_known { Ok(&self.bytes) } else { Err(Error::Anonymise(link_type)) }
    }

    /// Other ends of a session.
    pub(crate) fn tuple(&mut self, tuple: &mut FiveTuple) {
        for end in [&mut tuple.orig, &mut tuple.resp] {
            *end = match *end {
                Address::None => Address::None,
                Address::Mac(station) => Address::Mac(self.station(station)),
                Address::V4(ip) => Address::V4(self.ipv4(ip.octets()).into()),
                Address::V6(ip) => Address::V6(self.ipv6(ip.octets()).into()),
            };
        }
    }

    fn ipv4(&mut self, address: [u8; 4]) -> [u8; 4] {
        if let Some(known) = self.v4.get(&address) {
            return *known;
        }
        let number = u32::from_be_bytes(address);
        let bits = u128::from(number) << 96;
        let new = self.prefixes.exchange(bits, 32, &Pinned::V4) >> 96;
        let new = u32::try_from(new).expect("the upper 32 bits").to_be_bytes();
        if self.v4.len() >= REMEMBERED_MAX {
            self.v4.clear();
        }
        self.v4.insert(address, new);
        new
    }

    fn ipv6(&mut self, address: [u8; 16]) -> [u8; 16] {
        if let Some(known) = self.v6.get(&address) {
            return *known;
        }
        let new = match address {
            // Solicited-node multicast has the end of an address in it (RFC 4291, 2.7.1).
            [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c] => {
                let [a, b, c] = self.low_bytes([a, b, c]);
                [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c]
            }
            // IPv4 in disguise (RFC 4291, 2.5.5.2).
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ref v4 @ ..] => {
                let [a, b, c, d] = self.ipv4(*v4);
                [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
            }
            _ => {
                let bits = u128::from_be_bytes(address);
                self.prefixes.exchange(bits, 128, &Pinned::V6).to_be_bytes()
            }
        };
        if self.v6.len() >= REMEMBERED_MAX {
            self.v6.clear();
        }
        self.v6.insert(address, new);
        new
    }

    /// A station; what names a group and not a host stays.
    fn station(&self, address: [u8; 6]) -> [u8; 6] {
        match address {
            [0, 0, 0, 0, 0, 0] => address,
            // The group of a solicited-node address (RFC 2464, section 7).
            [0x33, 0x33, 0xff, a, b, c] => {
                let [a, b, c] = self.low_bytes([a, b, c]);
                [0x33, 0x33, 0xff, a, b, c]
            }
            [first, ..] if first & 1 != 0 => address,
            station => {
                let mut block = [0; 16];
                for (place, byte) in block.iter_mut().zip([1].iter().chain(&station)) {
                    *place = *byte;
                }
                let scrambled = self.scramble(block);
                let mut new = *scrambled.first_chunk::<6>().expect("a block is longer");
                // Of one host, and never assigned (IEEE 802, 8.2).
                new[0] = new[0] & 0xfc | 2;
                new
            }
        }
    }

    fn low_bytes(&self, [a, b, c]: [u8; 3]) -> [u8; 3] {
        let [a, b, c, ..] = self.scramble([2, a, b, c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        [a, b, c]
    }

    fn scramble(&self, block: [u8; 16]) -> [u8; 16] {
        let mut block = block.into();
        self.stations.encrypt_block(&mut block);
        block.into()
    }
}
