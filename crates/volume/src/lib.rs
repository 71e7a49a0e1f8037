//! The ring of stripes over member devices: create, mount, append, acknowledge, read, verify.
//!
//! [`create`] writes the superblocks, [`mount`] recovers the ring and opens it for writing,
//! [`Writer`] appends stripes and acknowledges them in order, [`Reader`] shows what is acknowledged
//! and verifies every byte, [`verify`] reads everything. The bytes are `format`'s, the I/O is
//! `device`'s; time and randomness come in as arguments, so the simulator runs this code.
//!
//! Invariants: a sequence is never used twice; a stripe is acknowledged only after a flush that
//! began when its write had completed; nothing acknowledged is ever written over before the ring
//! comes round; a mount that writes nothing changes no byte. A volume of one member without parity
//! for the time being: further members add pieces to the same stripes.

mod ahead;
mod create;
mod error;
mod heads;
mod index_stripes;
mod mount;
mod protect;
mod reader;
mod search;
mod superblocks;
mod verify;
mod writer;

pub use create::{CreateOptions, Identity, create, geometry_for};
pub use error::Error;
pub use heads::{Heads, Slot, StripeInSlot};
pub use index_stripes::IndexFile;
pub use mount::{Recovery, mount};
pub use protect::{ColumnSums, protect};
pub use reader::{Reader, Span};
pub use search::Newest;
pub use verify::{Damage, VerifyReport, verify};
pub use writer::{Appended, Filled, Plan, Writer, WriterCounters};
