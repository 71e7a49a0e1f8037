//! Frames in memory, many in one piece, each with its place in the schedule.

/// Bytes after which a chunk is full.
const CHUNK_BYTES: usize = 1 << 20;
/// Frames after which it is full, however short they are.
const CHUNK_FRAMES: usize = 16 << 10;

/// Frames in the order in which they go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    frames: Vec<Frame>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    place: u64,
    end: u32,
}

impl Chunk {
    /// Adds a frame, of which `padding` bytes are missing at the end.
    pub(crate) fn push(&mut self, place: u64, parts: [&[u8]; 3], padding: usize) {
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.resize(self.bytes.len() + padding, 0);
        let end = u32::try_from(self.bytes.len()).expect("a chunk has little more than 1 MiB");
        self.frames.push(Frame { place, end });
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= CHUNK_BYTES || self.frames.len() >= CHUNK_FRAMES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Memory that it takes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.capacity() + self.frames.capacity() * size_of::<Frame>()
    }

    /// Gives back what it has taken and not used.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.frames.shrink_to_fit();
    }

    /// Places and bytes of its frames.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut start = 0;
        self.frames.iter().map(move |frame| {
            let end = usize::try_from(frame.end).expect("lengths in memory fit");
            let bytes = self.bytes.get(start..end).expect("a frame lies in its chunk");
            start = end;
            (frame.place, bytes)
        })
    }
}
