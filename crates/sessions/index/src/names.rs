//! Addresses as text in columns, and back.

use core::fmt::Write as _;
use core::net::IpAddr;

use wire::Address;

/// The address as text, written into `buffer`; nothing where there is none.
pub(crate) fn address(address: Address, buffer: &mut String) -> Option<&str> {
    buffer.clear();
    match address {
        Address::None => return None,
        // Several times faster than the formatting machinery, and most addresses are of this kind.
        Address::V4(ip) => ip.octets().into_iter().enumerate().for_each(|(at, byte)| {
            if at > 0 {
                buffer.push('.');
            }
            push_decimal(byte, buffer);
        }),
        other => write!(buffer, "{other}").expect("writing to a string cannot fail"),
    }
    Some(buffer)
}

fn push_decimal(byte: u8, text: &mut String) {
    if byte >= 100 {
        text.push(char::from(b'0' + byte / 100));
    }
    if byte >= 10 {
        text.push(char::from(b'0' + byte / 10 % 10));
    }
    text.push(char::from(b'0' + byte % 10));
}

/// No station address reads as an IPv6 one: that would need eight groups or a double colon.
pub(crate) fn parse_address(text: &str) -> Option<Address> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(ip.into());
    }
    let mut station = [0; 6];
    let mut groups = text.split(':');
    for byte in &mut station {
        let group = groups.next().filter(|group| group.len() == 2)?;
        *byte = u8::from_str_radix(group, 16).ok()?;
    }
    groups.next().is_none().then_some(Address::Mac(station))
}
