//! Statements and what lies beside them: the files of a manifest or an anchor are written and read
//! here, volumes are compared with anchors and witness files, and extracts with their
//! manifests, anchors and escrows.
//!
//! What the bytes mean is `evidence`'s; what a volume holds, `upkeep` says. Called by the binary,
//! which prints.

mod anchoring;
mod error;
mod escrow;
mod extracted;
mod files;
mod receipt;
mod statement;

pub use anchoring::{Against, Anchoring, Compared, Made, compare, make_anchor};
pub use error::Error;
pub use escrow::doubt_of_escrow;
pub use extracted::{ExtractChecked, ExtractToCheck, check_extract};
pub use files::{read_trust, signing_key, with_suffix};
pub use receipt::check_receipt;
pub use statement::{Statement, Wanted};
