//! Community ID v1 (corelight/community-id-spec).

/// A community id, seed 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommunityId(pub String);
