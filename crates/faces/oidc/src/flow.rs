//! Logins that were begun: each belongs to one browser, counts once, and not for long.

use std::collections::BTreeMap;
use std::net::IpAddr;

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest as _, Sha256};
use units::{NANOS_PER_SECOND, hex};

use crate::error::Wrong;

/// Who logs in at the provider has so long.
pub(crate) const LASTS_S: i64 = 600;
/// Anybody may begin: so many from one address, and of all.
const FROM_ONE_MAX: usize = 32;
const BEGUN_MAX: usize = 4096;

/// A login that was begun: where the browser goes, and the secret of the cookie that it keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Begun {
    /// The provider's page.
    pub location: String,
    /// For a cookie that only this service reads.
    pub cookie: String,
    /// How long the cookie counts, in seconds.
    pub lasts_s: i64,
}

/// What a browser comes back with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Returned<'a> {
    /// For the token endpoint.
    pub code: &'a str,
    /// As it was sent.
    pub state: &'a str,
    /// The issuer, where the provider says it (RFC 9207).
    pub issuer: Option<&'a str>,
    /// The secret of the cookie.
    pub cookie: Option<&'a str>,
}

/// Secrets of a login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Secrets {
    pub(crate) state: String,
    pub(crate) nonce: String,
    /// Of PKCE (RFC 7636).
    pub(crate) verifier: String,
}

impl Secrets {
    fn new(random: &[u8; 128]) -> (Self, String) {
        let mut parts = random.chunks(32);
        let mut text = || BASE64URL_NOPAD.encode(parts.next().unwrap_or_default());
        let secrets = Self { state: text(), nonce: text(), verifier: text() };
        (secrets, hex(random.last_chunk::<32>().unwrap_or(&[0; 32])))
    }

    /// What the provider is told of the verifier (RFC 7636, section 4.2).
    pub(crate) fn challenge(&self) -> String {
        BASE64URL_NOPAD.encode(&Sha256::digest(self.verifier.as_bytes()))
    }
}

#[derive(Clone, Debug)]
struct Open {
    secrets: Secrets,
    from: IpAddr,
    since_ns: i64,
}

/// Logins that go on, by the hash of their cookies.
#[derive(Debug, Default)]
pub(crate) struct Flows(BTreeMap<[u8; 32], Open>);

impl Flows {
    /// Begins one; its secrets, and that of its cookie. Where there are as many as there may be the
    /// oldest is over, of the same address first.
    pub(crate) fn begin(
        &mut self,
        from: IpAddr,
        random: &[u8; 128],
        now_ns: i64,
    ) -> (Secrets, String) {
        self.0.retain(|_, open| goes_on(open, now_ns));
        let of_one = |open: &Open| open.from == from;
        if self.0.values().filter(|open| of_one(open)).count() >= FROM_ONE_MAX {
            self.end_oldest(of_one);
        } else if self.0.len() >= BEGUN_MAX {
            self.end_oldest(|_| true);
        }
        let (secrets, cookie) = Secrets::new(random);
        let open = Open { secrets: secrets.clone(), from, since_ns: now_ns };
        self.0.insert(hash(&cookie), open);
        (secrets, cookie)
    }

    fn end_oldest(&mut self, which: impl Fn(&Open) -> bool) {
        let those = self.0.iter().filter(|(_, open)| which(open));
        let oldest = those.min_by_key(|(_, open)| open.since_ns).map(|(id, _)| *id);
        if let Some(id) = oldest {
            self.0.remove(&id);
        }
    }

    /// Uses up the login that a browser comes back from.
    pub(crate) fn take(&mut self, returned: Returned<'_>, now_ns: i64) -> Result<Secrets, Wrong> {
        let cookie = returned.cookie.ok_or(Wrong::Over)?;
        let open = self.0.remove(&hash(cookie)).filter(|open| goes_on(open, now_ns));
        let secrets = open.ok_or(Wrong::Over)?.secrets;
        // Both are of 256 random bits, so how long it takes says nothing that helps.
        if hash(&secrets.state) != hash(returned.state) {
            return Err(Wrong::Over);
        }
        Ok(secrets)
    }
}

fn goes_on(open: &Open, now_ns: i64) -> bool {
    now_ns.saturating_sub(open.since_ns) < LASTS_S.saturating_mul(NANOS_PER_SECOND)
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANNA: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1));
    const EVE: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 2));

    fn random(of: u16) -> [u8; 128] {
        let [high, low] = of.to_be_bytes();
        core::array::from_fn(|at| if at % 32 == 0 { high } else { low.wrapping_add(3) })
    }

    fn back<'a>(state: &'a str, cookie: &'a str) -> Returned<'a> {
        Returned { code: "c", state, issuer: None, cookie: Some(cookie) }
    }

    #[test]
    fn a_login_ends_in_the_browser_that_has_begun_it_and_once() {
        let mut flows = Flows::default();
        let (secrets, cookie) = flows.begin(ANNA, &random(1), 0);
        assert_eq!(secrets.verifier.len(), 43);
        let (other, others) = flows.begin(EVE, &random(2), 0);
        // The one's state with the other's cookie, which is used up by that.
        assert_eq!(flows.take(back(&secrets.state, &others), 1), Err(Wrong::Over));
        assert_eq!(flows.take(back(&other.state, &others), 1), Err(Wrong::Over));
        let without = Returned { cookie: None, ..back(&secrets.state, "") };
        assert_eq!(flows.take(without, 1), Err(Wrong::Over));
        assert_eq!(flows.take(back(&secrets.state, &cookie), 1), Ok(secrets.clone()));
        assert_eq!(flows.take(back(&secrets.state, &cookie), 1), Err(Wrong::Over));
        let (secrets, cookie) = flows.begin(ANNA, &random(3), 0);
        let late = LASTS_S * NANOS_PER_SECOND;
        assert_eq!(flows.take(back(&secrets.state, &cookie), late), Err(Wrong::Over));
    }

    #[test]
    fn who_begins_a_thousand_ends_the_own_ones() {
        let mut flows = Flows::default();
        let (secrets, cookie) = flows.begin(ANNA, &random(1), 0);
        for of in 2..1000 {
            flows.begin(EVE, &random(of), i64::from(of));
        }
        assert!(flows.0.len() <= FROM_ONE_MAX + 1);
        assert!(flows.take(back(&secrets.state, &cookie), 2000).is_ok());
    }

    /// RFC 7636, appendix B.
    #[test]
    fn the_challenge_is_that_of_the_rfc() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        let secrets = Secrets { state: String::new(), nonce: String::new(), verifier };
        assert_eq!(secrets.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
