//! Certificates and lists, as RFC 5280 has them.

use core::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    PublicKeyData as _, RevocationReason, RevokedCertParams, SanType, SerialNumber,
};
use time::{Duration, OffsetDateTime};

use crate::Error;
use crate::ledger::{Issued, Kind, Ledger, positive};

/// Clocks of sensors and clients differ: what is issued counts a little earlier.
const CLOCKS_S: i64 = 300;

fn at(seconds: i64) -> Result<OffsetDateTime, Error> {
    let wrong = |error: time::error::ComponentRange| Error::Certificate(error.to_string());
    OffsetDateTime::from_unix_timestamp(seconds).map_err(wrong)
}

/// What the authority is, by its key: the same in its own certificate and in those that it issues.
fn authority_params(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    // Two fleets have two names.
    let id: Vec<u8> = key.der_bytes().iter().rev().take(8).copied().collect();
    let name = format!("wirespool fleet {}", units::hex(&id));
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// The certificate of an authority itself, in PEM.
pub(crate) fn own(
    key: &KeyPair,
    serial: [u8; 16],
    (now_s, until_s): (i64, i64),
) -> Result<String, Error> {
    let mut params = authority_params(key);
    params.serial_number = Some(number(serial));
    params.not_before = at(now_s)? - Duration::seconds(CLOCKS_S);
    params.not_after = at(until_s)?;
    Ok(params.self_signed(key)?.pem())
}

/// A certificate for a key, in PEM.
pub(crate) fn certificate(
    authority: &KeyPair,
    key: &KeyPair,
    issued: &Issued,
    (addresses, now_s): (&[String], i64),
) -> Result<String, Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, issued.name.clone());
    params.serial_number = Some(number(issued.serial));
    params.not_before = at(now_s)? - Duration::seconds(CLOCKS_S);
    params.not_after = at(issued.until_s)?;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    params.extended_key_usages = vec![match issued.kind {
        Kind::Server => ExtendedKeyUsagePurpose::ServerAuth,
        Kind::Client => ExtendedKeyUsagePurpose::ClientAuth,
    }];
    params.subject_alt_names = addresses.iter().map(|it| address(it)).collect::<Result<_, _>>()?;
    let signer = Issuer::new(authority_params(authority), authority);
    Ok(params.signed_by(key, &signer)?.pem())
}

/// The list of what is revoked and not over, in PEM. It counts until a time of its own.
pub(crate) fn revocations(
    authority: &KeyPair,
    ledger: &Ledger,
    (now_s, until_s): (i64, i64),
) -> Result<String, Error> {
    let revoked = ledger.issued.iter().filter(|issued| issued.until_s > now_s - CLOCKS_S);
    let revoked = revoked.filter_map(|issued| Some((issued, issued.revoked_s?)));
    let revoked = revoked.map(|(issued, revoked_s)| {
        Ok(RevokedCertParams {
            serial_number: number(issued.serial),
            revocation_time: at(revoked_s)?,
            reason_code: Some(RevocationReason::Unspecified),
            invalidity_date: None,
        })
    });
    let params = CertificateRevocationListParams {
        this_update: at(now_s)? - Duration::seconds(CLOCKS_S),
        next_update: at(until_s)?,
        crl_number: SerialNumber::from(now_s.unsigned_abs()),
        issuing_distribution_point: None,
        revoked_certs: revoked.collect::<Result<_, Error>>()?,
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let signer = Issuer::new(authority_params(authority), authority);
    Ok(params.signed_by(&signer)?.pem()?)
}

fn number(serial: [u8; 16]) -> SerialNumber {
    SerialNumber::from_slice(&positive(serial))
}

fn address(text: &str) -> Result<SanType, Error> {
    let refused = || Error::Address(text.to_owned());
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(number) = bare.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(number));
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'*');
    if text.is_empty() || text.len() > 253 || !text.bytes().all(is_name) {
        return Err(refused());
    }
    Ok(SanType::DnsName(text.try_into().map_err(|_| refused())?))
}
