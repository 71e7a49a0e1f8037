//! Reading slots in their order, several at a time in threads of their own.

use core::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use volume::{Reader, Slot};

use crate::Error;

/// Slots read at a time.
const THREADS: usize = 4;
/// Slots that a thread holds: one being read, one being visited.
const BUFFERS: usize = 2;
/// Reads past the page cache want their memory aligned like this.
const ALIGNMENT: usize = 4096;

/// A slot as it was read.
pub(crate) struct SlotRead<'a> {
    pub(crate) sequence: u64,
    pub(crate) slot: Result<Slot, volume::Error>,
    pub(crate) bytes: &'a [u8],
}

/// Calls `visit` with every slot of `sequences`, in their order.
pub(crate) fn read_slots(
    reader: &Reader,
    sequences: &[u64],
    visit: &mut dyn FnMut(SlotRead<'_>) -> Result<ControlFlow<()>, Error>,
) -> Result<ControlFlow<()>, Error> {
    let threads = THREADS.min(sequences.len());
    thread::scope(|scope| {
        // Every thread reads each so manyth slot, so the order is that of the threads, in turn.
        let mut lanes = Vec::new();
        for first in 0..threads {
            let (filled, to_visit) = sync_channel(BUFFERS);
            let (visited, to_fill) = sync_channel(BUFFERS);
            for _ in 0..BUFFERS {
                visited.send(Buffer::default()).expect("the receiver is in this function");
            }
            let own = sequences.iter().skip(first).step_by(threads);
            let builder = thread::Builder::new().name("read-slots".to_owned());
            let read = move || read_own(reader, own, &to_fill, &filled);
            builder.spawn_scoped(scope, read).map_err(Error::Thread)?;
            lanes.push(Lane { to_visit, visited });
        }
        // Leaving early drops the lanes, which ends the threads.
        for (&sequence, lane) in sequences.iter().zip(lanes.iter().cycle()) {
            let (slot, buffer) = lane.to_visit.recv().expect("a thread reads all of its slots");
            if visit(SlotRead { sequence, slot, bytes: buffer.bytes() })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            // The thread may have ended with its last slot.
            drop(lane.visited.send(buffer));
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// The visitor's ends of a thread's queues.
struct Lane {
    to_visit: Receiver<(Result<Slot, volume::Error>, Buffer)>,
    visited: SyncSender<Buffer>,
}

fn read_own<'a>(
    reader: &Reader,
    sequences: impl Iterator<Item = &'a u64>,
    to_fill: &Receiver<Buffer>,
    filled: &SyncSender<(Result<Slot, volume::Error>, Buffer)>,
) {
    for &sequence in sequences {
        let Ok(mut buffer) = to_fill.recv() else { return };
        let slot = reader.slot(sequence, buffer.bytes_mut(reader.piece_bytes()));
        if filled.send((slot, buffer)).is_err() {
            return;
        }
    }
}

/// Memory for a slot.
#[derive(Default)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    fn begin(&self) -> usize {
        self.0.as_ptr().align_offset(ALIGNMENT)
    }

    /// The first `len` bytes.
    pub(crate) fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        self.0.resize(len + ALIGNMENT, 0);
        let begin = self.begin();
        self.0.get_mut(begin..begin + len).expect("there is room to align it")
    }

    /// The same, once they were asked for.
    pub(crate) fn bytes(&self) -> &[u8] {
        let len = self.0.len().saturating_sub(ALIGNMENT);
        let begin = self.begin();
        self.0.get(begin..begin + len).expect("there is room to align it")
    }
}
