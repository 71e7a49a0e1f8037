//! Who vouches for a manifest or an anchor: its seal, a signature file of OpenSSH beside it, and
//! a time stamp.

use units::Timestamp;

use crate::seal::{Seal, SealError, Signer};
use crate::ssh::{SshSignatureError, check_ssh_signature};
use crate::stamp::{Authorities, Stamp, StampError, check_stamp};
use crate::trusted::TrustedKeys;

/// What the files beside a text are called: its own name, and one of these behind it.
pub const SIGNATURE_SUFFIX: &str = ".sig";
/// The question for an authority of time stamps.
pub const STAMP_REQUEST_SUFFIX: &str = ".tsq";
/// Its answer.
pub const STAMP_SUFFIX: &str = ".tsr";
/// The list of stripes of an anchor.
pub const LIST_SUFFIX: &str = ".stripes";

/// A text with its seal, and what lies beside it.
#[derive(Clone, Copy, Debug)]
pub struct Vouched<'a> {
    /// The whole file.
    pub text: &'a str,
    /// The part that is sealed, and the seal; `None` in files that had none.
    pub sealed: Option<(&'a str, &'a Seal)>,
    /// When it was made, as it says itself.
    pub made: Timestamp,
    /// The signature file.
    pub signature: Option<&'a str>,
    /// The answer of an authority of time stamps.
    pub stamp: Option<&'a [u8]>,
}

/// Whom somebody trusts.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Keys that sign; of none every signature is from somebody unknown, and none is wanted.
    pub keys: TrustedKeys,
    /// Authorities of time stamps.
    pub authorities: Authorities,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attested {
    /// By the seal: who signed, if anybody did.
    pub seal: Result<Option<Signer>, SealError>,
    /// By the signature file.
    pub signature: Option<Result<Signer, SshSignatureError>>,
    /// By the time stamp.
    pub stamp: Option<Result<Stamp, StampError>>,
    /// Keys are trusted, and by none of them is it signed: why.
    pub distrust: Option<Distrust>,
}

/// Why a text is not signed as it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Distrust {
    /// Nobody signed it.
    #[error("it is not signed")]
    Unsigned,
    /// Somebody else did.
    #[error("it is signed with another key than the one given")]
    OtherKey,
    /// With a key that was trusted at another time.
    #[error("it says that it was made when the key that signed it was not valid")]
    OutOfTime,
}

impl Attested {
    /// Looks at everything.
    pub fn check(of: &Vouched<'_>, trust: &Trust) -> Self {
        let none = TrustedKeys::default();
        let seal = match of.sealed {
            Some((text, seal)) => seal.check(text.as_bytes(), &none),
            None => Ok(None),
        };
        let seal = seal.map(|signer| signer.map(|it| Signer::of(it.key, &trust.keys)));
        let signature = of
            .signature
            .map(|signature| check_ssh_signature(signature, of.text.as_bytes(), &trust.keys));
        let stamp = of.stamp.map(|it| check_stamp(it, of.text.as_bytes(), &trust.authorities));
        let mut found = Self { seal, signature, stamp, distrust: None };
        found.distrust = found.distrust(of.made, &trust.keys);
        found
    }

    fn distrust(&self, made: Timestamp, keys: &TrustedKeys) -> Option<Distrust> {
        if keys.is_empty() {
            return None;
        }
        // A time stamp says when it was there at the latest; without one it has to be believed.
        let made = match &self.stamp {
            Some(Ok(stamp)) if stamp.is_trusted => stamp.at.min(made),
            _ => made,
        };
        let signers: Vec<&Signer> = self.signers().collect();
        let trusted = || signers.iter().filter(|signer| signer.is_trusted());
        if trusted().any(|signer| !signer.is_out_of_time(made)) {
            None
        } else if trusted().next().is_some() {
            Some(Distrust::OutOfTime)
        } else if signers.is_empty() {
            Some(Distrust::Unsigned)
        } else {
            Some(Distrust::OtherKey)
        }
    }

    /// Who signed it, by the seal and by the file beside it.
    pub fn signers(&self) -> impl Iterator<Item = &Signer> {
        let by_seal = self.seal.as_ref().ok().and_then(Option::as_ref);
        let by_file = self.signature.as_ref().and_then(|it| it.as_ref().ok());
        by_seal.into_iter().chain(by_file)
    }

    /// Everything that is there is right, and it is signed by somebody who is trusted, where that
    /// is wanted.
    pub fn is_right(&self) -> bool {
        self.seal.is_ok()
            && self.signature.as_ref().is_none_or(Result::is_ok)
            && self.stamp.as_ref().is_none_or(Result::is_ok)
            && self.distrust.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SigningKey;

    #[test]
    fn one_trusted_signature_is_enough_and_none_may_be_wrong() {
        let [mine, other] = [1, 2].map(|seed| SigningKey::new([seed; 32]));
        let seal = Seal::of(b"text", Some(&mine));
        let of = Vouched {
            text: "text and seal",
            sealed: Some(("text", &seal)),
            made: Timestamp(0),
            signature: None,
            stamp: None,
        };
        let trust = |key: &SigningKey| Trust { keys: key.public().into(), ..Trust::default() };
        let distrust = |of: &Vouched<'_>, trust: &Trust| Attested::check(of, trust).distrust;
        assert!(Attested::check(&of, &Trust::default()).is_right());
        assert!(Attested::check(&of, &trust(&mine)).is_right());
        assert_eq!(distrust(&of, &trust(&other)), Some(Distrust::OtherKey));
        let unsigned = Seal::of(b"text", None);
        let plain = Vouched { sealed: Some(("text", &unsigned)), ..of };
        assert_eq!(distrust(&plain, &trust(&mine)), Some(Distrust::Unsigned));
        assert!(
            !Attested::check(&Vouched { signature: Some("x"), ..of }, &trust(&mine)).is_right()
        );
        assert!(!Attested::check(&Vouched { stamp: Some(b"x"), ..of }, &trust(&mine)).is_right());
        let changed = Vouched { sealed: Some(("texT", &seal)), ..of };
        assert_eq!(Attested::check(&changed, &Trust::default()).seal, Err(SealError::Changed));
    }
}
