//! Packets of many pieces in one order of time.
//!
//! Each piece gives a *run*: its packets by time. Of all runs the earliest packet leaves first;
//! packets of the same time leave in the order of the ring. The caller says up to which time
//! nothing can come any more, and the packets before that leave. So the order is exact, also where
//! the clock was set back within a piece.
//!
//! Memory is that of the runs with packets left. Beyond the most that is allowed the earliest
//! packets leave, though earlier ones may come; the output that writes them counts those.

use core::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use format::session_row::PieceId;
use units::{Sequence, Timestamp};

use crate::error::Error;

/// Memory that brings packets into the order of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MergeMemory {
    /// While less is held, slots are read as they lie in the ring. With more the heads of the next
    /// ones are read first, 4 KiB of each, and the slots by their earliest packets.
    pub ring_order_bytes: usize,
    /// No more is held: the order is given up where more overlaps in time.
    pub most_bytes: usize,
}

impl Default for MergeMemory {
    /// 16 and 128 pieces of 2 MiB.
    fn default() -> Self {
        Self { ring_order_bytes: 32 << 20, most_bytes: 256 << 20 }
    }
}

/// Memory of used up runs that is kept for the next ones.
const SPARES: usize = 4;

/// A packet of a run.
#[derive(Debug)]
struct Queued {
    timestamp: Timestamp,
    /// Where its block begins in its piece.
    place: u32,
    input: u32,
    /// Its bytes in the run.
    begin: u32,
    len: u32,
}

/// The packets of a piece, encoded one behind the other.
#[derive(Debug)]
struct Run {
    piece: PieceId,
    bytes: Vec<u8>,
    /// By time, and place within a time.
    packets: Vec<Queued>,
    /// Those in front have left.
    next: usize,
}

impl Run {
    const EMPTY: Self = Self {
        piece: PieceId { sequence: Sequence(0), sub: 0, column: 0 },
        bytes: Vec::new(),
        packets: Vec::new(),
        next: 0,
    };

    fn held_bytes(&self) -> usize {
        self.bytes.len() + self.packets.len() * size_of::<Queued>()
    }

    /// Time, piece and place of the next packet.
    fn front(&self) -> Option<(Timestamp, PieceId, u32)> {
        let packet = self.packets.get(self.next)?;
        Some((packet.timestamp, self.piece, packet.place))
    }
}

/// The first packet of a run, and where the run is.
type Front = ((Timestamp, PieceId, u32), usize);

/// Takes a packet's input, time and bytes.
pub type Emit<'e> = &'e mut dyn FnMut(usize, Timestamp, &[u8]) -> Result<(), Error>;

/// Packets on their way out.
#[derive(Debug)]
pub struct Merger {
    most_bytes: usize,
    /// The piece that is being read.
    open: Run,
    runs: Vec<Run>,
    /// Places in `runs` that are used up.
    free: Vec<usize>,
    spares: Vec<Run>,
    fronts: BinaryHeap<Reverse<Front>>,
    held_bytes: usize,
}

