//! Who talks: packets of an interface, a file or a volume, added up by second.
//!
//! [`Talkers`] takes batches of a [`capture::Source`] in. Every second of the packets' own time it
//! has the session table of a recorder write its rows, and keeps who had how much; from these
//! seconds come the rates over 2, 10 and 40 seconds that end at any moment still held, by session,
//! pair, host, port or protocol ([`Grouping`]), as far as a query selects them. Messages of DNS are
//! read one by one: who asks whom for what, how long the answer takes, and what fails.
//!
//! The packets of the last while are kept, too, so that those of a session can be handed out
//! ([`Talkers::packets`]). Everything is bounded: [`Limits`]. Time comes from the packets, or from
//! the caller where there are none.

mod dns;
mod exchange;
mod history;
mod known;
mod memory;
mod names;
mod sums;
mod talkers;

pub use dns::{Asked, DnsGrouping, DnsKey};
pub use history::{Moment, WINDOWS};
pub use sums::{Grouping, Sums, Talker, Who};
pub use talkers::{Held, Limits, Talkers};
