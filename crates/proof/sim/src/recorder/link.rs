//! The link that is recorded: numbered packets that arrive in virtual time, through a kernel ring
//! that may be full.

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard};

use capture::{Counters, Error, Interface, MadePackets, Next, Source};
use device::Timeline;
use units::number::to_u64;
use units::{Clock, Sleep, Timestamp, mix};
use wire::LinkType;

/// Packets that the kernel ring holds.
const RING: u64 = 64;
/// Packets of a batch.
const BATCH: u64 = 16;
/// Between two looks while nothing arrives.
const IDLE_NS: i64 = 50_000_000;

/// A packet that was handed to the recorder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Offered {
    pub(crate) number: u64,
    /// As it was captured.
    pub(crate) timestamp: Timestamp,
    /// Time since the simulation began, which no clock changes.
    pub(crate) at_ns: i64,
}

/// What all threads may know of the link; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Wire(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    next: u64,
    /// Between two packets.
    gap_ns: u64,
    next_ns: i64,
    offered: Vec<Offered>,
    kernel_drops: u64,
}

impl Wire {
    pub(crate) fn new() -> Self {
        let (offered, kernel_drops) = (Vec::new(), 0);
        Self(Arc::new(Mutex::new(State {
            next: 1,
            gap_ns: 1_000_000,
            next_ns: 0,
            offered,
            kernel_drops,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        stage::lock(&self.0)
    }

    /// From now on a packet comes after each such time.
    pub(crate) fn set_gap(&self, ns: u64) {
        self.lock().gap_ns = ns;
    }

    /// A recording begins: what passed before was not seen.
    pub(crate) fn begin(&self, now_ns: i64) {
        let mut state = self.lock();
        state.next_ns = now_ns;
        state.kernel_drops = 0;
        state.offered.clear();
    }

    /// Packets that were handed over since the recording began.
    pub(crate) fn offered(&self) -> Vec<Offered> {
        self.lock().offered.clone()
    }

    pub(crate) fn offered_count(&self) -> usize {
        self.lock().offered.len()
    }
}

/// The bytes of a packet.
pub(crate) fn content(number: u64) -> Vec<u8> {
    let len = 40 + usize::try_from(mix(number) % 1100).expect("a small number");
    let mut bytes = vec![0; len.next_multiple_of(8)];
    let (words, _) = bytes.as_chunks_mut::<8>();
    for (place, word) in (0..).zip(words) {
        let value: u64 = if place == 0 { number } else { mix(number << 8 ^ place) };
        *word = value.to_le_bytes();
    }
    bytes.truncate(len);
    bytes
}

/// A queue of the link.
pub(crate) struct Link {
    wire: Wire,
    timeline: Timeline,
    interfaces: [Interface; 1],
    packets: MadePackets,
    received: u64,
    /// Not taken out of the kernel ring so far.
    waiting: Vec<(u64, i64)>,
    is_stopping: bool,
}

impl Link {
    pub(crate) fn new(wire: &Wire, timeline: &Timeline) -> Self {
        let interface = Interface {
            name: "sim".to_owned(),
            description: None,
            link_type: LinkType::ETHERNET,
            snaplen: 0,
            filter: None,
            options: Vec::new(),
        };
        Self {
            wire: wire.clone(),
            timeline: timeline.clone(),
            interfaces: [interface],
            packets: MadePackets::default(),
            received: 0,
            waiting: Vec::new(),
            is_stopping: false,
        }
    }

    /// What has arrived meanwhile lies in the kernel ring, as far as there was space.
    fn arrive(&mut self) {
        let now_ns = self.timeline.now_ns();
        let mut state = self.wire.lock();
        while !self.is_stopping && state.next_ns <= now_ns {
            let (number, at_ns) = (state.next, state.next_ns);
            state.next += 1;
            state.next_ns = at_ns.saturating_add_unsigned(state.gap_ns);
            self.received += 1;
            if to_u64(self.waiting.len()) < RING {
                self.waiting.push((number, at_ns));
            } else {
                state.kernel_drops += 1;
                // What comes without a reader is only counted.
                let missed = now_ns.saturating_sub(state.next_ns).max(0).unsigned_abs();
                let missed = missed / state.gap_ns;
                state.next += missed;
                state.next_ns = state.next_ns.saturating_add_unsigned(missed * state.gap_ns);
                self.received += missed;
                state.kernel_drops += missed;
            }
        }
    }

    fn hand_over(&mut self) {
        let count = self.waiting.len().min(usize::try_from(BATCH).expect("a small number"));
        let (now, now_ns) = (self.timeline.realtime(), self.timeline.now_ns());
        self.packets.clear();
        let mut state = self.wire.lock();
        for (number, at_ns) in self.waiting.drain(..count) {
            let timestamp = now.plus_nanos(at_ns.saturating_sub(now_ns));
            self.packets.push(timestamp, 0, &content(number));
            state.offered.push(Offered { number, timestamp, at_ns });
        }
    }
}

impl Source for Link {
    fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    fn next_batch(&mut self, wait: Duration) -> Result<Next<'_>, Error> {
        self.arrive();
        if self.waiting.is_empty() && self.is_stopping {
            return Ok(Next::End);
        }
        if self.waiting.is_empty() {
            let wait_ns = i64::try_from(wait.as_nanos()).unwrap_or(IDLE_NS);
            let next_ns = self.wire.lock().next_ns;
            let until_ns = self.timeline.now_ns().saturating_add(wait_ns).min(next_ns);
            self.timeline.sleep_until(until_ns);
            self.arrive();
        }
        if self.waiting.is_empty() {
            return Ok(Next::Idle);
        }
        self.hand_over();
        Ok(Next::Packets(self.packets.batch(&self.interfaces)))
    }

    fn counters(&mut self) -> Vec<Counters> {
        let kernel_drops = self.wire.lock().kernel_drops;
        let waiting = to_u64(self.waiting.len());
        let delivered = self.received - kernel_drops - waiting;
        let received = self.received;
        vec![Counters { received, delivered, kernel_drops, ..Counters::default() }]
    }

    fn notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn begin_stop(&mut self) {
        self.arrive();
        self.is_stopping = true;
    }
}