impl Merger {
    /// Holds so much, and besides what is pushed of one piece.
    pub fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            open: Run::EMPTY,
            runs: Vec::new(),
            free: Vec::new(),
            spares: Vec::new(),
            fronts: BinaryHeap::new(),
            held_bytes: 0,
        }
    }

    /// Bytes of the packets that wait, and of those that left with them.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Adds a packet of the piece that is being read: its time, and where its block begins there.
    /// `encode` appends its bytes.
    pub fn push(
        &mut self,
        input: usize,
        (timestamp, place): (Timestamp, u32),
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let length = |len: usize| u32::try_from(len).expect("packets of a piece are below 4 GiB");
        let begin = self.open.bytes.len();
        encode(&mut self.open.bytes)?;
        self.open.packets.push(Queued {
            timestamp,
            place,
            input: u32::try_from(input).expect("each input has a description in memory"),
            begin: length(begin),
            len: length(self.open.bytes.len() - begin),
        });
        Ok(())
    }

    /// The piece that was read is `piece`. Hands out the earliest packets where too much is held.
    pub fn close(&mut self, piece: PieceId, emit: Emit<'_>) -> Result<(), Error> {
        if self.open.packets.is_empty() {
            return Ok(());
        }
        let spare = self.spares.pop().unwrap_or(Run::EMPTY);
        let mut run = core::mem::replace(&mut self.open, spare);
        run.piece = piece;
        if !run.packets.is_sorted_by_key(|packet| packet.timestamp) {
            run.packets.sort_by_key(|packet| packet.timestamp);
        }
        self.held_bytes += run.held_bytes();
        let front = run.front().expect("it has packets");
        let place = self.free.pop().unwrap_or(self.runs.len());
        match self.runs.get_mut(place) {
            Some(free) => *free = run,
            None => self.runs.push(run),
        }
        self.fronts.push(Reverse((front, place)));
        let most_bytes = self.most_bytes;
        self.leave(|_, held_bytes| held_bytes > most_bytes, emit)
    }

    /// Hands out what is earlier than `time`: nothing like that comes any more.
    pub fn emit_before(&mut self, time: Timestamp, emit: Emit<'_>) -> Result<(), Error> {
        self.leave(|earliest, _| earliest < time, emit)
    }

    /// Hands out everything.
    pub fn finish(&mut self, emit: Emit<'_>) -> Result<(), Error> {
        self.leave(|_, _| true, emit)
    }

    /// Hands out the earliest packets while `is_due` says so, by the time of the first and by the
    /// bytes held.
    fn leave(
        &mut self,
        is_due: impl Fn(Timestamp, usize) -> bool,
        emit: Emit<'_>,
    ) -> Result<(), Error> {
        while let Some(mut top) = self.fronts.peek_mut() {
            let Reverse(((time, ..), place)) = *top;
            if !is_due(time, self.held_bytes) {
                break;
            }
            let run = self.runs.get_mut(place).expect("fronts name runs");
            let packet = run.packets.get(run.next).expect("a run in front has a packet");
            let begin = usize::try_from(packet.begin).expect("addresses have 32 bits at least");
            let len = usize::try_from(packet.len).expect("addresses have 32 bits at least");
            let input = usize::try_from(packet.input).expect("addresses have 32 bits at least");
            let bytes = run.bytes.get(begin..begin + len).expect("its bytes are held");
            emit(input, time, bytes)?;
            run.next += 1;
            if let Some(front) = run.front() {
                *top = Reverse((front, place));
                continue;
            }
            PeekMut::pop(top);
            self.held_bytes -= run.held_bytes();
            self.free.push(place);
            let mut used = core::mem::replace(run, Run::EMPTY);
            if self.spares.len() < SPARES {
                used.bytes.clear();
                used.packets.clear();
                used.next = 0;
                self.spares.push(used);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Sequence;

    use super::*;

    /// Packets that left: their times and numbers.
    type Left = Vec<(i64, u64)>;

    fn emit(out: &mut Left) -> impl FnMut(usize, Timestamp, &[u8]) -> Result<(), Error> {
        |input, time, bytes| {
            let number = u64::from_le_bytes(bytes.try_into().unwrap());
            assert_eq!(u64::try_from(input).unwrap(), number % 5, "bytes leave by their input");
            out.push((time.0, number));
            Ok(())
        }
    }

    /// Adds a piece with packets of these times, which are numbered on from `next`.
    fn add(merger: &mut Merger, sequence: u64, times: &[i64], next: &mut u64, out: &mut Left) {
        for (place, &time) in (0..).zip(times) {
            let encode = |out: &mut Vec<u8>| {
                out.extend_from_slice(&next.to_le_bytes());
                Ok(())
            };
            let input = usize::try_from(*next % 5).unwrap();
            merger.push(input, (Timestamp(time), place), encode).unwrap();
            *next += 1;
        }
        let piece = PieceId { sequence: Sequence(sequence), sub: 0, column: 0 };
        merger.close(piece, &mut emit(out)).unwrap();
    }

    #[test]
    fn pieces_are_merged_by_time_and_ties_by_their_order_in_the_ring() {
        let (mut merger, mut next, mut out) = (Merger::new(1 << 20), 0, Vec::new());
        add(&mut merger, 2, &[10, 30], &mut next, &mut out);
        add(&mut merger, 1, &[10, 20, 20, 40], &mut next, &mut out);
        merger.emit_before(Timestamp(30), &mut emit(&mut out)).unwrap();
        assert_eq!(out, [(10, 2), (10, 0), (20, 3), (20, 4)]);
        merger.finish(&mut emit(&mut out)).unwrap();
        assert_eq!(out[4..], [(30, 1), (40, 5)]);
        assert_eq!(merger.held_bytes(), 0);
    }

    #[test]
    fn time_that_runs_back_within_a_piece_is_put_right() {
        let (mut merger, mut next, mut out) = (Merger::new(1 << 20), 0, Vec::new());
        add(&mut merger, 1, &[10, 5, 20, 5], &mut next, &mut out);
        merger.finish(&mut emit(&mut out)).unwrap();
        assert_eq!(out, [(5, 1), (5, 3), (10, 0), (20, 2)]);
    }

    #[test]
    fn beyond_the_most_the_order_is_given_up_and_memory_kept() {
        let piece_bytes = 10 * (8 + size_of::<Queued>());
        let (mut merger, mut next, mut out) = (Merger::new(3 * piece_bytes), 0, Vec::new());
        for sequence in 0..20 {
            let times: Vec<i64> =
                (0..10).map(|at| at * 100 - i64::try_from(sequence).unwrap()).collect();
            add(&mut merger, sequence, &times, &mut next, &mut out);
            assert!(merger.held_bytes() <= 3 * piece_bytes, "{}", merger.held_bytes());
        }
        merger.finish(&mut emit(&mut out)).unwrap();
        assert!(!out.is_sorted_by_key(|(time, _)| *time));
        assert_eq!(out.len(), 200);
    }

    proptest! {
        #[test]
        fn what_is_opened_in_time_leaves_in_order_and_nothing_is_lost(
            pieces in prop::collection::vec(prop::collection::vec(-50_i64..50, 0..20), 0..20),
        ) {
            let (mut merger, mut next, mut out) = (Merger::new(1 << 20), 0, Vec::new());
            let earliest = |piece: &[i64]| piece.iter().min().copied().unwrap_or(i64::MAX);
            let mut order: Vec<usize> = (0..pieces.len()).collect();
            order.sort_by_key(|&at| earliest(&pieces[at]));
            for at in order {
                let floor = Timestamp(earliest(&pieces[at]));
                merger.emit_before(floor, &mut emit(&mut out)).unwrap();
                let sequence = u64::try_from(at).unwrap();
                add(&mut merger, sequence, &pieces[at], &mut next, &mut out);
            }
            merger.finish(&mut emit(&mut out)).unwrap();
            prop_assert!(out.is_sorted_by_key(|(time, _)| *time));
            let mut times: Vec<i64> = pieces.concat();
            times.sort_unstable();
            prop_assert_eq!(out.iter().map(|(time, _)| *time).collect::<Vec<_>>(), times);
            prop_assert_eq!(merger.held_bytes(), 0);
        }
    }
}
