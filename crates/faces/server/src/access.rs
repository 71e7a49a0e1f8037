//! Who may ask what: tokens, certificates of clients, scopes.
//!
//! Tokens stand in a file, a line each: `NAME:SCOPES:SHA-256[:EXPIRY[ FILTER]]`, with the hash of
//! the token in hex digits, the expiry in RFC 3339 (or nothing before a filter), and a query that
//! is asked besides whatever its owner asks. A line with the word `certificate` in the place of the
//! hash gives scopes to client certificates with that common name, and one of the name `*` to all
//! others that the CA has signed. The file is read again when it has changed: a line that is taken
//! out is a credential that is revoked.

use std::path::{Path, PathBuf};

use approvals::{Party, PartyKind};
use hyper::header::{AUTHORIZATION, HeaderMap};
use people::{Scope, checked_filter, hash_of, is_name, is_same};
use questions::narrowed;
use schemars::JsonSchema;
use serde::Serialize;
use units::{Timestamp, hex, unhex};

use crate::Error;
use crate::reread::Reread;

/// Before the random part: scanners for secrets know it by that.
const TOKEN_PREFIX: &str = "wirespool_";
/// Bytes of randomness in a token.
const TOKEN_BYTES: usize = 32;
const CERTIFICATE: &str = "certificate";
/// Every certificate that has no line of its own.
const ANY: &str = "*";

/// Who asks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) scopes: Vec<Scope>,
    /// Sees only sessions that match, and of packets those in its times.
    pub(crate) filter: Option<String>,
    /// A person, in a browser.
    pub(crate) person: Option<Standing>,
    /// Somebody who has logged in at the provider, in a browser.
    pub(crate) guest: Option<Guest>,
    /// What tells it from an earlier one of its name: of a token digits of its hash, of an account
    /// when it was made. Certificates have none.
    pub(crate) mark: Option<String>,
    pub(crate) shown: Shown,
}

/// What a caller has shown, by which it is asked again whether they still count.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Shown {
    /// Nothing that could be taken back while a request is answered.
    #[default]
    Nothing,
    /// The hash of a token.
    Token([u8; 32]),
    /// The common name of a certificate.
    Certificate(String),
    /// The stamp of the account, which is under the caller's name.
    Account(String),
}

/// How somebody stands who has logged in at the provider.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Guest {
    pub(crate) role: String,
    /// What the provider knows them by.
    pub(crate) subject: String,
}

/// How a person stands.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Standing {
    pub(crate) role: String,
    /// Nothing else is permitted before.
    pub(crate) must_change_password: bool,
    pub(crate) has_second_factor: bool,
    pub(crate) has_authenticator: bool,
    pub(crate) keys: Vec<ShownKey>,
    /// Of ten codes for who has lost the second factor.
    pub(crate) recovery_codes: usize,
}

/// A key of a person, as it is shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub(crate) struct ShownKey {
    id: String,
    name: String,
    since: String,
}

/// A line of the file of tokens, without its hash.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Token")]
pub(crate) struct ShownToken {
    name: String,
    scopes: Vec<&'static str>,
    is_certificate: bool,
    /// RFC 3339; null: never.
    expires: Option<String>,
    filter: Option<String>,
}

impl ShownKey {
    pub(crate) fn of(key: &people::Key) -> Self {
        let [id, name, since] = [key.id(), key.name(), key.since()].map(str::to_owned);
        Self { id, name, since }
    }
}

impl Caller {
    /// Whose an answer is: a person and a token of one name are two.
    pub(crate) fn owner(&self) -> String {
        if let Some(guest) = &self.guest {
            return format!("provider {}", guest.subject);
        }
        let kind = if self.person.is_some() { "person" } else { "credential" };
        format!("{kind} {}", self.name)
    }

    /// As requests for extracts name it.
    pub(crate) fn party(&self) -> Party {
        let (kind, mark) = match (&self.guest, &self.person, &self.mark) {
            (Some(guest), ..) => (PartyKind::Provider, Some(&guest.subject)),
            (None, Some(_), mark) => (PartyKind::Person, mark.as_ref()),
            (None, None, Some(mark)) => (PartyKind::Token, Some(mark)),
            (None, None, None) => (PartyKind::Certificate, None),
        };
        Party { kind, name: self.name.clone(), mark: mark.cloned().unwrap_or_default() }
    }

    /// What is asked of a volume for a query that was parsed by itself: one with a parenthesis too
    /// many would get out of the filter.
    pub(crate) fn narrowed(&self, query: &str) -> String {
        narrowed(self.filter.as_deref(), query)
    }
}

/// The token that a request shows.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// A line of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Line {
    name: String,
    scopes: Vec<Scope>,
    secret: Secret,
    expires: Option<Timestamp>,
    filter: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Secret {
    Token([u8; 32]),
    Certificate,
}

/// A token that was just made, and its line for the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NewToken {
    /// What its owner sends. It is shown once and stored nowhere.
    pub(crate) token: String,
    /// What the file gets, with its line feed.
    pub(crate) line: String,
}

