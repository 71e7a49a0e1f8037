//! Sealed files: what the index keeps in the ring and in its directory.
//!
//! A header of [`FILE_HEADER_BYTES`], then the content in chunks of 64 KiB, each with its tag
//! behind it. The key of a file is derived from a keyed hash of its content: the same content under
//! the same data key gives the same bytes, and no chance is needed.

use core::ops::Range;

use ring::aead::NONCE_LEN;
use thiserror::Error;
use units::number::to_u64;

use crate::body::CHUNK_BYTES;
use crate::key::{Chunks, DataKey, TAG_BYTES};

/// Bytes in front of the first chunk.
pub const FILE_HEADER_BYTES: usize = 48;

const MAGIC: [u8; 8] = *b"wireSEAL";
const VERSION: u8 = 1;
const SALT_BYTES: usize = 16;
/// Bytes of a chunk with its tag.
const SEALED_CHUNK_BYTES: usize = CHUNK_BYTES + TAG_BYTES;

/// Byte offsets; drawn with their meaning in docs/format.md, Sealed files.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 8;
    pub(super) const KEY_ID: usize = 16;
    pub(super) const SALT: usize = 24;
    pub(super) const LENGTH: usize = 40;
}

/// Why bytes are no file that can be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// It does not begin as a sealed file does.
    #[error("it is no sealed file")]
    NotSealed,
    /// Another key, or changed bytes.
    #[error("it was not sealed with this key, or was changed")]
    Forged,
}

/// The number of the data key that the file which begins so was sealed with; `None` where it is no
/// sealed file.
pub fn key_id_of(front: &[u8]) -> Option<u64> {
    let header = front.first_chunk::<FILE_HEADER_BYTES>()?;
    let is_ours = header.starts_with(&MAGIC) && header.get(at::VERSION) == Some(&VERSION);
    is_ours.then(|| word(header, at::KEY_ID))
}

fn word(header: &[u8; FILE_HEADER_BYTES], offset: usize) -> u64 {
    let bytes = header.get(offset..).and_then(|rest| rest.first_chunk());
    u64::from_le_bytes(*bytes.expect("inside the header"))
}

/// Seals a file with the data key of this number.
pub fn seal_file(key: &DataKey, key_id: u64, plain: &[u8]) -> Vec<u8> {
    let salt = key.hash(&[b"salt   1", plain]);
    let mut header = [0; FILE_HEADER_BYTES];
    let mut put = |offset: usize, bytes: &[u8]| {
        let place = header.get_mut(offset..offset + bytes.len());
        place.expect("inside the header").copy_from_slice(bytes);
    };
    put(at::MAGIC, &MAGIC);
    put(at::VERSION, &[VERSION]);
    put(at::KEY_ID, &key_id.to_le_bytes());
    put(at::SALT, salt.get(..SALT_BYTES).expect("a hash is longer"));
    put(at::LENGTH, &to_u64(plain.len()).to_le_bytes());
    let chunks = chunks_of(key, &header);
    let count = plain.len().div_ceil(CHUNK_BYTES);
    let mut sealed = Vec::with_capacity(FILE_HEADER_BYTES + plain.len() + count * TAG_BYTES);
    sealed.extend_from_slice(&header);
    for (number, chunk) in (0..).zip(plain.chunks(CHUNK_BYTES)) {
        let begin = sealed.len();
        sealed.extend_from_slice(chunk);
        let chunk = sealed.get_mut(begin..).expect("just put there");
        let tag = chunks.seal(nonce(number), &header, chunk);
        sealed.extend_from_slice(&tag);
    }
    sealed
}

fn chunks_of(key: &DataKey, header: &[u8; FILE_HEADER_BYTES]) -> Chunks {
    let salt = header.get(at::SALT..at::SALT + SALT_BYTES).expect("inside the header");
    key.derive(*b"files  1", salt)
}

fn nonce(chunk: u64) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    let (number, _) = nonce.split_at_mut(8);
    number.copy_from_slice(&chunk.to_le_bytes());
    nonce
}

/// Opens a whole file.
///
/// # Errors
/// As [`SealedFile::new`] and [`SealedFile::open`].
pub fn open_file(key: &DataKey, sealed: &[u8]) -> Result<Vec<u8>, FileError> {
    let file = SealedFile::new(key, sealed)?;
    if to_u64(sealed.len()) != file.sealed_range(0..file.len_bytes()).end {
        return Err(FileError::Forged);
    }
    file.open(0..file.len_bytes(), sealed.get(FILE_HEADER_BYTES..).unwrap_or_default())
}

/// A sealed file that is read in parts.
#[derive(Debug)]
pub struct SealedFile {
    header: [u8; FILE_HEADER_BYTES],
    chunks: Chunks,
}

impl SealedFile {
    /// Of a file that begins so.
    ///
    /// # Errors
    /// [`FileError::NotSealed`].
    pub fn new(key: &DataKey, front: &[u8]) -> Result<Self, FileError> {
        key_id_of(front).ok_or(FileError::NotSealed)?;
        let header = *front.first_chunk().expect("it has a header");
        Ok(Self { chunks: chunks_of(key, &header), header })
    }

