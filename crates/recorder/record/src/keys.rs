//! Encryption of a recording: it makes its own keys, and can read nothing that was recorded before.

use std::borrow::Cow;
use std::sync::Arc;

use encryption::Keyring;
use format::piece::Frame;
use index::{Files, SealedFiles};
use volume::{Reader, Writer};

use crate::patrol;
use crate::storage::Storage;

/// The keys of this recording; none where packets are not encrypted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys(Option<Arc<Keyring>>);

impl Keys {
    /// Lets the writer encrypt, if the volume is encrypted.
    pub(crate) fn begin(storage: &dyn Storage, writer: &mut Writer) -> Result<Self, volume::Error> {
        if !writer.superblock().is_encrypted {
            return Ok(Self(None));
        }
        let keyring = Arc::new(Keyring::new(writer.superblock().volume_id.0, None));
        writer.seal_with(storage.random_key(), Arc::clone(&keyring))?;
        Ok(Self(Some(keyring)))
    }

    /// How the bodies of pieces are framed.
    pub(crate) fn frame(&self) -> Frame {
        if self.0.is_some() { Frame::Encrypted } else { Frame::Plain }
    }

    /// Lets a reader open what this recording wrote.
    pub(crate) fn unlock(&self, mut reader: Reader) -> Reader {
        if let Some(keyring) = &self.0 {
            reader.unlock(Arc::clone(keyring));
        }
        reader
    }

    /// The index directory, encrypted where packets are.
    pub(crate) fn over(&self, files: Box<dyn Files + Send + Sync>) -> Box<dyn Files + Send + Sync> {
        match &self.0 {
            Some(keyring) => {
                Box::new(SealedFiles::new(files, Arc::clone(keyring), &[patrol::FILE]))
            }
            None => files,
        }
    }

    /// The file of an index as it goes into the ring; `None` where it is to be encrypted and
    /// nothing was recorded so far: then there is no key.
    pub(crate) fn seal<'p>(&self, parquet: &'p [u8]) -> Option<Cow<'p, [u8]>> {
        match &self.0 {
            Some(keyring) => keyring.seal(parquet).map(Cow::Owned),
            None => Some(Cow::Borrowed(parquet)),
        }
    }
}
