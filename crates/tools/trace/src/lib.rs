//! One program's packets: whose each packet is, and the packets as pcapng with that in them.
//!
//! Packets come from a [`capture::Source`]; whose they are is told by the sockets of the namespace
//! ([`Belongings`]), which are looked at again whenever a packet comes that nobody is known to
//! have. A packet carries its process as a comment and as the option `epb_processid_threadid`.
//!
//! Not here: namespaces and programs ([`host`]); what is shown (`machine-view`).

mod belongings;
mod output;
mod watch;

pub use host::sockets::Owner;

pub use belongings::{Belongings, Seen};
pub use output::Output;
pub use watch::{Error, Report, Share, Watch, watch};
