//! The server's certificate (RFC 5246 7.4.2, RFC 5280), visible up to TLS 1.2.

use wire::Names;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Name;

use crate::reader::Reader;
use crate::values::text;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

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
    let Ok((_, certificate)) = X509Certificate::from_der(leaf) else {
        return true;
    };
    let tls = names.tls.get_or_insert_default();
    tls.cert_subject = name(certificate.subject());
    tls.cert_issuer = name(certificate.issuer());
    tls.cert_not_before_ns = Some(nanos(&certificate.validity().not_before));
    tls.cert_not_after_ns = Some(nanos(&certificate.validity().not_after));
    true
}

/// As text in the form of RFC 4514, in the order of the certificate; nothing for an empty name.
fn name(name: &X509Name<'_>) -> Option<String> {
    Some(text(name.to_string().as_bytes())).filter(|name| !name.is_empty())
}

fn nanos(time: &ASN1Time) -> i64 {
    time.timestamp().saturating_mul(NANOS_PER_SECOND)
}
