//! The server's certificate (RFC 5246 7.4.2, RFC 5280), visible up to TLS 1.2.
//!
//! Only issuer, validity and subject are read, which stand at its beginning: keys and extensions
//! are not looked at, so their length and form cost nothing.

use wire::Names;
use x509_parser::prelude::FromDer as _;
use x509_parser::time::ASN1Time;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

use crate::reader::Reader;
use crate::values::text;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A longer name of an issuer or subject is not kept: it would be cut to a fourth anyway.
const NAME_LEN_MAX: usize = 1024;

/// A name with more attributes is not kept; certificates have up to a dozen.
const ATTRIBUTE_COUNT_MAX: usize = 32;

/// A name with a longer object identifier is not kept: its numbers, written out, cost the square of
/// their length. Those registered have up to 12 bytes.
const OID_LEN_MAX: usize = 24;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 2;
const VERSION: u8 = 0xa0;

/// Keeps what the first certificate of a message says; false while it is not whole. One that
/// cannot be read counts as whole: it will not get better.
pub(crate) fn read_message(message: &[u8], names: &mut Names) -> bool {
    let mut reader = Reader::new(message);
    let leaf = reader.u24().and_then(|_| {
        let len = reader.u24()?;
        reader.take(usize::try_from(len).ok()?)
    });
    let Some(leaf) = leaf else {
        return false;
    };
    let Some(Fields { issuer, validity: [not_before, not_after], subject }) = fields(leaf) else {
        return true;
    };
    let tls = names.tls.get_or_insert_default();
    tls.cert_subject = name(subject);
    tls.cert_issuer = name(issuer);
    tls.cert_not_before_ns = Some(not_before);
    tls.cert_not_after_ns = Some(not_after);
    true
}

/// What is kept of a certificate: the names in DER, the times in nanoseconds.
struct Fields<'a> {
    issuer: &'a [u8],
    validity: [i64; 2],
    subject: &'a [u8],
}

/// RFC 5280 4.1: version, serial number, algorithm, issuer, validity, subject, and more.
fn fields(certificate: &[u8]) -> Option<Fields<'_>> {
    let (mut rest, _) = element(&mut Reader::new(certificate), SEQUENCE)?;
    let (mut fields, _) = element(&mut rest, SEQUENCE)?;
    if fields.rest().first() == Some(&VERSION) {
        element(&mut fields, VERSION)?;
    }
    element(&mut fields, INTEGER)?;
    element(&mut fields, SEQUENCE)?;
    let (_, issuer) = element(&mut fields, SEQUENCE)?;
    let (times, _) = element(&mut fields, SEQUENCE)?;
    let (after_first, not_before) = ASN1Time::from_der(times.rest()).ok()?;
    let (_, not_after) = ASN1Time::from_der(after_first).ok()?;
    let (_, subject) = element(&mut fields, SEQUENCE)?;
    Some(Fields { issuer, validity: [not_before, not_after].map(nanos), subject })
}

/// Takes an element of this tag (X.690 8.1, 10.1): its contents, and all of it.
fn element<'a>(reader: &mut Reader<'a>, tag: u8) -> Option<(Reader<'a>, &'a [u8])> {
    let all = reader.rest();
    if reader.u8()? != tag {
        return None;
    }
    let len = match reader.u8()? {
        short @ 0..=0x7f => u32::from(short),
        0x81 => reader.u8()?.into(),
        0x82 => reader.u16()?.into(),
        0x83 => reader.u24()?,
        _ => return None,
    };
    let contents = reader.take(usize::try_from(len).ok()?)?;
    let all = all.get(..all.len() - reader.rest().len())?;
    Some((Reader::new(contents), all))
}

/// As text in the form of RFC 4514, in the order of the certificate; nothing for an empty name and
/// for one that is too large.
fn name(name: &[u8]) -> Option<String> {
    let (_, name) = X509Name::from_der(name).ok().filter(|_| name.len() <= NAME_LEN_MAX)?;
    let is_long = |attribute: &AttributeTypeAndValue<'_>| {
        attribute.attr_type().as_bytes().len() > OID_LEN_MAX
    };
    if name.iter_attributes().count() > ATTRIBUTE_COUNT_MAX || name.iter_attributes().any(is_long) {
        return None;
    }
    Some(text(name.to_string().as_bytes())).filter(|name| !name.is_empty())
}

fn nanos(time: ASN1Time) -> i64 {
    time.timestamp().saturating_mul(NANOS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(tag: u8, contents: &[u8]) -> Vec<u8> {
        let [high, low] = u16::try_from(contents.len()).unwrap().to_be_bytes();
        [&[tag, 0x82, high, low], contents].concat()
    }

    fn attribute(oid: &[u8], value: &[u8]) -> Vec<u8> {
        let pair = [der(6, oid), der(0x0c, value)].concat();
        der(0x31, &der(SEQUENCE, &pair))
    }

    const COMMON_NAME: &[u8] = &[0x55, 4, 3];

    /// A certificate message; what follows the subject is no key.
    fn message(issuer: &[u8], subject: &[u8]) -> Vec<u8> {
        let times = [der(0x17, b"250102030405Z"), der(0x18, b"20600102030405Z")].concat();
        let parts = [
            der(VERSION, &[2, 1, 2]),
            der(INTEGER, &[7]),
            der(SEQUENCE, &[6, 1, 42]),
            der(SEQUENCE, issuer),
            der(SEQUENCE, &times),
            der(SEQUENCE, subject),
            vec![0xff; 20],
        ];
        let leaf = der(SEQUENCE, &der(SEQUENCE, &parts.concat()));
        let len = |len: usize| u32::try_from(len).unwrap().to_be_bytes()[1..].to_vec();
        [&len(leaf.len() + 3)[..], &len(leaf.len()), &leaf].concat()
    }

    fn read(issuer: &[u8], subject: &[u8]) -> wire::Tls {
        let mut names = Names::default();
        assert!(read_message(&message(issuer, subject), &mut names));
        *names.tls.unwrap_or_default()
    }

    #[test]
    fn issuer_validity_and_subject_are_kept_whatever_follows() {
        let tls = read(&attribute(COMMON_NAME, b"CA"), &attribute(COMMON_NAME, b"a.example"));
        assert_eq!(tls.cert_issuer.as_deref(), Some("CN=CA"));
        assert_eq!(tls.cert_subject.as_deref(), Some("CN=a.example"));
        assert_eq!(tls.cert_not_before_ns, Some(1_735_787_045 * NANOS_PER_SECOND));
        assert_eq!(tls.cert_not_after_ns, Some(2_840_238_245 * NANOS_PER_SECOND));
    }

    #[test]
    fn a_name_that_is_slow_to_write_out_is_not_kept() {
        let good = attribute(COMMON_NAME, b"CA");
        let number = [&[0x55][..], &[0xff; 200], &[1]].concat();
        for slow in [
            attribute(&number, b"x"),
            attribute(COMMON_NAME, b"").repeat(ATTRIBUTE_COUNT_MAX + 1),
            attribute(COMMON_NAME, &[b'x'; NAME_LEN_MAX]),
        ] {
            let tls = read(&good, &slow);
            assert_eq!((tls.cert_issuer.as_deref(), tls.cert_subject), (Some("CN=CA"), None));
        }
    }

    #[test]
    fn a_message_is_waited_for_until_its_first_certificate_is_whole() {
        let message = message(&attribute(COMMON_NAME, b"CA"), &[]);
        for len in 0..message.len() {
            let mut names = Names::default();
            assert!(!read_message(&message[..len], &mut names));
            assert_eq!(names, Names::default());
        }
    }
}
