//! Packets into the order of their times.
//!
//! Packets come in the order of the ring: each queue's column as it was full, each file's as it was
//! read. They are laid into runs, each in order; the earliest front of all runs goes first, ties by
//! arrival. A stream that is in order is one run, and each queue makes one more. Packets wait until
//! more than the lookahead is held, so memory is bounded, and packets further out of order than
//! that are counted: the order of times is the whole order, or the statement says how far it is
//! not.

use core::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use units::Timestamp;

use crate::Error;

/// Encoded bytes held back: what 64 queues have under way at once is half as much at most, unless
/// pieces are full.
const LOOKAHEAD_BYTES: usize = 64 << 20;

#[derive(Debug)]
struct Queued {
    timestamp: Timestamp,
    arrival: u64,
    lane: usize,
    len: usize,
}

/// Waiting packets in order, encoded, one behind the other.
#[derive(Debug, Default)]
struct Run {
    bytes: Vec<u8>,
    at: usize,
    packets: VecDeque<Queued>,
}

impl Run {
    /// Gives back the room of packets that left, when it is the larger part.
    fn compact(&mut self) {
        if self.packets.is_empty() {
            *self = Self::default();
        } else if self.at > self.bytes.len() / 2 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
    }
}

/// Packets that were handed out after later ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Late {
    pub(crate) packets: u64,
    /// The longest time by which any is.
    pub(crate) by_ns: i64,
}

impl Late {
    /// A packet is handed out after one of the time `latest` and before.
    fn note(&mut self, latest: &mut Timestamp, timestamp: Timestamp) {
        if timestamp < *latest {
            self.packets += 1;
            self.by_ns = self.by_ns.max(latest.since(timestamp));
        }
        *latest = timestamp.max(*latest);
    }
}

/// Takes a packet's lane and bytes.
pub(crate) type Emit<'e> = &'e mut dyn FnMut(usize, &[u8]) -> Result<(), Error>;

/// Packets on their way out.
#[derive(Debug)]
pub(crate) struct Merger {
    runs: Vec<Run>,
    /// Runs that have packets, by the time of the last.
    ends: BTreeSet<(Timestamp, usize)>,
    /// The others.
    free: Vec<usize>,
    /// The first packet of each run that has any.
    fronts: BinaryHeap<Reverse<(Timestamp, u64, usize)>>,
    held_bytes: usize,
    arrivals: u64,
    lookahead_bytes: usize,
    latest: Timestamp,
    late: Late,
}

impl Merger {
    pub(crate) fn new() -> Self {
        Self::with_lookahead(LOOKAHEAD_BYTES)
    }

    fn with_lookahead(lookahead_bytes: usize) -> Self {
        Self {
            runs: Vec::new(),
            ends: BTreeSet::new(),
            free: Vec::new(),
            fronts: BinaryHeap::new(),
            held_bytes: 0,
            arrivals: 0,
            lookahead_bytes,
            latest: Timestamp::MIN,
            late: Late::default(),
        }
    }

    /// What was not in order of what is handed out so far.
    pub(crate) fn late(&self) -> Late {
        self.late
    }

    /// Adds a packet of the output `lane`; `encode` appends its bytes.
    pub(crate) fn push(
        &mut self,
        lane: usize,
        timestamp: Timestamp,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let before = self.ends.range(..=(timestamp, usize::MAX)).next_back().copied();
        let place = match before {
            Some((_, place)) => place,
            None => self.free.pop().unwrap_or(self.runs.len()),
        };
        if self.runs.len() <= place {
            self.runs.resize_with(place + 1, Run::default);
        }
        let run = self.runs.get_mut(place).expect("just resized");
        let begin = run.bytes.len();
        if let Err(error) = encode(&mut run.bytes) {
            if before.is_none() {
                self.free.push(place);
            }
            return Err(error);
        }
        let len = run.bytes.len() - begin;
        self.held_bytes += len;
        let arrival = self.arrivals;
        self.arrivals += 1;
        match before {
            Some(end) => drop(self.ends.remove(&end)),
            None => self.fronts.push(Reverse((timestamp, arrival, place))),
        }
        self.ends.insert((timestamp, place));
        run.packets.push_back(Queued { timestamp, arrival, lane, len });
        Ok(())
    }

    /// Hands out what is beyond the lookahead.
    pub(crate) fn settle(&mut self, emit: Emit<'_>) -> Result<(), Error> {
        self.shrink_to(self.lookahead_bytes, emit)
    }

    /// Hands out everything.
    pub(crate) fn finish(&mut self, emit: Emit<'_>) -> Result<(), Error> {
        self.shrink_to(0, emit)
    }

