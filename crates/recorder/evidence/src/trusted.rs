//! Public keys that somebody trusts: a PEM file, `KEY.pub` of OpenSSH, or an `allowed_signers` file
//! (ssh-keygen(1), ALLOWED SIGNERS).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use units::Timestamp;

use crate::key::{KeyError, NAMESPACE, PublicKey};

const ED25519: &str = "ssh-ed25519";
/// In front of the 32 bytes of a key of OpenSSH (RFC 8709, section 4).
const BLOB_PREFIX: [u8; 19] =
    [0, 0, 0, 11, b's', b's', b'h', b'-', b'e', b'd', b'2', b'5', b'5', b'1', b'9', 0, 0, 0, 32];

/// A key, and what the file says of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trusted {
    /// The key.
    pub key: PublicKey,
    /// Whose it is: principals of `allowed_signers`, the comment of a public key; none in PEM.
    pub name: Option<String>,
    /// Signatures count from this time on, by what is signed.
    pub valid_from: Timestamp,
    /// And up to this time.
    pub valid_to: Timestamp,
}

/// Keys that are trusted; of none every signature is from somebody unknown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TrustedKeys(Vec<Trusted>);

impl TrustedKeys {
    /// Reads a file. Keys of other kinds, keys of authorities and keys for other namespaces are
    /// left out.
    ///
    /// # Errors
    /// When nothing is left.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if let Some(key) = PublicKey::from_pem(text) {
            return Ok(Self(vec![Trusted::plain(key, None)]));
        }
        let (mut keys, mut other) = (Vec::new(), None);
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match parse_line(line) {
                Ok(key) => keys.push(key),
                Err(error) => other = other.or(error),
            }
        }
        if keys.is_empty() {
            return Err(other.unwrap_or(KeyError::None { kind: "public" }));
        }
        Ok(Self(keys))
    }

    /// The entry of a key, the one that is valid for longest where it has several.
    pub fn find(&self, key: &PublicKey) -> Option<&Trusted> {
        let same = self.0.iter().filter(|trusted| trusted.key == *key);
        same.max_by_key(|trusted| trusted.valid_to.since(trusted.valid_from))
    }

    /// No key is trusted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<PublicKey> for TrustedKeys {
    fn from(key: PublicKey) -> Self {
        Self(vec![Trusted::plain(key, None)])
    }
}

impl Trusted {
    fn plain(key: PublicKey, name: Option<String>) -> Self {
        Self { key, name, valid_from: Timestamp::MIN, valid_to: Timestamp::MAX }
    }

    /// Whether a signature made at this time counts.
    pub fn is_valid_at(&self, time: Timestamp) -> bool {
        (self.valid_from..=self.valid_to).contains(&time)
    }
}

/// `ssh-ed25519 BASE64 COMMENT`, or `PRINCIPALS [OPTIONS] ssh-ed25519 BASE64 COMMENT`.
fn parse_line(line: &str) -> Result<Trusted, Option<KeyError>> {
    let words = words(line);
    let is_kind = |word: &&String| {
        let kinds = ["ssh-", "ecdsa-", "sk-"];
        kinds.iter().any(|kind| word.starts_with(kind))
    };
    let at = words.iter().position(|word| is_kind(&word)).ok_or(None)?;
    let (front, key) = words.split_at(at);
    let (kind, blob, comment) = match key {
        [kind, blob, comment @ ..] => (kind, blob, comment.join(" ")),
        _ => return Err(None),
    };
    if kind != ED25519 {
        return Err(Some(KeyError::Algorithm(kind.clone())));
    }
    let blob = STANDARD.decode(blob).map_err(|_| None)?;
    let key = blob.strip_prefix(&BLOB_PREFIX).and_then(|key| key.try_into().ok()).ok_or(None)?;
    let named = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
    let mut trusted = match front {
        [] => return Ok(Trusted::plain(PublicKey(key), named(&comment))),
        [principals, ..] => Trusted::plain(PublicKey(key), named(principals)),
    };
    let options = front.get(1).map(String::as_str).unwrap_or_default();
    for option in split_quoted(options, ',') {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = value.trim_matches('"');
        let time = || parse_time(value).ok_or(None);
        match name.to_ascii_lowercase().as_str() {
            "cert-authority" => return Err(Some(KeyError::OtherUse)),
            "namespaces" if !value.split(',').any(|it| it == NAMESPACE || it == "*") => {
                return Err(Some(KeyError::OtherUse));
            }
            "valid-after" => trusted.valid_from = time()?,
            "valid-before" => trusted.valid_to = time()?,
            _ => {}
        }
    }
    Ok(trusted)
}

