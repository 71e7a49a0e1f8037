//! ID tokens (`OpenID` Connect Core 1.0, sections 2 and 3.1.3.7), in the compact form of JWS.

use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;
use serde_json::Value;

use crate::algorithm::is_signed;
use crate::claims::{Claims, subject};
use crate::error::Wrong;
use crate::keys::Keys;

/// Those with pictures in them are shorter.
const TOKEN_BYTES_MAX: usize = 64 << 10;
/// Clocks differ.
const LEEWAY_S: i64 = 60;

/// What a token has to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) client: &'a str,
    /// What was sent with the login that it answers.
    pub(crate) nonce: &'a str,
    /// Since 1970.
    pub(crate) now_s: i64,
}

#[derive(Deserialize)]
struct Heading {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
    b64: Option<Value>,
}

/// What a token says.
#[derive(Debug)]
pub(crate) enum Verified {
    Claims(Claims),
    /// It names a key that is not there: the provider may have new ones.
    NoSuchKey,
}

/// What a token says, where it is signed by one of these keys and answers this login.
pub(crate) fn verify(token: &str, keys: &Keys, expected: Expected<'_>) -> Result<Verified, Wrong> {
    const FORM: Wrong = Wrong::Token("the ID token is none");
    if token.len() > TOKEN_BYTES_MAX {
        return Err(FORM);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(FORM)?;
    let (heading, claims) = signed.split_once('.').ok_or(FORM)?;
    let bytes = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| FORM);
    let heading: Heading = serde_json::from_slice(&bytes(heading)?).map_err(|_| FORM)?;
    if heading.crit.is_some() || heading.b64.is_some() {
        return Err(Wrong::Token("the ID token needs what is not known here"));
    }
    let (signature, id) = (bytes(signature)?, heading.kid.as_deref());
    if keys.named(id).next().is_none() {
        return Ok(Verified::NoSuchKey);
    }
    let may_sign = |algorithm: Option<&str>| algorithm.is_none_or(|it| it == heading.alg);
    let mut fitting = keys.named(id).filter(|key| may_sign(key.algorithm.as_deref()));
    let message = (signed.as_bytes(), signature.as_slice());
    if !fitting.any(|key| is_signed(&key.public_key, &heading.alg, message)) {
        return Err(Wrong::Token("the signature of the ID token is wrong"));
    }
    let claims: Claims = serde_json::from_slice(&bytes(claims)?).map_err(|_| FORM)?;
    check(&claims, expected)?;
    Ok(Verified::Claims(claims))
}

fn check(claims: &Claims, expected: Expected<'_>) -> Result<(), Wrong> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(expected.issuer) {
        return Err(Wrong::Token("the ID token is of another provider"));
    }
    check_audience(claims, expected.client)?;
    let now_s = expected.now_s;
    let until_s = time(claims, "exp")?.ok_or(Wrong::Token("the ID token has no end"))?;
    if until_s.saturating_add(LEEWAY_S) <= now_s {
        return Err(Wrong::Token("the ID token is over: do the clocks agree?"));
    }
    let since_s = time(claims, "iat")?.ok_or(Wrong::Token("the ID token has no beginning"))?;
    let not_before_s = time(claims, "nbf")?.unwrap_or(since_s);
    if since_s.max(not_before_s) > now_s.saturating_add(LEEWAY_S) {
        return Err(Wrong::Token("the ID token counts later: do the clocks agree?"));
    }
    if text("nonce") != Some(expected.nonce) {
        return Err(Wrong::Token("the ID token answers another login"));
    }
    subject(claims).map(|_| ())
}

fn check_audience(claims: &Claims, client: &str) -> Result<(), Wrong> {
    const OTHER: Wrong = Wrong::Token("the ID token is for another client");
    let (is_ours, has_others) = match claims.get("aud") {
        Some(Value::String(one)) => (one == client, false),
        Some(Value::Array(all)) => {
            (all.iter().any(|one| one.as_str() == Some(client)), all.len() > 1)
        }
        _ => (false, false),
    };
    // Whom it was made for, where several may read it.
    let party = match claims.get("azp") {
        None => !has_others,
        Some(party) => party.as_str() == Some(client),
    };
    if is_ours && party { Ok(()) } else { Err(OTHER) }
}

