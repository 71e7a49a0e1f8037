//! Requests for extracts that somebody else has to approve, as a service keeps them: a file with a
//! line of JSON for each, with who asked, who approved, and how it ended.
//!
//! A request never changes: its id is the BLAKE3 of what was asked, so that an approval is of that
//! and of nothing else, and a line that was changed in the file is found out when it is read. The
//! file is private, bounded, and changed as a whole, and of two changes at the same time the second
//! one sees the first. Called by `server`; not here: who may do what, and the extract itself.

mod kept;
mod party;
mod request;
mod shown;
mod store;

pub use kept::{Kept, Over, OverBy, Refused, State};
pub use party::{Party, PartyKind};
pub use request::{Approval, Asked};
pub use shown::Shown;
pub use store::{Error, Listed, Requests, Wanted};
