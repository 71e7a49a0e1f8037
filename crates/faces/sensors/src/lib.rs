//! The sensors of a fleet over the network: `fleet`'s transport by `remote`'s client.
//!
//! Each question is asked in a thread of `fleet`, with a client of its own, which looks at the flag
//! of its attempt while it waits. What a service answers is checked where it is read (`remote`,
//! `session-view`, `fleet`); here its errors become what they mean for a sensor. Not here: flags,
//! and what is shown.

mod extracting;
mod fault;
mod finding;
mod network;
mod standings;

pub use extracting::Extracting;
pub use finding::Finding;
pub use network::Network;
pub use standings::{Standings, Stands};
