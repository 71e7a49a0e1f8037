//! What is read before the first packet goes.

use core::num::NonZeroU64;

use units::number::to_u64;

use crate::error::Error;
use crate::frames::Chunk;
use crate::options::{Input, Options};
use crate::reader::{Read, Reader, Rules, Step};
use crate::report::{Progress, Tell};

/// Chunks of each sender.
pub(crate) enum Loaded {
    /// All of the input.
    Whole {
        chunks: Vec<Vec<Chunk>>,
        read: Read,
        /// The place where the next loop begins.
        end: u64,
    },
    /// Its beginning.
    Part { chunks: Vec<Vec<Chunk>>, reader: Reader },
}

impl Loaded {
    /// What was read so far.
    pub(crate) fn read(&self) -> &Read {
        match self {
            Self::Whole { read, .. } => read,
            Self::Part { reader, .. } => &reader.read,
        }
    }
}

/// Reads as much as fits into the memory given; an input that pauses is not waited for. `None` if
/// it was stopped.
pub(crate) fn load(
    options: &Options,
    input: &mut Input<'_>,
    sender_count: usize,
    progress: &mut Tell<'_>,
) -> Result<Option<Loaded>, Error> {
    let &Options { pace, limits, pad, memory_bytes, .. } = options;
    let mut reader = Reader::new((input.open)()?, Rules { pace, limits, pad, sender_count });
    let must_be_whole = !input.is_repeatable && options.loops != NonZeroU64::new(1);
    let mut chunks = vec![Vec::new(); sender_count];
    let mut size: u64 = 0;
    loop {
        let mut keep = |number: usize, chunk: Chunk| {
            size += to_u64(chunk.size());
            chunks.get_mut(number).expect("the number is that of a sender").push(chunk);
        };
        match reader.step(&mut keep) {
            Step::End => {
                reader.flush(&mut keep);
                if let Some(error) = reader.failure() {
                    return Err(error.into());
                }
                let (end, read) = (reader.end(), reader.finish());
                return Ok(Some(Loaded::Whole { chunks, read, end }));
            }
            Step::Idle if !must_be_whole => {
                reader.flush(&mut keep);
                return Ok(Some(Loaded::Part { chunks, reader }));
            }
            Step::Idle | Step::Packets => {}
        }
        match (size > memory_bytes, must_be_whole) {
            (true, true) => return Err(Error::NotRepeatable { memory_bytes }),
            (true, false) => return Ok(Some(Loaded::Part { chunks, reader })),
            (false, _) => {}
        }
        let loaded_packets = reader.read.packets;
        if progress(&Progress { loaded_packets, ..Progress::default() }).is_break() {
            return Ok(None);
        }
    }
}
