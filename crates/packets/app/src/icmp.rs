//! Which kinds of messages an ICMP session has besides its first. To tools that know sessions by
//! community id each of them is a session of its own.

use wire::IcmpHeader;

use crate::values::detail_of_many;
use crate::{Budget, Findings, Interest, Side};

/// Kinds that are kept of a session: all that are assigned, in both directions.
const KIND_COUNT_MAX: usize = 128;

/// Takes type and code of a message that is not of the first one's kind: `icmp.orig=3/1` or
/// `icmp.resp=3/1`, by who sent it. False where the session has too many kinds to keep this one;
/// what the budget refuses is counted there.
pub fn icmp(
    findings: &mut Findings,
    interest: &mut Interest,
    (side, header): (Side, IcmpHeader),
    budget: &mut Budget,
) -> bool {
    let is_kept = findings.with(interest, budget, |search, _| {
        let key = if side == Side::Orig { "icmp.orig" } else { "icmp.resp" };
        let kind = format!("{}/{}", header.kind, header.code);
        detail_of_many(&mut search.names, key, kind.as_bytes(), KIND_COUNT_MAX);
        let kinds = search.names.app_detail.iter().filter_map(|it| it.split_once('='));
        kinds.into_iter().any(|kept| kept == (key, kind.as_str()))
    });
    findings.rest(interest, budget);
    is_kept != Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_finds_no_place_is_said() {
        let mut budget = Budget::new(1 << 20, 1 << 20);
        let (mut findings, mut interest) =
            (Findings::default(), Interest::of(wire::Protocol::ICMP));
        let mut is_kept = |kind, code| {
            let message = (Side::Orig, IcmpHeader { kind, code });
            icmp(&mut findings, &mut interest, message, &mut budget)
        };
        assert!((0..128).all(|code| is_kept(3, code)));
        assert!(is_kept(3, 127) && !is_kept(3, 128) && !is_kept(4, 0));
        assert_eq!(findings.take().map(|names| names.unpack().app_detail.len()), Some(128));
    }
}
