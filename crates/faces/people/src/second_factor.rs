//! The second factor of a person: an authenticator's secret, keys, and codes for who has lost
//! them.

use core::fmt::Write as _;

use qrcodegen::{QrCode, QrCodeEcc};
use serde::{Deserialize, Serialize};
use units::Timestamp;

use crate::base32::{base32, unbase32};
use crate::webauthn::{Key, KeyUse};
use crate::{Error, recovery, totp};

/// 160 bits, as RFC 4226 recommends (section 4, R6).
const SECRET_BYTES: usize = 20;
const ISSUER: &str = "wirespool";
/// One for each pocket and drawer.
const KEYS_MAX: usize = 8;

/// A second factor, as the file has it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecondFactor {
    /// Of the authenticator, in base 32; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    secret: String,
    /// The newest step of 30 s whose code was used.
    used_step: u64,
    /// SHA-256 of each code that was not used.
    recovery: Vec<String>,
    /// Keys that sign instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<Key>,
}

/// A code that counts, and is used up with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Used {
    /// Of the authenticator, for this step.
    Step(u64),
    /// One of the ten, by its hash.
    Recovery(String),
    /// A key that was touched.
    Key(KeyUse),
}

impl core::fmt::Debug for SecondFactor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (recovery, keys) = (self.recovery.len(), self.keys.len());
        write!(f, "SecondFactor {{ recovery: {recovery}, keys: {keys} }}")
    }
}

impl SecondFactor {
    /// What a code uses up, if it counts. `used_step` is one that may not be in the file yet.
    pub fn check(&self, code: &str, now: Timestamp, used_step: u64) -> Option<Used> {
        if totp::digits(code).is_some() {
            let secret = unbase32(&self.secret).filter(|secret| !secret.is_empty())?;
            let used = self.used_step.max(used_step);
            return totp::step_of(&secret, code, now, used).map(Used::Step);
        }
        let hash = recovery::hash(code);
        self.recovery.contains(&hash).then_some(Used::Recovery(hash))
    }

    /// Marks a code as used. False where another login was first.
    pub(crate) fn take(&mut self, used: &Used) -> bool {
        match used {
            Used::Step(step) => {
                let is_new = *step > self.used_step;
                self.used_step = self.used_step.max(*step);
                is_new
            }
            Used::Recovery(hash) => {
                let before = self.recovery.len();
                self.recovery.retain(|other| other != hash);
                self.recovery.len() < before
            }
            Used::Key(KeyUse { id, counter }) => {
                let key = self.keys.iter_mut().find(|key| key.id() == id);
                key.is_some_and(|key| key.take(*counter))
            }
        }
    }

    /// Whether codes of an authenticator count.
    pub fn has_authenticator(&self) -> bool {
        !self.secret.is_empty()
    }

    /// Keys that count.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// With the authenticator and the codes of another one, and the same keys.
    pub(crate) fn with_authenticator(&mut self, other: Self) {
        let keys = core::mem::take(&mut self.keys);
        *self = Self { keys, ..other };
    }

    pub(crate) fn end_authenticator(&mut self) {
        (self.secret, self.used_step) = (String::new(), 0);
    }

    /// Adds a key, and these codes where there were none.
    pub(crate) fn add_key(&mut self, key: Key, codes: &RecoveryCodes) -> Result<(), Error> {
        if self.keys.len() >= KEYS_MAX {
            return Err(Error::TooManyKeys);
        }
        self.keys.push(key);
        if self.recovery.is_empty() {
            self.recovery.clone_from(&codes.hashes);
        }
        Ok(())
    }

    pub(crate) fn remove_key(&mut self, id: &str) -> Result<(), Error> {
        let before = self.keys.len();
        self.keys.retain(|key| key.id() != id);
        if self.keys.len() < before { Ok(()) } else { Err(Error::NoKey) }
    }

    /// Whether anything of it could be asked for besides codes that are used up.
    pub(crate) fn counts(&self) -> bool {
        self.has_authenticator() || !self.keys.is_empty()
    }

    /// Codes that are left.
    pub fn recovery_left(&self) -> usize {
        self.recovery.len()
    }
}

/// Ten codes for who loses the rest, to be shown once.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCodes {
    hashes: Vec<String>,
    shown: Vec<String>,
}

impl core::fmt::Debug for RecoveryCodes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("RecoveryCodes")
    }
}

impl RecoveryCodes {
    /// Codes of these random bytes.
    pub fn new(random: &[u8; recovery::CODES * recovery::CODE_BYTES]) -> Self {
        let shown: Vec<String> = random.chunks(recovery::CODE_BYTES).map(recovery::code).collect();
        let hashes = shown.iter().map(|code| recovery::hash(code)).collect();
        Self { hashes, shown }
    }

