//! Community ID v1 (corelight/community-id-spec).

use crate::FiveTuple;

/// A community id, seed 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommunityId(pub String);

impl CommunityId {
    /// The id of a session; `icmp` is type and code of its originator's first ICMP message. None without IP.
    pub fn of(_tuple: &FiveTuple, _icmp: Option<(u8, u8)>) -> Option<Self> {
        None
    }
}
