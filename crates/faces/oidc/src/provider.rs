//! A provider, with what is known of it.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use data_encoding::BASE64;
use serde::Deserialize;
use stage::lock;
use tokio::sync::Semaphore;
use units::NANOS_PER_SECOND;

use crate::claims::{Claims, Identity, subject};
use crate::discovery::Discovery;
use crate::error::{Error, Wrong};
use crate::fetch::{Fetch, Question};
use crate::flow::{Begun, Flows, LASTS_S, Returned, Secrets};
use crate::id_token::{Expected, Verified, verify};
use crate::keys::Keys;
use crate::settings::Settings;
use crate::url::Url;

/// Logins that wait for the provider at the same time.
const AT_ONCE: usize = 8;
/// What a provider says of itself is asked again after this; its keys also when a new one is named,
/// but not more often than that.
const KNOWN_FOR_NS: i64 = 3600 * NANOS_PER_SECOND;
const KEYS_EVERY_NS: i64 = 5 * NANOS_PER_SECOND;
/// Answers are shorter.
const DOCUMENT_BYTES_MAX: usize = 64 << 10;
const KEYS_BYTES_MAX: usize = 256 << 10;
const TOKENS_BYTES_MAX: usize = 128 << 10;
const CODE_BYTES_MAX: usize = 4096;

/// When it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Since 1970.
    pub unix_s: i64,
    /// Since the machine started.
    pub boottime_ns: i64,
}

#[derive(Debug, Default)]
struct Known {
    discovery: Option<(Arc<Discovery>, i64)>,
    keys: Option<(Arc<Keys>, i64)>,
}

/// A provider at which people log in.
#[derive(Debug)]
pub struct Provider {
    settings: Settings,
    fetch: Fetch,
    /// Where browsers come back to.
    page: String,
    flows: Mutex<Flows>,
    known: Mutex<Known>,
    places: Semaphore,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct Refused {
    error: String,
}

fn away(why: impl Into<String>) -> Wrong {
    Wrong::Away(why.into())
}

impl Provider {
    /// The provider of these settings; browsers come back to the page at `origin`. It is not asked
    /// before somebody logs in: it may be away when this service starts.
    ///
    /// # Errors
    /// When its certificates cannot be read.
    pub fn new(settings: Settings, origin: &str) -> Result<Self, Error> {
        let fetch = Fetch::new(settings.issuer.clone(), settings.ca.as_deref())?;
        Ok(Self {
            settings,
            fetch,
            page: format!("{origin}/"),
            flows: Mutex::default(),
            known: Mutex::default(),
            places: Semaphore::new(AT_ONCE),
        })
    }

    /// What its file said.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Begins a login: where the browser goes.
    ///
    /// # Errors
    /// When the provider is away, or too many log in at once.
    pub async fn begin(
        &self,
        from: IpAddr,
        random: &[u8; 128],
        now: Moment,
    ) -> Result<Begun, Wrong> {
        let _place = self.places.try_acquire().map_err(|_| Wrong::Busy)?;
        let discovery = self.discovery(now).await?;
        let (secrets, cookie) = lock(&self.flows).begin(from, random, now.boottime_ns);
        let location = discovery.authorization.with(&[
            ("response_type", "code"),
            ("client_id", &self.settings.client.id),
            ("redirect_uri", &self.page),
            ("scope", &self.settings.scopes),
            ("state", &secrets.state),
            ("nonce", &secrets.nonce),
            ("code_challenge", &secrets.challenge()),
            ("code_challenge_method", "S256"),
        ]);
        Ok(Begun { location, cookie, lasts_s: LASTS_S })
    }

    /// Who has logged in.
    ///
    /// # Errors
    /// When the login is none of this browser's, the provider is away, or what it says does not
    /// count.
    pub async fn finish(&self, returned: Returned<'_>, now: Moment) -> Result<Identity, Wrong> {
        let secrets = lock(&self.flows).take(returned, now.boottime_ns)?;
        let _place = self.places.try_acquire().map_err(|_| Wrong::Busy)?;
        if returned.code.len() > CODE_BYTES_MAX {
            return Err(Wrong::Over);
        }
        let discovery = self.discovery(now).await?;
        let is_other = returned.issuer.is_some_and(|issuer| issuer != discovery.issuer);
        if is_other || (discovery.says_issuer && returned.issuer.is_none()) {
            return Err(Wrong::Token("the answer is of another provider"));
        }
        let tokens = self.tokens(&discovery, returned.code, &secrets).await?;
        let mut claims = self.claims(&discovery, &tokens.id_token, (&secrets, now)).await?;
        if !self.settings.rules.are_answered_by(&claims) {
            self.add_userinfo(&discovery, tokens.access_token.as_deref(), &mut claims).await?;
        }
        self.settings.rules.identity(&claims)
    }

    async fn get(&self, url: &Url, bytes_max: usize) -> Result<Vec<u8>, String> {
        let question = Question { url, form: None, authorization: None, bytes_max };
        let answer = self.fetch.ask(question).await?;
        let why = || format!("{}: it has no answer", page::safe::printable(&url.authority()));
        answer.is_success.then_some(answer.bytes).ok_or_else(why)
    }

