//! How much of each session was kept, for as many sessions as there is memory for.

use std::collections::HashMap;

use session::Key;
use units::{NANOS_PER_SECOND, Timestamp};

/// Sessions after which a generation is full.
const SESSIONS_MAX: usize = 512 << 10;
/// How long a generation grows, by the time of packets.
const GENERATION_NS: i64 = 300 * NANOS_PER_SECOND;

/// What was kept of one session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct KeptOfSession {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
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
