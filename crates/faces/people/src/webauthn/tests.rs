//! A made-up authenticator, honest at first, and then each lie by itself.

use ciborium::value::Value;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use sha2::{Digest as _, Sha256};

use super::cbor::Map;
use super::party::to_text;
use super::{Assertion, Key, KeyUse, Registration, RelyingParty, WrongKey};

const ORIGIN: &str = "https://recorder.example";
const ASKED: [u8; 32] = [7; 32];

enum Signer {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// What an authenticator and a browser say; each may be changed.
struct Said {
    signer: Signer,
    purpose: String,
    origin: String,
    challenge: Vec<u8>,
    extra: String,
    domain: String,
    flags: u8,
    counter: u32,
    id: Vec<u8>,
    /// Behind all that is said.
    behind: Vec<u8>,
}

fn p256() -> Signer {
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    Signer::P256(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap())
}

fn ed25519() -> Signer {
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    Signer::Ed25519(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
}

fn party() -> RelyingParty {
    RelyingParty::new(ORIGIN.parse().unwrap()).unwrap()
}

fn map(members: &[(Value, Value)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(&Value::Map(members.to_vec()), &mut bytes).unwrap();
    bytes
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

impl Said {
    fn new(signer: Signer) -> Self {
        Self {
            signer,
            purpose: "webauthn.create".to_owned(),
            origin: ORIGIN.to_owned(),
            challenge: ASKED.to_vec(),
            extra: String::new(),
            domain: "recorder.example".to_owned(),
            flags: 0x41,
            counter: 0,
            id: vec![9; 20],
            behind: Vec::new(),
        }
    }

    fn get(mut self, counter: u32) -> Self {
        (self.purpose, self.flags) = ("webauthn.get".to_owned(), 1);
        self.counter = counter;
        self
    }

    fn client_data(&self) -> Vec<u8> {
        let Self { purpose, origin, extra, .. } = self;
        let challenge = to_text(&self.challenge);
        let said = format!("\"type\":\"{purpose}\",\"challenge\":\"{challenge}\"");
        format!("{{{said},\"origin\":\"{origin}\"{extra}}}").into_bytes()
    }

    fn cose(&self) -> Vec<u8> {
        let number = |number: i64| Value::Integer(number.into());
        let bytes = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
        match &self.signer {
            Signer::P256(pair) => {
                let point = pair.public_key().as_ref();
                map(&[
                    (number(1), number(2)),
                    (number(3), number(-7)),
                    (number(-1), number(1)),
                    (number(-2), bytes(&point[1..33])),
                    (number(-3), bytes(&point[33..])),
                ])
            }
            Signer::Ed25519(pair) => map(&[
                (number(1), number(1)),
                (number(3), number(-8)),
                (number(-1), number(6)),
                (number(-2), bytes(pair.public_key().as_ref())),
            ]),
        }
    }

    fn authenticator_data(&self) -> Vec<u8> {
        let mut data = Sha256::digest(self.domain.as_bytes()).to_vec();
        data.push(self.flags);
        data.extend(self.counter.to_be_bytes());
        if self.flags & 0x40 != 0 {
            data.extend([0; 16]);
            data.extend(u16::try_from(self.id.len()).unwrap().to_be_bytes());
            data.extend(&self.id);
            data.extend(self.cose());
        }
        data.extend(&self.behind);
        data
    }

    fn sign(&self) -> Vec<u8> {
        let hash = Sha256::digest(self.client_data());
        let message = [self.authenticator_data(), hash.to_vec()].concat();
        match &self.signer {
            Signer::P256(pair) => {
                pair.sign(&SystemRandom::new(), &message).unwrap().as_ref().to_vec()
            }
            Signer::Ed25519(pair) => pair.sign(&message).as_ref().to_vec(),
        }
    }

    fn registration(&self, format: &str, statement: &[(Value, Value)]) -> Registration {
        let attestation = map(&[
            (text("fmt"), text(format)),
            (text("attStmt"), Value::Map(statement.to_vec())),
            (text("authData"), Value::Bytes(self.authenticator_data())),
        ]);
        Registration {
            client_data: to_text(&self.client_data()),
            attestation: to_text(&attestation),
        }
    }

    fn assertion(&self) -> Assertion {
        Assertion {
            id: to_text(&self.id),
            client_data: to_text(&self.client_data()),
            authenticator_data: to_text(&self.authenticator_data()),
            signature: to_text(&self.sign()),
        }
    }
}

fn registered(said: &Said) -> Result<Key, WrongKey> {
    let new = said.registration("none", &[]).check(&party(), |signed| signed == ASKED)?;
    Ok(new.named("the blue one", "2026-01-01T00:00:00Z".to_owned()).unwrap())
}

fn used(said: &Said, keys: &[Key]) -> Result<KeyUse, WrongKey> {
    said.assertion().check(&party(), keys, |signed| signed == ASKED)
}

/// Changes one thing of what a browser says.
type Lie = fn(&mut Said);

#[test]
fn a_key_is_registered_and_logs_in() {
    for signer in [p256(), ed25519()] {
        let said = Said::new(signer);
        let mut key = registered(&said).unwrap();
        let said = said.get(5);
        let KeyUse { id, counter } = used(&said, core::slice::from_ref(&key)).unwrap();
        assert_eq!((&*id, counter), (key.id(), 5));
        assert!(key.take(5) && !key.take(5) && !key.take(4));
        let read: Key = serde_json::from_str(&page::safe::json_line(&key)).unwrap();
        assert_eq!(read, key);
    }
}

#[test]
fn a_registration_that_is_not_ours_is_refused() {
    let lies: [(WrongKey, Lie); 13] = [
        (WrongKey::Origin, |said| said.origin = "https://rec0rder.example".to_owned()),
        (WrongKey::Origin, |said| said.origin = "http://recorder.example".to_owned()),
        (WrongKey::Origin, |said| said.extra = ",\"crossOrigin\":true".to_owned()),
        (WrongKey::Origin, |said| said.extra = ",\"topOrigin\":\"https://x.example\"".to_owned()),
        (WrongKey::Purpose, |said| said.purpose = "webauthn.get".to_owned()),
        (WrongKey::Challenge, |said| said.challenge = vec![8; 32]),
        (WrongKey::Challenge, |said| said.challenge = Vec::new()),
        (WrongKey::Party, |said| said.domain = "example".to_owned()),
        (WrongKey::Untouched, |said| said.flags = 0x40),
        (WrongKey::Form, |said| said.flags = 1),
        (WrongKey::Form, |said| said.flags = 0x51),
        (WrongKey::Form, |said| said.id = Vec::new()),
        (WrongKey::Form, |said| said.behind = vec![0]),
    ];
    for (at, (why, lie)) in lies.into_iter().enumerate() {
        let mut said = Said::new(p256());
        assert!(registered(&said).is_ok());
        lie(&mut said);
        assert_eq!(registered(&said), Err(why), "lie {at}");
    }
}

#[test]
fn a_key_may_sign_for_itself_and_a_maker_is_not_asked() {
    let said = Said::new(p256());
    let check = |format: &str, statement: &[(Value, Value)]| {
        let registration = said.registration(format, statement);
        registration.check(&party(), |_| true).map(|new| new.counter)
    };
    let algorithm = |number: i64| (text("alg"), Value::Integer(number.into()));
    let signature = |bytes: Vec<u8>| (text("sig"), Value::Bytes(bytes));
    assert_eq!(check("packed", &[algorithm(-7), signature(said.sign())]), Ok(0));
    let other = Said::new(p256()).sign();
    let wrong = check("packed", &[algorithm(-7), signature(other)]);
    assert_eq!(wrong, Err(WrongKey::Signature));
    let wrong = check("packed", &[algorithm(-8), signature(said.sign())]);
    assert_eq!(wrong, Err(WrongKey::Algorithm));
    let chain = (text("x5c"), Value::Array(Vec::new()));
    let vouched = check("packed", &[algorithm(-7), signature(said.sign()), chain.clone()]);
    assert_eq!(vouched, Err(WrongKey::Attestation));
    assert_eq!(check("none", &[chain]), Err(WrongKey::Attestation));
    assert_eq!(check("fido-u2f", &[]), Err(WrongKey::Attestation));
}

#[test]
fn an_assertion_that_is_not_ours_is_refused() {
    let lies: [(WrongKey, Lie); 14] = [
        (WrongKey::Origin, |said| said.origin = "https://recorder.example.net".to_owned()),
        (WrongKey::Origin, |said| said.origin = "https://recorder.example:444".to_owned()),
        (WrongKey::Origin, |said| said.extra = ",\"crossOrigin\":true".to_owned()),
        (WrongKey::Purpose, |said| said.purpose = "webauthn.create".to_owned()),
        (WrongKey::Purpose, |said| said.purpose = "payment.get".to_owned()),
        (WrongKey::Challenge, |said| said.challenge = vec![7; 31]),
        (WrongKey::Challenge, |said| said.challenge = vec![6; 32]),
        (WrongKey::Party, |said| said.domain = "recorder.example.net".to_owned()),
        (WrongKey::Untouched, |said| said.flags = 4),
        (WrongKey::Form, |said| said.flags = 0x41),
        (WrongKey::Form, |said| said.behind = vec![0xa0]),
        (WrongKey::Counter, |said| said.counter = 3),
        (WrongKey::Counter, |said| said.counter = 0),
        (WrongKey::Signature, |said| said.signer = p256()),
    ];
    for (at, (why, lie)) in lies.into_iter().enumerate() {
        let said = Said::new(p256());
        let mut key = registered(&said).unwrap();
        key.take(3);
        let mut said = said.get(4);
        assert!(used(&said, core::slice::from_ref(&key)).is_ok());
        lie(&mut said);
        assert_eq!(used(&said, &[key]), Err(why), "lie {at}");
    }
}

#[test]
fn another_persons_key_a_changed_signature_and_a_replay_are_refused() {
    let (one, other) = (Said::new(p256()), Said { id: vec![8; 20], ..Said::new(p256()) });
    let (key, others) = (registered(&one).unwrap(), registered(&other).unwrap());
    let one = one.get(1);
    assert_eq!(used(&one, &[others]), Err(WrongKey::Unknown));
    assert_eq!(used(&one, &[]), Err(WrongKey::Unknown));
    let sent = one.assertion();
    for at in 0..sent.authenticator_data.len() {
        let mut bytes = sent.authenticator_data.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed =
            Assertion { authenticator_data: String::from_utf8(bytes).unwrap(), ..sent.clone() };
        assert!(changed.check(&party(), core::slice::from_ref(&key), |_| true).is_err(), "{at}");
    }
    // The challenge is over: the same bytes count no second time, also of a key without a counter.
    let mut challenges = super::Challenges::default();
    challenges.begin("anna", ASKED, 0);
    let mut check =
        || sent.check(&party(), core::slice::from_ref(&key), |it| challenges.take("anna", it, 1));
    assert!(check().is_ok());
    assert_eq!(check(), Err(WrongKey::Challenge));
}

#[test]
fn a_key_without_a_counter_logs_in_again_and_again() {
    let said = Said::new(ed25519());
    let mut key = registered(&said).unwrap();
    let said = said.get(0);
    for _ in 0..3 {
        assert!(used(&said, core::slice::from_ref(&key)).is_ok());
        assert!(key.take(0));
    }
}

#[test]
fn keys_of_other_kinds_and_forms_are_refused() {
    let number = |number: i64| Value::Integer(number.into());
    let key = |members: &[(i64, Value)]| {
        let members: Vec<(Value, Value)> =
            members.iter().map(|(label, value)| (number(*label), value.clone())).collect();
        let bytes = map(&members);
        Map::read(&mut bytes.as_slice()).and_then(|map| super::public_key::PublicKey::of(&map))
    };
    let x = || Value::Bytes(vec![1; 32]);
    let good = [(1, number(2)), (3, number(-7)), (-1, number(1)), (-2, x()), (-3, x())];
    assert!(key(&good).is_ok());
    for (at, to, why) in [
        (0, number(3), WrongKey::Form),
        (0, number(4), WrongKey::Algorithm),
        (1, number(-35), WrongKey::Algorithm),
        (2, number(2), WrongKey::Algorithm),
        (3, Value::Bytes(vec![1; 31]), WrongKey::Form),
        (4, Value::Bool(true), WrongKey::Form),
    ] {
        let mut wrong = good.clone();
        wrong[at].1 = to;
        // A key of RSA with the algorithm of a curve is none either.
        let found = key(&wrong).unwrap_err();
        assert!(found == why || at == 0, "{at}: {found}");
    }
    let mut twice = good.to_vec();
    twice.push((-3, x()));
    assert_eq!(key(&twice), Err(WrongKey::Form));
    // A point that is on no curve signs nothing.
    let nowhere = key(&good).unwrap();
    assert_eq!(nowhere.verify(b"", b""), Err(WrongKey::Signature));
}

#[test]
fn no_bytes_panic() {
    let said = Said::new(p256());
    let whole = said.registration("none", &[]);
    let bytes = super::party::from_text(&whole.attestation).unwrap();
    for end in 0..bytes.len() {
        let cut = Registration { attestation: to_text(&bytes[..end]), ..whole.clone() };
        assert!(cut.check(&party(), |_| true).is_err(), "{end}");
    }
    // Lengths of 2^64 - 1, and a thousand levels.
    for hostile in [[&[0xbb_u8][..], &[0xff; 8]].concat(), vec![0x81; 1000], vec![0x5f; 100]] {
        let sent = Registration { attestation: to_text(&hostile), ..whole.clone() };
        assert_eq!(sent.check(&party(), |_| true), Err(WrongKey::Form));
    }
    for wrong in ["=", "a b", "\u{e4}", "{}"] {
        let sent = Registration { client_data: wrong.to_owned(), ..whole.clone() };
        assert_eq!(sent.check(&party(), |_| true), Err(WrongKey::Form), "{wrong}");
    }
}

#[test]
fn a_name_of_a_key_is_shown_as_it_is() {
    let said = Said::new(p256());
    let new = said.registration("none", &[]).check(&party(), |_| true).unwrap();
    let named = |name: &str| new.named(name, String::new()).map(|key| key.name().to_owned());
    assert_eq!(named("  the blue one "), Some("the blue one".to_owned()));
    assert!(named("").is_none() && named(" ").is_none() && named("a\nb").is_none());
    assert!(named(&"x".repeat(64)).is_some() && named(&"x".repeat(65)).is_none());
}