    /// As they are shown.
    pub fn shown(&self) -> &[String] {
        &self.shown
    }
}

/// A second factor that is about to be set up: it counts once a code of it was typed.
#[derive(Clone, PartialEq, Eq)]
pub struct Enrolment {
    secret: [u8; SECRET_BYTES],
}

impl core::fmt::Debug for Enrolment {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Enrolment")
    }
}

impl Enrolment {
    /// One with this secret.
    pub fn new(random: [u8; SECRET_BYTES]) -> Self {
        Self { secret: random }
    }

    /// The secret as text, to be typed.
    pub fn secret(&self) -> String {
        base32(&self.secret)
    }

    /// The link that authenticators take (Key URI format).
    pub fn link(&self, name: &str) -> String {
        format!("otpauth://totp/{ISSUER}:{name}?secret={}&issuer={ISSUER}", self.secret())
    }

    /// The link as a QR code: modules of a side, and the dark ones as a path of SVG. None where it
    /// does not fit, which no name is long enough for.
    pub fn qr(&self, name: &str) -> Option<(i32, String)> {
        let code = QrCode::encode_text(&self.link(name), QrCodeEcc::Medium).ok()?;
        let size = code.size();
        let places = (0..size).flat_map(|y| (0..size).map(move |x| (x, y)));
        let dark = places.filter(|(x, y)| code.get_module(*x, *y));
        let mut path = String::new();
        for (x, y) in dark {
            // Writing to a string does not fail.
            let _infallible = write!(path, "M{x} {y}h1v1h-1z");
        }
        Some((size, path))
    }

    /// The factor, and the ten codes to be shown once, where a code of it is right.
    pub fn confirm(
        &self,
        code: &str,
        now: Timestamp,
        random: &[u8; recovery::CODES * recovery::CODE_BYTES],
    ) -> Option<(SecondFactor, Vec<String>)> {
        let used_step = totp::step_of(&self.secret, code, now, 0)?;
        let RecoveryCodes { hashes: recovery, shown } = RecoveryCodes::new(random);
        let keys = Vec::new();
        Some((SecondFactor { secret: self.secret(), used_step, recovery, keys }, shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

    fn random() -> [u8; 100] {
        core::array::from_fn(|at| u8::try_from(at).unwrap())
    }

    fn code_at(enrolment: &Enrolment, now: Timestamp) -> String {
        format!("{:06}", totp::code(&enrolment.secret, totp::step_at(now)))
    }

    #[test]
    fn it_counts_once_a_code_was_typed_and_each_code_counts_once() {
        let enrolment = Enrolment::new([7; 20]);
        assert!(enrolment.confirm("000000", NOW, &random()).is_none());
        let code = code_at(&enrolment, NOW);
        let (mut factor, codes) = enrolment.confirm(&code, NOW, &random()).unwrap();
        assert_eq!((codes.len(), factor.recovery_left()), (10, 10));
        assert_eq!(factor.check(&code, NOW, 0), None, "it was used to confirm");
        let later = NOW.plus_nanos(30_000_000_000);
        let code = code_at(&enrolment, later);
        let used = factor.check(&code, later, 0).unwrap();
        assert!(factor.take(&used) && !factor.take(&used));
        assert_eq!(factor.check(&code, later, 0), None);
        let used = factor.check(&codes[3], later, 0).unwrap();
        assert!(factor.take(&used) && !factor.take(&used));
        assert_eq!((factor.check(&codes[3], later, 0), factor.recovery_left()), (None, 9));
        // One that another login has used, and that is not in the file yet.
        let latest = NOW.plus_nanos(60_000_000_000);
        let code = code_at(&enrolment, latest);
        assert_eq!(factor.check(&code, latest, totp::step_at(latest)), None);
    }

    #[test]
    fn without_an_authenticator_no_six_digits_count() {
        // The code of an empty secret would be known to all.
        let factor = SecondFactor::default();
        let code = format!("{:06}", totp::code(b"", totp::step_at(NOW)));
        assert_eq!(factor.check(&code, NOW, 0), None);
        assert!(!factor.counts());
    }

    #[test]
    fn the_link_is_one_that_authenticators_take_also_as_a_picture() {
        let enrolment = Enrolment::new(*b"12345678901234567890");
        let link = enrolment.link("anna");
        let secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
        assert_eq!(link, format!("otpauth://totp/wirespool:anna?secret={secret}&issuer=wirespool"));
        let (size, path) = enrolment.qr(&"x".repeat(64)).unwrap();
        assert!((21..=177).contains(&size) && path.starts_with("M0 0h1v1h-1z"));
        assert!(!format!("{enrolment:?}").contains("GEZ"));
    }
}
