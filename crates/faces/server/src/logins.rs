//! Sessions of browsers: a cookie stands for the token that was shown when it was made.
//!
//! The token itself is not kept, nor is anything on a disk: a restart ends all sessions. A session
//! permits what its token does at that moment, and nothing once the token is revoked or over. Pages
//! of other origins cannot use the cookie (`SameSite=Strict`), scripts cannot read it (`HttpOnly`).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use host::SystemClock;
use hyper::header::{COOKIE, HeaderMap, HeaderValue};
use units::{Clock as _, NANOS_PER_SECOND, hex};

/// Who has worked for so long shows the token again.
const LASTS_S: i64 = 12 * 3600;
/// Sessions of one token, and of all.
const OF_TOKEN_MAX: usize = 32;
const SESSIONS_MAX: usize = 1024;
/// `__Host-` has browsers refuse it from other hosts and without TLS.
const NAME_WITH_TLS: &str = "__Host-wirespool";
const NAME: &str = "wirespool";

/// The sessions that go on.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    sessions: Mutex<BTreeMap<String, Session>>,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    /// SHA-256 of the token.
    credential: [u8; 32],
    since_ns: i64,
}

impl Session {
    fn goes_on(&self, now_ns: i64) -> bool {
        now_ns.saturating_sub(self.since_ns) < LASTS_S.saturating_mul(NANOS_PER_SECOND)
    }
}

impl Logins {
    /// Begins a session for the token of this hash; the cookie, unless there is no randomness.
    pub(crate) fn begin(&self, credential: [u8; 32], has_tls: bool) -> Option<HeaderValue> {
        let secret = hex(&host::random_bytes::<32>().ok()?);
        let since_ns = SystemClock.boottime_ns();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| session.goes_on(since_ns));
        let of_token = |it: &Session| it.credential == credential;
        if sessions.values().filter(|it| of_token(it)).count() >= OF_TOKEN_MAX {
            end_oldest(&mut sessions, of_token);
        } else if sessions.len() >= SESSIONS_MAX {
            end_oldest(&mut sessions, |_| true);
        }
        sessions.insert(secret.clone(), Session { credential, since_ns });
        Some(cookie(&secret, LASTS_S, has_tls))
    }

    /// The hash of the token that a request's cookie stands for.
    pub(crate) fn credential(&self, headers: &HeaderMap, has_tls: bool) -> Option<[u8; 32]> {
        let secret = secret(headers, has_tls)?;
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.get(secret)?;
        session.goes_on(SystemClock.boottime_ns()).then_some(session.credential)
    }

    /// Ends the session of a request; a cookie that takes the place of its own.
    pub(crate) fn end(&self, headers: &HeaderMap, has_tls: bool) -> HeaderValue {
        if let Some(secret) = secret(headers, has_tls) {
            self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(secret);
        }
        cookie("", 0, has_tls)
    }
}

fn end_oldest(sessions: &mut BTreeMap<String, Session>, which: impl Fn(&Session) -> bool) {
    let those = sessions.iter().filter(|(_, session)| which(session));
    let oldest =
        those.min_by_key(|(_, session)| session.since_ns).map(|(secret, _)| secret.clone());
    if let Some(oldest) = oldest {
        sessions.remove(&oldest);
    }
}

fn name(has_tls: bool) -> &'static str {
    if has_tls { NAME_WITH_TLS } else { NAME }
}

fn cookie(secret: &str, lasts_s: i64, has_tls: bool) -> HeaderValue {
    let (name, secure) = (name(has_tls), if has_tls { "; Secure" } else { "" });
    let text =
        format!("{name}={secret}; Path=/; Max-Age={lasts_s}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::try_from(text).expect("a name, hex digits and words")
}

/// What the cookie of a request has (RFC 6265, section 5.4).
fn secret(headers: &HeaderMap, has_tls: bool) -> Option<&str> {
    let given = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = given.flat_map(|text| text.split(';')).filter_map(|it| it.split_once('='));
    pairs.find(|(key, _)| key.trim() == name(has_tls)).map(|(_, secret)| secret.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(cookie: &HeaderValue) -> HeaderMap {
        let text = cookie.to_str().unwrap();
        let (pair, _) = text.split_once(';').unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, HeaderValue::try_from(format!("other=1; {pair}")).unwrap());
        headers
    }

    #[test]
    fn a_cookie_stands_for_its_token_until_the_session_ends() {
        let logins = Logins::default();
        let cookie = logins.begin([7; 32], true).unwrap();
        let text = cookie.to_str().unwrap();
        for word in ["__Host-wirespool=", "HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
            assert!(text.contains(word), "{text}");
        }
        let headers = request(&cookie);
        assert_eq!(logins.credential(&headers, true), Some([7; 32]));
        assert_eq!(logins.credential(&headers, false), None, "it is one for TLS alone");
        let gone = logins.end(&headers, true);
        assert!(gone.to_str().unwrap().contains("Max-Age=0"));
        assert_eq!(logins.credential(&headers, true), None);
        assert_eq!(logins.credential(&HeaderMap::new(), true), None);
    }

    #[test]
    fn there_are_at_most_so_many_of_a_token_and_the_oldest_leaves() {
        let logins = Logins::default();
        let other = request(&logins.begin([1; 32], false).unwrap());
        let first = request(&logins.begin([2; 32], false).unwrap());
        for _ in 0..OF_TOKEN_MAX {
            logins.begin([2; 32], false).unwrap();
        }
        assert_eq!(logins.credential(&first, false), None);
        assert_eq!(logins.credential(&other, false), Some([1; 32]));
        let count = logins.sessions.lock().unwrap().len();
        assert_eq!(count, OF_TOKEN_MAX + 1);
    }

    #[test]
    fn a_session_is_over_after_its_time() {
        let session = Session { credential: [0; 32], since_ns: 5 };
        let last = LASTS_S * NANOS_PER_SECOND + 5;
        assert!(session.goes_on(last - 1));
        assert!(!session.goes_on(last));
    }
}
