//! Opening encrypted volumes.

use std::sync::Arc;

use encryption::Keyring;
use index::{Files, SealedFiles};
use volume::Reader;

use crate::{Error, Options};

/// Lets a reader decrypt, if the volume is encrypted.
///
/// # Errors
/// [`Error::Locked`] and [`Error::NotForThese`]: nobody could read anything.
pub(crate) fn unlock(reader: &mut Reader, options: &Options) -> Result<(), Error> {
    if !reader.superblock().is_encrypted {
        return Ok(());
    }
    let path = options.volume.clone();
    let Some(identities) = options.identities.clone() else {
        return Err(Error::Locked { path, recipients: recipients_of(reader) });
    };
    let keyring = Arc::new(Keyring::new(reader.superblock().volume_id.0, Some(identities)));
    reader.unlock(Arc::clone(&keyring));
    if !keyring.is_empty() && keyring.newest().is_none() {
        return Err(Error::NotForThese { path, recipients: recipients_of(reader) });
    }
    Ok(())
}

fn recipients_of(reader: &Reader) -> String {
    reader.key_log().recipients().join(", ")
}

/// The index directory, decrypted where the volume is encrypted.
pub(crate) fn over(files: Box<dyn Files>, reader: &Reader) -> Box<dyn Files> {
    match reader.keyring() {
        Some(keyring) => Box::new(SealedFiles::new(files, Arc::clone(keyring), &[])),
        None => files,
    }
}

/// The file of an index as it was before it went into the ring; `None` where it cannot be opened.
pub(crate) fn open(parquet: Vec<u8>, reader: &Reader) -> Option<Vec<u8>> {
    match reader.keyring() {
        Some(keyring) => keyring.open(&parquet),
        None => Some(parquet),
    }
}
