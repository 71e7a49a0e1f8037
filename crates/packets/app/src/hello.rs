//! What is in TLS hellos (RFC 8446 4.1): names, offers, choices.

use wire::{Names, Tls};

use crate::fingerprint::{self, APPLICATION_LAYER_PROTOCOLS, Carrier, Offer, SERVER_NAME};
use crate::reader::Reader;
use crate::values::{keep_text, text};

const SUPPORTED_GROUPS: u16 = 10;
const POINT_FORMATS: u16 = 11;
const SIGNATURE_ALGORITHMS: u16 = 13;
const SUPPORTED_VERSIONS: u16 = 43;

/// Extensions of one hello that are looked at; there are about 60 kinds.
const EXTENSION_COUNT_MAX: usize = 256;

/// ALPN protocols of one hello that are looked at.
const PROTOCOL_COUNT_MAX: usize = 32;

/// Values reserved so that nobody gets used to a fixed set (RFC 8701): they are no offers.
pub(crate) fn is_grease(value: u16) -> bool {
    let [high, low] = value.to_be_bytes();
    high == low && low & 0x0f == 0x0a
}

fn numbers(bytes: &[u8]) -> Vec<u16> {
    let pairs = bytes.as_chunks::<2>().0.iter();
    pairs.map(|&pair| u16::from_be_bytes(pair)).filter(|&value| !is_grease(value)).collect()
}

/// Keeps what a client hello says, as far as it goes: a cut one is read up to the cut, but has no
/// fingerprint.
pub(crate) fn read_client(hello: &[u8], is_whole: bool, carrier: Carrier, names: &mut Names) {
    let mut reader = Reader::new(hello);
    let mut offer = Offer { version: reader.u16().unwrap_or_default(), ..Offer::default() };
    let mut head = || {
        reader.take(32)?; // Random.
        reader.vector8()?; // Session id.
        offer.ciphers = numbers(reader.vector16()?);
        reader.vector8() // Compression methods.
    };
    let has_head = head().is_some();
    reader.u16(); // A hello may end here, without extensions.
    let mut extensions = Reader::new(reader.rest());
    for _ in 0..EXTENSION_COUNT_MAX {
        let (Some(kind), Some(len)) = (extensions.u16(), extensions.u16()) else {
            break;
        };
        if !has_head {
            break;
        }
        let body = extensions.take_up_to(len.into());
        if !is_grease(kind) {
            offer.extensions.push(kind);
        }
        read_offer(kind, Reader::new(body), &mut offer, names);
    }
    let version = offer.supported.or(Some(offer.version)).filter(|&version| version > 0);
    names.tls_version = names.tls_version.or(version);
    if is_whole && has_head && !offer.is_too_long() {
        let tls = tls(names);
        if tls.ja3.is_none() {
            [tls.ja3, tls.ja4] = fingerprint::of_client(offer, carrier).map(Some);
        }
    }
}

fn tls(names: &mut Names) -> &mut Tls {
    names.tls.get_or_insert_default()
}

fn read_offer(kind: u16, mut body: Reader<'_>, offer: &mut Offer, names: &mut Names) {
    match kind {
        SERVER_NAME => {
            // RFC 6066 3: a list of names, of which type 0 is a host name.
            body.u16();
            while let (Some(kind), Some(name)) = (body.u8(), body.vector16()) {
                if kind == 0 && !name.is_empty() {
                    names.sni.get_or_insert_with(|| text(name));
                }
            }
        }
        APPLICATION_LAYER_PROTOCOLS => {
            // RFC 7301 3.1.
            body.u16();
            for _ in 0..PROTOCOL_COUNT_MAX {
                let Some(protocol) = body.vector8().filter(|_| !offer.has_alpn) else {
                    break;
                };
                if offer.alpn.is_none() {
                    offer.alpn = Some(protocol.into());
                }
                keep_text(&mut names.alpn, protocol);
            }
            offer.has_alpn = true;
        }
        // RFC 8446 4.2.1: the best offer.
        SUPPORTED_VERSIONS => {
            body.u8();
            offer.supported = numbers(body.rest()).into_iter().max();
        }
        SUPPORTED_GROUPS => offer.groups = numbers(body.vector16().unwrap_or_default()),
        POINT_FORMATS => offer.point_formats = body.vector8().unwrap_or_default().into(),
        SIGNATURE_ALGORITHMS => offer.signatures = numbers(body.vector16().unwrap_or_default()),
        _ => {}
    }
}

/// Keeps what a server hello says, as far as it goes; gives the version chosen. What a request for
/// another client hello says is replaced by the answer to that.
pub(crate) fn read_server(hello: &[u8], is_whole: bool, names: &mut Names) -> Option<u16> {
    let mut reader = Reader::new(hello);
    let legacy = reader.u16();
    let mut version = legacy;
    let mut head = || {
        reader.take(32)?; // Random.
        reader.vector8()?; // Session id.
        let cipher = reader.u16()?;
        reader.u8()?; // Compression method.
        Some(cipher)
    };
    let cipher = head();
    reader.u16();
    let mut extensions = Reader::new(reader.rest());
    let (mut kinds, mut has_alpn) = (Vec::new(), false);
    for _ in 0..EXTENSION_COUNT_MAX {
        let (Some(kind), Some(len)) = (extensions.u16(), extensions.u16()) else {
            break;
        };
        if cipher.is_none() {
            break;
        }
        let mut body = Reader::new(extensions.take_up_to(len.into()));
        kinds.push(kind);
        match kind {
            SUPPORTED_VERSIONS => version = body.u16().or(version),
            APPLICATION_LAYER_PROTOCOLS if !has_alpn => {
                has_alpn = true;
                body.u16();
                if let Some(protocol) = body.vector8().filter(|protocol| !protocol.is_empty()) {
                    tls(names).alpn_chosen = Some(text(protocol));
                }
            }
            _ => {}
        }
    }
    // The server's answer stands whichever hello is seen first.
    names.tls_version = version.or(names.tls_version);
    if let Some(cipher) = cipher {
        let tls = tls(names);
        tls.cipher = Some(cipher);
        if is_whole {
            let version = legacy.unwrap_or_default();
            tls.ja3s = Some(fingerprint::of_server(version, cipher, kinds));
        }
    }
    version
}
