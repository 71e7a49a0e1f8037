//! The index directory of an encrypted volume: every file is sealed.

use core::ops::Range;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use encryption::{FILE_HEADER_BYTES, Keyring, SealedFile, key_id_of};
use units::number::to_u64;

use crate::content::Content;
use crate::files::Files;

/// The keys of who encrypts an index, or reads it; none where it is plain.
#[derive(Clone, Debug, Default)]
pub struct IndexKeys(Option<Arc<Keyring>>);

impl IndexKeys {
    /// Of this ring.
    pub fn new(keyring: Option<Arc<Keyring>>) -> Self {
        Self(keyring)
    }

    /// The index directory over a folder; files with the names `plain` lie in it as they are.
    pub fn over(
        &self,
        files: Box<dyn Files + Send + Sync>,
        plain: &'static [&'static str],
    ) -> Box<dyn Files + Send + Sync> {
        match &self.0 {
            Some(keyring) => Box::new(SealedFiles::new(files, Arc::clone(keyring), plain)),
            None => files,
        }
    }

    /// The file of a segment as it was before it went into the ring; `None` where no key opens it.
    pub fn open(&self, in_ring: Vec<u8>) -> Option<Vec<u8>> {
        match &self.0 {
            Some(keyring) => keyring.open(&in_ring),
            None => Some(in_ring),
        }
    }

    /// The file of a segment as it goes into the ring; `None` where it is to be encrypted and there
    /// is no key so far.
    pub fn seal<'p>(&self, parquet: &'p [u8]) -> Option<Cow<'p, [u8]>> {
        match &self.0 {
            Some(keyring) => keyring.seal(parquet).map(Cow::Owned),
            None => Some(Cow::Borrowed(parquet)),
        }
    }
}

/// A folder whose files are encrypted with the keys of a ring. Files that no key opens are as good
/// as absent; without a key nothing is written.
pub struct SealedFiles {
    inner: Box<dyn Files>,
    keyring: Arc<Keyring>,
    /// Names of files that say nothing of packets.
    plain: &'static [&'static str],
}

impl core::fmt::Debug for SealedFiles {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SealedFiles").field("plain", &self.plain).finish_non_exhaustive()
    }
}

impl SealedFiles {
    /// Over a folder; files with the names `plain` lie in it as they are.
    pub fn new(
        inner: Box<dyn Files>,
        keyring: Arc<Keyring>,
        plain: &'static [&'static str],
    ) -> Self {
        Self { inner, keyring, plain }
    }
}

impl Files for SealedFiles {
    fn open(&self, name: &str) -> io::Result<Option<Box<dyn Content>>> {
        let file = self.inner.open(name)?;
        if self.plain.contains(&name) {
            return Ok(file);
        }
        let Some(sealed) = file else { return Ok(None) };
        let opened = SealedContent::new(sealed, &self.keyring)?;
        Ok(opened.map(|content| -> Box<dyn Content> { Box::new(content) }))
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let bytes = self.inner.read(name)?;
        if self.plain.contains(&name) {
            return Ok(bytes);
        }
        Ok(bytes.and_then(|sealed| self.keyring.open(&sealed)))
    }

    fn write_atomic(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        if self.plain.contains(&name) {
            return self.inner.write_atomic(name, bytes);
        }
        let sealed = self.keyring.seal(bytes).ok_or(io::ErrorKind::PermissionDenied)?;
        self.inner.write_atomic(name, &sealed)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        self.inner.sync(name)
    }

    fn read_ahead(&self, count: usize, bytes: u64) {
        self.inner.read_ahead(count, bytes);
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }
}

/// A sealed file that is read in parts.
#[derive(Debug)]
struct SealedContent {
    sealed: Box<dyn Content>,
    file: SealedFile,
}

impl SealedContent {
    /// `None` where it is no sealed file, or no key of the ring opens it.
    fn new(sealed: Box<dyn Content>, keyring: &Keyring) -> io::Result<Option<Self>> {
        if sealed.size_bytes() < to_u64(FILE_HEADER_BYTES) {
            return Ok(None);
        }
        let front = sealed.read(0, FILE_HEADER_BYTES)?;
        let Some(key) = key_id_of(&front).and_then(|id| keyring.key(id)) else { return Ok(None) };
        let file = SealedFile::new(&key, &front).map_err(io::Error::other)?;
        // Who changed the length in the header has changed the file.
        let is_as_long = file.sealed_range(0..file.len_bytes()).end == sealed.size_bytes();
        Ok(is_as_long.then_some(Self { sealed, file }))
    }
}

impl Content for SealedContent {
    fn size_bytes(&self) -> u64 {
        self.file.len_bytes()
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let end = offset.checked_add(to_u64(len)).filter(|end| *end <= self.size_bytes());
        let range = offset..end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let Range { start, end } = self.file.sealed_range(range.clone());
        let sealed_len = usize::try_from(end - start).map_err(io::Error::other)?;
        let sealed = self.sealed.read(start, sealed_len)?;
        Ok(self.file.open(range, &sealed).map_err(io::Error::other)?.into())
    }
}

#[cfg(test)]
mod tests {
    use encryption::DataKey;

    use super::*;
    use crate::files::MemoryFiles;

    fn keyring() -> Arc<Keyring> {
        let keyring = Keyring::new([1; 16], None);
        keyring.hold(3, DataKey::new([4; 32]), 0);
        Arc::new(keyring)
    }

    fn files(keyring: Arc<Keyring>) -> SealedFiles {
        SealedFiles::new(Box::new(MemoryFiles::default()), keyring, &["scrub.progress"])
    }

    #[test]
    fn files_come_back_and_lie_sealed() {
        let files = files(keyring());
        let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        files.write_atomic("a", &content).unwrap();
        files.write_atomic("scrub.progress", b"plain").unwrap();
        assert_eq!(files.read("a").unwrap().as_deref(), Some(content.as_slice()));
        assert_eq!(files.read("scrub.progress").unwrap().as_deref(), Some(&b"plain"[..]));
        let inner = files.inner.read("a").unwrap().unwrap();
        assert!(!inner.windows(16).any(|part| part == &content[4000..4016]));
        assert_eq!(files.inner.read("scrub.progress").unwrap().as_deref(), Some(&b"plain"[..]));
        let opened = files.open("a").unwrap().unwrap();
        assert_eq!(opened.size_bytes(), to_u64(content.len()));
        for (offset, len) in [(0, 10), (65_530, 20), (799_990, 10), (0, 800_000), (5, 0)] {
            let part = opened.read(to_u64(offset), len).unwrap();
            assert_eq!(part, &content[offset..offset + len]);
        }
        assert!(opened.read(799_991, 10).is_err());
        assert!(files.open("b").unwrap().is_none());
    }

    #[test]
    fn without_their_key_files_are_absent() {
        let mine = files(keyring());
        mine.write_atomic("a", b"content").unwrap();
        let sealed = mine.inner.read("a").unwrap().unwrap();
        let other = files(Arc::new(Keyring::new([1; 16], None)));
        other.inner.write_atomic("a", &sealed).unwrap();
        other.inner.write_atomic("b", b"PAR1 and more, but nothing that was sealed").unwrap();
        for name in ["a", "b"] {
            assert!(other.open(name).unwrap().is_none());
            assert!(other.read(name).unwrap().is_none());
        }
        assert!(other.write_atomic("c", b"content").is_err());
        let cut = sealed.len() - 1;
        mine.inner.write_atomic("cut", &sealed[..cut]).unwrap();
        assert!(mine.open("cut").unwrap().is_none());
    }
}
