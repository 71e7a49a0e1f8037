//! Fingerprints of hellos: JA3 and JA3S, and JA4 of clients (the part of JA4 under a free licence).

use core::cell::RefCell;
use core::fmt::{Display, Write as _};

use md5::Md5;
use sha2::{Digest as _, Sha256};

use crate::memo::Memo;

/// Numbers of an offer that are still hashed: about 350 cipher suites and 60 kinds of extensions
/// are registered, and hellos with more are made to keep a reader busy.
const OFFER_COUNT_MAX: usize = 512;

// Extensions of which a fingerprint needs the kind (IANA, TLS ExtensionType Values).
pub(crate) const SERVER_NAME: u16 = 0;
pub(crate) const APPLICATION_LAYER_PROTOCOLS: u16 = 16;

/// What carries the handshake, as JA4 tells it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Carrier {
    Tcp,
    Quic,
}

/// What a client hello offers, in its order, without reserved values.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Offer {
    /// The version field; `supported` is what counts since TLS 1.3.
    pub(crate) version: u16,
    pub(crate) supported: Option<u16>,
    pub(crate) ciphers: Vec<u16>,
    pub(crate) extensions: Vec<u16>,
    pub(crate) groups: Vec<u16>,
    pub(crate) point_formats: Vec<u8>,
    pub(crate) signatures: Vec<u16>,
    /// The first ALPN protocol.
    pub(crate) alpn: Option<Vec<u8>>,
    /// There was a list of such; another one says nothing.
    pub(crate) has_alpn: bool,
}

/// What fingerprints are made of, with the fingerprints, which are remembered for each thread: a
/// table of sessions lives on one.
#[derive(Debug)]
struct Known {
    clients: Memo<(Carrier, Offer), [String; 2]>,
    servers: Memo<(u16, u16, Vec<u16>), String>,
}

thread_local! {
    static KNOWN: RefCell<Known> =
        const { RefCell::new(Known { clients: Memo::new(), servers: Memo::new() }) };
}

/// JA3 and JA4 of a client hello.
pub(crate) fn of_client(offer: Offer, carrier: Carrier) -> [String; 2] {
    let key = (carrier, offer);
    let make = |(carrier, offer): &(Carrier, Offer)| [ja3(offer), ja4(offer, *carrier)];
    KNOWN.with_borrow_mut(|known| known.clients.get(&key, make))
}

/// JA3S of a server hello: version, cipher and extensions.
pub(crate) fn of_server(version: u16, cipher: u16, extensions: Vec<u16>) -> String {
    let key = (version, cipher, extensions);
    let make =
        |(version, cipher, extensions): &(_, _, Vec<u16>)| ja3s(*version, *cipher, extensions);
    KNOWN.with_borrow_mut(|known| known.servers.get(&key, make))
}

impl Offer {
    /// Whether there is more in it than fingerprints are made of.
    pub(crate) fn is_too_long(&self) -> bool {
        let Self { ciphers, extensions, groups, point_formats, signatures, .. } = self;
        let lens = [ciphers, extensions, groups, signatures].map(Vec::len);
        lens.into_iter().sum::<usize>() + point_formats.len() > OFFER_COUNT_MAX
    }
}

/// MD5 of version, ciphers, extensions, groups and point formats in decimal.
fn ja3(offer: &Offer) -> String {
    let Offer { version, ciphers, extensions, groups, point_formats, .. } = offer;
    let (ciphers, extensions) = (joined(ciphers), joined(extensions));
    let (groups, formats) = (joined(groups), joined(point_formats));
    md5_hex(&format!("{version},{ciphers},{extensions},{groups},{formats}"))
}

/// MD5 of version, cipher and extensions in decimal.
fn ja3s(version: u16, cipher: u16, extensions: &[u16]) -> String {
    md5_hex(&format!("{version},{cipher},{}", joined(extensions)))
}

/// MD5 in hexadecimal.
pub(crate) fn md5_hex(text: &str) -> String {
    hex(&Md5::digest(text))
}

