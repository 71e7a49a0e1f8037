//! Data keys, and what is derived from them.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};
use zeroize::Zeroizing;

/// Bytes of a data key.
pub const KEY_BYTES: usize = 32;
/// Bytes of the tag behind each chunk.
pub(crate) const TAG_BYTES: usize = 16;

/// What packets and index of about an hour are encrypted with. Its bytes are overwritten when it is
/// dropped.
#[derive(Clone)]
pub struct DataKey(Zeroizing<[u8; KEY_BYTES]>);

impl core::fmt::Debug for DataKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("DataKey(..)")
    }
}

impl DataKey {
    /// A key of these bytes, which must be random and used for nothing else.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// A hash of `parts`, one behind the other, that only who has the key can compute.
    pub(crate) fn hash(&self, parts: &[&[u8]]) -> [u8; KEY_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in parts {
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }

    /// The key of one use: `purpose` says which, `which` tells it from others of its kind.
    pub(crate) fn derive(&self, purpose: [u8; 8], which: &[u8]) -> Chunks {
        let key = Zeroizing::new(self.hash(&[&purpose, which]));
        let key = UnboundKey::new(&AES_256_GCM, key.as_slice()).expect("32 bytes are a key");
        Chunks(LessSafeKey::new(key))
    }
}

/// AES-256-GCM of chunks: the caller sees to it that no nonce comes twice.
#[derive(Debug)]
pub(crate) struct Chunks(LessSafeKey);

impl Chunks {
    /// Encrypts in place and gives the tag.
    pub(crate) fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        context: &[u8],
        chunk: &mut [u8],
    ) -> [u8; TAG_BYTES] {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(context), chunk);
        let tag = tag.expect("a chunk is far below what one nonce may encrypt");
        tag.as_ref().try_into().expect("a tag has 16 bytes")
    }

    /// Decrypts in place; false, and zeros in its place, where it is not what was sealed.
    pub(crate) fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        context: &[u8],
        (chunk, tag): (&mut [u8], [u8; TAG_BYTES]),
    ) -> bool {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let (aad, tag) = (Aad::from(context), Tag::from(tag));
        let is_open = self.0.open_in_place_separate_tag(nonce, aad, tag, chunk, 0..).is_ok();
        if !is_open {
            chunk.fill(0);
        }
        is_open
    }
}
