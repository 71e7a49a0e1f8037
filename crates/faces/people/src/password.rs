//! Passwords: what may be one, and how it is hashed and compared.
//!
//! Argon2id with what OWASP recommends (19 MiB, two passes, one lane). A hash takes memory and time
//! by intent: its caller bounds how many there are at once.

use argon2::password_hash::{PasswordHash, PasswordVerifier as _, SaltString};
use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, Version};
use unicode_normalization::UnicodeNormalization as _;

use crate::Error;
use crate::base32::grouped;

const CHARACTERS_MIN: usize = 12;
const BYTES_MAX: usize = 1024;
/// OWASP Password Storage Cheat Sheet, Argon2id: KiB of memory, passes, lanes.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// 120 random bits.
const GENERATED_BYTES: usize = 15;

/// A password as it was typed, in the one form of its characters (NFC): an accent is the same
/// whichever keyboard made it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl core::fmt::Debug for Password {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Password")
    }
}

/// The hash of a password with its salt and parameters (PHC string format).
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier(pub(crate) String);

impl core::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Verifier")
    }
}

impl Password {
    /// One to be compared: it may be shorter than a new one may be.
    ///
    /// # Errors
    /// When it is so long that it is none.
    pub fn typed(text: &str) -> Result<Self, Error> {
        if text.len() > BYTES_MAX {
            return Err(Error::LongPassword);
        }
        Ok(Self(text.nfc().collect()))
    }

    /// A new one. Its length is the only rule.
    ///
    /// # Errors
    /// When it is too short or too long.
    pub fn new(text: &str) -> Result<Self, Error> {
        let password = Self::typed(text)?;
        if password.0.chars().count() < CHARACTERS_MIN {
            return Err(Error::ShortPassword);
        }
        Ok(password)
    }

    /// Hashes it: tens of milliseconds, and 19 MiB.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn hash(&self, salt: [u8; 16]) -> Result<Verifier, Error> {
        let salt = SaltString::encode_b64(&salt).map_err(|_| Error::NotHashed)?;
        let hash = argon2()?.hash_password(self.0.as_bytes(), &salt);
        Ok(Verifier(hash.map_err(|_| Error::NotHashed)?.to_string()))
    }

    /// Compares it with a hash, as long as hashing takes.
    pub fn fits(&self, verifier: &Verifier) -> bool {
        let Ok(hash) = PasswordHash::new(&verifier.0) else { return false };
        // The parameters are those of the hash.
        Argon2::default().verify_password(self.0.as_bytes(), &hash).is_ok()
    }
}

impl Verifier {
    /// One of a file.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let hash = PasswordHash::new(text).ok()?;
        let params = Params::try_from(&hash).ok()?;
        // A file that asks for more would take the memory of the machine.
        let is_bounded = params.m_cost() <= 4 * MEMORY_KIB
            && params.t_cost() <= 4 * PASSES
            && params.p_cost() <= 4;
        let is_whole = hash.algorithm.as_str() == "argon2id" && hash.hash.is_some();
        (is_bounded && is_whole).then(|| Self(text.to_owned()))
    }
}

/// What the password of who is not there is compared with, so that it takes as long.
///
/// # Errors
/// When there is no memory for it.
pub fn decoy(random: [u8; 16]) -> Result<Verifier, Error> {
    Password(units::hex(&random)).hash(random)
}

/// A password for a start, from random bytes, in letters that can be typed.
pub fn generated(random: [u8; GENERATED_BYTES]) -> String {
    grouped(&random)
}

fn argon2() -> Result<Argon2<'static>, Error> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(|_| Error::NotHashed)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_fits_its_hash_and_no_other_one() {
        let password = Password::new("correct horse battery").unwrap();
        let verifier = password.hash([1; 16]).unwrap();
        assert!(verifier.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", verifier.0);
        assert!(password.fits(&verifier));
        assert!(!Password::typed("correct horse batterz").unwrap().fits(&verifier));
        assert!(!Password::typed("").unwrap().fits(&verifier));
        assert_ne!(password.hash([2; 16]).unwrap(), verifier, "salt");
        assert!(!password.fits(&decoy([3; 16]).unwrap()));
        assert!(!password.fits(&Verifier("x".to_owned())));
        assert_eq!(Verifier::read(&verifier.0), Some(verifier.clone()));
        for wrong in [
            verifier.0.replace("m=19456", "m=4194304"),
            verifier.0.replace("argon2id", "argon2i"),
            verifier.0.chars().take(60).collect(),
            String::new(),
        ] {
            assert_eq!(Verifier::read(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_letter_is_the_same_however_it_is_composed() {
        let composed = Password::new("p\u{e4}ssword-1234").unwrap();
        let apart = Password::new("pa\u{308}ssword-1234").unwrap();
        assert_eq!(composed, apart);
    }

    #[test]
    fn its_length_is_the_only_rule() {
        assert_eq!(Password::new("12345678901"), Err(Error::ShortPassword));
        assert!(Password::new("aaaaaaaaaaaa").is_ok());
        // Twelve letters of three bytes each, and eleven of them.
        assert!(Password::new(&"\u{4e2d}".repeat(12)).is_ok());
        assert_eq!(Password::new(&"\u{4e2d}".repeat(11)), Err(Error::ShortPassword));
        assert!(Password::new(&"x".repeat(1024)).is_ok());
        assert_eq!(Password::new(&"x".repeat(1025)), Err(Error::LongPassword));
        assert!(Password::new(&generated([9; 15])).is_ok());
        assert_eq!(generated([9; 15]).len(), 29);
    }
}
