//! The sessions of which something is in the history.

use std::collections::HashMap;

use format::session_row::SessionRow;
use session::Key;
use units::Timestamp;
use wire::FiveTuple;

use crate::history::{Entry, Second};

/// A session.
#[derive(Debug)]
struct Session {
    /// Its rows so far as one: names and state of the newest, counters added up.
    so_far: SessionRow,
    /// Entries of the history that name it.
    entries: u32,
}

/// Sessions by number; a number is free again when the history has forgotten it.
#[derive(Debug, Default)]
pub(crate) struct Known {
    sessions: Vec<Option<Session>>,
    free: Vec<u32>,
    numbers: HashMap<Key, u32>,
    /// Of the rows' heap.
    heap_bytes: usize,
}

/// What a row takes besides itself.
fn heap_bytes(row: &SessionRow) -> usize {
    row.memory_bytes() - size_of::<SessionRow>()
}

fn place(number: u32) -> usize {
    usize::try_from(number).expect("32 bits fit")
}

impl Known {
    /// Bytes that a session takes besides what is on the heap of its row: vectors and tables have
    /// at most twice the memory that they need.
    pub(crate) const SESSION_BYTES: usize =
        2 * (size_of::<Option<Session>>() + size_of::<(Key, u32)>() + size_of::<u32>());

    /// Bytes that the sessions take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.numbers.len() * Self::SESSION_BYTES + self.heap_bytes
    }

    /// Whether it is known already.
    pub(crate) fn has(&self, row: &SessionRow) -> bool {
        self.numbers.contains_key(&Key::of_slice(row, false))
    }

    /// Takes a row in; what it adds to the second in which it was written.
    pub(crate) fn take(&mut self, mut row: SessionRow) -> Entry {
        // Packets are distinguished by their keys.
        row.pieces = Vec::new();
        // Names at rest would take further memory whenever a query reads them.
        row.names.unpack();
        let key = Key::of_slice(&row, false);
        let number = *self.numbers.entry(key).or_insert_with(|| {
            self.free.pop().unwrap_or_else(|| {
                self.sessions.push(None);
                u32::try_from(self.sessions.len() - 1).expect("bounded by the history")
            })
        });
        let session = self.sessions.get_mut(place(number)).expect("numbers are places");
        // After a long silence the other side may have begun anew.
        if session.as_ref().is_some_and(|session| session.so_far.tuple != row.tuple) {
            core::mem::swap(&mut row.orig, &mut row.resp);
        }
        let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let entry = Entry {
            session: number,
            packets: [small(row.orig.packets), small(row.resp.packets)],
            bytes: [row.orig.frame_bytes, row.resp.frame_bytes],
        };
        match session {
            None => {
                self.heap_bytes += heap_bytes(&row);
                *session = Some(Session { so_far: row, entries: 1 });
            }
            Some(session) => {
                session.entries += 1;
                self.heap_bytes -= heap_bytes(&session.so_far);
                session.so_far.join(row);
                self.heap_bytes += heap_bytes(&session.so_far);
            }
        }
        entry
    }

    /// Nothing names what this second named any more, so far as it did.
    pub(crate) fn forget(&mut self, second: &Second) {
        for entry in &second.entries {
            let slot = self.sessions.get_mut(place(entry.session)).expect("numbers are places");
            let session = slot.as_mut().expect("what is named is known");
            session.entries -= 1;
            if session.entries == 0 {
                self.heap_bytes -= heap_bytes(&session.so_far);
                self.numbers.remove(&Key::of_slice(&session.so_far, false));
                *slot = None;
                self.free.push(entry.session);
            }
        }
    }

    /// Numbers are below this.
    pub(crate) fn bound(&self) -> usize {
        self.sessions.len()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.numbers.len()
    }

    /// A session so far.
    pub(crate) fn get(&self, number: u32) -> &SessionRow {
        let session = self.sessions.get(place(number)).and_then(Option::as_ref);
        &session.expect("what is named is known").so_far
    }

    /// The session of these ends.
    pub(crate) fn of_tuple(&self, tuple: &FiveTuple) -> Option<&SessionRow> {
        let row = SessionRow::new(*tuple, Timestamp::default());
        self.of_key(&Key::of_slice(&row, false))
    }

    /// The session of a key.
    pub(crate) fn of_key(&self, key: &Key) -> Option<&SessionRow> {
        self.numbers.get(key).map(|&number| self.get(number))
    }
}
