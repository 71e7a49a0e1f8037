//! From packets to sessions: a pure state machine from decoded packets to [`SessionRow`] rows.
//!
//! [`Table`] keeps one record per live session and writes a row when a session ends, when a slice
//! of its life has passed, and at every segment boundary ([`Table::cut`]). Every packet is counted
//! in exactly one row. Time comes only from the packets: there is no clock, no I/O, no thread here,
//! and the same packets in the same order give the same rows whatever the seed.
//!
//! Timeouts, where time may run backwards: a packet later than its session's latest one by more
//! than the timeout begins a new session; an earlier packet never does. Sessions whose timeout has
//! passed by the latest packet of *any* session are written out soon after, so among packets out of
//! order by more than a timeout a session may be split; with timeouts off only a SYN with another
//! initial sequence number splits one.
//!
//! The caller gives packets piece by piece; the blocks of one piece ascend.

mod config;
mod key;
mod look;
mod lookup;
mod packet;
mod pieces;
mod reassembly;
mod record;
mod resume;
mod seen;
mod siphash;
mod table;
mod tcp;
mod wheel;

pub use config::Config;
pub use format::session_row::SessionRow;
pub use key::{Key, Keyer};
pub use packet::PacketView;
pub use resume::Before;
pub use table::{Live, Stats, Table};
