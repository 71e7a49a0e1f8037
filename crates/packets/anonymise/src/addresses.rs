//! Each address with the other one that it becomes.

use std::collections::HashMap;

use aes::Aes128;
use aes::cipher::{BlockEncrypt as _, KeyInit as _};

use super::met::{Met, Stations};
use super::prefix::{Pinned, Prefixes};

/// Addresses remembered: one costs up to 128 encryptions.
const REMEMBERED_MAX: usize = 1 << 18;

/// Exchanges addresses by a key, and remembers them.
#[derive(Clone)]
pub(super) struct Addresses {
    prefixes: Prefixes,
    stations: Aes128,
    v4: HashMap<[u8; 4], [u8; 4]>,
    v6: HashMap<[u8; 16], [u8; 16]>,
    /// Where stations that are met are put down.
    pub(super) met: Option<Met>,
    /// The way back, for which no key is enough: others have become these stations.
    back: Option<Stations>,
}

impl Addresses {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let prefixes = Prefixes::new(key);
        // A key of its own: no block that one of them encrypts says anything of the other.
        let mut stations = [0x6d; 16].into();
        prefixes.encrypt(&mut stations);
        let stations = Aes128::new(&stations);
        let (v4, v6) = (HashMap::new(), HashMap::new());
        Self { prefixes, stations, v4, v6, met: None, back: None }
    }

    /// From other addresses to those of the wire.
    pub(super) fn reversed(self, stations: Stations) -> Self {
        let (v4, v6) = (HashMap::new(), HashMap::new());
        Self { v4, v6, back: Some(stations), met: None, ..self }
    }

    fn other(&self, bits: u128, width: u32, pinned: &Pinned) -> u128 {
        if self.back.is_some() {
            self.prefixes.restore(bits, width, pinned)
        } else {
            self.prefixes.exchange(bits, width, pinned)
        }
    }

    /// The other address; the same for the same.
    pub(super) fn ipv4(&mut self, address: [u8; 4]) -> [u8; 4] {
        if let Some(known) = self.v4.get(&address) {
            return *known;
        }
        let number = u32::from_be_bytes(address);
        let bits = u128::from(number) << 96;
        let new = self.other(bits, 32, &Pinned::V4) >> 96;
        let new = u32::try_from(new).expect("the upper 32 bits").to_be_bytes();
        if self.v4.len() >= REMEMBERED_MAX {
            self.v4.clear();
        }
        self.v4.insert(address, new);
        new
    }

    /// As [`Self::ipv4`].
    pub(super) fn ipv6(&mut self, address: [u8; 16]) -> [u8; 16] {
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
                self.other(bits, 128, &Pinned::V6).to_be_bytes()
            }
        };
        if self.v6.len() >= REMEMBERED_MAX {
            self.v6.clear();
        }
        self.v6.insert(address, new);
        new
    }

    /// A station; what names a group and not a host stays.
    pub(super) fn station(&self, address: [u8; 6]) -> [u8; 6] {
        match address {
            [0, 0, 0, 0, 0, 0] => address,
            // The group of a solicited-node address (RFC 2464, section 7).
            [0x33, 0x33, 0xff, a, b, c] => {
                let [a, b, c] = self.low_bytes([a, b, c]);
                [0x33, 0x33, 0xff, a, b, c]
            }
            [first, ..] if first & 1 != 0 => address,
            station if self.back.is_some() => {
                let stations = self.back.as_ref().map(|back| &back.stations);
                stations.and_then(|known| known.get(&station)).copied().unwrap_or(station)
            }
            station => {
                let mut block = [0; 16];
                for (place, byte) in block.iter_mut().zip([1].iter().chain(&station)) {
                    *place = *byte;
                }
                let scrambled = self.scramble(block);
                let mut new = *scrambled.first_chunk::<6>().expect("a block is longer");
                // Of one host, and never assigned (IEEE 802, 8.2).
                new[0] = new[0] & 0xfc | 2;
                if let Some(met) = &self.met {
                    met.station(new, station);
                }
                new
            }
        }
    }

    fn low_bytes(&self, old: [u8; 3]) -> [u8; 3] {
        if let Some(back) = &self.back {
            return back.groups.get(&old).copied().unwrap_or(old);
        }
        let [a, b, c] = old;
        let [a, b, c, ..] = self.scramble([2, a, b, c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        if let Some(met) = &self.met {
            met.group([a, b, c], old);
        }
        [a, b, c]
    }

    fn scramble(&self, block: [u8; 16]) -> [u8; 16] {
        let mut block = block.into();
        self.stations.encrypt_block(&mut block);
        block.into()
    }
}
