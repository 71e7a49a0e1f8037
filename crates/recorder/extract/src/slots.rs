//! Reading slots in their order, several at a time in threads of their own.

use core::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use units::Sequence;
use volume::{Reader, Slot};

use crate::Error;

/// Slots read at a time.
const THREADS: usize = 4;
/// Slots that a thread holds: one being read, one being visited.
const BUFFERS: usize = 2;

/// A slot to be read, and which of its columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) sequence: Sequence,
    /// Bit c stands for column c.
    pub(crate) columns: u32,
}

impl Place {
    /// The columns asked for, ascending.
    fn columns(self) -> impl Iterator<Item = u8> {
        (0..24_u8).filter(move |column| self.columns & (1 << column) != 0)
    }
}

/// A slot as it was read.
pub(crate) struct SlotRead<'a> {
    pub(crate) sequence: Sequence,
    pub(crate) columns: Vec<ColumnRead<'a>>,
}

/// One column of it.
pub(crate) struct ColumnRead<'a> {
    pub(crate) slot: Result<Slot, volume::Error>,
    pub(crate) bytes: &'a [u8],
}

/// Calls `visit` with every slot of `places`, in their order.
pub(crate) fn read_slots(
    reader: &Reader,
    places: &[Place],
    visit: &mut dyn FnMut(SlotRead<'_>) -> Result<ControlFlow<()>, Error>,
) -> Result<ControlFlow<()>, Error> {
    let threads = THREADS.min(places.len());
    thread::scope(|scope| {
        // Every thread reads each so manyth slot, so the order is that of the threads, in turn.
        let mut readers = Vec::new();
        for first in 0..threads {
            let (filled, to_visit) = sync_channel(BUFFERS);
            let (visited, to_fill) = sync_channel(BUFFERS);
            for _ in 0..BUFFERS {
                visited.send(Vec::new()).expect("the receiver is in this function");
            }
            let own = places.iter().skip(first).step_by(threads);
            let builder = thread::Builder::new().name("read-slots".to_owned());
            let read = move || read_own(reader, own, &to_fill, &filled);
            builder.spawn_scoped(scope, read).map_err(Error::Thread)?;
            readers.push(VisitorEnds { to_visit, visited });
        }
        // Leaving early drops these ends, which ends the threads.
        for (place, ends) in places.iter().zip(readers.iter().cycle()) {
            let (slots, buffers) = ends.to_visit.recv().expect("a thread reads all of its slots");
            let columns = slots.into_iter().zip(&buffers);
            let columns = columns.map(|(slot, buffer)| ColumnRead { slot, bytes: buffer });
            let read = SlotRead { sequence: place.sequence, columns: columns.collect() };
            if visit(read)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            // The thread may have ended with its last slot.
            drop(ends.visited.send(buffers));
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// The columns of a slot, and the memory of each.
type Filled = (Vec<Result<Slot, volume::Error>>, Vec<Vec<u8>>);

/// The visitor's ends of a thread's queues.
struct VisitorEnds {
    to_visit: Receiver<Filled>,
    visited: SyncSender<Vec<Vec<u8>>>,
}

fn read_own<'a>(
    reader: &Reader,
    places: impl Iterator<Item = &'a Place>,
    to_fill: &Receiver<Vec<Vec<u8>>>,
    filled: &SyncSender<Filled>,
) {
    for place in places {
        let Ok(mut buffers) = to_fill.recv() else { return };
        let columns: Vec<u8> = place.columns().collect();
        buffers.resize_with(columns.len(), Vec::new);
        let slots = reader.slots(place.sequence, &columns, &mut buffers);
        if filled.send((slots, buffers)).is_err() {
            return;
        }
    }
}
