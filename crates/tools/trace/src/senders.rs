//! Whose packets are that the kernel has seen being sent: known of processes that end at once, too.

use std::collections::VecDeque;
use std::sync::Arc;

use network::sockets::Owner;
use observe::tracepoints::{self, NotTraced};
use units::Timestamp;

use crate::names::Names;

/// A packet is captured just before the kernel says who sends it. The clocks are read one after
/// the other, and the process may lose its processor between the two.
const BEFORE_NS: i64 = 50_000;
const AFTER_NS: i64 = 5_000_000;
/// Packets that are remembered: a burst of a quarter of a million.
const SENT_MAX: usize = 1 << 18;

/// A packet that a process sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// When it did.
    pub at: Timestamp,
    /// Length on the wire.
    pub bytes: u32,
    /// Who it was.
    pub owner: Arc<Owner>,
}

/// Listens to the kernel.
#[derive(Debug)]
pub struct Senders {
    kernel: tracepoints::Senders,
    names: Names,
}

impl Senders {
    /// Listens to what comes out at this end of a pair of interfaces; programs send at the other.
    ///
    /// # Errors
    /// The kernel has no such tracepoints, or they may not be listened to.
    pub fn open(end: &str) -> Result<Self, NotTraced> {
        let kernel = tracepoints::Senders::open(end)?;
        Ok(Self { kernel, names: Names::default() })
    }

    /// What was sent since the last time.
    pub fn read(&mut self) -> Vec<Sent> {
        let packets = self.kernel.sent();
        for packet in &packets {
            self.names.meet(packet.process);
        }
        // Behind the packets: who was gone already when it was looked for has ended by now.
        let ended = self.names.end(self.kernel.ended());
        let sent = packets.into_iter().filter_map(|packet| {
            let owner = self.names.owner(packet.process)?;
            Some(Sent { at: Timestamp(packet.at_ns), bytes: packet.bytes, owner })
        });
        let sent = sent.collect();
        self.names.forget(&ended);
        sent
    }
}

/// Packets that were sent and not captured yet, or that the filter leaves out.
#[derive(Debug, Default)]
pub(crate) struct Waiting(VecDeque<Sent>);

impl Waiting {
    pub(crate) fn extend(&mut self, sent: Vec<Sent>) {
        self.0.extend(sent);
        let over = self.0.len().saturating_sub(SENT_MAX);
        self.0.drain(..over);
    }

    /// Who sent a packet that was captured at this time: those come in the order of time, too.
    pub(crate) fn take(&mut self, at: Timestamp, bytes: u32) -> Option<Arc<Owner>> {
        while self.0.front().is_some_and(|sent| sent.at.0 < at.0 - BEFORE_NS) {
            self.0.pop_front();
        }
        let near = self.0.iter().take_while(|sent| sent.at.0 <= at.0 + AFTER_NS);
        let place = near.clone().position(|sent| sent.bytes == bytes)?;
        self.0.remove(place).map(|sent| sent.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(at_ns: i64, bytes: u32, process: u32) -> Sent {
        let owner = Arc::new(Owner { process, name: "curl".to_owned() });
        Sent { at: Timestamp(at_ns), bytes, owner }
    }

    #[test]
    fn a_packet_is_of_who_sent_one_of_its_length_just_then() {
        let mut waiting = Waiting::default();
        let second = 1_000_000_000;
        waiting.extend(vec![sent(0, 74, 1), sent(second, 60, 2), sent(second + 9000, 74, 3)]);
        let mut of = |at_ns, bytes| {
            let owner = waiting.take(Timestamp(at_ns), bytes);
            owner.map(|owner| owner.process)
        };
        assert_eq!(of(second - 1000, 74), Some(3), "the first one was long before");
        assert_eq!(of(second - 1000, 74), None, "each once");
        assert_eq!(of(second - 6_000_000, 60), None, "that was sent later");
        assert_eq!(of(second - 900, 60), Some(2));
    }
}
