//! This program under other names.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::Error;

/// Folders in which Wireshark looks for extcap programs, the one for all users first, where this
/// user may write to it or not.
pub fn wireshark_folders() -> Vec<PathBuf> {
    let libraries = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"];
    let system = libraries.iter().chain(&["/usr/lib"]).map(|path| {
        let folder = Path::new(path).join("wireshark");
        folder.is_dir().then(|| folder.join("extcap"))
    });
    // Of one user, from Wireshark 4.2 on.
    let home = env::var_os("HOME").map(PathBuf::from);
    let own = home.map(|home| home.join(".local/lib/wireshark/extcap"));
    system.flatten().chain(own).collect()
}

/// It is one of those.
pub fn is_wireshark_folder(folder: &Path) -> bool {
    let resolved = |path: &Path| fs::canonicalize(path).ok();
    let folder = resolved(folder);
    folder.is_some() && wireshark_folders().iter().any(|known| resolved(known) == folder)
}

/// Puts a link to this program into a folder, which is made if need be; one that is there is
/// replaced, another file is not. Gives its path.
pub fn install_link(folder: &Path, name: &str) -> Result<PathBuf, Error> {
    let link = folder.join(name);
    let fail = |error| Error::path("create", &link, error);
    let program = env::current_exe().map_err(fail)?;
    fs::create_dir_all(folder).map_err(fail)?;
    if fs::symlink_metadata(&link).is_ok_and(|found| found.is_symlink()) {
        fs::remove_file(&link).map_err(fail)?;
    }
    symlink(&program, &link).map_err(fail)?;
    Ok(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_made_and_made_anew_but_no_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        for _ in 0..2 {
            let link = install_link(&inner, "name").unwrap();
            assert_eq!(fs::read_link(&link).unwrap(), env::current_exe().unwrap());
        }
        fs::write(inner.join("other"), "file").unwrap();
        assert!(install_link(&inner, "other").is_err());
        assert_eq!(fs::read(inner.join("other")).unwrap(), b"file");
    }
}