/// Makes a token for `name`, with an expiry and a filter where they are wanted. `others` is the
/// file so far.
///
/// # Errors
/// When the name or the filter is none, or the file has the name already.
pub(crate) fn new_token(
    name: &str,
    scopes: &[Scope],
    (expires, filter): (Option<Timestamp>, Option<&str>),
    others: &str,
) -> Result<NewToken, Error> {
    if !is_name(name) {
        return Err(Error::NewToken(people::NAME_RULE));
    }
    if others.lines().any(|line| line.split(':').next() == Some(name)) {
        return Err(Error::TokenTaken);
    }
    let random: [u8; TOKEN_BYTES] = host::random_bytes()?;
    let token = format!("{TOKEN_PREFIX}{}", hex(&random));
    let words: Vec<&str> = scopes.iter().map(|scope| scope.word()).collect();
    let hash = hex(&hash_of(&token));
    let filter = filter.map(checked_filter).transpose().map_err(Error::NewToken)?;
    let expiry = expires.map_or_else(String::new, |at| at.to_string());
    let filter = filter.map_or_else(String::new, |filter| format!(" {filter}"));
    let rest = format!("{expiry}{filter}");
    let gap = if rest.is_empty() { "" } else { ":" };
    let line = format!("{name}:{}:{hash}{gap}{rest}\n", words.join(","));
    Ok(NewToken { token, line })
}

fn parse(path: &Path, text: &str) -> Result<Vec<Line>, Error> {
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|(number, line)| {
            parse_line(line.trim()).map_err(|why| Error::Token {
                path: path.to_path_buf(),
                line: number,
                why,
            })
        })
        .collect()
}

fn parse_line(line: &str) -> Result<Line, &'static str> {
    let mut parts = line.splitn(4, ':');
    let (name, scopes, secret) = (parts.next(), parts.next(), parts.next());
    let (Some(name), Some(scopes), Some(secret)) = (name, scopes, secret) else {
        return Err("write NAME:SCOPES:SHA-256[:EXPIRY[ FILTER]]");
    };
    let secret = match secret {
        CERTIFICATE => Secret::Certificate,
        digits => Secret::Token(unhex(digits).ok_or("the hash is no SHA-256 in hex digits")?),
    };
    let is_for_all = name == ANY && secret == Secret::Certificate;
    if !is_name(name) && !is_for_all {
        return Err("the name has other characters than letters, digits, . _ -");
    }
    let scopes = Scope::list(scopes)?;
    let rest = parts.next().unwrap_or_default();
    let (expiry, filter) = rest.split_once(' ').unwrap_or((rest, ""));
    let expiry = Some(expiry).filter(|text| !text.is_empty());
    let filter = Some(filter).filter(|text| !text.is_empty());
    let expires = expiry.map(str::parse::<Timestamp>).transpose();
    Ok(Line {
        name: name.to_owned(),
        scopes,
        secret,
        expires: expires.map_err(|_| "the expiry is no time of RFC 3339")?,
        filter: filter.map(checked_filter).transpose()?,
    })
}

/// The credentials that count.
#[derive(Debug)]
pub(crate) struct Access {
    /// Without a file each certificate of the CA may read sessions and take packets.
    file: Option<PathBuf>,
    lines: Reread<Vec<Line>>,
}

impl Access {
    pub(crate) fn open(file: Option<PathBuf>) -> Result<Self, Error> {
        let lines = match &file {
            Some(path) => parse(path, &host::read_key(path)?)?,
            None => vec![Line {
                name: ANY.to_owned(),
                scopes: vec![Scope::Sessions, Scope::Extract],
                secret: Secret::Certificate,
                expires: None,
                filter: None,
            }],
        };
        Ok(Self { file, lines: Reread::new(lines) })
    }

    /// The file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The file has changed: the next request reads it.
    pub(crate) fn look_again(&self) {
        self.lines.look_again();
    }

    /// The lines, without their hashes.
    pub(crate) fn shown(&self) -> Vec<ShownToken> {
        self.lines.with(|lines| lines.iter().map(Line::shown).collect())
    }

    /// Reads the file again. False where it was looked at a moment ago.
    pub(crate) fn refresh(&self) -> Result<bool, Error> {
        let Some(path) = &self.file else { return Ok(false) };
        self.lines.refresh(|| parse(path, &host::read_key(path)?))
    }

    /// Whose token has this hash.
    pub(crate) fn by_hash(&self, given: &[u8; 32], now: Timestamp) -> Option<Caller> {
        self.lines.with(|lines| {
            // Every line is compared, and all of it: the time says nothing.
            let mut found = None;
            for line in lines {
                if let Secret::Token(hash) = &line.secret
                    && is_same(hash, given)
                {
                    found = Some(line);
                }
            }
            found.and_then(|line| line.caller((&line.name, Shown::Token(*given)), now))
        })
    }

    /// Who has a token that was told from others by this mark.
    pub(crate) fn by_mark(&self, name: &str, mark: &str, now: Timestamp) -> Option<Caller> {
        self.lines.with(|lines| {
            let is_it = |line: &&Line| line.name == name && line.mark().as_deref() == Some(mark);
            lines.iter().find(is_it)?.caller((name, Shown::Nothing), now)
        })
    }

