//! One program's packets: whose each packet is, and the packets as pcapng with that in them.
//!
//! Packets come from a [`capture::Source`]; the sockets of the namespace say whose they are
//! ([`Belongings`]), and are read again whenever a packet belongs to no known process. Those of
//! processes that end at once are gone by then: of a namespace of our own the kernel says who sends
//! each packet ([`Senders`]), and of a process that runs already what sockets it and those that it
//! starts open ([`Family`]). A packet carries its process as a comment and as the option
//! `epb_processid_threadid`.
//!
//! Not here: namespaces ([`network`]) and programs ([`host`]); what is shown (`machine-view`).

mod belongings;
mod family;
mod held;
mod loopback;
mod names;
mod output;
mod resolver;
mod senders;
mod watch;

pub use network::sockets::Owner;

pub use belongings::{Belongings, Ends, Opened, Seen, Whose};
pub use family::Family;
pub use loopback::{loopback_services, refused_on_loopback};
pub use output::Output;
pub use resolver::Resolver;
pub use senders::{Senders, Sent};
pub use watch::{Error, Report, Share, Watch, watch};
