//! Time stamps of a third party (RFC 3161): the question, and the check of the answer.
//!
//! What is checked: the stamp is of these bytes; its signature fits the certificate that it names;
//! that certificate is for time stamps, was valid at the time of the stamp, and leads to an
//! authority that the caller trusts. Not checked: whether the certificate was revoked.

use core::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use thiserror::Error;
use units::Timestamp;
use webpki::ring as algorithms;
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use crate::der::{
    Der, GENERALIZED_TIME, INTEGER, OBJECT_ID, OCTETS, SEQUENCE, SET, UTF8, context, encode,
};

// Names of things (object identifiers), as they are encoded.
const SHA256: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];
const SHA384: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2];
const SHA512: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3];
/// id-signedData of CMS (RFC 5652).
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2];
/// id-ct-TSTInfo.
const STAMP_INFO: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 1, 4];
const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 3];
const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 4];
/// id-aa-signingCertificateV2 (RFC 5816).
const SIGNING_CERTIFICATE_V2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 2, 47];
/// id-kp-timeStamping.
const FOR_TIME_STAMPS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 8];
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANISATION: &[u8] = &[0x55, 4, 10];

/// SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The question for an authority: stamp this text. A file that `curl` sends as it is, with the type
/// `application/timestamp-query`.
pub fn stamp_request(text: &[u8]) -> Vec<u8> {
    let algorithm = encode(SEQUENCE, &[encode(OBJECT_ID, SHA256), encode(0x05, &[])].concat());
    let digest = encode(OCTETS, &Sha256::digest(text));
    let imprint = encode(SEQUENCE, &[algorithm, digest].concat());
    // Version 1; with the certificates, so that the answer can be checked by itself.
    let parts = [encode(INTEGER, &[1]), imprint, encode(0x01, &[0xff])];
    encode(SEQUENCE, &parts.concat())
}

/// Certificates of authorities that somebody trusts; of none nobody vouches for a stamp.
#[derive(Clone, Debug, Default)]
pub struct Authorities(Vec<CertificateDer<'static>>);

impl Authorities {
    /// Reads certificates in PEM, one or more.
    ///
    /// # Errors
    /// When there is none, or one is damaged.
    pub fn parse(text: &str) -> Result<Self, StampError> {
        const NAME: &str = "CERTIFICATE-----";
        let (mut found, mut rest) = (Vec::new(), text);
        while let Some((_, behind)) = rest.split_once(&format!("-----BEGIN {NAME}")) {
            let ends = behind.split_once(&format!("-----END {NAME}"));
            let (body, behind) = ends.ok_or(StampError::Authority)?;
            let body: String = body.split_whitespace().collect();
            let der = STANDARD.decode(body).map_err(|_| StampError::Authority)?;
            let certificate = CertificateDer::from(der);
            anchor_from_trusted_cert(&certificate).map_err(|_| StampError::Authority)?;
            found.push(certificate);
            rest = behind;
        }
        if found.is_empty() { Err(StampError::Authority) } else { Ok(Self(found)) }
    }

    /// None is trusted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A time stamp that fits its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// When the authority saw the text, by its clock.
    pub at: Timestamp,
    /// Name of the authority in its certificate.
    pub authority: String,
    /// Its certificate leads to an authority that is trusted.
    pub is_trusted: bool,
}

/// An answer is no stamp of the text.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum StampError {
    /// The authority refused.
    #[error("the time-stamping authority refused (status {0})")]
    Refused(u8),
    /// Not of the form.
    #[error("it is no answer of a time-stamping authority, or damaged: {0}")]
    Form(&'static str),
    /// A hash or signature that is not known here.
    #[error("it uses a hash or signature that is not known here")]
    Algorithm,
    /// Of another text.
    #[error("it stamps another text")]
    OtherText,
    /// The signature is not that of the certificate.
    #[error("its signature is not that of its certificate")]
    Forged,
    /// The certificate.
    #[error("its certificate is not trusted: {0}")]
    Certificate(String),
    /// A file of certificates.
    #[error("no certificate in PEM")]
    Authority,
}

/// Checks a stamp against the bytes that it is of.
///
/// # Errors
/// When it is none of these bytes, or where authorities are trusted, none of theirs.
pub fn check_stamp(
    answer: &[u8],
    text: &[u8],
    authorities: &Authorities,
) -> Result<Stamp, StampError> {
    let signed = Signed::parse(token(answer)?).ok_or(StampError::Form("signed data"))?;
    let info = Info::parse(signed.content).ok_or(StampError::Form("what was stamped"))?;
    if digest(info.algorithm, text)? != info.imprint {
        return Err(StampError::OtherText);
    }
    signed.check_attributes()?;
    let found = signed.signer().ok_or(StampError::Form("no certificate of its signer"))?;
    let certificate = CertificateDer::from(found.whole);
    signed.check_signature(&certificate)?;
    let is_trusted = !authorities.0.is_empty();
    if is_trusted {
        signed.check_path(&certificate, info.at, authorities)?;
    }
    Ok(Stamp { at: info.at, authority: found.name, is_trusted })
}

/// The token inside an answer; a token by itself is taken, too.
fn token(answer: &[u8]) -> Result<Der<'_>, StampError> {
    const FORM: StampError = StampError::Form("its frame");
    let mut outer = Der(answer).enter(SEQUENCE).ok_or(FORM)?;
    let mut whole = outer.clone();
    if whole.read_if(OBJECT_ID).is_some() {
        return Ok(outer);
    }
    let status = outer.enter(SEQUENCE).and_then(|mut status| status.read(INTEGER));
    let granted = status.and_then(|status| status.value.last().copied()).ok_or(FORM)?;
    if granted > 1 {
        return Err(StampError::Refused(granted));
    }
    outer.enter(SEQUENCE).ok_or(FORM)
}

