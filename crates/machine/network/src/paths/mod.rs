//! What packets of a network namespace go through: interfaces with their addresses, queueing
//! disciplines, neighbours, and the connection table of netfilter. By `rtnetlink(7)`, `/proc` and
//! `SIOCETHTOOL`.

mod conntrack;
mod links;
mod mode;
mod monitor;
mod neighbours;
mod queues;

pub use conntrack::Conntrack;
pub use links::{LinkLook, LinkTotals};
pub use mode::{Duplex, LinkMode, link_mode};
pub use monitor::Monitor;
pub use neighbours::{LinkAddress, Neighbour, NeighbourState};
pub use queues::{Queue, QueuePlace};

/// What the namespace had at one moment. What the kernel does not list is not there.
#[derive(Clone, Debug, Default)]
pub struct PathLook {
    /// Its interfaces.
    pub links: Vec<LinkLook>,
    /// Its queueing disciplines.
    pub queues: Vec<Queue>,
    /// The neighbours that it knows or asks for.
    pub neighbours: Vec<Neighbour>,
    /// Its connection table; `None` without connection tracking.
    pub conntrack: Option<Conntrack>,
}

impl PathLook {
    /// Of the namespace that this thread is in.
    pub(crate) fn now() -> Self {
        Self {
            links: links::all().unwrap_or_default(),
            queues: queues::all().unwrap_or_default(),
            neighbours: neighbours::all().unwrap_or_default(),
            conntrack: conntrack::now(),
        }
    }
}

/// For tests that give any bytes: the body of a message of `rtnetlink(7)`.
pub(crate) fn read_any_message(body: &[u8]) -> usize {
    usize::from(links::link(body).is_some())
        + usize::from(links::address(body).is_some())
        + usize::from(queues::queue(body).is_some())
        + usize::from(neighbours::neighbour(body).is_some())
}

/// For tests that give any text: that of `/proc/net/stat/nf_conntrack`.
pub(crate) fn read_any_counts(text: &str) -> usize {
    conntrack::counts(text).len()
}
