//! Encryption at rest.
//!
//! Packets and index are encrypted with *data keys*, which change each hour and with each opening
//! of a volume. A data key lies on the disk only *wrapped*: encrypted to the volume's *recipients*,
//! who are public keys. So a recorder that knows the recipients can write and cannot read its own
//! past; who has an *identity*, the private key of a recipient, can read all of it.
//!
//! Wrapped keys are files of age (age-encryption.org/v1). Bodies and files are sealed with
//! AES-256-GCM in chunks of 64 KiB, by a key that is derived from the data key, so that no pair of
//! key and nonce comes twice:
//!
//! | sealed | key derived by | nonce |
//! |---|---|---|
//! | body of a piece | epoch | sequence, sub, column, chunk |
//! | file of the index | hash of its content | chunk |
//!
//! Layout: docs/format.md, Encryption. Nothing here reads a clock, a file or a source of chance.

mod body;
mod credential;
mod file;
mod identity;
mod key;
mod keyring;
mod wrap;

pub use body::{BodyKey, CHUNK_BYTES, LEAD_BYTES, Place, TAIL_BYTES};
pub use credential::is_credential;
pub use file::{FILE_HEADER_BYTES, FileError, SealedFile, key_id_of, open_file, seal_file};
pub use identity::{AskPassphrase, Identities};
pub use key::{DataKey, KEY_BYTES};
pub use keyring::Keyring;
pub use wrap::{Recipients, WrapError};