/// What the authority says: `TSTInfo`.
struct Info<'a> {
    algorithm: &'a [u8],
    imprint: &'a [u8],
    at: Timestamp,
}

impl<'a> Info<'a> {
    fn parse(content: &'a [u8]) -> Option<Self> {
        let mut info = Der(content).enter(SEQUENCE)?;
        info.read(INTEGER).filter(|version| version.value == [1])?;
        info.read(OBJECT_ID)?;
        let mut imprint = info.enter(SEQUENCE)?;
        let algorithm = imprint.enter(SEQUENCE)?.read(OBJECT_ID)?.value;
        let imprint = imprint.read(OCTETS)?.value;
        info.read(INTEGER)?;
        let at = parse_time(info.read(GENERALIZED_TIME)?.value)?;
        Some(Self { algorithm, imprint, at })
    }
}

/// `YYYYMMDDHHMMSS[.f]Z`, as RFC 3161 wants it.
fn parse_time(text: &[u8]) -> Option<Timestamp> {
    let text = core::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let part = |from: usize, to: usize| whole.get(from..to);
    if whole.len() != 14 {
        return None;
    }
    let (date, hour) = ([part(0, 4)?, part(4, 6)?, part(6, 8)?].join("-"), part(8, 10)?);
    let (minute, second) = (part(10, 12)?, part(12, 14)?);
    format!("{date}T{hour}:{minute}:{second}.{fraction}Z").parse().ok()
}

/// A certificate in the token.
struct Certificate<'a> {
    whole: &'a [u8],
    serial: &'a [u8],
    issuer: &'a [u8],
    name: String,
}

