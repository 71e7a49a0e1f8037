//! What every session that fits a query has.

use core::net::IpAddr;

/// Something that a session has.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Required {
    /// This host as originator or responder.
    Host(IpAddr),
    /// This name, in lower case, as SNI, HTTP Host or DNS name asked for.
    Name(String),
    /// This value in the field of payload with this name: texts in lower case, numbers in decimal
    /// digits.
    Value(&'static str, String),
    /// This community id.
    CommunityId(String),
    /// This session id.
    SessionId(String),
    /// A port from the first to the last one as originator's or responder's.
    Ports(u16, u16),
    /// At least so much in the sum of these stored columns, where it has one row.
    Sum(&'static [&'static str], u64),
}