fn joined(values: &[impl Display]) -> String {
    let mut text = String::with_capacity(6 * values.len());
    for (at, value) in values.iter().enumerate() {
        text.extend((at > 0).then_some('-'));
        write!(text, "{value}").expect("writing to a string cannot fail");
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).expect("four bits");
    bytes.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Carrier, version, whether a server is named, counts and ALPN; then hashes of the sorted ciphers
/// and of the sorted extensions with the signature algorithms in their order.
fn ja4(offer: &Offer, carrier: Carrier) -> String {
    let carrier = if carrier == Carrier::Quic { 'q' } else { 't' };
    let version = ja4_version(offer.supported.unwrap_or(offer.version));
    let destination = if offer.extensions.contains(&SERVER_NAME) { 'd' } else { 'i' };
    let (ciphers, extensions) = (offer.ciphers.len().min(99), offer.extensions.len().min(99));
    let alpn = ja4_alpn(offer.alpn.as_deref().unwrap_or_default());
    let mut hashed = sorted_hex(&offer.ciphers);
    let cipher_hash = short_hash(&hashed);
    let is_hashed = |kind: &u16| ![SERVER_NAME, APPLICATION_LAYER_PROTOCOLS].contains(kind);
    let kinds: Vec<u16> = offer.extensions.iter().copied().filter(is_hashed).collect();
    hashed = sorted_hex(&kinds);
    if !offer.signatures.is_empty() {
        hashed = format!("{hashed}_{}", hex_list(&offer.signatures));
    }
    let extension_hash = short_hash(&hashed);
    format!(
        "{carrier}{version}{destination}{ciphers:02}{extensions:02}{alpn}_{cipher_hash}_\
         {extension_hash}"
    )
}

fn ja4_version(version: u16) -> &'static str {
    match version {
        0x0304 => "13",
        0x0303 => "12",
        0x0302 => "11",
        0x0301 => "10",
        0x0300 => "s3",
        0x0002 => "s2",
        _ => "00",
    }
}

/// First and last character of the first protocol; of its hexadecimal form where one of them is
/// neither letter nor digit.
fn ja4_alpn(alpn: &[u8]) -> String {
    let (Some(&first), Some(&last)) = (alpn.first(), alpn.last()) else {
        return "00".to_owned();
    };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        return [first, last].map(char::from).into_iter().collect();
    }
    let hex = hex(&[first, last]);
    hex.chars().take(1).chain(hex.chars().skip(3)).collect()
}

fn sorted_hex(values: &[u16]) -> String {
    let mut values = values.to_vec();
    values.sort_unstable();
    hex_list(&values)
}

fn hex_list(values: &[u16]) -> String {
    let digit = |value: u16| char::from_digit(u32::from(value & 15), 16).expect("four bits");
    let mut text = String::with_capacity(5 * values.len());
    for (at, &value) in values.iter().enumerate() {
        text.extend((at > 0).then_some(','));
        text.extend([value >> 12, value >> 8, value >> 4, value].map(digit));
    }
    text
}

/// The first 12 digits of SHA-256; zeros for nothing.
fn short_hash(text: &str) -> String {
    if text.is_empty() {
        return "0".repeat(12);
    }
    let mut hash = hex(&Sha256::digest(text));
    hash.truncate(12);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of JA3's own documentation.
    #[test]
    fn ja3_is_as_published() {
        let offer = Offer {
            version: 769,
            ciphers: vec![47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4],
            extensions: vec![0, 10, 11],
            groups: vec![23, 24, 25],
            point_formats: vec![0],
            ..Offer::default()
        };
        assert_eq!(ja3(&offer), "ada70206e40642a3e4461f35503241d5");
        let bare = Offer {
            version: 769,
            ciphers: vec![4, 5, 10, 9, 100, 98, 3, 6, 19, 18, 99],
            ..Offer::default()
        };
        assert_eq!(ja3(&bare), "de350869b8c85de67a350c8d186f11e6");
    }

    /// The example of JA4's own documentation.
    #[test]
    fn ja4_is_as_published() {
        let offer = Offer {
            version: 0x0303,
            supported: Some(0x0304),
            ciphers: vec![
                0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013,
                0xc014, 0x009c, 0x009d, 0x002f, 0x0035,
            ],
            extensions: vec![
                0x001b, 0x0000, 0x0033, 0x0010, 0x4469, 0x0017, 0x002d, 0x000d, 0x0005, 0x0023,
                0x0012, 0x002b, 0xff01, 0x000b, 0x000a, 0x0015,
            ],
            signatures: vec![0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601],
            alpn: Some(b"h2".to_vec()),
            ..Offer::default()
        };
        assert_eq!(ja4(&offer, Carrier::Tcp), "t13d1516h2_8daaf6152771_e5627efa2ab1");
    }

    #[test]
    fn ja4_of_nothing_has_zeros() {
        let offer = Offer { version: 0x0301, ..Offer::default() };
        assert_eq!(ja4(&offer, Carrier::Quic), "q10i000000_000000000000_000000000000");
    }

    /// The cases of JA4's documentation.
    #[test]
    fn ja4_shows_the_ends_of_the_first_alpn_protocol() {
        let cases: [(&[u8], &str); 7] = [
            (b"http/1.1", "h1"),
            (b"h", "hh"),
            (&[0xab], "ab"),
            (&[0xab, 0xcd], "ad"),
            (&[0x30, 0xab], "3b"),
            (&[0x30, 0x31, 0xab, 0xcd], "3d"),
            (&[0x30, 0xab, 0xcd, 0x31], "01"),
        ];
        for (alpn, expected) in cases {
            assert_eq!(ja4_alpn(alpn), expected, "{alpn:?}");
        }
    }
}