impl<'a> Certificate<'a> {
    fn parse(whole: &'a [u8]) -> Option<Self> {
        let mut body = Der(whole).enter(SEQUENCE)?.enter(SEQUENCE)?;
        body.read_if(context(0));
        let serial = body.read(INTEGER)?.value;
        body.read(SEQUENCE)?;
        let issuer = body.read(SEQUENCE)?.whole;
        body.read(SEQUENCE)?;
        let subject = Der(body.read(SEQUENCE)?.value);
        let part = |wanted: &[u8]| {
            subject.clone().find_map(|set| {
                let mut pair = Der(set.value).enter(SEQUENCE)?;
                let is_it = pair.read(OBJECT_ID)?.value == wanted;
                let text = pair.next().filter(|text| is_it && is_text(text.tag))?;
                Some(String::from_utf8_lossy(text.value).into_owned())
            })
        };
        let name = part(COMMON_NAME).or_else(|| part(ORGANISATION)).unwrap_or_default();
        Some(Self { whole, serial, issuer, name })
    }
}

/// UTF-8, printable, of telephones, of ASCII.
fn is_text(tag: u8) -> bool {
    matches!(tag, UTF8 | 0x13 | 0x14 | 0x16)
}

/// The signed data of a token.
struct Signed<'a> {
    content: &'a [u8],
    certificates: Vec<Certificate<'a>>,
    /// Issuer and number of the signer's certificate.
    issuer: &'a [u8],
    serial: &'a [u8],
    digest: &'a [u8],
    /// With the tag that they have in the token.
    attributes: &'a [u8],
    signature: &'a [u8],
}

impl<'a> Signed<'a> {
    fn parse(mut token: Der<'a>) -> Option<Self> {
        token.read(OBJECT_ID).filter(|kind| kind.value == SIGNED_DATA)?;
        let mut data = token.enter(context(0))?.enter(SEQUENCE)?;
        data.read(INTEGER)?;
        data.read(SET)?;
        let mut content = data.enter(SEQUENCE)?;
        content.read(OBJECT_ID).filter(|kind| kind.value == STAMP_INFO)?;
        let content = content.enter(context(0))?.read(OCTETS)?.value;
        let certificates = data.read_if(context(0)).map_or(&[][..], |set| set.value);
        let certificates = Der(certificates).filter_map(|one| Certificate::parse(one.whole));
        data.read_if(context(1));
        let mut signers = data.enter(SET)?;
        let mut signer = signers.enter(SEQUENCE)?;
        // One authority, one signature.
        if !signers.0.is_empty() {
            return None;
        }
        signer.read(INTEGER)?;
        let mut id = signer.enter(SEQUENCE)?;
        let (issuer, serial) = (id.read(SEQUENCE)?.whole, id.read(INTEGER)?.value);
        let digest = signer.enter(SEQUENCE)?.read(OBJECT_ID)?.value;
        let attributes = signer.read(context(0))?.whole;
        signer.read(SEQUENCE)?;
        let signature = signer.read(OCTETS)?.value;
        let certificates = certificates.collect();
        Some(Self { content, certificates, issuer, serial, digest, attributes, signature })
    }

