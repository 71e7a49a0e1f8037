//! Words in columns: addresses, protocols, tunnels, states and applications as text, and back.

use std::borrow::Cow;
use std::net::IpAddr;

use format::slice::State;
use wire::{Address, Protocol, TunnelKind};

const PROTOCOLS: [(Protocol, &str); 12] = [
    (Protocol::ICMP, "icmp"),
    (Protocol(2), "igmp"),
    (Protocol::TCP, "tcp"),
    (Protocol::UDP, "udp"),
    (Protocol(47), "gre"),
    (Protocol(50), "esp"),
    (Protocol(51), "ah"),
    (Protocol::ICMPV6, "icmp6"),
    (Protocol(89), "ospf"),
    (Protocol::SCTP, "sctp"),
    (Protocol::UNPARSED, "unparsed"),
    (Protocol::ARP, "arp"),
];

/// Zeek's words (conn.log, `conn_state`).
const STATES: [(State, &str); 13] = [
    (State::S0, "S0"),
    (State::S1, "S1"),
    (State::S2, "S2"),
    (State::S3, "S3"),
    (State::Sf, "SF"),
    (State::Rej, "REJ"),
    (State::Rsto, "RSTO"),
    (State::Rstr, "RSTR"),
    (State::Rstos0, "RSTOS0"),
    (State::Rstrh, "RSTRH"),
    (State::Sh, "SH"),
    (State::Shr, "SHR"),
    (State::Oth, "OTH"),
];

/// The applications that a segment may name.
const APPS: [&str; 3] = ["tls", "http", "dns"];

fn word<T: PartialEq>(table: &[(T, &'static str)], value: &T) -> Option<&'static str> {
    table.iter().find(|(known, _)| known == value).map(|&(_, word)| word)
}

fn meaning<T: Copy>(table: &[(T, &'static str)], text: &str) -> Option<T> {
    table.iter().find(|&&(_, word)| word == text).map(|&(value, _)| value)
}

pub(crate) fn protocol(protocol: Protocol) -> Option<&'static str> {
    word(&PROTOCOLS, &protocol)
}

pub(crate) fn parse_tunnel(text: &str) -> Option<TunnelKind> {
    TunnelKind::ALL.into_iter().find(|kind| kind.name() == text)
}

pub(crate) fn state(state: State) -> &'static str {
    word(&STATES, &state).expect("every state has its word")
}

pub(crate) fn parse_state(text: &str) -> Option<State> {
    meaning(&STATES, text)
}

pub(crate) fn parse_app(text: &str) -> Option<&'static str> {
    APPS.into_iter().find(|&app| app == text)
}

/// The address as text; nothing where there is none.
pub(crate) fn address(address: Address) -> Option<Cow<'static, str>> {
    (address != Address::None).then(|| Cow::Owned(address.to_string()))
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
