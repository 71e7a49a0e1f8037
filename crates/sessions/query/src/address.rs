//! Sets of addresses: one host, one network, one station.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::Address;

use crate::number::number;

/// What an address is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AddressSet {
    /// One IP address. IPv4 addresses and their IPv6-mapped form are the same host.
    Host(IpAddr),
    /// Addresses that agree with the first in the bits of the second; both of one version.
    Net(IpAddr, IpAddr),
    /// One station.
    Mac([u8; 6]),
}

impl AddressSet {
    pub(crate) fn contains(&self, address: Address) -> bool {
        let ip = match address {
            Address::V4(ip) => IpAddr::V4(ip),
            Address::V6(ip) => IpAddr::V6(ip),
            Address::Mac(mac) => return *self == Self::Mac(mac),
            Address::None => return false,
        };
        match *self {
            Self::Host(host) => host == ip.to_canonical(),
            Self::Net(network, mask) => masked(ip, mask) == Some(network),
            Self::Mac(_) => false,
        }
    }

    /// One IPv4 or IPv6 address, written out.
    pub(crate) fn host(text: &str) -> Option<Self> {
        Some(Self::Host(text.parse::<IpAddr>().ok()?.to_canonical()))
    }

    /// A station in any of pcap-filter's forms: six pairs with `:`, `-` or `.`, three groups of
    /// four, twelve digits.
    pub(crate) fn mac(text: &str) -> Option<Self> {
        let groups: Vec<&str> = text.split([':', '-', '.']).collect();
        let width = match groups.len() {
            6 => 2,
            3 => 4,
            1 => 12,
            _ => return None,
        };
        let fits = |group: &&str| {
            (group.len() == width || (width == 2 && group.len() == 1))
                && group.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        if !groups.iter().all(fits) {
            return None;
        }
        let padded: Vec<String> = groups.iter().map(|group| format!("{group:0>width$}")).collect();
        let digits = padded.concat();
        let bits = u64::from_str_radix(&digits, 16).ok()?;
        bits.to_be_bytes().last_chunk().map(|mac| Self::Mac(*mac))
    }

    /// `ADDRESS/LENGTH`, or without a length as many whole bytes as are written: `10.1` is
    /// 10.1.0.0/16 (pcap-filter(7), `net`). Bits beyond the length are ignored.
    pub(crate) fn net(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address.trim_end(), Some(number(length.trim_start())?)),
            None => (text, None),
        };
        let (address, written) = match address.parse() {
            Ok(IpAddr::V4(ip)) => (IpAddr::V4(ip), 32),
            Ok(IpAddr::V6(ip)) => (IpAddr::V6(ip), 128),
            Err(_) => short_v4(address)?,
        };
        let mask =
            mask_of(address, length.map_or(Some(written), |length| length.try_into().ok())?)?;
        Self::masked_net(address, mask)
    }

    /// `net ADDRESS mask MASK`.
    pub(crate) fn net_with_mask(address: &str, mask: &str) -> Option<Self> {
        let address = address.parse().ok().or_else(|| Some(short_v4(address)?.0))?;
        Self::masked_net(address, mask.parse().ok()?)
    }

    fn masked_net(address: IpAddr, mask: IpAddr) -> Option<Self> {
        Some(Self::Net(masked(address, mask)?, mask))
    }

    /// What a field is compared with: any of the forms above.
    pub(crate) fn any(text: &str) -> Option<Self> {
        let is_net = text.contains('/');
        if is_net { Self::net(text) } else { Self::host(text).or_else(|| Self::mac(text)) }
    }

    /// The word that introduces such a set in a query.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Host(_) | Self::Mac(_) => "host",
            Self::Net(..) => "net",
        }
    }
}

/// The address as its word in a query takes it.
impl fmt::Display for AddressSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Host(ip) => ip.fmt(f),
            Self::Mac(mac) => Address::Mac(mac).fmt(f),
            Self::Net(network, mask) => {
                let (ones, zeros) = match mask {
                    IpAddr::V4(mask) => {
                        (mask.to_bits().leading_ones(), mask.to_bits().trailing_zeros())
                    }
                    IpAddr::V6(mask) => {
                        (mask.to_bits().leading_ones(), mask.to_bits().trailing_zeros())
                    }
                };
                if ones + zeros == width(mask) {
                    write!(f, "{network}/{ones}")
                } else {
                    write!(f, "{network} mask {mask}")
                }
            }
        }
    }
}

