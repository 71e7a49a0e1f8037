//! Query to index, volume and pcapng out: find and extract.
//!
//! [`find`] shows the sessions that match a query, [`extract`] hands out their packets, [`packets`]
//! walks all packets of a volume without any index, and [`ClosedParts`] gives every session once to
//! who keeps them elsewhere. All of them only read: the volume is opened without a lock and may be
//! written meanwhile; only what is acknowledged is shown. The index directory is a cache, and does
//! without where it cannot be used.
//!
//! Stripes that no index covers, because of a crash, a running recorder or a recording without
//! index, are indexed from their packets on the way. What is missing from an answer, and why, is in
//! its [`Completeness`](completeness::Completeness).
//!
//! Invariants: no byte leaves that was not verified; damage ends a piece at its first bad row and
//! is reported; memory is bounded by the rows of segments that overlap in time, a few pieces, what
//! packets may take that wait for the order of time ([`MergeMemory`]), the sessions that are alive
//! at a time, and, where rows do not answer for them, some 200 bytes for each session that an
//! extract has.

mod ahead;
mod archive;
mod cache;
mod candidates;
mod choice;
mod closed;
mod due;
mod error;
mod extract;
mod find;
mod find_rows;
mod follow;
mod identity;
mod joiner;
mod kept;
mod keys;
mod known;
mod losses;
mod matching;
mod met;
mod needed;
mod newest;
mod order;
mod pace;
mod packet_reader;
mod packet_writer;
mod payload;
mod read_pieces;
mod rebuild;
mod recorder;
mod request;
mod row_reads;
mod salvage;
mod scan;
mod sessions;
mod sieve;
mod slots;
mod stopwatch;
mod tables;
mod walk;
mod wanted;

use core::time::Duration;
use encryption::Identities;
use indexer::Workers;
use packet_output::MergeMemory;
use std::path::PathBuf;

pub use anonymise::{AddressKeyError, Anonymiser};
pub use closed::{ClosedPart, ClosedParts, Lag, OpenSessions, PartReport};
pub use error::Error;
pub use evidence::{Hasher, Hashes};
pub use extract::{ExtractReport, extract};
pub use find::{FindReport, Sought, find, find_columns};
pub use find_rows::{RowEvent, find_rows};
pub use follow::follow;
pub use found::Explain;
pub use kept::{KeptRows, index_files, is_held, is_of_forgotten, kept_rows, names_of_forgotten};
pub use losses::{Loss, LossSums};
pub use met::NamesMet;
pub use needed::{Needed, needed};
pub use packet_writer::Progress;
pub use payload::{Pattern, PatternError};
pub use recorder::Recorder;
pub use request::{Request, SessionIds};
pub use salvage::{SalvageReport, Salvaging, Unopened, salvage};
pub use tables::{GapsReport, PieceRow, check, gaps, pieces};
pub use units::Times;
pub use volume::GivenUp;
pub use walk::{VolumePacket, WalkReport, packets, packets_from};

/// The volume and the index directory to read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Path of any member of the volume.
    pub volume: PathBuf,
    /// Where further members are, besides the places that the volume knows.
    pub members: Vec<PathBuf>,
    /// Where index files are cached; `None` is a directory for this volume under the user's cache.
    pub index_dir: Option<PathBuf>,
    /// Show rows whose packets are overwritten, as far back as this and as the index directory has
    /// them.
    pub keep_sessions: Option<Duration>,
    /// VLAN ids are part of a session's key where no index says whether they are.
    pub vlan_in_key: bool,
    /// Who starts the indexer, where packets are indexed on the way.
    pub workers: Workers,
    /// A recorder of the volume runs, and has just made durable what it had taken.
    pub is_recorded: bool,
    /// Who is asked once more, where it seems that a recorder has begun since.
    pub recorder: Recorder,
    /// Memory for the order of time.
    pub merge: MergeMemory,
    /// Private keys that open an encrypted volume.
    pub identities: Option<Identities>,
}
