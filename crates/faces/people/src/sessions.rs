//! Sessions of browsers: a cookie stands for who has logged in.
//!
//! Nothing of them is on a disk: a restart ends all. Of a cookie only the hash is kept, so what is
//! read from memory logs nobody in. Whether the holder still counts is asked anew at each request.

use std::collections::BTreeMap;

use units::{NANOS_PER_SECOND, hex};

use crate::secret::hash_of;

/// Who has worked for so long logs in again.
pub const SESSION_LASTS_S: i64 = 12 * 3600;
/// And who has not for so long. A page that is open asks every two seconds.
const IDLE_S: i64 = 3600;
/// Sessions of one holder, and of all.
const OF_HOLDER_MAX: usize = 32;
const SESSIONS_MAX: usize = 1024;

/// Whose a session is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Holder {
    /// Who showed the token with this hash.
    Token([u8; 32]),
    /// A person. With another stamp the account is not the same any more.
    Person {
        /// Of the account.
        name: String,
        /// Changed with the password and with all that has to end sessions.
        stamp: String,
    },
    /// Somebody who has logged in at an identity provider.
    Provider {
        /// What the provider knows them by, for ever.
        subject: String,
        /// How they are shown.
        name: String,
        /// The role that they had when they logged in.
        role: String,
    },
}

impl Holder {
    /// The same token or person, whatever the stamp.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Person { name, .. }, Self::Person { name: other, .. })
            | (Self::Provider { subject: name, .. }, Self::Provider { subject: other, .. }) => {
                name == other
            }
            (one, other) => one == other,
        }
    }
}

#[derive(Clone, Debug)]
struct Session {
    holder: Holder,
    since_ns: i64,
    seen_ns: i64,
}

impl Session {
    fn goes_on(&self, now_ns: i64) -> bool {
        let within = |since_ns: i64, seconds: i64| {
            now_ns.saturating_sub(since_ns) < seconds.saturating_mul(NANOS_PER_SECOND)
        };
        within(self.since_ns, SESSION_LASTS_S) && within(self.seen_ns, IDLE_S)
    }
}

/// The sessions that go on, by the hash of their cookies.
#[derive(Debug, Default)]
pub struct Sessions(BTreeMap<[u8; 32], Session>);

impl Sessions {
    /// Begins a session; what its cookie has. Where there are as many as there may be the oldest
    /// ends, of the same holder first.
    pub fn begin(&mut self, holder: Holder, random: [u8; 32], now_ns: i64) -> String {
        let id = hex(&random);
        self.0.retain(|_, session| session.goes_on(now_ns));
        let of_holder = |it: &Session| it.holder.is_same(&holder);
        if self.0.values().filter(|it| of_holder(it)).count() >= OF_HOLDER_MAX {
            self.end_oldest(of_holder);
        } else if self.0.len() >= SESSIONS_MAX {
            self.end_oldest(|_| true);
        }
        let session = Session { holder, since_ns: now_ns, seen_ns: now_ns };
        self.0.insert(hash_of(&id), session);
        id
    }

    /// Who a cookie stands for, and that they are there.
    pub fn holder(&mut self, id: &str, now_ns: i64) -> Option<Holder> {
        let session = self.0.get_mut(&hash_of(id))?;
        if !session.goes_on(now_ns) {
            return None;
        }
        session.seen_ns = now_ns;
        Some(session.holder.clone())
    }

    /// Ends a session.
    pub fn end(&mut self, id: &str) {
        self.0.remove(&hash_of(id));
    }

    /// Ends all sessions of a person.
    pub fn end_of(&mut self, person: &str) {
        self.0.retain(
            |_, session| !matches!(&session.holder, Holder::Person { name, .. } if name == person),
        );
    }

    fn end_oldest(&mut self, which: impl Fn(&Session) -> bool) {
        let those = self.0.iter().filter(|(_, session)| which(session));
        let oldest = those.min_by_key(|(_, session)| session.since_ns).map(|(id, _)| *id);
        if let Some(id) = oldest {
            self.0.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600 * NANOS_PER_SECOND;

    fn anna(stamp: &str) -> Holder {
        Holder::Person { name: "anna".to_owned(), stamp: stamp.to_owned() }
    }

    fn random(number: usize) -> [u8; 32] {
        hash_of(&number.to_string())
    }

    #[test]
    fn a_cookie_stands_for_its_holder_until_the_session_ends() {
        let mut sessions = Sessions::default();
        let id = sessions.begin(anna("1"), random(0), 0);
        assert_eq!(id.len(), 64);
        assert!(!format!("{sessions:?}").contains(&id[..16]), "only its hash is kept");
        assert_eq!(sessions.holder(&id, 1), Some(anna("1")));
        assert_eq!(sessions.holder("", 1), None);
        sessions.end(&id);
        assert_eq!(sessions.holder(&id, 1), None);
    }

    #[test]
    fn who_is_idle_and_who_has_worked_long_enough_logs_in_again() {
        let mut sessions = Sessions::default();
        let id = sessions.begin(anna("1"), random(0), 0);
        assert!(sessions.holder(&id, HOUR - 1).is_some());
        assert!(sessions.holder(&id, 2 * HOUR - 1).is_none());
        let id = sessions.begin(anna("1"), random(1), 0);
        for half in 1..24 {
            assert!(sessions.holder(&id, half * HOUR / 2).is_some(), "{half}");
        }
        assert!(sessions.holder(&id, 12 * HOUR).is_none());
    }

    #[test]
    fn there_are_at_most_so_many_of_a_holder_and_the_oldest_leaves() {
        let mut sessions = Sessions::default();
        let other = sessions.begin(Holder::Token([1; 32]), random(0), 0);
        let first = sessions.begin(anna("1"), random(1), 0);
        for number in 0..OF_HOLDER_MAX {
            sessions.begin(anna("2"), random(number + 2), 1);
        }
        assert_eq!(sessions.holder(&first, 1), None);
        assert!(sessions.holder(&other, 1).is_some());
        assert_eq!(sessions.0.len(), OF_HOLDER_MAX + 1);
        sessions.end_of("anna");
        assert_eq!(sessions.0.len(), 1);
        for number in 0..2 * SESSIONS_MAX {
            let name = number.to_string();
            let holder = Holder::Person { name, stamp: String::new() };
            sessions.begin(holder, random(1000 + number), 2);
        }
        assert_eq!(sessions.0.len(), SESSIONS_MAX);
    }
}
