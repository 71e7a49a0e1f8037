//! Which session a packet belongs to.
//!
//! The same code keys packets for the table and for extraction, so the two always agree. Only the
//! first fragment of a datagram carries ports; the keyer remembers them for the fragments that
//! follow. A later fragment that comes before its first one, or long after it, is keyed without
//! ports.

use core::hash::{Hash, Hasher};

use format::session_row::SessionRow;
use units::Timestamp;
use units::number::to_u64;
use wire::{Address, Decoded, FiveTuple, Protocol};

use crate::siphash::SipHasher;

/// A VLAN id has 12 bits, so this is none.
const VLAN_NONE: u16 = u16::MAX;

/// Fragments of one datagram arrive within this time (Linux `ipfrag_time`, 30 s).
pub(crate) const FRAGMENT_LIFE_NS: i64 = 30 * units::NANOS_PER_SECOND;

/// Datagrams remembered at a time.
const DATAGRAM_COUNT: usize = 4096;

/// What an [`Address`] is, in the order of its variants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    None,
    Mac,
    V4,
    V6,
}

impl Kind {
    #[inline]
    fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Mac => 1,
            Self::V4 => 2,
            Self::V6 => 3,
        }
    }
}

/// A session's key: its five-tuple in canonical order and, when asked for, its VLAN ids; compact,
/// because it is made of every packet and lies in every hot record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    /// The addresses as numbers, big endian.
    addresses: [[u8; 16]; 2],
    ports: [u16; 2],
    proto: Protocol,
    vlan: [u16; 2],
    kinds: [Kind; 2],
}

const _: () = assert!(size_of::<Key>() == 44);

/// Three words, where the derived form would write a dozen fields one by one.
impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { addresses: [orig, resp], ports: [orig_port, resp_port], proto, vlan, .. } =
            *self;
        // Addresses of different kinds may share a number; they are rare on the same ports.
        state.write_u128(u128::from_be_bytes(orig));
        state.write_u128(u128::from_be_bytes(resp));
        let [outer, inner] = vlan;
        let numbers = [orig_port, resp_port, proto.0, outer, inner];
        state.write_u128(numbers.iter().fold(0, |all, &part| all << 16 | u128::from(part)));
    }
}

/// The address as a number, which sorts as addresses of its kind do.
#[inline]
fn number(address: &Address) -> (Kind, u128) {
    match *address {
        Address::None => (Kind::None, 0),
        Address::Mac(octets) => {
            (Kind::Mac, octets.iter().fold(0, |all, &octet| all << 8 | u128::from(octet)))
        }
        Address::V4(ip) => (Kind::V4, ip.to_bits().into()),
        Address::V6(ip) => (Kind::V6, ip.to_bits()),
    }
}

fn address(kind: Kind, number: [u8; 16]) -> Address {
    match kind {
        Kind::None => Address::None,
        Kind::Mac => Address::Mac(*number.last_chunk().expect("16 bytes end in 6")),
        Kind::V4 => Address::V4((*number.last_chunk::<4>().expect("16 bytes end in 4")).into()),
        Kind::V6 => Address::V6(number.into()),
    }
}

impl Key {
    /// The key of `tuple`, and whether making it canonical turned the tuple round.
    ///
    /// The tuple is not copied: it was just written field by field, and a copy reads it in words
    /// that lie across those, which waits until they have all left for the cache.
    #[inline]
    pub(crate) fn new(tuple: &FiveTuple, vlan: Option<&[Option<u16>; 2]>) -> (Self, bool) {
        let FiveTuple { orig, resp, orig_port, resp_port, proto } = tuple;
        let (orig_port, resp_port, proto) = (*orig_port, *resp_port, *proto);
        let (orig, resp) = (number(orig), number(resp));
        // The order of `FiveTuple::canonical`.
        let turned = (orig, orig_port) > (resp, resp_port);
        let (ends, ports) = if turned {
            ([resp, orig], [resp_port, orig_port])
        } else {
            ([orig, resp], [orig_port, resp_port])
        };
        let key = Self {
            addresses: ends.map(|(_, number)| number.to_be_bytes()),
            ports,
            proto,
            vlan: vlan.map_or([VLAN_NONE; 2], |ids| ids.map(|id| id.unwrap_or(VLAN_NONE))),
            kinds: ends.map(|(kind, _)| kind),
        };
        (key, turned)
    }

    /// Its hash under a table's secret.
    #[inline]
    pub(crate) fn hashed(&self, hasher: &SipHasher) -> u64 {
        let Self { addresses, ports: [first, second], proto, vlan: [outer, inner], kinds } = self;
        let numbers = [*first, *second, proto.0, *outer];
        let numbers = numbers.into_iter().fold(0, |word, number| word << 16 | u64::from(number));
        let [first_kind, second_kind] = kinds.map(Kind::number);
        let tail = u32::from(*inner) << 16 | u32::from(first_kind) << 8 | u32::from(second_kind);
        let halves: &[[u8; 8]; 4] =
            addresses.as_flattened().as_chunks().0.try_into().expect("two addresses of 16 bytes");
        let [_, first, _, second] = halves.map(u64::from_be_bytes);
        if *kinds == [Kind::V4; 2] {
            return hasher.hash(&[first << 32 | second, numbers], tail);
        }
        let [first_high, _, second_high, _] = halves.map(u64::from_be_bytes);
        hasher.hash(&[first_high, first, second_high, second, numbers], tail)
    }

    /// The key under which a row's session was kept.
    pub fn of_slice(slice: &SessionRow, vlan_in_key: bool) -> Self {
        Self::new(&slice.tuple, vlan_in_key.then_some(&slice.vlan)).0
    }

