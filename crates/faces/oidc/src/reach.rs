//! Which addresses a provider may send us to.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public internet. What a provider names on another host than
/// its own must be: else it could have us ask services that trust this machine.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// RFC 6890 and its registry.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match a {
        100 => (64..128).contains(&b),
        192 => b == 0 && c == 0,
        198 => (18..20).contains(&b),
        0 | 240.. => true,
        _ => false,
    };
    let is_here = address.is_private() || address.is_loopback() || address.is_link_local();
    let is_many = address.is_broadcast() || address.is_multicast();
    !(is_special || is_here || is_many || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let [a, b, ..] = address.segments();
    let is_documentation = a == 0x2001 && b == 0xdb8;
    // 6to4 and Teredo have addresses inside which are not looked at.
    let is_tunnel = a == 0x2002 || (a == 0x2001 && b == 0);
    (0x2000..0x4000).contains(&a) && !is_documentation && !is_tunnel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_none_of_the_internet() {
        for public in ["8.8.8.8", "100.63.0.1", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.8",
            "192.168.0.1",
            "198.18.0.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "fc00::1",
            "fe80::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "ff02::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }
}
