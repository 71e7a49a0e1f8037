//! What an extract was made of and from, as a text that can be checked later.
//!
//! [`Manifest`] is what the job says; [`parse_manifest`] reads of its text what has to be compared
//! with files, [`parse_hold`] what a hold is shown by, and [`verify_extract`] compares a file.
//!
//! Called by `extract`, which makes manifests, and by whoever checks them. Not here: who made one
//! (`session-view`), seals and signatures (`evidence`).

mod asked;
mod hold;
mod manifest;
mod text;
mod verify;

pub use asked::{Asked, Limits, NamedEscrow};
pub use evidence::CaseInfo;
pub use hold::{Altered, HoldSummary, parse_hold};
pub use manifest::{Manifest, PieceRead};
pub use text::{MANIFEST_VERSION, ManifestError, ReadManifest, parse_manifest};
pub use verify::{VerifyExtractError, verify_extract};
