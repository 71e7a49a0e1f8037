//! What ends a session and what bounds the table.

use units::NANOS_PER_SECOND;
use wire::Protocol;

use crate::pieces;

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
    /// Bytes for sessions that have rows already and of which no packet has come: half as many as
    /// for names.
    pub(crate) fn resumed_bytes_max(&self) -> usize {
        self.names_bytes_max / 2
    }

    /// Longest silence of a session that speaks `proto`, of a connection that is over, too; `None`
    /// where it is off.
    pub fn timeout_ns(&self, proto: Protocol, is_over: bool) -> Option<i64> {
        match proto {
            Protocol::TCP if is_over => {
                self.tcp_timeout_ns.map(|timeout| timeout.min(self.tcp_linger_ns))
            }
            Protocol::TCP => self.tcp_timeout_ns,
            Protocol::UDP => self.udp_timeout_ns,
            Protocol::ICMP | Protocol::ICMPV6 => self.icmp_timeout_ns,
            _ => self.other_timeout_ns,
        }
    }

    /// What its limits are for lists of pieces.
    pub(crate) fn piece_bounds(&self) -> pieces::Bounds {
        pieces::Bounds::new(self.piece_bytes_max, self.session_count_max)
    }
}
