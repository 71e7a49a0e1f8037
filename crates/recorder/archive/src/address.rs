//! Where an archive lies, as users write it.

use core::fmt;
use std::path::PathBuf;

use crate::folder::FolderStore;
use crate::store::{Access, Store, StoreError};

/// Where an archive lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// In a folder.
    Folder(PathBuf),
    /// In a bucket of an S3-compatible store, below a prefix.
    Bucket {
        /// Name of the bucket.
        bucket: String,
        /// Without slashes at its ends; may be empty.
        prefix: String,
    },
}

/// The text is no address of an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressError(&'static str);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for AddressError {}

const FORMS: AddressError =
    AddressError("write file:///FOLDER or s3://BUCKET/PREFIX, such as file:///data/archive");
const BUCKET: AddressError = AddressError(
    "a bucket has a name of 3 to 63 lower-case letters, digits, '.' and '-': s3://BUCKET/PREFIX",
);
const PREFIX: AddressError = AddressError(
    "a prefix has names with slashes between them, and none of '.', '..' and control characters",
);

impl core::str::FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("file://") {
            return if path.starts_with('/') { Ok(Self::Folder(path.into())) } else { Err(FORMS) };
        }
        let rest = text.strip_prefix("s3://").ok_or(FORMS)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
        if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(is_plain) {
            return Err(BUCKET);
        }
        let prefix = prefix.trim_matches('/');
        let is_name = |name: &str| {
            !matches!(name, "" | "." | "..") && !name.contains(|letter: char| letter.is_control())
        };
        if !prefix.is_empty() && !prefix.split('/').all(is_name) {
            return Err(PREFIX);
        }
        Ok(Self::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

/// Opens the store of an archive.
pub fn open(address: &Address, access: &Access) -> Result<Box<dyn Store>, StoreError> {
    match address {
        Address::Folder(path) => Ok(Box::new(FolderStore::new(path))),
        #[cfg(feature = "s3")]
        Address::Bucket { bucket, prefix } => {
            Ok(Box::new(crate::s3::BucketStore::open((bucket, prefix), access)?))
        }
        #[cfg(not(feature = "s3"))]
        Address::Bucket { bucket, .. } => {
            let Access { .. } = access;
            let why = "this build has no client of S3; the packages have it, and `cargo build \
                       --release -p wirespool --features s3` builds it";
            Err(StoreError::Refused { url: format!("s3://{bucket}"), why: why.to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_folder_or_a_bucket() {
        let bucket = |bucket: &str, prefix: &str| {
            Ok(Address::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
        };
        for (text, expected) in [
            ("file:///data/archive", Ok(Address::Folder("/data/archive".into()))),
            ("file:///", Ok(Address::Folder("/".into()))),
            ("s3://sensors", bucket("sensors", "")),
            ("s3://sensors/a/b/", bucket("sensors", "a/b")),
            ("s3://sensors/a//b", Err(PREFIX)),
            ("s3://sensors/../b", Err(PREFIX)),
            ("s3://Sensors/a", Err(BUCKET)),
            ("s3://ab", Err(BUCKET)),
            ("file://relative", Err(FORMS)),
            ("/data/archive", Err(FORMS)),
            ("https://x/y", Err(FORMS)),
        ] {
            assert_eq!(text.parse::<Address>(), expected, "{text}");
        }
    }
}
