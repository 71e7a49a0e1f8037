//! Which session a packet belongs to.
//!
//! The same code keys packets for the table and for extraction, so the two always agree. Only the
//! first fragment of a datagram carries ports; the keyer remembers them for the fragments that
//! follow. A later fragment that comes before its first one, or long after it, is keyed without
//! ports.

use core::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::FixedState;
use format::slice::Slice;
use units::Timestamp;
use wire::{Address, Decoded, FiveTuple, Protocol};

/// A VLAN id has 12 bits, so this is none.
const VLAN_NONE: u16 = u16::MAX;

/// Fragments of one datagram arrive within this time (Linux `ipfrag_time`, 30 s).
const FRAGMENT_LIFE_NS: i64 = 30 * units::NANOS_PER_SECOND;

/// Datagrams remembered at a time.
const DATAGRAM_COUNT: usize = 4096;

/// A session's key: its five-tuple in canonical order and, when asked for, its VLAN ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    tuple: FiveTuple,
    vlan: [u16; 2],
}

/// Three words, where the derived form would write a dozen fields one by one.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let FiveTuple { orig, resp, orig_port, resp_port, proto } = self.tuple;
        let [outer, inner] = self.vlan;
        state.write_u128(bits(orig));
        state.write_u128(bits(resp));
        let rest = [orig_port, resp_port, proto.0, outer, inner];
        state.write_u128(rest.iter().fold(0, |all, &part| all << 16 | u128::from(part)));
    }
}

/// The address as a number; of different kinds, some share theirs.
fn bits(address: Address) -> u128 {
    match address {
        Address::None => 0,
        Address::Mac(octets) => octets.iter().fold(0, |all, &octet| all << 8 | u128::from(octet)),
        Address::V4(ip) => ip.to_bits().into(),
        Address::V6(ip) => ip.to_bits(),
    }
}

impl Key {
    /// The key of `tuple`, and whether making it canonical turned the tuple round.
    pub(crate) fn new(tuple: FiveTuple, vlan: Option<[Option<u16>; 2]>) -> (Self, bool) {
        let (tuple, turned) = tuple.canonical();
        let vlan = vlan.unwrap_or_default().map(|id| id.unwrap_or(VLAN_NONE));
        (Self { tuple, vlan }, turned)
    }

    /// The key under which a row's session was kept.
    pub fn of_slice(slice: &Slice, vlan_in_key: bool) -> Self {
        Self::new(slice.tuple, vlan_in_key.then_some(slice.vlan)).0
    }

    /// The five-tuple in canonical order.
    pub fn tuple(&self) -> FiveTuple {
        self.tuple
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
#[derive(Debug)]
pub struct Keyer {
    vlan_in_key: bool,
    /// Empty until the first fragment is seen, then of `DATAGRAM_COUNT` places.
    datagrams: Vec<Option<Datagram>>,
}

impl Keyer {
    /// A keyer without memory; `vlan_in_key` makes the VLAN ids part of the key.
    pub fn new(vlan_in_key: bool) -> Self {
        Self { vlan_in_key, datagrams: Vec::new() }
    }

    /// The session of one packet. Packets are to be given in the order in which they were recorded.
    pub fn key(&mut self, timestamp: Timestamp, decoded: &Decoded<'_>) -> Key {
        self.key_and_turn(timestamp, decoded).0
    }

    /// The key, and whether the packet's sender is its second end.
    #[inline]
    pub(crate) fn key_and_turn(
        &mut self,
        timestamp: Timestamp,
        decoded: &Decoded<'_>,
    ) -> (Key, bool) {
        let tuple = match decoded.fragment {
            None => decoded.tuple,
            Some(_) => self.with_ports(timestamp, decoded),
        };
        Key::new(tuple, self.vlan_in_key.then_some(decoded.vlan))
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
        let hash =
            FixedState::with_seed(0).hash_one((tuple.orig, tuple.resp, tuple.proto, fragment.id));
        let count = u64::try_from(DATAGRAM_COUNT).expect("a small constant");
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
            && (first.proto, first.id) == (tuple.proto, fragment.id)
            && timestamp.since(first.seen).unsigned_abs() <= FRAGMENT_LIFE_NS.unsigned_abs()
        {
            (tuple.orig_port, tuple.resp_port) = first.ports;
        }
        tuple
    }
}
