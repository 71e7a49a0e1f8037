//! What a recorder did with numbered packets: the load that is offered, the judge of what came
//! back, and the search for the highest rate without loss.
//!
//! Every packet sent has a number in its last bytes ([`wire::stamp`]), so that each one that is
//! read out of a volume is compared, byte for byte, with the very packet that it claims to be. What
//! is missing is explained by the counters of interface, kernel and recorder, in this order of the
//! way; what they do not explain is named, too.
//!
//! Invariant, asserted in every account: offered = stored + altered + interface drops + kernel
//! drops + writer drops + unexplained.
//!
//! Pure: sending, recording and reading are the caller's.

mod account;
mod judge;
mod load;
mod report;
mod search;
mod trial;

pub use account::{Account, Drops};
pub use judge::{Finding, Judge, Judged};
pub use load::{Load, LoadError, Sizes};
pub use report::{ReportError, parse_recording};
pub use search::{Limit, Search, Seen};
pub use trial::{Ask, Found, Recorder, Sent, Trial, Verdict};
