//! The packets of the last while: chunks of memory, the oldest of which is used again.

use std::collections::VecDeque;

use capture::Packet;
use format::session_row::PieceId;
use session::PacketView;
use units::{InterfaceId, Sequence, Timestamp};
use wire::LinkType;

/// Bytes of a chunk: larger than any packet, small against the whole.
const CHUNK_BYTES: usize = 1 << 20;
/// Packets of a chunk: of the shortest frames that there are.
const CHUNK_PACKETS: usize = CHUNK_BYTES / 60;

#[derive(Clone, Copy, Debug)]
struct Record {
    timestamp: Timestamp,
    interface: u32,
    original_len: u32,
    begin: u32,
    end: u32,
}

#[derive(Debug)]
struct Chunk {
    /// Counts the chunks that were begun.
    number: u64,
    bytes: Box<[u8]>,
    filled: usize,
    records: Vec<Record>,
}

impl Chunk {
    fn new() -> Self {
        let bytes = vec![0; CHUNK_BYTES].into_boxed_slice();
        Self { number: 0, bytes, filled: 0, records: Vec::with_capacity(CHUNK_PACKETS) }
    }

    fn clear(&mut self) {
        self.filled = 0;
        self.records.clear();
    }

    /// A packet as the session table wants it: a chunk stands for a piece.
    fn view(&self, record: &Record, link_types: &[LinkType]) -> PacketView<'_> {
        let place = |at: u32| usize::try_from(at).expect("32 bits fit");
        let range = place(record.begin)..place(record.end);
        let link_type = link_types.get(place(record.interface)).copied();
        PacketView {
            timestamp: record.timestamp,
            interface: InterfaceId(record.interface),
            link_type: link_type.unwrap_or(LinkType::ETHERNET),
            original_len: record.original_len,
            data: self.bytes.get(range).expect("a record lies in its chunk"),
            piece: PieceId { sequence: Sequence(self.number), sub: 0, column: 0 },
            begin: record.begin,
            end: record.end,
        }
    }
}

/// The newest packets, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Oldest first; packets go into the last one.
    chunks: VecDeque<Chunk>,
    chunks_max: usize,
    /// Records of the last chunk that [`Self::fresh`] has handed out.
    done: usize,
}

impl Memory {
    /// Bytes that it takes at most for so many of packets.
    pub(crate) fn bytes_max(bytes: usize) -> usize {
        let chunk = CHUNK_BYTES + CHUNK_PACKETS * size_of::<Record>() + size_of::<Chunk>();
        (bytes.div_ceil(CHUNK_BYTES).max(2) + 1) * chunk
    }

    /// Space for so many bytes, at least two chunks.
    pub(crate) fn new(bytes: usize) -> Self {
        let chunks_max = bytes.div_ceil(CHUNK_BYTES).max(2);
        Self { chunks: VecDeque::from([Chunk::new()]), chunks_max, done: 0 }
    }

    /// Keeps a packet, cut to a chunk's size. False, and it is not kept, when the last chunk is
    /// full: then the fresh ones are to be taken and [`Self::turn`] makes space.
    #[inline]
    pub(crate) fn push(&mut self, packet: &Packet<'_>) -> bool {
        let chunk = self.chunks.back_mut().expect("there is always one");
        let len = packet.captured_len().min(CHUNK_BYTES);
        let room = chunk.bytes.get_mut(chunk.filled..chunk.filled + len);
        let Some(room) = room.filter(|_| chunk.records.len() < CHUNK_PACKETS) else {
            return false;
        };
        packet.copy_to(room);
        let place = |at: usize| u32::try_from(at).expect("a chunk is small");
        chunk.records.push(Record {
            timestamp: packet.timestamp,
            interface: packet.interface,
            original_len: packet.original_len,
            begin: place(chunk.filled),
            end: place(chunk.filled + len),
        });
        chunk.filled += len;
        true
    }

    /// Begins a chunk, of the memory of the oldest one where there is no more.
    pub(crate) fn turn(&mut self) {
        assert!(self.fresh_count() == 0, "what is turned away from was looked at");
        let number = self.chunks.back().map_or(0, |chunk| chunk.number + 1);
        let mut chunk = if self.chunks.len() < self.chunks_max {
            Chunk::new()
        } else {
            let mut oldest = self.chunks.pop_front().expect("there is always one");
            oldest.clear();
            oldest
        };
        chunk.number = number;
        self.chunks.push_back(chunk);
        self.done = 0;
    }

    fn fresh_count(&self) -> usize {
        self.chunks.back().map_or(0, |chunk| chunk.records.len()) - self.done
    }

    /// The packets since the last time.
    pub(crate) fn fresh<'m>(
        &'m mut self,
        link_types: &'m [LinkType],
    ) -> impl Iterator<Item = PacketView<'m>> {
        let chunk = self.chunks.back().expect("there is always one");
        let records = chunk.records.get(self.done..).expect("never more than there are");
        self.done = chunk.records.len();
        records.iter().map(move |record| chunk.view(record, link_types))
    }

    /// All packets that are kept, in the order in which they came.
    pub(crate) fn packets<'m>(
        &'m self,
        link_types: &'m [LinkType],
    ) -> impl Iterator<Item = PacketView<'m>> {
        let views = move |chunk: &'m Chunk| {
            chunk.records.iter().map(move |record| chunk.view(record, link_types))
        };
        self.chunks.iter().flat_map(views)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: i64, data: &[u8]) -> Packet<'_> {
        Packet {
            timestamp: Timestamp(number),
            interface: 0,
            original_len: u32::try_from(data.len()).unwrap(),
            outbound: None,
            head: data,
            tag: None,
            tail: &[],
            options: &[],
        }
    }

    #[test]
    fn the_newest_packets_stay_in_order_and_each_is_fresh_once() {
        let mut memory = Memory::new(3 << 20);
        let data: Vec<u8> = (0..100_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        let mut fresh = Vec::new();
        for number in 0..100 {
            let packet = packet(number, &data);
            while !memory.push(&packet) {
                fresh.extend(memory.fresh(&[]).map(|view| view.timestamp.0));
                memory.turn();
            }
        }
        fresh.extend(memory.fresh(&[]).map(|view| view.timestamp.0));
        assert_eq!(fresh, (0..100).collect::<Vec<_>>());
        assert_eq!(memory.fresh(&[]).count(), 0);
        let kept: Vec<i64> = memory.packets(&[]).map(|kept| kept.timestamp.0).collect();
        assert_eq!(kept, (70..100).collect::<Vec<_>>(), "ten in each of three chunks");
        assert!(memory.packets(&[]).all(|kept| kept.data == data));
    }

    #[test]
    fn small_packets_fill_records_before_bytes() {
        let mut memory = Memory::new(0);
        let count =
            (0..1_000_000).take_while(|&number| memory.push(&packet(number, &[1; 20]))).count();
        assert_eq!(count, CHUNK_PACKETS);
    }
}