    /// Whose certificate this is, which the CA has signed.
    pub(crate) fn by_certificate(&self, common_name: &str, now: Timestamp) -> Option<Caller> {
        self.lines.with(|lines| {
            let of = |name: &str| {
                let is_it = |line: &&Line| line.secret == Secret::Certificate && line.name == name;
                lines.iter().find(is_it)
            };
            let shown = Shown::Certificate(common_name.to_owned());
            of(common_name).or_else(|| of(ANY))?.caller((common_name, shown), now)
        })
    }
}

impl Line {
    fn shown(&self) -> ShownToken {
        ShownToken {
            name: self.name.clone(),
            scopes: self.scopes.iter().map(|scope| scope.word()).collect(),
            is_certificate: self.secret == Secret::Certificate,
            expires: self.expires.map(|at| at.to_string()),
            filter: self.filter.clone(),
        }
    }

    /// Digits of the hash: the token does not follow from them.
    fn mark(&self) -> Option<String> {
        match &self.secret {
            Secret::Token(hash) => Some(hex(hash.get(..8).unwrap_or_default())),
            Secret::Certificate => None,
        }
    }

    fn caller(&self, (name, shown): (&str, Shown), now: Timestamp) -> Option<Caller> {
        let is_valid = self.expires.is_none_or(|at| now < at);
        is_valid.then(|| Caller {
            name: name.to_owned(),
            scopes: self.scopes.clone(),
            filter: self.filter.clone(),
            person: None,
            guest: None,
            mark: self.mark(),
            shown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

    fn access(text: &str) -> Access {
        let lines = parse(Path::new("tokens"), text).unwrap();
        Access { file: None, lines: Reread::new(lines) }
    }

    #[test]
    fn a_token_is_known_by_its_hash_until_it_expires() {
        let scopes = [Scope::Sessions, Scope::Extract];
        let lasting = new_token("lasting", &scopes, (None, None), "").unwrap();
        let over = new_token("over", &scopes, (Some(NOW), None), &lasting.line).unwrap();
        assert_ne!(lasting.token, over.token);
        assert!(!lasting.line.contains(&lasting.token));
        let access = access(&format!("# a remark\n\n{}{}", lasting.line, over.line));
        let caller = access.by_hash(&hash_of(&lasting.token), NOW).unwrap();
        assert_eq!((&*caller.name, &*caller.scopes), ("lasting", &scopes[..]));
        assert_eq!(access.by_hash(&hash_of(&over.token), NOW), None);
        assert!(access.by_hash(&hash_of(&over.token), Timestamp(NOW.0 - 1)).is_some());
        for wrong in ["", "wirespool_", &lasting.token[1..], &lasting.line] {
            assert_eq!(access.by_hash(&hash_of(wrong), NOW), None, "{wrong}");
        }
        assert!(new_token("over", &[], (None, None), &over.line).is_err(), "the name is taken");
    }

    #[test]
    fn a_filter_is_asked_besides_whatever_is_asked() {
        let filter = "net 10.0.0.0/8 or port 53 and since 7d ago";
        for expires in [None, Some(Timestamp(NOW.0 + 1))] {
            let made = new_token("a", &[], (expires, Some(filter)), "").unwrap();
            let access = access(&made.line);
            let caller = access.by_hash(&hash_of(&made.token), NOW).unwrap();
            assert_eq!(caller.narrowed(""), filter);
            assert_eq!(caller.narrowed(" tcp or udp "), format!("({filter}) and (tcp or udp)"));
        }
        for wrong in ["", "hsot 1.2.3.4", "country = NL", "port 53\nb::c"] {
            assert!(new_token("a", &[], (None, Some(wrong)), "").is_err(), "{wrong}");
        }
        let hash = "0".repeat(64);
        for wrong in ["a::HASH: hsot 1.2.3.4", "a::HASH:tomorrow port 53"] {
            let line = wrong.replace("HASH", &hash);
            assert!(parse(Path::new("tokens"), &line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_certificate_has_the_scopes_of_its_line_or_of_the_one_for_all() {
        let access = access("sensor:sessions:certificate\n*:extract:certificate\n");
        let scopes = |name| access.by_certificate(name, NOW).unwrap().scopes;
        assert_eq!((scopes("sensor"), scopes("x")), (vec![Scope::Sessions], vec![Scope::Extract]));
    }

    #[test]
    fn a_wrong_line_is_refused_with_its_number() {
        let hash = "0".repeat(64);
        for line in [
            "a".to_owned(),
            "a:sessions".to_owned(),
            "a:sessions:00".to_owned(),
            format!("a b:sessions:{hash}"),
            format!("*:sessions:{hash}"),
            format!(":sessions:{hash}"),
            format!("a:session:{hash}"),
            format!("a:sessions:{hash}:tomorrow"),
        ] {
            let refused = parse(Path::new("tokens"), &format!("\n{line}\n"));
            assert!(matches!(refused, Err(Error::Token { line: 2, .. })), "{line}");
        }
        assert!(parse(Path::new("tokens"), &format!("a::{hash}:2027-01-01T00:00:00Z")).is_ok());
    }
}
