//! Frames in memory, many in one piece, each with its place in the schedule.
//!
//! Each frame begins at a cache line: the kernel copies it from there a tenth faster than from
//! anywhere. So the memory of a chunk never moves.

/// Bytes after which a chunk is full.
const CHUNK_BYTES: usize = 1 << 20;
/// Frames after which it is full, however short they are.
const CHUNK_FRAMES: usize = 16 << 10;
/// The largest MTU, and a link-level header; longer frames are rare enough for memory to move.
const LARGEST_FRAME: usize = (64 << 10) + 64;
/// The processor fetches memory by so much.
const CACHE_LINE: usize = 64;

/// Frames in the order in which they go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    frames: Vec<Frame>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    place: u64,
    start: u32,
    end: u32,
}

impl Chunk {
    /// Adds a frame, of which `padding` bytes are missing at the end.
    pub(crate) fn push(&mut self, place: u64, parts: [&[u8]; 3], padding: usize) {
        if self.bytes.capacity() == 0 {
            // Pages that are never written cost nothing.
            self.bytes.reserve_exact(CHUNK_BYTES + LARGEST_FRAME + CACHE_LINE);
        }
        let unaligned = (self.bytes.as_ptr().addr() + self.bytes.len()) % CACHE_LINE;
        let start = self.bytes.len() + (CACHE_LINE - unaligned) % CACHE_LINE;
        self.bytes.resize(start, 0);
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.resize(self.bytes.len() + padding, 0);
        let offset = |at| u32::try_from(at).expect("a chunk has little more than 1 MiB");
        let (start, end) = (offset(start), offset(self.bytes.len()));
        self.frames.push(Frame { place, start, end });
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= CHUNK_BYTES || self.frames.len() >= CHUNK_FRAMES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Memory that it uses.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + self.frames.capacity() * size_of::<Frame>()
    }

    /// Places and bytes of its frames.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.frames.iter().map(|&Frame { place, start, end }| {
            let at = |offset: u32| usize::try_from(offset).expect("lengths in memory fit");
            let bytes = self.bytes.get(at(start)..at(end)).expect("a frame lies in its chunk");
            (place, bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_each_at_a_cache_line() {
        let mut chunk = Chunk::default();
        for len in (1..1514).step_by(7) {
            let bytes = vec![7; len];
            let (head, tail) = bytes.split_at(len / 2);
            chunk.push(3, [head, &[1, 2], tail], 5);
        }
        for ((place, frame), len) in chunk.frames().zip((1..1514).step_by(7)) {
            let expect =
                [vec![7; len / 2], vec![1, 2], vec![7; len - len / 2], vec![0; 5]].concat();
            assert_eq!((place, frame), (3, &*expect));
            assert!(frame.as_ptr().addr().is_multiple_of(CACHE_LINE));
        }
        assert!(!chunk.is_full() && chunk.size() > 150_000);
    }
}
