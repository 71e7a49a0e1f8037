//! A store that is a folder.

use std::path::Path;

use host::ObjectFolder;

use crate::store::{Listed, Store, StoreError};

/// Objects as files of a folder: each appears by a rename, once it is durable.
#[derive(Clone, Debug)]
pub struct FolderStore {
    url: String,
    objects: ObjectFolder,
}

impl FolderStore {
    /// At this path, which is made when the first object is stored.
    pub fn new(path: &Path) -> Self {
        let url = format!("file://{}", page::safe::path(path));
        Self { url, objects: ObjectFolder::new(path) }
    }

    fn failed(&self, error: &host::Error) -> StoreError {
        use core::error::Error as _;
        let source = error.source().map_or_else(String::new, |source| format!(": {source}"));
        let why = page::safe::printable(&format!("{error}{source}"));
        let io = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
        let is_refusal = io.is_none_or(|io| {
            use std::io::ErrorKind;
            let kinds = [
                ErrorKind::PermissionDenied,
                ErrorKind::ReadOnlyFilesystem,
                ErrorKind::NotADirectory,
                ErrorKind::InvalidFilename,
            ];
            kinds.contains(&io.kind())
        });
        let url = self.url.clone();
        if is_refusal {
            StoreError::Refused { url, why }
        } else {
            // A full or failing disk, a network file system that is away.
            StoreError::Away { url, why }
        }
    }
}

impl Store for FolderStore {
    fn url(&self) -> &str {
        &self.url
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.objects.put(name, bytes).map_err(|error| self.failed(&error))
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        self.objects.put_new(name, bytes).map_err(|error| self.failed(&error))
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.objects.get(name).map_err(|error| self.failed(&error))
    }

    fn list(
        &self,
        folder: &str,
        after: Option<&str>,
        visit: &mut dyn FnMut(Listed),
    ) -> Result<(), StoreError> {
        let mut visit = |object: host::ObjectFile| {
            if after.is_none_or(|after| object.name.as_str() > after) {
                visit(Listed { name: object.name, bytes: object.bytes });
            }
        };
        self.objects.list(folder, &mut visit).map_err(|error| self.failed(&error))
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.objects.delete(name).map_err(|error| self.failed(&error))
    }
}