    async fn discovery(&self, now: Moment) -> Result<Arc<Discovery>, Wrong> {
        let known = lock(&self.known).discovery.clone();
        let is_fresh = |since_ns: i64| now.boottime_ns.saturating_sub(since_ns) < KNOWN_FOR_NS;
        if let Some((discovery, _)) = known.as_ref().filter(|(_, since_ns)| is_fresh(*since_ns)) {
            return Ok(Arc::clone(discovery));
        }
        let place = Discovery::place(&self.settings.issuer).map_err(away)?;
        let bytes = self.get(&place, DOCUMENT_BYTES_MAX).await.map_err(away)?;
        let discovery = Discovery::parse(&bytes, &self.settings.issuer);
        let discovery = discovery.map_err(|why| away(page::safe::printable(&why)))?;
        let discovery = Arc::new(discovery);
        lock(&self.known).discovery = Some((Arc::clone(&discovery), now.boottime_ns));
        Ok(discovery)
    }

    /// Its keys; those that are known, where they are no older than `for_ns`.
    async fn keys(
        &self,
        discovery: &Discovery,
        (now, for_ns): (Moment, i64),
    ) -> Result<Arc<Keys>, Wrong> {
        let known = lock(&self.known).keys.clone();
        let is_fresh = |since_ns: i64| now.boottime_ns.saturating_sub(since_ns) < for_ns;
        if let Some((keys, _)) = known.as_ref().filter(|(_, since_ns)| is_fresh(*since_ns)) {
            return Ok(Arc::clone(keys));
        }
        let bytes = self.get(&discovery.keys, KEYS_BYTES_MAX).await.map_err(away)?;
        let keys = Arc::new(Keys::parse(&bytes).map_err(away)?);
        lock(&self.known).keys = Some((Arc::clone(&keys), now.boottime_ns));
        Ok(keys)
    }

    /// What the token endpoint is sent for a code, and the heading with the client's secret.
    fn token_form(
        &self,
        discovery: &Discovery,
        code: &str,
        secrets: &Secrets,
    ) -> (String, Option<String>) {
        let client = &self.settings.client;
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs([
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.page),
            ("client_id", &client.id),
            ("code_verifier", &secrets.verifier),
        ]);
        let mut authorization = None;
        match &client.secret {
            Some(secret) if discovery.takes_basic => {
                authorization = Some(basic(&client.id, secret));
            }
            Some(secret) => drop(form.append_pair("client_secret", secret)),
            None => {}
        }
        (form.finish(), authorization)
    }

    async fn tokens(
        &self,
        discovery: &Discovery,
        code: &str,
        secrets: &Secrets,
    ) -> Result<Tokens, Wrong> {
        let (form, authorization) = self.token_form(discovery, code, secrets);
        let (url, bytes_max) = (&discovery.token, TOKENS_BYTES_MAX);
        let question = Question { url, form: Some(form), authorization, bytes_max };
        let answer = self.fetch.ask(question).await.map_err(away)?;
        if answer.is_success {
            let tokens = serde_json::from_slice(&answer.bytes);
            return tokens.map_err(|_| away("the provider sends no ID token"));
        }
        let refused: Option<Refused> = serde_json::from_slice(&answer.bytes).ok();
        let why = refused.map_or_else(|| "without a reason".to_owned(), |refused| refused.error);
        let why: String = page::safe::printable(&why).chars().take(100).collect();
        Err(away(format!("the provider refuses the code: {why}")))
    }

    /// What the ID token says. One that names a key that is not known has the keys asked for again:
    /// providers change them.
    async fn claims(
        &self,
        discovery: &Discovery,
        token: &str,
        (secrets, now): (&Secrets, Moment),
    ) -> Result<Claims, Wrong> {
        let expected = Expected {
            issuer: &discovery.issuer,
            client: &self.settings.client.id,
            nonce: &secrets.nonce,
            now_s: now.unix_s,
        };
        for for_ns in [KNOWN_FOR_NS, KEYS_EVERY_NS] {
            let keys = self.keys(discovery, (now, for_ns)).await?;
            if let Verified::Claims(claims) = verify(token, &keys, expected)? {
                return Ok(claims);
            }
        }
        Err(Wrong::Token("the ID token is signed by a key that the provider does not have"))
    }

    /// Adds what the ID token does not say. What it says counts more: it is signed.
    async fn add_userinfo(
        &self,
        discovery: &Discovery,
        access_token: Option<&str>,
        claims: &mut Claims,
    ) -> Result<(), Wrong> {
        let (Some(url), Some(token)) = (&discovery.userinfo, access_token) else { return Ok(()) };
        let authorization = Some(format!("Bearer {token}"));
        let question = Question { url, form: None, authorization, bytes_max: TOKENS_BYTES_MAX };
        let answer = self.fetch.ask(question).await.map_err(away)?;
        if !answer.is_success {
            return Err(away("the provider does not say who it is"));
        }
        let said: Claims = serde_json::from_slice(&answer.bytes)
            .map_err(|_| away("what the provider says of the person is no JSON"))?;
        if subject(&said)? != subject(claims)? {
            return Err(Wrong::Token("the provider speaks of somebody else"));
        }
        for (name, value) in said {
            claims.entry(name).or_insert(value);
        }
        Ok(())
    }
}

/// RFC 6749, section 2.3.1.
fn basic(id: &str, secret: &str) -> String {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret));
    format!("Basic {}", BASE64.encode(pair.as_bytes()))
}

#[cfg(test)]
mod tests;