/// The words of a line; blanks in quotes do not separate.
fn words(line: &str) -> Vec<String> {
    split_quoted(line, ' ').into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn split_quoted(text: &str, separator: char) -> Vec<&str> {
    let mut is_quoted = false;
    text.split(|letter: char| {
        is_quoted ^= letter == '"';
        let separates = letter == separator || (separator == ' ' && letter == '\t');
        separates && !is_quoted
    })
    .collect()
}

/// `YYYYMMDD` or `YYYYMMDDHHMM[SS]`, each with a `Z` or without, taken as UTC.
fn parse_time(text: &str) -> Option<Timestamp> {
    let digits = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize, to: usize| digits.get(from..to);
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = match digits.len() {
        8 => ("00", "00", "00"),
        12 => (part(8, 10)?, part(10, 12)?, "00"),
        14 => (part(8, 10)?, part(10, 12)?, part(12, 14)?),
        _ => return None,
    };
    format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(byte: u8) -> String {
        let blob = [&BLOB_PREFIX[..], &[byte; 32]].concat();
        format!("{ED25519} {}", STANDARD.encode(blob))
    }

    #[test]
    fn lines_of_allowed_signers_are_read_with_their_options() {
        let text = format!(
            "# signers\n\nalice@example.org,al* {one}\n\
             bob namespaces=\"file,wirespool\",valid-after=\"20260101\",\
             valid-before=\"202701011200Z\" {two} bob's\n\
             \"carl x\" namespaces=\"git\" {three}\ndora cert-authority {four}\neve ssh-rsa AAAA\n",
            one = line(1),
            two = line(2),
            three = line(3),
            four = line(4),
        );
        let keys = TrustedKeys::parse(&text).unwrap();
        let name = |byte| keys.find(&PublicKey([byte; 32])).map(|it| it.name.clone().unwrap());
        assert_eq!(name(1).as_deref(), Some("alice@example.org,al*"));
        assert_eq!(name(2).as_deref(), Some("bob"));
        assert_eq!((name(3), name(4)), (None, None));
        let bob = keys.find(&PublicKey([2; 32])).unwrap();
        let at = |text: &str| bob.is_valid_at(text.parse().unwrap());
        assert!(at("2026-01-01T00:00:00Z") && at("2027-01-01T12:00:00Z"));
        assert!(!at("2025-12-31T23:59:59Z") && !at("2027-01-01T12:00:01Z"));
    }

    #[test]
    fn a_public_key_is_a_line_with_a_comment() {
        let keys = TrustedKeys::parse(&format!("{} who@where now\n", line(9))).unwrap();
        let name = keys.find(&PublicKey([9; 32])).unwrap().name.as_deref();
        assert_eq!(name, Some("who@where now"));
    }

    #[test]
    fn what_holds_no_key_is_refused_with_the_reason() {
        let rsa = KeyError::Algorithm("ssh-rsa".to_owned());
        let none = KeyError::None { kind: "public" };
        for (text, error) in [
            ("", none.clone()),
            ("hello world", none.clone()),
            ("ssh-ed25519 AAAA", none.clone()),
            ("ssh-ed25519", none),
            ("ssh-rsa AAAA who", rsa),
            ("a cert-authority ", KeyError::None { kind: "public" }),
            (&format!("a namespaces=\"git\" {}", line(1)), KeyError::OtherUse),
        ] {
            assert_eq!(TrustedKeys::parse(text), Err(error), "{text}");
        }
    }
}
