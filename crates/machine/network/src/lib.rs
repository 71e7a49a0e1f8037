//! Networks of this machine as its kernel tells of them and makes them, by netlink(7): namespaces
//! of our own, one for a program with a way out, pairs of interfaces, what packets go through and
//! what was counted there, and every TCP and UDP socket with its owner.
//!
//! Not here: packets, which `capture` takes in and sends. Nothing here decides.

mod enclosure;
mod error;
mod forwarding;
mod guard;
mod ipv6;
mod link;
mod links;
pub mod loopback;
mod namespace;
mod nat;
mod netlink;
pub mod nic;
pub mod paths;
mod route;
pub mod sockets;
#[doc(hidden)]
pub mod untrusted;

pub use enclosure::{Enclosure, Way};
pub use error::Error;
pub use link::{LinkCounters, interfaces, interfaces_up, link_counters, make_pair};
pub use links::{Link, LinkState, links};
pub use namespace::enter_namespace;