fn width(ip: IpAddr) -> u32 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn masked(ip: IpAddr, mask: IpAddr) -> Option<IpAddr> {
    match (ip, mask) {
        (IpAddr::V4(ip), IpAddr::V4(mask)) => Some(IpAddr::V4(ip & mask)),
        (IpAddr::V6(ip), IpAddr::V6(mask)) => Some(IpAddr::V6(ip & mask)),
        _ => None,
    }
}

fn mask_of(address: IpAddr, length: u32) -> Option<IpAddr> {
    let zeros = width(address).checked_sub(length)?;
    Some(match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(u32::MAX.checked_shl(zeros).unwrap_or(0))),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(u128::MAX.checked_shl(zeros).unwrap_or(0))),
    })
}

/// One to three leading bytes of an IPv4 address, and how many bits they are.
fn short_v4(text: &str) -> Option<(IpAddr, u32)> {
    let mut bytes = [0; 4];
    let mut bits = 0;
    let mut groups = text.split('.');
    for byte in bytes.iter_mut().take(3) {
        let Some(group) = groups.next() else { break };
        *byte = u8::try_from(number(group)?).ok()?;
        bits += 8;
    }
    groups.next().is_none().then_some((IpAddr::V4(Ipv4Addr::from(bytes)), bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn net(text: &str, printed: &str) {
        assert_eq!(AddressSet::net(text).unwrap().to_string(), printed, "{text}");
    }

    #[test]
    fn networks_are_read_in_all_of_pcap_filters_forms() {
        net("10", "10.0.0.0/8");
        net("10.1", "10.1.0.0/16");
        net("192.168.1", "192.168.1.0/24");
        net("192.168.1.7", "192.168.1.7/32");
        net("172.16/12", "172.16.0.0/12");
        net("1.2.3.4/8", "1.0.0.0/8");
        net("0.0.0.0/0", "0.0.0.0/0");
        net("2001:db8::1/32", "2001:db8::/32");
        net("::1", "::1/128");
        net("::/0", "::/0");
    }

    #[test]
    fn text_that_is_no_network_is_refused() {
        for text in ["", "10.", "1.2.3.4.5", "256", "1.2.3.4/33", "::/129", "a", "10/", "10/x"] {
            assert_eq!(AddressSet::net(text), None, "{text}");
        }
    }

    #[test]
    fn masks_need_not_be_contiguous() {
        let set = AddressSet::net_with_mask("10.0.0.1", "255.0.0.255").unwrap();
        assert_eq!(set.to_string(), "10.0.0.1 mask 255.0.0.255");
        assert!(set.contains(Address::V4(Ipv4Addr::new(10, 9, 9, 1))));
        assert!(!set.contains(Address::V4(Ipv4Addr::new(10, 9, 9, 2))));
        assert_eq!(AddressSet::net_with_mask("::", "255.0.0.0"), None);
    }

    #[test]
    fn stations_are_read_in_all_of_pcap_filters_forms() {
        let expected = Some(AddressSet::Mac([0, 0x1b, 0x2c, 0x3d, 0x4e, 0x5f]));
        for text in [
            "00:1b:2c:3d:4e:5f",
            "0:1B:2c:3d:4e:5f",
            "00-1b-2c-3d-4e-5f",
            "00.1b.2c.3d.4e.5f",
            "001b.2c3d.4e5f",
            "001b2c3d4e5f",
        ] {
            assert_eq!(AddressSet::mac(text), expected, "{text}");
        }
        for text in ["", "00:1b", "00:1b:2c:3d:4e:5g", "001b2c3d4e5", "001:b:2c:3d:4e:5f"] {
            assert_eq!(AddressSet::mac(text), None, "{text}");
        }
    }
}
