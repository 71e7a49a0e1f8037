//! Sessions of closed segments as Parquet in a store of objects, for engines that ask many sensors
//! at once. Guide: docs/archive.md.
//!
//! [`archive()`] reads a volume part by part and stores each session once, when it is over, in
//! objects that are named by the part; behind them it stores a manifest, and with that the part is
//! archived. All state is in the store, so a run may be killed at any time and another one goes on.
//! [`verify()`] compares what lies there with the manifests, [`compact()`] merges small objects.
//!
//! Not here: which sessions there are (`extract`), what their fields are (`session-view`), and
//! flags. The one wait for a network is in the store's adapter.

mod address;
mod compact;
mod error;
mod event;
mod folder;
mod job;
mod lease;
mod manifest;
mod manners;
mod memory;
mod names;
mod open_sessions;
mod part;
mod remembered;
mod resume;
#[cfg(feature = "s3")]
mod s3;
mod settled;
mod source;
mod store;
mod table;
mod uploader;
mod verify;
mod words;

pub use address::{Address, AddressError, open};
pub use compact::{CompactReport, compact, groups, hour_to_merge};
pub use error::Error;
pub use event::{Behind, Event, Report};
pub use folder::FolderStore;
pub use job::{Options, archive};
pub use lease::Claim;
pub use manifest::{ManifestError, Object};
pub use manners::{LOOK_NS, Manners, Patience, Throttle, rest_after};
pub use memory::{Death, MemoryStore};
pub use names::{NoSensor, Sensor, Table, Unit};
pub use open_sessions::OpenError;
pub use remembered::Remembered;
pub use resume::Memory;
pub use source::{Bounds, Source, VolumeSource};
pub use store::{Access, Listed, Store, StoreError};
pub use table::{SCHEMA_VERSION, SessionColumn, loss_columns, session_schema};
pub use uploader::Uploader;
pub use verify::{Finding, FindingKind, VerifyReport, verify};
pub use words::{
    archived, archived_json, compacted, compacted_json, event_text, verified, verified_json,
};
