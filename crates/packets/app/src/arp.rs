//! ARP and RARP (RFC 826, RFC 903): which addresses are asked for and told. A session of ARP is a
//! pair of stations; whom it is about stands in its details.

use core::net::Ipv4Addr;

use wire::ArpHeader;

use crate::values::detail_of_many;
use crate::{Budget, Findings, Interest};

/// Addresses that are kept of a session's row: a station that looks for its whole /24 has them all.
const ADDRESS_COUNT_MAX: usize = 512;

/// Takes the addresses of a packet. More than 512 of a row are not kept.
pub fn arp(
    findings: &mut Findings,
    interest: &mut Interest,
    header: &ArpHeader,
    budget: &mut Budget,
) {
    let ends = [("arp.sender", header.sender), ("arp.target", header.target)];
    let is_full = findings.with(interest, budget, |search, _| {
        for (key, address) in ends.into_iter().filter(|(_, it)| *it != Ipv4Addr::UNSPECIFIED) {
            let address = address.to_string();
            detail_of_many(&mut search.names, key, address.as_bytes(), ADDRESS_COUNT_MAX);
        }
        search.names.app_detail.len() >= ADDRESS_COUNT_MAX
    });
    if is_full == Some(true) {
        *interest = interest.over();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn shown(targets: impl Iterator<Item = [u8; 4]>) -> (Vec<String>, Interest) {
        let mut budget = Budget::new(1 << 20, 1 << 20);
        let (mut findings, mut interest) = (Findings::default(), Interest::of(wire::Protocol::ARP));
        for target in targets {
            let header = ArpHeader { sender: [10, 0, 0, 1].into(), target: target.into() };
            if !interest.is_none() {
                arp(&mut findings, &mut interest, &header, &mut budget);
            }
        }
        let names = findings.take().expect("addresses were found");
        (names.unpack().app_detail, interest)
    }

    #[test]
    fn each_address_is_kept_once() {
        let (details, interest) = shown([[10, 0, 0, 2], [0, 0, 0, 0], [10, 0, 0, 2]].into_iter());
        assert_eq!(details, ["arp.sender=10.0.0.1", "arp.target=10.0.0.2"]);
        assert!(!interest.is_none());
    }

    #[test]
    fn who_asks_for_all_there_are_is_not_heard_any_more() {
        let (details, interest) = shown((0..3000_u16).map(|it| {
            let [high, low] = it.to_be_bytes();
            [10, 1, high, low]
        }));
        assert_eq!(details.len(), ADDRESS_COUNT_MAX);
        assert!(interest.is_none());
    }
}