    /// The value of an attribute that is signed.
    fn attribute(&self, wanted: &[u8]) -> Option<Der<'a>> {
        let attributes = Der(self.attributes).read(context(0))?.value;
        Der(attributes).find_map(|attribute| {
            let mut attribute = Der(attribute.value);
            let is_it = attribute.read(OBJECT_ID)?.value == wanted;
            attribute.enter(SET).filter(|_| is_it)
        })
    }

    /// What is signed names the content.
    fn check_attributes(&self) -> Result<(), StampError> {
        let form = |what| move || StampError::Form(what);
        let kind = self.attribute(CONTENT_TYPE).and_then(|mut kind| kind.read(OBJECT_ID));
        let kind = kind.ok_or_else(form("no type of content"))?;
        let named = self.attribute(MESSAGE_DIGEST).and_then(|mut digest| digest.read(OCTETS));
        let named = named.ok_or_else(form("no digest"))?;
        if kind.value != STAMP_INFO || named.value != digest(self.digest, self.content)? {
            return Err(StampError::Forged);
        }
        Ok(())
    }

    /// The certificate of who signed. Where a hash of it is signed, too, it has to be that one.
    fn signer(&self) -> Option<Certificate<'a>> {
        let mut named = self.certificates.iter();
        let found = named.find(|it| it.serial == self.serial && it.issuer == self.issuer)?;
        if let Some(mut certificates) = self.attribute(SIGNING_CERTIFICATE_V2) {
            let mut first = certificates.enter(SEQUENCE)?.enter(SEQUENCE)?.enter(SEQUENCE)?;
            let algorithm = match first.read_if(SEQUENCE) {
                Some(algorithm) => Der(algorithm.value).read(OBJECT_ID)?.value,
                None => SHA256,
            };
            let hash = first.read(OCTETS)?.value;
            if digest(algorithm, found.whole).ok()? != hash {
                return None;
            }
        }
        Certificate::parse(found.whole)
    }

    fn check_signature(&self, certificate: &CertificateDer<'_>) -> Result<(), StampError> {
        let refused = |error: webpki::Error| StampError::Certificate(error.to_string());
        let certificate = EndEntityCert::try_from(certificate).map_err(refused)?;
        // Signed as a set, whatever its tag in the token is.
        let mut signed = self.attributes.to_vec();
        *signed.first_mut().ok_or(StampError::Forged)? = SET;
        let fits = |algorithm: &&dyn SignatureVerificationAlgorithm| {
            certificate.verify_signature(*algorithm, &signed, self.signature).is_ok()
        };
        let algorithms = algorithms_of(self.digest)?;
        if algorithms.iter().any(fits) { Ok(()) } else { Err(StampError::Forged) }
    }

    fn check_path(
        &self,
        certificate: &CertificateDer<'_>,
        at: Timestamp,
        authorities: &Authorities,
    ) -> Result<(), StampError> {
        let refused = |error: webpki::Error| StampError::Certificate(error.to_string());
        let end = EndEntityCert::try_from(certificate).map_err(refused)?;
        let roots = authorities.0.iter().map(anchor_from_trusted_cert);
        let roots = roots.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let others = self.certificates.iter().map(|it| CertificateDer::from(it.whole));
        let others: Vec<CertificateDer<'_>> = others.collect();
        let seconds = u64::try_from(at.unix_seconds()).unwrap_or(0);
        let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let usage = KeyUsage::required(FOR_TIME_STAMPS);
        let path =
            end.verify_for_usage(ALL_VERIFICATION_ALGS, &roots, &others, time, usage, None, None);
        path.map(drop).map_err(refused)
    }
}

/// Which signatures go with a hash; that of the certificate's kind of key fits, if any.
fn algorithms_of(
    digest: &[u8],
) -> Result<&'static [&'static dyn SignatureVerificationAlgorithm], StampError> {
    const OF_256: &[&dyn SignatureVerificationAlgorithm] = &[
        algorithms::RSA_PKCS1_2048_8192_SHA256,
        algorithms::ECDSA_P256_SHA256,
        algorithms::ECDSA_P384_SHA256,
    ];
    const OF_384: &[&dyn SignatureVerificationAlgorithm] = &[
        algorithms::RSA_PKCS1_2048_8192_SHA384,
        algorithms::ECDSA_P256_SHA384,
        algorithms::ECDSA_P384_SHA384,
    ];
    const OF_512: &[&dyn SignatureVerificationAlgorithm] =
        &[algorithms::RSA_PKCS1_2048_8192_SHA512, algorithms::ED25519];
    match digest {
        SHA256 => Ok(OF_256),
        SHA384 => Ok(OF_384),
        SHA512 => Ok(OF_512),
        _ => Err(StampError::Algorithm),
    }
}

fn digest(algorithm: &[u8], bytes: &[u8]) -> Result<Vec<u8>, StampError> {
    match algorithm {
        SHA256 => Ok(Sha256::digest(bytes).to_vec()),
        SHA384 => Ok(Sha384::digest(bytes).to_vec()),
        SHA512 => Ok(Sha512::digest(bytes).to_vec()),
        _ => Err(StampError::Algorithm),
    }
}

#[cfg(test)]
mod tests;
