//! Crypto-PAn: J. Xu, J. Fan, M. Ammar, S. Moon, "Prefix-Preserving IP Address Anonymization",
//! ICNP 2002, with AES-128 as in its authors' program; for IPv6 the same over 128 bits.
//!
//! Bit n of an address is turned over or not, by the first bit of an encryption of the n bits in
//! front of it. So equal prefixes stay equal, and different ones different. Two things are added:
//! along the way to ranges that mean something (multicast, link-local) nothing is turned over, so
//! that no host comes out as a group; and single addresses that mean something stay, by walking
//! on from any other that would become one of them.

use aes::Aes128;
use aes::cipher::{BlockEncrypt as _, KeyInit as _};

/// Addresses that stay what they are, in the upper bits.
pub(super) struct Pinned {
    /// Prefixes, with their lengths, that stay; what is below follows the second number.
    prefixes: &'static [(u128, u32, Below)],
    /// Single addresses and ranges that stay whole.
    whole: &'static [(u128, u32)],
}

/// What happens to the bits behind a pinned prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    Stays,
    Changes,
}

impl Pinned {
    pub(super) const V4: Self = Self {
        // Multicast and what is behind it.
        prefixes: &[(0xe0 << 120, 3, Below::Stays)],
        // Unspecified; loopback.
        whole: &[(0, 32), (0x7f << 120, 8)],
    };
    pub(super) const V6: Self = Self {
        // Multicast; link-local.
        prefixes: &[(0xff << 120, 8, Below::Stays), (0xfe80 << 112, 10, Below::Changes)],
        // Unspecified; loopback.
        whole: &[(0, 128), (1, 128)],
    };
    #[cfg(test)]
    pub(super) const NOTHING: Self = Self { prefixes: &[], whole: &[] };

    /// Whether the bit behind `len` bits stays.
    fn holds(&self, bits: u128, len: u32) -> bool {
        self.prefixes.iter().any(|&(prefix, of, below)| {
            let common = len.min(of);
            let is_below = len >= of;
            (prefix ^ bits) & mask(common) == 0 && (!is_below || below == Below::Stays)
        })
    }

    fn keeps(&self, bits: u128) -> bool {
        self.whole.iter().any(|&(prefix, len)| (prefix ^ bits) & mask(len) == 0)
    }
}

/// The upper `len` bits.
fn mask(len: u32) -> u128 {
    if len == 0 { 0 } else { u128::MAX << (128 - len) }
}

/// The key.
#[derive(Clone)]
pub(super) struct Prefixes {
    cipher: Aes128,
    pad: u128,
}

