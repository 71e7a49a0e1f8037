//! A stamp that `openssl ts -reply` made, with a root of 100 years, and one of the same name that
//! has nothing to do with it.

use super::*;

const ROOT: &str = include_str!("root.pem");
const OTHER: &str = include_str!("other.pem");
const ANSWER: &[u8] = include_bytes!("answer.tsr");
const TEXT: &[u8] = b"a text to be stamped\n";

fn trusted(text: &str) -> Authorities {
    Authorities::parse(text).unwrap()
}

#[test]
fn a_stamp_of_openssl_is_right() {
    let stamp = check_stamp(ANSWER, TEXT, &trusted(ROOT)).unwrap();
    assert!(stamp.is_trusted && stamp.authority == "Example TSA", "{stamp:?}");
    assert!(stamp.at.to_string().starts_with("2026-11-28T17:00:2"), "{stamp:?}");
    let both = trusted(&format!("{OTHER}{ROOT}"));
    assert_eq!(check_stamp(ANSWER, TEXT, &both), Ok(stamp.clone()));
    let unknown = check_stamp(ANSWER, TEXT, &Authorities::default()).unwrap();
    assert_eq!(unknown, Stamp { is_trusted: false, ..stamp });
}

#[test]
fn other_texts_and_other_authorities_are_refused() {
    let check = |text: &[u8], authorities| check_stamp(ANSWER, text, &authorities);
    assert_eq!(check(b"a text to be stamped", trusted(ROOT)), Err(StampError::OtherText));
    let other = check(TEXT, trusted(OTHER)).unwrap_err();
    assert!(matches!(other, StampError::Certificate(_)), "{other:?}");
    for text in ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        assert!(matches!(Authorities::parse(text), Err(StampError::Authority)), "{text}");
    }
}

/// Whatever is changed: the answer is refused, or says the same.
#[test]
fn no_changed_byte_makes_it_say_something_else() {
    let authorities = trusted(ROOT);
    let right = check_stamp(ANSWER, TEXT, &authorities).unwrap();
    let mut refused = 0;
    for at in 0..ANSWER.len() {
        for flip in [1, 0x80, 0xff] {
            let mut answer = ANSWER.to_vec();
            answer[at] ^= flip;
            match check_stamp(&answer, TEXT, &authorities) {
                Ok(stamp) => assert_eq!(stamp, right, "byte {at}"),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > ANSWER.len() * 2, "{refused} of {}", ANSWER.len());
    for len in 0..ANSWER.len() {
        assert!(check_stamp(&ANSWER[..len], TEXT, &authorities).is_err(), "{len}");
    }
}

#[test]
fn a_refusal_is_told() {
    let refusal = encode(SEQUENCE, &encode(SEQUENCE, &encode(INTEGER, &[2])));
    let check = |answer: &[u8]| check_stamp(answer, TEXT, &Authorities::default());
    assert_eq!(check(&refusal), Err(StampError::Refused(2)));
    assert!(matches!(check(&[]), Err(StampError::Form(_))));
}

/// The bytes of `openssl ts -query -data text -sha256 -cert -no_nonce`.
#[test]
fn the_question_is_that_of_openssl() {
    let question = stamp_request(TEXT);
    let begin = [0x30, 0x39, 2, 1, 1, 0x30, 0x31, 0x30, 0x0d, 6, 9, 0x60, 0x86, 0x48, 1, 0x65];
    assert_eq!(question[..16], begin);
    assert_eq!(question[16..24], [3, 4, 2, 1, 5, 0, 4, 0x20]);
    assert_eq!(question[24..56], Sha256::digest(TEXT)[..]);
    assert_eq!(question[56..], [1, 1, 0xff]);
}
