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

mod key;
mod look;
mod lookup;
mod pieces;
mod reassembly;
mod record;
mod seen;
mod siphash;
mod table;
mod tcp;
mod wheel;

use format::session_row::PieceId;
use units::{NANOS_PER_SECOND, Timestamp};
use wire::LinkType;

pub use format::session_row::SessionRow;
pub use key::{Key, Keyer};
pub use table::{Stats, Table};

/// One packet as the table sees it.
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'a> {
    /// When it was captured.
    pub timestamp: Timestamp,
    /// The interface it came from.
    pub interface: u32,
    /// The meaning of its first byte.
    pub link_type: LinkType,
    /// Bytes on the wire.
    pub original_len: u32,
    /// Bytes captured.
    pub data: &'a [u8],
    /// The piece it lies in.
    pub piece: PieceId,
    /// First byte of its block in the piece's body.
    pub begin: u32,
    /// End of its block.
    pub end: u32,
}

impl PacketView<'_> {
    /// Fills places that no packet has been put into yet.
    const NOTHING: Self = Self {
        timestamp: Timestamp(0),
        interface: 0,
        link_type: LinkType::ETHERNET,
        original_len: 0,
        data: &[],
        piece: PieceId { sequence: 0, sub: 0, column: 0 },
        begin: 0,
        end: 0,
    };
}

/// What ends a session and what bounds the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Longest silence of a TCP session; off when `None`.
    pub tcp_timeout_ns: Option<i64>,
    /// Longest silence of a TCP session that was reset or closed from both sides; applies where
    /// `tcp_timeout_ns` does.
    pub tcp_linger_ns: i64,
    /// Longest silence of a UDP session; off when `None`.
    pub udp_timeout_ns: Option<i64>,
    /// Longest silence between two ICMP or `ICMPv6` ends; off when `None`.
    pub icmp_timeout_ns: Option<i64>,
    /// Longest silence of anything else; off when `None`.
    pub other_timeout_ns: Option<i64>,
    /// A session that lives longer than this has a row for each such stretch; one row in all when
    /// `None`.
    pub slice_ns: Option<i64>,
    /// VLAN ids are part of a session's key.
    pub vlan_in_key: bool,
    /// Sessions kept at a time; at least 1. When full, the idlest one's row is written early.
    pub session_count_max: usize,
    /// Bytes of payload held back, over all sessions, while names are put together from several
    /// segments and datagrams, or early ones wait for those before them.
    pub head_bytes_max: usize,
    /// Bytes for names of live sessions, and for what it takes to find them. Less than
    /// [`app::SEARCH_BYTES_MAX`], and there are no names.
    pub names_bytes_max: usize,
    /// Bytes for the lists of pieces that hold the packets of open rows; each session has space for
    /// one piece, whatever this is.
    pub piece_bytes_max: usize,
}

/// Zeek's inactivity timeouts and close delay; rows of 60 s.
impl Default for Config {
    fn default() -> Self {
        Self {
            tcp_timeout_ns: Some(5 * 60 * NANOS_PER_SECOND),
            tcp_linger_ns: 5 * NANOS_PER_SECOND,
            udp_timeout_ns: Some(60 * NANOS_PER_SECOND),
            icmp_timeout_ns: Some(60 * NANOS_PER_SECOND),
            other_timeout_ns: Some(60 * NANOS_PER_SECOND),
            slice_ns: Some(60 * NANOS_PER_SECOND),
            vlan_in_key: false,
            session_count_max: 1 << 20,
            head_bytes_max: 64 << 20,
            names_bytes_max: 256 << 20,
            piece_bytes_max: 128 << 20,
        }
    }
}

impl Config {
    /// Bytes of memory that a [`Table`] takes at most, as requested of the allocator, whatever the
    /// packets are; rows that it has handed out are the caller's.
    ///
    /// What the limits cost: where there are too many sessions the idlest one's row is written
    /// early ([`Stats::evicted`]); a message whose parts have no space is not put together
    /// ([`Stats::heads_refused`]), nor is a datagram in fragments; where there is no space for more
    /// names those that are known stay and payloads are not looked at ([`Stats::names_refused`]);
    /// where lists of pieces have no space rows are written early ([`Stats::crowded`]).
    pub fn memory_bytes_max(&self) -> usize {
        let names = self.names_bytes_max;
        let pieces = self.piece_bounds().memory_bytes_max(self.session_count_max);
        table::memory_bytes_max(self) + self.head_bytes_max + names + pieces
    }

    fn piece_bounds(&self) -> pieces::Bounds {
        pieces::Bounds::new(self.piece_bytes_max, self.session_count_max)
    }
}
