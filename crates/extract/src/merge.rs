//! Packets of several interfaces into one order of time.
//!
//! Each interface keeps its order of arrival; among the interfaces' next packets the earliest goes
//! first, ties by arrival. Packets wait until more than the lookahead is held, so memory is
//! bounded, and packets further out of order than that stay so.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use units::Timestamp;

use crate::Error;

/// Encoded bytes held back: two full pieces.
const LOOKAHEAD_BYTES: usize = 4 << 20;

#[derive(Debug)]
struct Queued {
    timestamp: Timestamp,
    arrival: u64,
    len: usize,
}

/// The waiting packets of one interface, encoded, one behind the other.
#[derive(Debug, Default)]
struct Lane {
    bytes: Vec<u8>,
    at: usize,
    packets: VecDeque<Queued>,
}

impl Lane {
    /// Gives back the room of packets that left, when it is the larger part.
    fn compact(&mut self) {
        if self.at > self.bytes.len() / 2 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
    }
}

/// Takes a packet's lane and bytes.
pub(crate) type Emit<'e> = &'e mut dyn FnMut(usize, &[u8]) -> Result<(), Error>;

/// Packets on their way out.
#[derive(Debug)]
pub(crate) struct Merger {
    lanes: Vec<Lane>,
    /// The first packet of each lane that has any.
    fronts: BinaryHeap<Reverse<(Timestamp, u64, usize)>>,
    held_bytes: usize,
    arrivals: u64,
    lookahead_bytes: usize,
}

impl Merger {
    pub(crate) fn new() -> Self {
        Self::with_lookahead(LOOKAHEAD_BYTES)
    }

    fn with_lookahead(lookahead_bytes: usize) -> Self {
        let (lanes, fronts) = (Vec::new(), BinaryHeap::new());
        Self { lanes, fronts, held_bytes: 0, arrivals: 0, lookahead_bytes }
    }

    /// Adds a packet of interface `lane`; `encode` appends its bytes.
    pub(crate) fn push(
        &mut self,
        lane: usize,
        timestamp: Timestamp,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Lane::default);
        }
        let queue = self.lanes.get_mut(lane).expect("just resized");
        let before = queue.bytes.len();
        encode(&mut queue.bytes)?;
        let len = queue.bytes.len() - before;
        self.held_bytes += len;
        let arrival = self.arrivals;
        self.arrivals += 1;
        if queue.packets.is_empty() {
            self.fronts.push(Reverse((timestamp, arrival, lane)));
        }
        queue.packets.push_back(Queued { timestamp, arrival, len });
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
            let Reverse((_, _, lane)) = self.fronts.pop().expect("held bytes belong to packets");
            let queue = self.lanes.get_mut(lane).expect("fronts name lanes");
            let packet = queue.packets.pop_front().expect("a front is there");
            let end = queue.at + packet.len;
            emit(lane, queue.bytes.get(queue.at..end).expect("its bytes are held"))?;
            queue.at = end;
            self.held_bytes -= packet.len;
            if let Some(next) = queue.packets.front() {
                self.fronts.push(Reverse((next.timestamp, next.arrival, lane)));
            }
        }
        self.lanes.iter_mut().for_each(Lane::compact);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Merges packets (lane, time), each encoded as its number and filler, with room for `held` of
    /// them.
    fn merged(packets: &[(usize, i64)], held: usize) -> Vec<(usize, i64)> {
        let mut merger = Merger::with_lookahead(held * 8);
        let mut out = Vec::new();
        let mut emit = |lane: usize, bytes: &[u8]| {
            let number = usize::try_from(u64::from_le_bytes(bytes.try_into().unwrap())).unwrap();
            assert_eq!(packets[number].0, lane, "bytes leave by their lane");
            out.push(packets[number]);
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
        out
    }

    #[test]
    fn interfaces_are_merged_by_time_and_ties_by_arrival() {
        let packets = [(0, 10), (0, 30), (1, 10), (1, 20), (2, 30)];
        assert_eq!(merged(&packets, 5), [(0, 10), (1, 10), (1, 20), (0, 30), (2, 30)]);
    }

    #[test]
    fn time_running_backwards_within_an_interface_is_kept() {
        let packets = [(0, 10), (0, 5), (1, 7), (0, 20)];
        assert_eq!(merged(&packets, 9), [(1, 7), (0, 10), (0, 5), (0, 20)]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_each_interface_keeps_its_order(
            packets in prop::collection::vec((0_usize..5, -20_i64..20), 0..200),
            held in 0_usize..50,
        ) {
            let out = merged(&packets, held);
            prop_assert_eq!(out.len(), packets.len());
            for lane in 0..5 {
                let of = |list: &[(usize, i64)]| -> Vec<i64> {
                    list.iter().filter(|(of, _)| *of == lane).map(|(_, time)| *time).collect()
                };
                prop_assert_eq!(of(&out), of(&packets));
            }
        }

        #[test]
        fn ordered_interfaces_within_the_lookahead_give_an_ordered_whole(
            mut lanes in prop::collection::vec(prop::collection::vec(0_i64..1000, 0..20), 1..5),
        ) {
            for lane in &mut lanes {
                lane.sort_unstable();
            }
            let packets: Vec<(usize, i64)> = lanes
                .iter()
                .enumerate()
                .flat_map(|(lane, times)| times.iter().map(move |&time| (lane, time)))
                .collect();
            let out = merged(&packets, packets.len());
            prop_assert!(out.is_sorted_by_key(|&(_, time)| time));
        }
    }
}
