//! Community ID v1 (corelight/community-id-spec).

use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

use crate::{Address, FiveTuple, Protocol};

/// A community id, seed 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommunityId(pub String);

impl CommunityId {
    /// The id of a session; `icmp` is type and code of its originator's first ICMP message, `orig`
    /// the sender of it. None without IP.
    pub fn of(tuple: &FiveTuple, icmp: Option<(u8, u8)>) -> Option<Self> {
        let mut source = octets(&tuple.orig)?;
        let mut destination = octets(&tuple.resp)?;
        let protocol = u8::try_from(tuple.proto.0).ok()?;
        if source.len() != destination.len() {
            return None;
        }
        let (mut ports, one_way) = match (tuple.proto, icmp) {
            (Protocol::TCP | Protocol::UDP | Protocol::SCTP, _) => {
                (Some((tuple.orig_port, tuple.resp_port)), false)
            }
            (Protocol::ICMP | Protocol::ICMPV6, Some(icmp)) => icmp_ports(tuple.proto, icmp),
            _ => (None, false),
        };
        let (orig_port, resp_port) = ports.unwrap_or_default();
        if !one_way && (&source, orig_port) > (&destination, resp_port) {
            core::mem::swap(&mut source, &mut destination);
            ports = ports.map(|(orig, resp)| (resp, orig));
        }

        let mut hash = Sha1::new();
        hash.update([0, 0]);
        hash.update(&source);
        hash.update(&destination);
        hash.update([protocol, 0]);
        if let Some((orig, resp)) = ports {
            hash.update(orig.to_be_bytes());
            hash.update(resp.to_be_bytes());
        }
        Some(Self(format!("1:{}", STANDARD.encode(hash.finalize()))))
    }
}

/// Whether an ICMP message belongs to the id that `first` gives, type and code of the session's
/// first message; `is_answer` says that it goes the other way.
pub fn is_of_first_icmp(
    proto: Protocol,
    first: (u8, u8),
    (is_answer, kind, code): (bool, u8, u8),
) -> bool {
    match (is_answer, counterpart(proto, first.0)) {
        (false, Some(_)) => kind == first.0,
        (false, None) => (kind, code) == first,
        (true, answer) => answer == Some(kind),
    }
}

impl fmt::Display for CommunityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn octets(address: &Address) -> Option<Vec<u8>> {
    match address {
        Address::V4(ip) => Some(ip.octets().to_vec()),
        Address::V6(ip) => Some(ip.octets().to_vec()),
        Address::None | Address::Mac(_) => None,
    }
}

/// ICMP's place for ports: the types of the two directions, or type and code of a message that has
/// no answer. The flag says that it has none; its direction is then part of the id.
fn icmp_ports(proto: Protocol, (kind, code): (u8, u8)) -> (Option<(u16, u16)>, bool) {
    let answer = counterpart(proto, kind);
    (Some((kind.into(), answer.unwrap_or(code).into())), answer.is_none())
}

/// The type of the other direction, of ICMP or `ICMPv6`.
fn counterpart(proto: Protocol, kind: u8) -> Option<u8> {
    if proto == Protocol::ICMP { counterpart_v4(kind) } else { counterpart_v6(kind) }
}

/// Echo, router, timestamp, information and mask: a request's type and its answer's.
fn counterpart_v4(kind: u8) -> Option<u8> {
    Some(match kind {
        0 => 8,
        8 => 0,
        9 => 10,
        10 => 9,
        13 => 14,
        14 => 13,
        15 => 16,
        16 => 15,
        17 => 18,
        18 => 17,
        _ => return None,
    })
}

/// Echo, listener, router, neighbour, node information and home agent discovery.
fn counterpart_v6(kind: u8) -> Option<u8> {
    Some(match kind {
        128 => 129,
        129 => 128,
        130 => 131,
        131 => 130,
        133 => 134,
        134 => 133,
        135 => 136,
        136 => 135,
        139 => 140,
        140 => 139,
        144 => 145,
        145 => 144,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::IpAddr;

    /// Vectors published with the specification and its reference implementation, seed 0.
    #[test]
    fn the_published_vectors_hold() {
        fn check(proto: Protocol, from: (&str, u16), to: (&str, u16), expect: &str) {
            let address = |text: &str| Address::from(text.parse::<IpAddr>().unwrap());
            let is_icmp = matches!(proto, Protocol::ICMP | Protocol::ICMPV6);
            let byte = |value: u16| u8::try_from(value).unwrap();
            let icmp = is_icmp.then(|| (byte(from.1), byte(to.1)));
            let (orig, resp) = (address(from.0), address(to.0));
            let (orig_port, resp_port) = if is_icmp { (0, 0) } else { (from.1, to.1) };
            let tuple = FiveTuple { orig, resp, orig_port, resp_port, proto };
            assert_eq!(CommunityId::of(&tuple, icmp).unwrap().to_string(), expect);
        }
        let (tcp, udp, icmp) = (Protocol::TCP, Protocol::UDP, Protocol::ICMP);
        let (client, server) = (("128.232.110.120", 34855), ("66.35.250.204", 80));
        check(tcp, client, server, "1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
        check(tcp, server, client, "1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
        let (client, server) = (("192.168.1.52", 54585), ("8.8.8.8", 53));
        check(udp, client, server, "1:d/FP5EW3wiY1vCndhwleRRKHowQ=");
        check(udp, server, client, "1:d/FP5EW3wiY1vCndhwleRRKHowQ=");
        let (client, server) = (("192.168.170.8", 7), ("192.168.170.56", 80));
        check(Protocol::SCTP, client, server, "1:jQgCxbku+pNGw8WPbEc/TS/uTpQ=");
        check(icmp, ("192.168.0.89", 8), ("192.168.0.1", 0), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk=");
        check(icmp, ("192.168.0.1", 0), ("192.168.0.89", 0), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk=");
        check(icmp, ("192.168.0.89", 20), ("192.168.0.1", 0), "1:3o2RFccXzUgjl7zDpqmY7yJi8rI=");
        check(icmp, ("192.168.0.89", 20), ("192.168.0.1", 1), "1:tz/fHIDUHs19NkixVVoOZywde+I=");
        let (client, server) = ("fe80::200:86ff:fe05:80da", "fe80::260:97ff:fe07:69ea");
        check(Protocol::ICMPV6, (client, 135), (server, 0), "1:dGHyGvjMfljg6Bppwm3bg0LO8TY=");
        check(Protocol(46), ("1.2.3.4", 0), ("5.6.7.8", 0), "1:ikv3kmf89luf73WPz1jOs49S768=");
    }

    #[test]
    fn without_ip_there_is_no_id() {
        let address = Address::Mac([2; 6]);
        let tuple = FiveTuple {
            orig: address,
            resp: address,
            orig_port: 0,
            resp_port: 0,
            proto: Protocol::ARP,
        };
        assert_eq!(CommunityId::of(&tuple, None), None);
    }
}