    /// What its session speaks.
    #[inline]
    pub fn proto(&self) -> Protocol {
        self.proto
    }

    /// The five-tuple in canonical order.
    pub fn tuple(&self) -> FiveTuple {
        let Self { addresses: [first, second], ports: [orig_port, resp_port], proto, .. } = *self;
        let [first_kind, second_kind] = self.kinds;
        let (orig, resp) = (address(first_kind, first), address(second_kind, second));
        FiveTuple { orig, resp, orig_port, resp_port, proto }
    }
}

/// The datagram that a fragment is part of (RFC 791, RFC 8200 4.5), and the ports its first
/// fragment carried.
#[derive(Clone, Copy, Debug)]
struct Datagram {
    src: Address,
    dst: Address,
    proto: Protocol,
    id: u32,
    seen: Timestamp,
    ports: (u16, u16),
}

/// Keys packets; remembers the ports of fragmented datagrams in a table of fixed size, in which a
/// newer datagram may push out an older one.
#[derive(Clone, Debug)]
pub struct Keyer {
    vlan_in_key: bool,
    /// For fragments. It is the same in every keyer, so that recording and extraction forget the
    /// same datagrams; two in one place cost the older one its ports, and no time.
    hasher: SipHasher,
    /// Empty until the first fragment is seen, then of `DATAGRAM_COUNT` places.
    datagrams: Vec<Option<Datagram>>,
}

impl Keyer {
    pub(crate) fn vlan_in_key(&self) -> bool {
        self.vlan_in_key
    }

    /// A keyer without memory; `vlan_in_key` makes the VLAN ids part of the key.
    pub fn new(vlan_in_key: bool) -> Self {
        Self { vlan_in_key, hasher: SipHasher::new(0), datagrams: Vec::new() }
    }

    /// The session of one packet. Packets are to be given in the order in which they were recorded.
    pub fn key(&mut self, timestamp: Timestamp, decoded: &Decoded<'_>) -> Key {
        self.key_and_turn(timestamp, decoded).0
    }

    /// The key, and whether the packet's sender is its second end.
    #[inline]
    pub fn key_and_turn(&mut self, timestamp: Timestamp, decoded: &Decoded<'_>) -> (Key, bool) {
        let vlan = self.vlan_in_key.then_some(&decoded.vlan);
        match decoded.fragment {
            None => Key::new(&decoded.tuple, vlan),
            Some(_) => Key::new(&self.with_ports(timestamp, decoded), vlan),
        }
    }

    #[cold]
    fn with_ports(&mut self, timestamp: Timestamp, decoded: &Decoded<'_>) -> FiveTuple {
        let mut tuple = decoded.tuple;
        let Some(fragment) = decoded.fragment.filter(|part| part.offset > 0 || part.more) else {
            return tuple;
        };
        if self.datagrams.is_empty() {
            self.datagrams = vec![None; DATAGRAM_COUNT];
        }
        // In IPv6 the field is the number of the first header that was cut up, of each fragment
        // perhaps another one: the first fragment says what it leads to (RFC 8200 4.5).
        let has_own_proto = !matches!(tuple.orig, Address::V6(_));
        let proto = if has_own_proto { tuple.proto } else { Protocol::UNPARSED };
        let ends = FiveTuple { orig_port: 0, resp_port: 0, proto, ..tuple };
        let mut key = Key::new(&ends, None).0;
        let [low, high] = [fragment.id & 0xffff, fragment.id >> 16];
        key.vlan = [low, high].map(|half| u16::try_from(half).expect("16 bits"));
        let hash = key.hashed(&self.hasher);
        let count = to_u64(DATAGRAM_COUNT);
        let place = usize::try_from(hash % count).expect("below a small constant");
        let slot = self.datagrams.get_mut(place).expect("the remainder is below the length");
        if fragment.offset == 0 {
            *slot = Some(Datagram {
                src: tuple.orig,
                dst: tuple.resp,
                proto: tuple.proto,
                id: fragment.id,
                seen: timestamp,
                ports: (tuple.orig_port, tuple.resp_port),
            });
        } else if let Some(first) = slot
            && (first.src, first.dst) == (tuple.orig, tuple.resp)
            && first.id == fragment.id
            && (!has_own_proto || first.proto == tuple.proto)
            && timestamp.since(first.seen).unsigned_abs() <= FRAGMENT_LIFE_NS.unsigned_abs()
        {
            (tuple.orig_port, tuple.resp_port) = first.ports;
            tuple.proto = first.proto;
        }
        tuple
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn addresses() -> impl Strategy<Value = Address> {
        prop_oneof![
            Just(Address::None),
            (0_u8..2, any::<u8>()).prop_map(|(a, b)| Address::Mac([a, 0, 0, 0, 0, b])),
            (0_u8..2, any::<u8>()).prop_map(|(a, b)| Address::V4([a, 0, 0, b].into())),
            (0_u128..2, any::<u8>())
                .prop_map(|(a, b)| Address::V6((a << 127 | u128::from(b)).into())),
        ]
    }

    proptest! {
        #[test]
        fn a_key_holds_the_canonical_tuple(
            (orig, resp) in (addresses(), addresses()),
            (orig_port, resp_port) in (0_u16..3, 0_u16..3),
            proto: u16,
        ) {
            let tuple = FiveTuple { orig, resp, orig_port, resp_port, proto: Protocol(proto) };
            let (key, turned) = Key::new(&tuple, None);
            prop_assert_eq!((key.tuple(), turned), tuple.canonical());
            prop_assert_eq!(key, Key::new(&tuple.reversed(), None).0);
        }
    }
}
