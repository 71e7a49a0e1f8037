//! Packets whose process is not known yet: they wait, for a while, in their order.
//!
//! A packet is captured before the kernel has reported who opened its connection, or a look has
//! found it. What comes behind one that waits, waits too, so that packets stay in order.

use std::collections::VecDeque;

use capture::Packet;
use units::{ByteSize, Timestamp};
use wire::FiveTuple;

/// Longer than a connection of half the world away takes to be there, and several looks.
const HOLD_NS: i64 = 500_000_000;
/// Memory for them; the oldest are decided before their time when it is full.
const HELD_MAX: ByteSize = ByteSize(32 << 20);

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct HeldPacket {
    pub(crate) tuple: Option<FiveTuple>,
    since_ns: i64,
    timestamp: Timestamp,
    interface: u32,
    original_len: u32,
    outbound: Option<bool>,
    bytes: Box<[u8]>,
    options: Box<[u8]>,
}

impl HeldPacket {
    pub(crate) fn packet(&self) -> Packet<'_> {
        Packet {
            timestamp: self.timestamp,
            interface: self.interface,
            original_len: self.original_len,
            outbound: self.outbound,
            head: &self.bytes,
            tag: None,
            tail: &[],
            options: &self.options,
        }
    }

    fn memory(&self) -> u64 {
        let len = size_of::<Self>() + self.bytes.len() + self.options.len();
        u64::try_from(len).unwrap_or(u64::MAX)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Held {
    packets: VecDeque<HeldPacket>,
    memory: u64,
}

impl Held {
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(crate) fn push(&mut self, packet: &Packet<'_>, tuple: Option<FiveTuple>, now_ns: i64) {
        let held = HeldPacket {
            tuple,
            since_ns: now_ns,
            timestamp: packet.timestamp,
            interface: packet.interface,
            original_len: packet.original_len,
            outbound: packet.outbound,
            bytes: packet.parts().concat().into(),
            options: packet.options.into(),
        };
        self.memory = self.memory.saturating_add(held.memory());
        self.packets.push_back(held);
    }

    /// The first one, where it has waited long enough or is ready.
    pub(crate) fn next(
        &mut self,
        now_ns: i64,
        is_ready: impl Fn(Option<&FiveTuple>) -> bool,
    ) -> Option<HeldPacket> {
        let first = self.packets.front()?;
        let is_over = now_ns.saturating_sub(first.since_ns) >= HOLD_NS;
        if !is_over && self.memory <= HELD_MAX.0 && !is_ready(first.tuple.as_ref()) {
            return None;
        }
        let first = self.packets.pop_front()?;
        self.memory = self.memory.saturating_sub(first.memory());
        Some(first)
    }
}