    fn shrink_to(&mut self, held_bytes: usize, emit: Emit<'_>) -> Result<(), Error> {
        while self.held_bytes > held_bytes {
            let Reverse((_, _, place)) = self.fronts.pop().expect("held bytes belong to packets");
            let run = self.runs.get_mut(place).expect("fronts name runs");
            let packet = run.packets.pop_front().expect("a front is there");
            let end = run.at + packet.len;
            emit(packet.lane, run.bytes.get(run.at..end).expect("its bytes are held"))?;
            run.at = end;
            self.held_bytes -= packet.len;
            self.late.note(&mut self.latest, packet.timestamp);
            if let Some(next) = run.packets.front() {
                self.fronts.push(Reverse((next.timestamp, next.arrival, place)));
            } else {
                self.ends.remove(&(packet.timestamp, place));
                self.free.push(place);
            }
        }
        self.runs.iter_mut().for_each(Run::compact);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Merges packets (lane, time), each encoded as its number, with room for `held` of them; how
    /// far the order is from that of times comes with them.
    fn merged(packets: &[(usize, i64)], held: usize) -> (Vec<(usize, i64)>, Late) {
        let mut merger = Merger::with_lookahead(held * 8);
        let mut out = Vec::new();
        let mut emit = |lane: usize, bytes: &[u8]| {
            let number = usize::try_from(u64::from_le_bytes(bytes.try_into().unwrap())).unwrap();
            assert_eq!(packets[number].0, lane, "bytes leave by their lane");
            out.push((number, packets[number]));
            Ok(())
        };
        for (number, &(lane, time)) in (0_u64..).zip(packets) {
            let encode = |out: &mut Vec<u8>| {
                out.extend_from_slice(&number.to_le_bytes());
                Ok(())
            };
            merger.push(lane, Timestamp(time), encode).unwrap();
            merger.settle(&mut emit).unwrap();
        }
        merger.finish(&mut emit).unwrap();
        let ties = |pair: &[(usize, (usize, i64))]| pair[0].1.1 != pair[1].1.1 || pair[0] < pair[1];
        assert!(merger.late().packets > 0 || out.windows(2).all(ties), "ties by arrival");
        (out.into_iter().map(|(_, packet)| packet).collect(), merger.late())
    }

    #[test]
    fn interfaces_are_merged_by_time_and_ties_by_arrival() {
        let packets = [(0, 10), (0, 30), (1, 10), (1, 20), (2, 30)];
        let in_order = vec![(0, 10), (1, 10), (1, 20), (0, 30), (2, 30)];
        assert_eq!(merged(&packets, 5), (in_order, Late::default()));
    }

    #[test]
    fn queues_of_one_interface_are_merged_too() {
        let packets = [(0, 10), (0, 30), (0, 50), (0, 20), (0, 40), (0, 60)];
        let times: Vec<i64> = merged(&packets, 6).0.into_iter().map(|(_, time)| time).collect();
        assert_eq!(times, [10, 20, 30, 40, 50, 60]);
    }

    #[test]
    fn what_is_beyond_the_lookahead_is_counted() {
        let packets = [(0, 10), (0, 20), (0, 30), (0, 5), (0, 40)];
        let (out, late) = merged(&packets, 1);
        assert_eq!(out.len(), 5);
        assert_eq!(late, Late { packets: 1, by_ns: 15 });
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_what_steps_back_is_counted(
            packets in prop::collection::vec((0_usize..5, -20_i64..20), 0..200),
            held in 0_usize..50,
        ) {
            let (mut out, late) = merged(&packets, held);
            let mut latest = i64::MIN;
            let is_late = |&&(_, time): &&(usize, i64)| {
                latest = latest.max(time);
                time < latest
            };
            let late_packets = out.iter().filter(is_late).count();
            prop_assert_eq!(u64::try_from(late_packets).unwrap(), late.packets);
            let mut packets = packets;
            packets.sort_unstable();
            out.sort_unstable();
            prop_assert_eq!(out, packets);
        }

        #[test]
        fn queues_that_overlap_by_less_than_the_lookahead_give_the_order_of_times(
            columns in prop::collection::vec((0_usize..4, 1_usize..20), 1..60),
            gap in 0_i64..5,
        ) {
            // Packets come at all queues in turn; a queue's column is written when it is full.
            let queues = 4;
            let mut filled: Vec<Vec<(usize, i64)>> = vec![Vec::new(); queues];
            let (mut packets, mut open) = (Vec::new(), 0);
            for (time, (queue, full)) in (0..).zip(&columns) {
                for of_queue in 0..queues {
                    let at = time * gap + i64::try_from(of_queue).unwrap();
                    filled[of_queue].push((of_queue % 2, at));
                }
                open = open.max(filled.iter().map(Vec::len).sum());
                if filled[*queue].len() >= *full {
                    packets.append(&mut filled[*queue]);
                }
            }
            packets.extend(filled.into_iter().flatten());
            let (out, late) = merged(&packets, open);
            prop_assert_eq!(late, Late::default());
            prop_assert!(out.is_sorted_by_key(|&(_, time)| time));
        }
    }
}