/// Seconds since 1970; what is there and is no number is refused.
fn time(claims: &Claims, name: &str) -> Result<Option<i64>, Wrong> {
    let whole = |number: &serde_json::Number| {
        let text = number.to_string();
        text.split('.').next().and_then(|whole| whole.parse().ok())
    };
    match claims.get(name) {
        None => Ok(None),
        Some(Value::Number(number)) => {
            whole(number).map(Some).ok_or(Wrong::Token("a time of the ID token is none"))
        }
        Some(_) => Err(Wrong::Token("a time of the ID token is none")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::json;

    const EXPECTED: Expected<'static> = Expected {
        issuer: "https://id.example.com",
        client: "wirespool",
        nonce: "n",
        now_s: 1_800_000_000,
    };

    pub(crate) fn pair() -> EcdsaKeyPair {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap()
    }

    pub(crate) fn key_set(pair: &EcdsaKeyPair, id: &str) -> Value {
        let point = pair.public_key().as_ref();
        let [x, y] = [&point[1..33], &point[33..]].map(|half| BASE64URL_NOPAD.encode(half));
        json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": id, "x": x, "y": y}]})
    }

    fn keys(pair: &EcdsaKeyPair) -> Keys {
        Keys::parse(key_set(pair, "a").to_string().as_bytes()).unwrap()
    }

    pub(crate) fn sign(pair: &EcdsaKeyPair, heading: &Value, claims: &Value) -> String {
        let [heading, claims] =
            [heading, claims].map(|it| BASE64URL_NOPAD.encode(it.to_string().as_bytes()));
        let signed = format!("{heading}.{claims}");
        let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", BASE64URL_NOPAD.encode(signature.as_ref()))
    }

    fn claims() -> Value {
        json!({"iss": "https://id.example.com", "aud": "wirespool", "sub": "1", "nonce": "n",
            "iat": EXPECTED.now_s, "exp": EXPECTED.now_s + 300})
    }

    fn heading() -> Value {
        json!({"alg": "ES256", "kid": "a"})
    }

    fn is_taken(token: &str, keys: &Keys) -> bool {
        matches!(verify(token, keys, EXPECTED), Ok(Verified::Claims(_)))
    }

    #[test]
    fn a_token_counts_with_its_signature_for_its_login() {
        let pair = pair();
        let keys = keys(&pair);
        assert!(is_taken(&sign(&pair, &heading(), &claims()), &keys));
        let changes: [(&str, Value); 21] = [
            ("iss", json!("https://evil.example.com")),
            ("iss", json!("https://id.example.com/")),
            ("iss", Value::Null),
            ("aud", json!("other")),
            ("aud", json!([])),
            ("aud", json!(["wirespool", "other"])),
            ("aud", json!({"wirespool": true})),
            ("azp", json!("other")),
            ("azp", json!(["wirespool"])),
            ("exp", json!(EXPECTED.now_s - 61)),
            ("exp", json!("1900000000")),
            ("exp", Value::Null),
            ("exp", json!(-1)),
            ("iat", json!(EXPECTED.now_s + 61)),
            ("iat", Value::Null),
            ("nbf", json!(EXPECTED.now_s + 61)),
            ("nonce", json!("m")),
            ("nonce", Value::Null),
            ("nonce", json!(["n"])),
            ("sub", json!("")),
            ("sub", json!(1)),
        ];
        for (name, value) in changes {
            let mut wrong = claims();
            wrong[name] = value;
            assert!(!is_taken(&sign(&pair, &heading(), &wrong), &keys), "{wrong}");
        }
        for (name, value) in [
            ("aud", json!(["wirespool"])),
            ("exp", json!(EXPECTED.now_s - 59)),
            ("exp", json!(1_800_000_300.5)),
            ("azp", json!("wirespool")),
        ] {
            let mut right = claims();
            right[name] = value;
            assert!(is_taken(&sign(&pair, &heading(), &right), &keys), "{right}");
        }
    }

    #[test]
    fn no_algorithm_but_the_keys_own_counts() {
        let pair = pair();
        let keys = keys(&pair);
        for algorithm in ["none", "None", "HS256", "RS256", "ES384", "EdDSA", ""] {
            let token = sign(&pair, &json!({"alg": algorithm, "kid": "a"}), &claims());
            assert!(!is_taken(&token, &keys), "{algorithm}");
            let (signed, _) = token.rsplit_once('.').unwrap();
            assert!(!is_taken(&format!("{signed}."), &keys), "{algorithm}");
        }
        // One that is signed with the public key as a secret.
        let none = json!({"alg": "ES256", "kid": "a", "crit": ["exp"], "exp": 1});
        assert!(!is_taken(&sign(&pair, &none, &claims()), &keys));
        let plain = json!({"alg": "ES256", "kid": "a", "b64": false});
        assert!(!is_taken(&sign(&pair, &plain, &claims()), &keys));
        let mut said = key_set(&pair, "a");
        said["keys"][0]["alg"] = json!("ES384");
        let other = Keys::parse(said.to_string().as_bytes()).unwrap();
        assert!(!is_taken(&sign(&pair, &heading(), &claims()), &other));
    }

    #[test]
    fn another_key_and_another_text_do_not_count() {
        let (pair, other) = (pair(), pair());
        let keys = keys(&pair);
        assert!(!is_taken(&sign(&other, &heading(), &claims()), &keys));
        let token = sign(&pair, &heading(), &claims());
        let of_key = |id: &str| verify(&token.clone(), &key_named(&pair, id), EXPECTED);
        assert!(matches!(of_key("b"), Ok(Verified::NoSuchKey)));
        assert!(is_taken(&sign(&pair, &json!({"alg": "ES256"}), &claims()), &keys), "no name");
        let mut other_claims = claims();
        other_claims["sub"] = json!("2");
        let other_claims = BASE64URL_NOPAD.encode(other_claims.to_string().as_bytes());
        let parts: Vec<&str> = token.split('.').collect();
        let changed = format!("{}.{other_claims}.{}", parts[0], parts[2]);
        for wrong in [
            changed,
            format!("{token}.x"),
            format!("x.{token}"),
            token.replace('.', ""),
            format!("{token}="),
            "..".to_owned(),
            String::new(),
            "a".repeat(TOKEN_BYTES_MAX + 1),
        ] {
            assert!(!is_taken(&wrong, &keys), "{wrong}");
        }
    }

    fn key_named(pair: &EcdsaKeyPair, id: &str) -> Keys {
        Keys::parse(key_set(pair, id).to_string().as_bytes()).unwrap()
    }
}
