//! What a process gives up for good, so that an attacker who takes it over gets nowhere.
//!
//! Four mechanisms, each of which holds where another one is missing: capabilities are dropped,
//! with the bounding set, so that nothing gives them back; Landlock leaves the files that are
//! named; a seccomp filter leaves the system calls that are listed; limits leave no memory, no
//! files and no core dumps to spend. What the kernel lacks is a note, in plain words, and no
//! refusal: it costs protection and not packets.

mod capabilities;
mod decoder;
mod decoder_calls;
mod files;
mod filter;
mod indexer;
mod launcher;
mod launcher_calls;
mod query;
mod recorder;
mod rules;
mod service;
mod threads;

pub(crate) use decoder::Decoding;
pub use indexer::{IndexerLimits, confine_indexer};
pub(crate) use launcher::{EndedFirst, confine_launcher, hide_launcher};
pub use query::{QueryLimits, confine_query};
pub use recorder::{RecorderRights, confine_recorder, prevent_dumps};
pub use service::confine_service;

/// What a process cannot give up here, one line each; nothing where all is as it should be.
pub type Notes = Vec<String>;
