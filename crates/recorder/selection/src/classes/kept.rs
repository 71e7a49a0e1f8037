//! How much of each session was kept, for as many sessions as there is memory for.

use std::collections::HashMap;

use session::Key;
use units::{NANOS_PER_SECOND, Timestamp};

use super::handshake::Side;

/// Sessions after which a generation is full: as many as a table of 2^19 places takes.
const SESSIONS_MAX: usize = 7 << 16;
/// Bytes of both generations: a place is an entry and a byte of the table's own.
pub(super) const MEMORY_BYTES_MAX: usize = 2 * ((size_of::<(Key, KeptOfSession)>() + 1) << 19);

const _: () = assert!(MEMORY_BYTES_MAX < 90 << 20);
/// How long a generation grows, by the time of packets.
const GENERATION_NS: i64 = 300 * NANOS_PER_SECOND;

/// What was kept of one session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct KeptOfSession {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    /// What each end has said so far.
    pub(crate) sides: [Side; 2],
}

/// Two generations: a session that is seen moves to the younger one, and when that is full or old
/// enough the older one, which no packet has needed since, is forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptOfSessions {
    young: HashMap<Key, KeptOfSession>,
    old: HashMap<Key, KeptOfSession>,
    began: Option<Timestamp>,
}

impl KeptOfSessions {
    /// The count of a session; `begins` says that a new one takes the place of an older one.
    pub(crate) fn of(&mut self, key: Key, now: Timestamp, begins: bool) -> &mut KeptOfSession {
        let began = *self.began.get_or_insert(now);
        let is_old = now.since(began) >= GENERATION_NS;
        if is_old || self.young.len() >= SESSIONS_MAX {
            self.began = Some(now);
            self.old = core::mem::take(&mut self.young);
        }
        let older = if self.old.is_empty() { None } else { self.old.remove(&key) };
        let session = self.young.entry(key).or_insert_with(|| older.unwrap_or_default());
        if begins {
            *session = KeptOfSession::default();
        }
        session
    }
}
