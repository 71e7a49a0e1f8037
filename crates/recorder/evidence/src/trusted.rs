//! Public keys that somebody trusts: a PEM file, `KEY.pub` of OpenSSH, or an `allowed_signers` file
//! (ssh-keygen(1), ALLOWED SIGNERS).

use std::collections::BTreeSet;

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
    /// Signatures count from one of these times on up to the other, by what is signed.
    pub valid: Vec<(Timestamp, Timestamp)>,
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
        let (mut keys, mut other) = (Self::default(), None);
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match parse_line(line) {
                Ok(key) => keys.add(key),
                Err(error) => other = other.or(error),
            }
        }
        if keys.is_empty() {
            return Err(other.unwrap_or(KeyError::None { kind: "public" }));
        }
        Ok(keys)
    }

    /// What is said of a key: it counts when any of its lines says so.
    pub fn find(&self, key: &PublicKey) -> Option<&Trusted> {
        self.0.iter().find(|trusted| trusted.key == *key)
    }

    /// Takes a line.
    fn add(&mut self, line: Trusted) {
        let Some(known) = self.0.iter_mut().find(|known| known.key == line.key) else {
            self.0.push(line);
            return;
        };
        known.valid.extend(line.valid);
        if known.name != line.name {
            let names = known.name.take().into_iter().chain(line.name).collect::<Vec<_>>();
            known.name = Some(names.join(","));
        }
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
        Self { key, name, valid: vec![(Timestamp::MIN, Timestamp::MAX)] }
    }

    /// Whether a signature made at this time counts.
    pub fn is_valid_at(&self, time: Timestamp) -> bool {
        self.valid.iter().any(|&(from, to)| (from..=to).contains(&time))
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
        [principals, ..] => Trusted::plain(PublicKey(key), named(principals.trim_matches('"'))),
    };
    // OpenSSH takes one word of options, each once, and no line with one that it does not know.
    if front.len() > 2 {
        return Err(Some(KeyError::Options));
    }
    let options = front.get(1).map(String::as_str).unwrap_or_default();
    let (mut seen, mut from, mut to) = (BTreeSet::new(), Timestamp::MIN, Timestamp::MAX);
    for option in split_quoted(options, ',').into_iter().filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = value.trim_matches('"');
        let time = || parse_time(value).ok_or(Some(KeyError::Options));
        let name = name.to_ascii_lowercase();
        if !seen.insert(name.clone()) {
            return Err(Some(KeyError::Options));
        }
        match name.as_str() {
            "cert-authority" => return Err(Some(KeyError::OtherUse)),
            "namespaces" if !has_name(value, NAMESPACE) => return Err(Some(KeyError::OtherUse)),
            "namespaces" => {}
            "valid-after" => from = time()?,
            "valid-before" => to = time()?,
            _ => return Err(Some(KeyError::Options)),
        }
    }
    trusted.valid = vec![(from, to)];
    Ok(trusted)
}

/// Whether a list of patterns has the name: one that begins with `!` takes it out.
fn has_name(patterns: &str, name: &str) -> bool {
    let fits = |pattern: &str| fits_pattern(pattern.trim().as_bytes(), name.as_bytes());
    let is_out = patterns.split(',').filter_map(|it| it.trim().strip_prefix('!')).any(fits);
    !is_out && patterns.split(',').any(fits)
}

/// `*` stands for any letters, `?` for one (`ssh_config(5)`, PATTERNS).
pub(crate) fn fits_pattern(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut of) = (0, 0);
    // Where the last `*` stood, and how far the text was then.
    let mut star: Option<(usize, usize)> = None;
    while of < text.len() {
        match (pattern.get(at), text.get(of)) {
            (Some(b'*'), _) => {
                star = Some((at, of));
                at += 1;
            }
            (Some(b'?'), _) => (at, of) = (at + 1, of + 1),
            (Some(one), Some(other)) if one == other => (at, of) = (at + 1, of + 1),
            _ => {
                let Some((star_at, star_of)) = star else { return false };
                star = Some((star_at, star_of + 1));
                (at, of) = (star_at + 1, star_of + 1);
            }
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|letter| *letter == b'*')
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
    fn lines_count_as_they_do_for_openssh() {
        let refused = [
            format!("a namespaces=\"*,!wirespool\" {}", line(1)),
            format!("a valid-before=\"20200101\",valid-before=\"20300101\" {}", line(1)),
            format!("a namespaces=\"wirespool\" valid-before=\"20200101\" {}", line(1)),
            format!("a no-such-option {}", line(1)),
            format!("a valid-before=\"yesterday\" {}", line(1)),
        ];
        for text in refused {
            assert!(TrustedKeys::parse(&text).is_err(), "{text}");
        }
        assert!(TrustedKeys::parse(&format!("a namespaces=\"wire*\" {}", line(1))).is_ok());
        // A key that was renewed has two lines.
        let text = format!(
            "al valid-before=\"20200101\" {one}\nal valid-after=\"20210101\",\
             valid-before=\"20220101\" {one}\n",
            one = line(1)
        );
        let keys = TrustedKeys::parse(&text).unwrap();
        let known = keys.find(&PublicKey([1; 32])).unwrap();
        let at = |text: &str| known.is_valid_at(text.parse().unwrap());
        assert!(at("2019-01-01T00:00:00Z") && at("2021-06-01T00:00:00Z"));
        assert!(!at("2020-06-01T00:00:00Z") && !at("2023-01-01T00:00:00Z"));
        assert_eq!(known.name.as_deref(), Some("al"));
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

    #[test]
    fn a_pattern_fits_as_a_shell_has_it() {
        let fits = |pattern: &str, text: &str| fits_pattern(pattern.as_bytes(), text.as_bytes());
        for (pattern, text, expected) in [
            ("", "", true),
            ("a", "a", true),
            ("a", "b", false),
            ("a", "ab", false),
            ("*", "", true),
            ("*@lab", "alice@lab", true),
            ("*@lab", "alice@lab.example", false),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcd", false),
            ("?*", "", false),
            ("a?c", "abc", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }
}
