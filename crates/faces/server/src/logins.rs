//! The cookies of browsers: what they stand for is in `people::Sessions`.
//!
//! A session of a token permits what the token does at that moment, one of a person what the role
//! does. Pages of other origins cannot use the cookie (`SameSite=Strict`), scripts cannot read it
//! (`HttpOnly`).

use std::sync::{Mutex, MutexGuard};

use host::SystemClock;
use hyper::header::{COOKIE, HeaderMap, HeaderValue};
use people::{Holder, SESSION_LASTS_S, Sessions};
use units::Clock as _;

/// It has browsers refuse a cookie from other hosts and without TLS.
const PREFIX_WITH_TLS: &str = "__Host-";
const NAME: &str = "wirespool";

/// The sessions that go on.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    sessions: Mutex<Sessions>,
}

impl Logins {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        stage::lock(&self.sessions)
    }

    /// Begins a session; the cookie, unless there is no randomness. The one that the request came
    /// with ends: a cookie that was there before stands for nobody afterwards.
    pub(crate) fn begin(
        &self,
        holder: Holder,
        (headers, has_tls): (&HeaderMap, bool),
    ) -> Option<HeaderValue> {
        let random = host::random_bytes().ok()?;
        let mut sessions = self.sessions();
        if let Some(old) = secret(headers, has_tls) {
            sessions.end(old);
        }
        let id = sessions.begin(holder, random, SystemClock.boottime_ns());
        Some(cookie(&id, SESSION_LASTS_S, has_tls))
    }

    /// Who a request's cookie stands for.
    pub(crate) fn holder(&self, headers: &HeaderMap, has_tls: bool) -> Option<Holder> {
        let secret = secret(headers, has_tls)?;
        self.sessions().holder(secret, SystemClock.boottime_ns())
    }

    /// Ends the session of a request; a cookie that takes the place of its own.
    pub(crate) fn end(&self, headers: &HeaderMap, has_tls: bool) -> HeaderValue {
        if let Some(secret) = secret(headers, has_tls) {
            self.sessions().end(secret);
        }
        cookie("", 0, has_tls)
    }

    /// Ends all sessions of a person.
    pub(crate) fn end_of(&self, person: &str) {
        self.sessions().end_of(person);
    }
}

fn cookie(secret: &str, lasts_s: i64, has_tls: bool) -> HeaderValue {
    named_cookie((NAME, secret), lasts_s, has_tls)
}

fn secret(headers: &HeaderMap, has_tls: bool) -> Option<&str> {
    cookie_of(headers, NAME, has_tls)
}

/// A cookie for this service's own page, with hex digits in it.
pub(crate) fn named_cookie(
    (name, secret): (&str, &str),
    lasts_s: i64,
    has_tls: bool,
) -> HeaderValue {
    let (prefix, secure) = if has_tls { (PREFIX_WITH_TLS, "; Secure") } else { ("", "") };
    let text = format!(
        "{prefix}{name}={secret}; Path=/; Max-Age={lasts_s}; HttpOnly; SameSite=Strict{secure}"
    );
    HeaderValue::try_from(text).expect("a name, hex digits and words")
}

/// What the cookie of a request has (RFC 6265, section 5.4).
pub(crate) fn cookie_of<'a>(headers: &'a HeaderMap, name: &str, has_tls: bool) -> Option<&'a str> {
    let prefix = if has_tls { PREFIX_WITH_TLS } else { "" };
    let given = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = given.flat_map(|text| text.split(';')).filter_map(|it| it.split_once('='));
    let found = pairs.find(|(key, _)| key.trim().strip_prefix(prefix) == Some(name));
    found.map(|(_, secret)| secret.trim())
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
    fn a_cookie_stands_for_its_holder_until_the_session_ends() {
        let (logins, holder) = (Logins::default(), Holder::Token([7; 32]));
        let cookie = logins.begin(holder.clone(), (&HeaderMap::new(), true)).unwrap();
        let text = cookie.to_str().unwrap();
        for word in ["__Host-wirespool=", "HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
            assert!(text.contains(word), "{text}");
        }
        let headers = request(&cookie);
        assert_eq!(logins.holder(&headers, true), Some(holder.clone()));
        assert_eq!(logins.holder(&headers, false), None, "it is one for TLS alone");
        let gone = logins.end(&headers, true);
        assert!(gone.to_str().unwrap().contains("Max-Age=0"));
        assert_eq!(logins.holder(&headers, true), None);
        assert_eq!(logins.holder(&HeaderMap::new(), true), None);
    }

    #[test]
    fn a_login_begins_another_session_whatever_cookie_it_comes_with() {
        let (logins, holder) = (Logins::default(), Holder::Token([7; 32]));
        let first = request(&logins.begin(holder.clone(), (&HeaderMap::new(), false)).unwrap());
        let second = request(&logins.begin(holder, (&first, false)).unwrap());
        assert_ne!(first, second);
        assert_eq!(logins.holder(&first, false), None);
        // One that was planted is not taken over.
        let planted = request(&cookie(&"0".repeat(64), 9, false));
        let own = request(&logins.begin(Holder::Token([8; 32]), (&planted, false)).unwrap());
        assert!(logins.holder(&planted, false).is_none() && logins.holder(&own, false).is_some());
    }
}
