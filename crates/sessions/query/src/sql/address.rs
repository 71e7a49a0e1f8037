//! Addresses in SQL: texts, which an archive has as `10.0.0.1`, `2001:db8::1` and
//! `02:00:00:00:00:01`.
//!
//! Networks are compared byte by byte in IPv4, and digit by digit in IPv6, so that masks with holes
//! need nothing of their own. That takes IPv6 addresses with all of their digits, for which each
//! engine has other words.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::AddressSet;
use crate::operator::Join;
use crate::sql::words::{Dialect, FALSE, joined};

/// Whether a text is an address of IPv4 or, if `six`, of IPv6.
pub(super) fn version(column: &str, six: bool) -> String {
    if six {
        // A station has five colons and no pair of them.
        let groups = format!("length({column}) - length(replace({column}, ':', '')) = 7");
        format!("({column} LIKE '%::%' OR {groups})")
    } else {
        format!("({column} LIKE '%.%' AND {column} NOT LIKE '%:%')")
    }
}

/// Whether a text is one of these addresses.
pub(super) fn one_of(column: &str, set: &AddressSet, dialect: Dialect) -> String {
    match *set {
        AddressSet::Host(IpAddr::V4(ip)) => {
            format!("{column} IN ('{ip}', '{}')", ip.to_ipv6_mapped())
        }
        AddressSet::Host(IpAddr::V6(ip)) => format!("{column} = '{ip}'"),
        AddressSet::Mac(_) => {
            let text = set.to_string();
            format!("{column} = '{text}'")
        }
        AddressSet::Net(IpAddr::V4(network), IpAddr::V4(mask)) => v4(column, network, mask),
        AddressSet::Net(IpAddr::V6(network), IpAddr::V6(mask)) => {
            v6(column, network, mask, dialect)
        }
        // Both are of one version.
        AddressSet::Net(..) => FALSE.to_owned(),
    }
}

fn v4(column: &str, network: Ipv4Addr, mask: Ipv4Addr) -> String {
    let mut parts = vec![version(column, false)];
    let bytes = network.octets().into_iter().zip(mask.octets());
    let whole: Vec<String> =
        bytes.clone().take_while(|(_, mask)| *mask == 0xff).map(|(it, _)| it.to_string()).collect();
    match whole.len() {
        0 => {}
        4 => parts = vec![format!("{column} = '{network}'")],
        _ => parts.push(format!("{column} LIKE '{}.%'", whole.join("."))),
    }
    for (place, (byte, mask)) in bytes.enumerate().skip(whole.len()) {
        if mask != 0 {
            let fits = (0..=u8::MAX).filter(|one| one & mask == byte);
            let number = format!("TRY_CAST(split_part({column}, '.', {}) AS BIGINT)", place + 1);
            parts.push(format!("{number} {}", among(&fits.map(u64::from).collect::<Vec<_>>())));
        }
    }
    joined(Join::And, parts)
}

/// One of these numbers, which are in their order.
fn among(numbers: &[u64]) -> String {
    match numbers {
        [first, .., last] if usize::try_from(last - first).ok() == Some(numbers.len() - 1) => {
            format!("BETWEEN {first} AND {last}")
        }
        _ => {
            let all: Vec<String> = numbers.iter().map(u64::to_string).collect();
            format!("IN ({})", all.join(", "))
        }
    }
}

fn v6(column: &str, network: Ipv6Addr, mask: Ipv6Addr, dialect: Dialect) -> String {
    let digits = digits(column, dialect);
    let mut parts = vec![version(column, true)];
    let (network, mask) = (network.to_bits(), mask.to_bits());
    let digit = |bits: u128, place: u32| u8::try_from((bits >> (124 - 4 * place)) & 0xf);
    let all = (0..32).map(|place| (digit(network, place), digit(mask, place)));
    let mut like = String::new();
    for (place, (digit, mask)) in all.enumerate() {
        let (Ok(digit), Ok(mask)) = (digit, mask) else { continue };
        like.push(if mask == 0xf { hex(digit) } else { '_' });
        if !matches!(mask, 0 | 0xf) {
            let fits =
                (0..16).filter(|one| one & mask == digit).map(|one| format!("'{}'", hex(one)));
            let fits: Vec<String> = fits.collect();
            parts.push(format!("substr({digits}, {}, 1) IN ({})", place + 1, fits.join(", ")));
        }
    }
    let like = like.trim_end_matches('_');
    if !like.is_empty() {
        parts.push(format!("{digits} LIKE '{like}%'"));
    }
    joined(Join::And, parts)
}

fn hex(digit: u8) -> char {
    char::from_digit(digit.into(), 16).unwrap_or('0').to_ascii_uppercase()
}

/// The 32 digits of an IPv6 address.
fn digits(column: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::Trino => format!("to_hex(CAST(TRY_CAST({column} AS IPADDRESS) AS VARBINARY))"),
        Dialect::DuckDb => {
            // The end of an IPv4 address in it is in decimal digits.
            let tail = "array_to_string(list_transform(string_split(part, '.'), \
                        lambda one: lpad(to_hex(TRY_CAST(one AS BIGINT)), 2, '0')), '')";
            let group =
                format!("CASE WHEN part LIKE '%.%' THEN {tail} ELSE lpad(part, 4, '0') END");
            let side = |number: u8| {
                format!(
                    "array_to_string(list_transform(list_filter(string_split(\
                     split_part({column}, '::', {number}), ':'), lambda part: part <> ''), \
                     lambda part: {group}), '')"
                )
            };
            let (left, right) = (side(1), side(2));
            format!("upper(rpad({left}, CAST(32 - length({right}) AS INTEGER), '0') || {right})")
        }
    }
}
