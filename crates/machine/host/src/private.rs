//! Files of which only their owner may know: keys.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::geteuid;

use crate::Error;
use crate::user::calling_user;

/// More than any key has.
const KEY_BYTES_MAX: u64 = 64 << 10;

/// Reads a key. Of a file that others may read or change it is refused; pipes are as good as who
/// made them.
pub fn read_key(path: &Path) -> Result<String, Error> {
    let fail = |error| Error::path("read", path, error);
    let file = File::open(path).map_err(fail)?;
    let found = file.metadata().map_err(fail)?;
    if found.is_file() {
        let owner = found.uid();
        if owner != 0 && owner != geteuid().as_raw() && Some(owner) != calling_user() {
            return Err(Error::ForeignKey { path: path.to_path_buf() });
        }
        let mode = found.mode() & 0o777;
        if mode & 0o066 != 0 {
            return Err(Error::ReadableKey { path: path.to_path_buf(), mode });
        }
    }
    let mut text = String::new();
    file.take(KEY_BYTES_MAX).read_to_string(&mut text).map_err(fail)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt as _, chown};

    #[test]
    fn a_key_that_others_may_read_or_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write(&path, "secret").unwrap();
        for (mode, is_kept) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)]
            .into_iter()
            .chain([(0o620, false), (0o602, false), (0o700, true)])
        {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let read = read_key(&path);
            assert_eq!(read.is_ok(), is_kept, "{mode:o}");
            if let Err(error) = read {
                let error = error.to_string();
                assert!(error.contains("others may read") && !error.contains('\n'), "{error}");
            }
        }
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        if geteuid().is_root() {
            chown(&path, Some(12_345), None).unwrap();
            assert!(matches!(read_key(&path), Err(Error::ForeignKey { .. })));
        } else {
            println!("not run: needs root to give a key to another user");
        }
    }
}
