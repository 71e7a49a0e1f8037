//! From a source to frames in memory: what can be sent, in which sender, and when.

use core::time::Duration;

use capture::{FrameLimits, Next, Packet, Source, Unfit};
use wire::LinkType;

use crate::frames::Chunk;
use crate::report::Skipped;
use crate::schedule::{Pace, Schedule};
use crate::unique::place_of;

/// Longest wait for a source that has nothing just now.
const WAIT: Duration = Duration::from_millis(20);

/// What becomes of packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) pace: Pace,
    pub(crate) limits: FrameLimits,
    /// Truncated packets are filled up with zeros.
    pub(crate) pad: bool,
    pub(crate) sender_count: usize,
}

/// How a step of reading ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Packets,
    Idle,
    End,
}

/// What was read in the first loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Read {
    /// Packets that can be sent.
    pub(crate) packets: u64,
    pub(crate) skipped: Skipped,
    /// The first link type that does not fit.
    pub(crate) other_link_type: Option<LinkType>,
    /// What could not be read, one line each; of further loops, too.
    pub(crate) broken_off: Vec<String>,
    /// What the source had to say.
    pub(crate) notes: Vec<String>,
}

/// The input of one loop.
pub(crate) struct Reader {
    source: Box<dyn Source>,
    rules: Rules,
    schedule: Schedule,
    /// The open chunk of each sender.
    senders: Vec<Chunk>,
    pub(crate) read: Read,
    first_error: Option<capture::Error>,
}

impl Reader {
    pub(crate) fn new(source: Box<dyn Source>, rules: Rules) -> Self {
        let schedule = Schedule::new(rules.pace);
        let senders = vec![Chunk::default(); rules.sender_count];
        Self { source, rules, schedule, senders, read: Read::default(), first_error: None }
    }

    /// Reads one batch. When a chunk is full the open ones of all senders are handed out, with the
    /// numbers of their senders, so that no sender has to wait for what is read already.
    pub(crate) fn step(&mut self, out: &mut dyn FnMut(usize, Chunk)) -> Step {
        let batch = match self.source.next_batch(WAIT) {
            Ok(Next::Packets(batch)) => batch,
            Ok(Next::Block(_)) => return Step::Packets,
            Ok(Next::Idle) => return Step::Idle,
            Ok(Next::End) => return Step::End,
            Err(error) => {
                self.read.broken_off.push(error.to_string());
                self.first_error.get_or_insert(error);
                return Step::Packets;
            }
        };
        let interfaces = batch.interfaces();
        for packet in batch {
            let at = usize::try_from(packet.interface).expect("interfaces are counted in memory");
            let link_type = interfaces.get(at).map(|interface| interface.link_type);
            let Some(padding) = self.read.judge(&packet, link_type, &self.rules) else { continue };
            let frame_len = packet.captured_len() + padding;
            let place = self.schedule.place(packet.timestamp, frame_len);
            let number = match self.rules.sender_count {
                1 => 0,
                count => place_of(packet.head, count),
            };
            let sender = self.senders.get_mut(number).expect("places are numbers of senders");
            sender.push(place, packet.parts(), padding);
            if sender.is_full() {
                hand_out(&mut self.senders, out);
            }
        }
        Step::Packets
    }

    /// Hands out what is left in open chunks.
    pub(crate) fn flush(&mut self, out: &mut dyn FnMut(usize, Chunk)) {
        hand_out(&mut self.senders, out);
    }

    /// The place where the next loop begins.
    pub(crate) fn end(&self) -> u64 {
        self.schedule.end()
    }

    pub(crate) fn rules(&self) -> Rules {
        self.rules
    }

    /// The first error of an input of which not one packet was read.
    pub(crate) fn failure(&mut self) -> Option<capture::Error> {
        let is_empty = self.read.packets == 0 && self.read.skipped == Skipped::default();
        self.first_error.take_if(|_| is_empty)
    }

    /// What was read, with what the source has to say.
    pub(crate) fn finish(&mut self) -> Read {
        Read { notes: self.source.notes(), ..core::mem::take(&mut self.read) }
    }
}

fn hand_out(senders: &mut [Chunk], out: &mut dyn FnMut(usize, Chunk)) {
    for (number, sender) in senders.iter_mut().enumerate() {
        if !sender.is_empty() {
            out(number, core::mem::take(sender));
        }
    }
}

impl Read {
    /// How many zeros a packet needs to be sent; `None`, counted, where it cannot be sent.
    fn judge(
        &mut self,
        packet: &Packet<'_>,
        link_type: Option<LinkType>,
        rules: &Rules,
    ) -> Option<usize> {
        let skipped = &mut self.skipped;
        if let Some(other) = link_type.filter(|&known| known != LinkType::ETHERNET) {
            self.other_link_type.get_or_insert(other);
            skipped.link_type += 1;
            return None;
        }
        let captured = packet.captured_len();
        let original = usize::try_from(packet.original_len).unwrap_or(usize::MAX);
        let missing = original.saturating_sub(captured);
        if missing > 0 && !rules.pad {
            skipped.truncated += 1;
            return None;
        }
        let tag = packet.tag.and_then(|tag| tag.first_chunk().copied());
        let ether_type = tag.or_else(|| packet.head.get(12..)?.first_chunk().copied());
        let counter = match rules.limits.judge(ether_type, captured + missing) {
            Ok(()) => {
                self.packets += 1;
                return Some(missing);
            }
            Err(Unfit::TooShort) => &mut skipped.too_short,
            Err(Unfit::TooLong) => &mut skipped.too_long,
        };
        *counter += 1;
        None
    }
}
