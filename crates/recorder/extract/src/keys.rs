//! Opening encrypted volumes.

use std::sync::Arc;

use encryption::Keyring;
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
