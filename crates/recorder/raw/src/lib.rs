//! Raw extracts: what an encrypted volume holds of some times, as it lies on the members, in one
//! file that is opened on another machine with a private key.
//!
//! [`copy`] needs no key. It reads what an extract of these times reads, superblocks, wrapped keys,
//! heads, index and packets, and puts down each byte with its place. [`restore`] makes members of
//! that again, full of holes: a volume that answers for these times as the original did, to
//! everything that reads volumes, and says which pieces it holds. Layout: docs/format.md, Raw
//! extract.
//!
//! Not here: keys, queries, manifests.

mod copy;
mod error;
mod form;
mod noted;
mod restore;

pub use copy::{Copied, Copying, copy};
pub use error::Error;
pub use restore::{Restored, Then, restore};
