//! Keys of Initial packets (RFC 9001 5.2, RFC 9369 3.3).

use core::fmt;

use aes_gcm::aead::AeadInPlace as _;
use aes_gcm::aes::cipher::BlockEncrypt as _;
use aes_gcm::aes::{Aes128, Block};
use aes_gcm::{Aes128Gcm, KeyInit as _};
use hkdf::Hkdf;
use sha2::Sha256;

/// What differs between the versions in the packets that are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Version {
    salt: [u8; 20],
    /// Goes before the names of keys.
    label: &'static str,
    /// The two bits of an Initial's type.
    pub(crate) initial_type: u8,
}

const fn version(salt: [u8; 20]) -> Version {
    Version { salt, label: "quic", initial_type: 0 }
}

const V1: Version = version([
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
]);
const V2: Version = Version {
    salt: [
        0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d,
        0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
    ],
    label: "quicv2",
    initial_type: 1,
};
const DRAFT_29: Version = version([
    0xaf, 0xbf, 0xec, 0x28, 0x99, 0x93, 0xd2, 0x4c, 0x9e, 0x97, 0x86, 0xf1, 0x9c, 0x61, 0x11, 0xe0,
    0x43, 0x90, 0xa8, 0x99,
]);
const DRAFT_23: Version = version([
    0xc3, 0xee, 0xf7, 0x12, 0xc7, 0x2e, 0xbb, 0x5a, 0x11, 0xa7, 0xd2, 0x43, 0x2b, 0xb4, 0x63, 0x65,
    0xbe, 0xf9, 0xf5, 0x02,
]);

impl Version {
    /// The versions of the standards, and their last drafts, which old captures have.
    pub(crate) fn of(number: u32) -> Option<Self> {
        match number {
            1 | 0xff00_0021..=0xff00_0022 => Some(V1),
            0x6b33_43cf => Some(V2),
            0xff00_001d..=0xff00_0020 => Some(DRAFT_29),
            0xff00_0017..=0xff00_001c => Some(DRAFT_23),
            // Reserved to force a negotiation (RFC 9000 15); seen from clients of that draft.
            reserved if reserved & 0x0f0f_0f0f == 0x0a0a_0a0a => Some(DRAFT_29),
            _ => None,
        }
    }
}

/// The keys of both directions.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) client: Key,
    pub(crate) server: Key,
}

impl Keys {
    /// From the destination id of the client's first Initial.
    pub(crate) fn derive(version: Version, destination: &[u8]) -> Self {
        let initial = Hkdf::<Sha256>::new(Some(&version.salt), destination);
        Self {
            client: Key::derive(&initial, "client in", version.label),
            server: Key::derive(&initial, "server in", version.label),
        }
    }
}

/// What protects the packets of one direction.
pub(crate) struct Key {
    packet: Aes128Gcm,
    iv: [u8; 12],
    header: Aes128,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

impl Key {
    fn derive(initial: &Hkdf<Sha256>, side: &str, label: &str) -> Self {
        let secret: [u8; 32] = expand(initial, side);
        let secret = Hkdf::from_prk(&secret).expect("a hash is long enough for a key");
        let key: [u8; 16] = expand(&secret, &format!("{label} key"));
        let header: [u8; 16] = expand(&secret, &format!("{label} hp"));
        Self {
            packet: Aes128Gcm::new(&key.into()),
            iv: expand(&secret, &format!("{label} iv")),
            header: Aes128::new(&header.into()),
        }
    }

    /// What is laid over first byte and packet number (RFC 9001 5.4).
    pub(crate) fn mask(&self, sample: [u8; 16]) -> [u8; 5] {
        let mut block = Block::from(sample);
        self.header.encrypt_block(&mut block);
        let block: [u8; 16] = block.into();
        *block.first_chunk().expect("a block has 16 bytes")
    }

    /// Decrypts in place; `None` when it is not what was encrypted (RFC 9001 5.3).
    pub(crate) fn open(&self, number: u64, header: &[u8], mut payload: Vec<u8>) -> Option<Vec<u8>> {
        self.packet.decrypt_in_place(&self.nonce(number).into(), header, &mut payload).ok()?;
        Some(payload)
    }

    fn nonce(&self, number: u64) -> [u8; 12] {
        let mut nonce = self.iv;
        let number = number.to_be_bytes();
        nonce.iter_mut().rev().zip(number.iter().rev()).for_each(|(byte, part)| *byte ^= part);
        nonce
    }
}

#[cfg(test)]
impl Key {
    /// Encrypts, as the sender does.
    pub(crate) fn seal(&self, number: u64, header: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut payload = payload.to_vec();
        let nonce = self.nonce(number).into();
        self.packet.encrypt_in_place(&nonce, header, &mut payload).unwrap();
        payload
    }
}

/// HKDF-Expand-Label of TLS 1.3 (RFC 8446 7.1), without a context.
fn expand<const LEN: usize>(secret: &Hkdf<Sha256>, label: &str) -> [u8; LEN] {
    let len = u16::try_from(LEN).expect("keys are short").to_be_bytes();
    let label_len = u8::try_from("tls13 ".len() + label.len()).expect("labels are short");
    let mut key = [0; LEN];
    secret
        .expand_multi_info(&[&len, &[label_len], b"tls13 ", label.as_bytes(), &[0]], &mut key)
        .expect("keys are shorter than 255 hashes");
    key
}