    /// Bytes of the content; not to be believed before something was opened.
    pub fn len_bytes(&self) -> u64 {
        word(&self.header, at::LENGTH)
    }

    /// What is to be read of the sealed file for these bytes of its content.
    pub fn sealed_range(&self, range: Range<u64>) -> Range<u64> {
        let (chunk, sealed) = (to_u64(CHUNK_BYTES), to_u64(SEALED_CHUNK_BYTES));
        let header = to_u64(FILE_HEADER_BYTES);
        let len = self.len_bytes();
        let end = range.end.min(len);
        let begin = range.start.min(end);
        let front = (begin / chunk).saturating_mul(sealed);
        // The last chunk may be short.
        let until = end.div_ceil(chunk).saturating_mul(chunk).min(len);
        let tags = end.div_ceil(chunk).saturating_mul(to_u64(TAG_BYTES));
        let back = until.saturating_add(tags);
        front.saturating_add(header)..back.max(front).saturating_add(header)
    }

    /// These bytes of the content, out of what [`Self::sealed_range`] names.
    ///
    /// # Errors
    /// [`FileError::Forged`], also where bytes are missing.
    pub fn open(&self, range: Range<u64>, sealed: &[u8]) -> Result<Vec<u8>, FileError> {
        let chunk_bytes = to_u64(CHUNK_BYTES);
        let first = range.start / chunk_bytes;
        let mut plain = Vec::with_capacity(sealed.len());
        for (number, chunk) in (first..).zip(sealed.chunks(SEALED_CHUNK_BYTES)) {
            let (bytes, tag) = chunk.split_last_chunk::<TAG_BYTES>().ok_or(FileError::Forged)?;
            let begin = plain.len();
            plain.extend_from_slice(bytes);
            let bytes = plain.get_mut(begin..).expect("just put there");
            if !self.chunks.open(nonce(number), &self.header, (bytes, *tag)) {
                return Err(FileError::Forged);
            }
        }
        let within = |at: u64| usize::try_from(at - first * chunk_bytes).ok();
        let range = within(range.start).zip(within(range.end));
        let part = range.and_then(|(begin, end)| plain.get(begin..end));
        Ok(part.ok_or(FileError::Forged)?.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Random;

    use super::*;

    fn key() -> DataKey {
        DataKey::new([9; 32])
    }

    fn content(len: usize) -> Vec<u8> {
        let mut plain = vec![0; len];
        Random::new(to_u64(len)).fill(&mut plain);
        plain
    }

    #[test]
    fn files_round_trip_at_the_edges_of_chunks() {
        for len in [0, 1, 65_535, 65_536, 65_537, 131_072, 200_000] {
            let plain = content(len);
            let sealed = seal_file(&key(), 77, &plain);
            assert_eq!(key_id_of(&sealed), Some(77));
            assert_eq!(open_file(&key(), &sealed), Ok(plain.clone()), "{len}");
            assert_eq!(sealed, seal_file(&key(), 77, &plain), "the same once more");
            let other = DataKey::new([8; 32]);
            assert!(len == 0 || open_file(&other, &sealed) == Err(FileError::Forged));
        }
        assert_eq!(key_id_of(b"PAR1"), None);
        assert_eq!(open_file(&key(), &content(100)), Err(FileError::NotSealed));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn any_part_can_be_read(len in 1_u64..300_000, a in any::<u64>(), b in any::<u64>()) {
            let plain = content(usize::try_from(len).unwrap());
            let sealed = seal_file(&key(), 1, &plain);
            let file = SealedFile::new(&key(), &sealed).unwrap();
            prop_assert_eq!(file.len_bytes(), len);
            let (a, b) = (a % (len + 1), b % (len + 1));
            let range = a.min(b)..a.max(b);
            let to_read = file.sealed_range(range.clone());
            let bytes = |range: Range<u64>, of: &[u8]| {
                let of_range = |at: u64| usize::try_from(at).unwrap();
                of[of_range(range.start)..of_range(range.end)].to_vec()
            };
            let part = file.open(range.clone(), &bytes(to_read, &sealed));
            prop_assert_eq!(part, Ok(bytes(range, &plain)));
        }

        #[test]
        fn changed_cut_and_longer_files_do_not_open(len in 1_usize..200_000, at in any::<usize>()) {
            let sealed = seal_file(&key(), 1, &content(len));
            let mut changed = sealed.clone();
            let bit = at % (sealed.len() * 8);
            changed[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(open_file(&key(), &changed).is_err());
            prop_assert!(open_file(&key(), &sealed[..at % sealed.len()]).is_err());
            prop_assert!(open_file(&key(), &[sealed.as_slice(), &[0]].concat()).is_err());
        }

        #[test]
        fn no_bytes_end_it(front in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut sealed = seal_file(&key(), 1, b"").clone();
            sealed.truncate(24);
            sealed.extend(front);
            if let Ok(file) = SealedFile::new(&key(), &sealed) {
                let range = file.sealed_range(0..u64::MAX);
                prop_assert!(range.start <= range.end);
            }
            prop_assert!(open_file(&key(), &sealed).is_err() || sealed.len() == FILE_HEADER_BYTES);
        }
    }
}
