//! Which kinds of messages an ICMP session has besides its first. To tools that know sessions by
//! community id each of them is a session of its own.

use wire::IcmpHeader;

use crate::values::detail;
use crate::{Budget, Findings, Interest, Side};

/// Takes type and code of a message that is not of the first one's kind: `icmp.orig=3/1` or
/// `icmp.resp=3/1`, by who sent it.
pub fn icmp(
    findings: &mut Findings,
    interest: &mut Interest,
    (side, header): (Side, IcmpHeader),
    budget: &mut Budget,
) {
    findings.with(interest, budget, |search, _| {
        let key = if side == Side::Orig { "icmp.orig" } else { "icmp.resp" };
        let kind = format!("{}/{}", header.kind, header.code);
        detail(&mut search.names, key, kind.as_bytes());
    });
    findings.rest(interest, budget);
}
