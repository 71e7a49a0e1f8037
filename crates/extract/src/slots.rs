//! Reading slots one after the other, the next ones ahead in a thread of its own.

use core::ops::ControlFlow;
use std::sync::mpsc::sync_channel;
use std::thread;

use volume::{Reader, Slot};

use crate::Error;

/// Slots read while one is being worked on.
const AHEAD: usize = 2;

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
    if let [sequence] = *sequences {
        let mut bytes = vec![0; reader.piece_bytes()];
        let slot = reader.slot(sequence, &mut bytes);
        return visit(SlotRead { sequence, slot, bytes: &bytes });
    }
    thread::scope(|scope| {
        let (filled, to_visit) = sync_channel(AHEAD);
        let (visited, to_fill) = sync_channel(AHEAD + 1);
        for _ in 0..=AHEAD {
            visited.send(vec![0; reader.piece_bytes()]).expect("the receiver is in this function");
        }
        let read = move || {
            for &sequence in sequences {
                let Ok(mut bytes) = to_fill.recv() else { return };
                let slot = reader.slot(sequence, &mut bytes);
                if filled.send((sequence, slot, bytes)).is_err() {
                    return;
                }
            }
        };
        let builder = thread::Builder::new().name("read-ahead".to_owned());
        builder.spawn_scoped(scope, read).map_err(Error::Thread)?;
        // By value: leaving early drops the receiver, which ends the thread.
        for (sequence, slot, bytes) in to_visit {
            if visit(SlotRead { sequence, slot, bytes: &bytes })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            // The reader may have ended with its last slot.
            drop(visited.send(bytes));
        }
        Ok(ControlFlow::Continue(()))
    })
}
