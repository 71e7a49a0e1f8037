//! A small certificate authority in a folder: certificates for services of sensors and for those
//! who ask them, short-lived, and the list of those that are revoked.
//!
//! What was issued is in a [`ledger`](Ledger): a line for each certificate. Private keys have mode
//! 600 and are never replaced: to renew a certificate makes a new one for the key that is there.
//! The list of revocations has an end of its own, and a service refuses everybody after it; so each
//! command that changes anything writes it anew. Time comes from the caller. Not here: flags.

mod error;
mod folder;
mod issue;
mod ledger;

pub use error::Error;
pub use folder::{Authority, Enrolled, Wanted};
pub use ledger::{Issued, Kind, Ledger};
