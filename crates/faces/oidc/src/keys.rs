//! The keys of a provider (RFC 7517, RFC 7518).

use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;
use serde_json::Value;

use crate::algorithm::PublicKey;

/// A provider has a few, and some more while it changes them.
const KEYS_MAX: usize = 64;
const RSA_BYTES_MAX: usize = 1024;

/// A key with what it is named by.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_field_names, reason = "it is the public one of a pair")]
pub(crate) struct Key {
    pub(crate) id: Option<String>,
    /// The one way in which it signs, where it says so.
    pub(crate) algorithm: Option<String>,
    pub(crate) public_key: PublicKey,
}

/// The keys of a provider.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Keys(Vec<Key>);

#[derive(Deserialize)]
struct Said {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct SaidKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Keys {
    /// Reads them; what is no key that signs is left out.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let said: Said = serde_json::from_slice(bytes).map_err(|_| "its keys are no key set")?;
        if said.keys.len() > KEYS_MAX {
            return Err("it has more than 64 keys");
        }
        Ok(Self(said.keys.into_iter().filter_map(key).collect()))
    }

    /// Those that a token may be signed by: of this name, or of any where it names none.
    pub(crate) fn named<'a>(&'a self, id: Option<&'a str>) -> impl Iterator<Item = &'a Key> {
        self.0.iter().filter(move |key| id.is_none() || key.id.as_deref() == id)
    }
}

fn key(value: Value) -> Option<Key> {
    let said: SaidKey = serde_json::from_value(value).ok()?;
    if said.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let public_key = match (&*said.kty, said.crv.as_deref()) {
        ("RSA", _) => PublicKey::Rsa {
            modulus: unpadded(&number(said.n.as_deref(), RSA_BYTES_MAX)?),
            exponent: unpadded(&number(said.e.as_deref(), 8)?),
        },
        ("EC", Some("P-256")) => PublicKey::P256(point(&said, 32)?),
        ("EC", Some("P-384")) => PublicKey::P384(point(&said, 48)?),
        ("OKP", Some("Ed25519")) => PublicKey::Ed25519(exactly(said.x.as_deref(), 32)?),
        _ => return None,
    };
    Some(Key { id: said.kid, algorithm: said.alg, public_key })
}

fn number(text: Option<&str>, most: usize) -> Option<Vec<u8>> {
    let bytes = BASE64URL_NOPAD.decode(text?.as_bytes()).ok()?;
    Some(bytes).filter(|bytes| bytes.len() <= most)
}

fn exactly(text: Option<&str>, len: usize) -> Option<Vec<u8>> {
    number(text, len).filter(|bytes| bytes.len() == len)
}

/// Without compression (SEC 1, section 2.3.3).
fn point(said: &SaidKey, len: usize) -> Option<Vec<u8>> {
    let (x, y) = (exactly(said.x.as_deref(), len)?, exactly(said.y.as_deref(), len)?);
    Some([&[4], x.as_slice(), y.as_slice()].concat())
}

/// Without zeros in front, which the library refuses.
fn unpadded(number: &[u8]) -> Vec<u8> {
    number.iter().copied().skip_while(|byte| *byte == 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_no_key_that_signs_is_left_out() {
        let (n, x) = ("A".repeat(342), "A".repeat(43));
        let keys = json!({"keys": [
            {"kty": "RSA", "kid": "a", "n": n, "e": "AQAB", "alg": "RS256", "use": "sig"},
            {"kty": "RSA", "kid": "b", "n": n, "e": "AQAB", "use": "enc"},
            {"kty": "EC", "crv": "P-256", "kid": "c", "x": x, "y": x},
            {"kty": "EC", "crv": "P-521", "kid": "d", "x": x, "y": x},
            {"kty": "oct", "kid": "e", "k": "AAAA"},
            {"kty": "OKP", "crv": "Ed25519", "kid": "f", "x": x},
            {"kty": "OKP", "crv": "Ed25519", "kid": "g", "x": "AAAA"},
            {"kid": "h"},
            7,
        ]});
        let keys = Keys::parse(keys.to_string().as_bytes()).unwrap();
        let ids: Vec<_> = keys.named(None).filter_map(|key| key.id.as_deref()).collect();
        assert_eq!(ids, ["a", "c", "f"]);
        assert_eq!(keys.named(Some("c")).count(), 1);
        assert_eq!(keys.named(Some("x")).count(), 0);
        let many = json!({"keys": vec![json!({"kty": "oct"}); 65]}).to_string();
        assert!(Keys::parse(many.as_bytes()).is_err());
        assert!(Keys::parse(b"[]").is_err() && Keys::parse(b"{\"keys\": 1}").is_err());
    }
}