impl Prefixes {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let (key, pad) = key.split_at(16);
        let cipher = Aes128::new_from_slice(key).expect("16 bytes are a key");
        let mut block: aes::Block = *aes::Block::from_slice(pad);
        cipher.encrypt_block(&mut block);
        Self { pad: u128::from_be_bytes(block.into()), cipher }
    }

    pub(super) fn encrypt(&self, block: &mut aes::Block) {
        self.cipher.encrypt_block(block);
    }

    /// The other address of one whose `width` bits are the upper ones of `bits`.
    pub(super) fn exchange(&self, bits: u128, width: u32, pinned: &Pinned) -> u128 {
        if pinned.keeps(bits) {
            return bits;
        }
        let mut new = self.once(bits, width, pinned);
        // The map is one to one, so this comes back to where nothing is kept.
        while pinned.keeps(new) {
            new = self.once(new, width, pinned);
        }
        new
    }

    /// The address that [`Self::exchange`] makes this one of.
    pub(super) fn restore(&self, bits: u128, width: u32, pinned: &Pinned) -> u128 {
        if pinned.keeps(bits) {
            return bits;
        }
        let mut old = self.back_once(bits, width, pinned);
        while pinned.keeps(old) {
            old = self.back_once(old, width, pinned);
        }
        old
    }

    /// Bit by bit: those in front are known when one is turned back.
    fn back_once(&self, bits: u128, width: u32, pinned: &Pinned) -> u128 {
        (0..width).fold(bits, |old, len| {
            let is_turned = !pinned.holds(old, len) && self.turns(old, len);
            if is_turned { old ^ (1 << (127 - len)) } else { old }
        })
    }

    fn once(&self, bits: u128, width: u32, pinned: &Pinned) -> u128 {
        let turned = (0..width).filter(|&len| !pinned.holds(bits, len) && self.turns(bits, len));
        turned.fold(bits, |new, len| new ^ (1 << (127 - len)))
    }

    /// Whether the bit behind `len` bits is turned over.
    fn turns(&self, bits: u128, len: u32) -> bool {
        let input = bits & mask(len) | self.pad & !mask(len);
        let mut block = aes::Block::from(input.to_be_bytes());
        self.cipher.encrypt_block(&mut block);
        block.first().is_some_and(|first| first & 0x80 != 0)
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// The key of the authors' sample trace, cryptopan 1.0.
    const KEY: [u8; 32] = [
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131,
        121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ];

    fn v4(text: &str) -> u128 {
        u128::from(text.parse::<Ipv4Addr>().unwrap().to_bits()) << 96
    }

    #[test]
    fn addresses_are_those_of_the_authors_sample_trace() {
        let prefixes = Prefixes::new(&KEY);
        for (old, new) in [
            ("128.11.68.132", "135.242.180.132"),
            ("129.118.74.4", "134.136.186.123"),
            ("130.132.252.244", "133.68.164.234"),
            ("141.223.7.43", "141.167.8.160"),
            ("152.163.225.39", "151.140.114.167"),
            ("207.25.71.27", "241.33.119.156"),
            ("24.0.250.221", "100.15.198.226"),
            ("38.15.67.68", "64.3.66.187"),
            ("4.3.88.225", "124.60.155.63"),
            ("64.39.15.238", "0.219.7.41"),
            ("10.185.25.118", "117.161.29.118"),
        ] {
            assert_eq!(prefixes.exchange(v4(old), 32, &Pinned::NOTHING), v4(new), "{old}");
        }
        // IPv6 as in the programs that followed.
        for (old, new) in [
            ("::1", "78ff:f001:9fc0:20df:8380:b1f1:704:ed"),
            ("2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"),
            ("2001:db8::2", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c"),
        ] {
            let bits = |text: &str| text.parse::<Ipv6Addr>().unwrap().to_bits();
            assert_eq!(prefixes.exchange(bits(old), 128, &Pinned::NOTHING), bits(new), "{old}");
        }
    }

    proptest::proptest! {
        #[test]
        fn prefixes_stay_common_and_groups_groups(
            key: [u8; 32], one: u128, other: u128, common in 0_u32..33,
        ) {
            let prefixes = Prefixes::new(&key);
            let other = one & mask(common) | other & !mask(common);
            let check = |width, pinned: &Pinned| {
                let [one, other] = [one, other].map(|bits| bits & mask(width));
                let new = [one, other].map(|bits| prefixes.exchange(bits, width, pinned));
                if [one, other].iter().any(|bits| pinned.keeps(*bits)) {
                    return;
                }
                assert_eq!(one == other, new[0] == new[1]);
                // Walking on from what is kept leaves the neighbourhood.
                let once = [one, other].map(|bits| prefixes.once(bits, width, pinned));
                let length = (one ^ other).leading_zeros();
                assert_eq!((once[0] ^ once[1]).leading_zeros(), length);
            };
            check(32, &Pinned::V4);
            check(128, &Pinned::V6);
            for (width, pinned) in [(32, Pinned::V4), (128, Pinned::V6)] {
                let bits = one & mask(width);
                let new = prefixes.exchange(bits, width, &pinned);
                assert_eq!(prefixes.restore(new, width, &pinned), bits);
            }
            let is_group = |bits: u128| bits >> 125 == 7;
            let new = prefixes.exchange(one & mask(32), 32, &Pinned::V4);
            assert_eq!(is_group(new), is_group(one));
            assert!(!is_group(one) || new == one & mask(32));
            let local = 0xfe80 << 112 | one >> 64;
            assert_eq!(prefixes.exchange(local, 128, &Pinned::V6) >> 118, 0xfe80 >> 6);
            let group = 0xff02 << 112 | one >> 64;
            assert_eq!(prefixes.exchange(group, 128, &Pinned::V6), group);
        }
    }

    #[test]
    fn what_means_something_stays_and_nothing_becomes_it() {
        for key in 0..8 {
            let prefixes = Prefixes::new(&[key; 32]);
            let new = |text| prefixes.exchange(v4(text), 32, &Pinned::V4);
            for text in ["0.0.0.0", "127.0.0.1", "224.0.0.251", "255.255.255.255"] {
                assert_eq!(new(text), v4(text), "{text}");
            }
            // The image of some block is the loopback's: whole blocks walk on together, and back.
            for first in 0..127_u128 {
                let old = first << 120 | 1 << 96;
                let new = prefixes.exchange(old, 32, &Pinned::V4);
                assert_ne!(new >> 120, 127);
                assert_eq!(prefixes.restore(new, 32, &Pinned::V4), old);
            }
        }
    }
}
