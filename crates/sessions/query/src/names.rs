//! Numbers that have names. Crates open no files, so these stand in for /etc/services and
//! /etc/protocols.

/// IP protocols (IANA, Protocol Numbers) and the `EtherTypes` that sessions without IP are filed
/// by.
const PROTOCOLS: [(&str, u16); 53] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("egp", 8),
    ("igrp", 9),
    ("udp", 17),
    ("dccp", 33),
    ("ipv6", 41),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmp6", 58),
    ("ipv6-icmp", 58),
    ("eigrp", 88),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("carp", 112),
    ("l2tp", 115),
    ("isis", 124),
    ("sctp", 132),
    ("udplite", 136),
    ("arp", 0x0806),
    ("rarp", 0x8035),
    ("wol", 0x0842),
    ("trill", 0x22f3),
    ("batman", 0x4305),
    ("appletalk", 0x809b),
    ("aarp", 0x80f3),
    ("ipx", 0x8137),
    ("slow", 0x8809),
    ("pppoe-discovery", 0x8863),
    ("eapol", 0x888e),
    ("profinet", 0x8892),
    ("realtek", 0x8899),
    ("ethercat", 0x88a4),
    ("goose", 0x88b8),
    ("sv", 0x88ba),
    ("lldp", 0x88cc),
    ("homeplug", 0x88e1),
    ("mrp", 0x88e3),
    ("macsec", 0x88e5),
    ("ptp", 0x88f7),
    ("prp", 0x88fb),
    ("cfm", 0x8902),
    ("fcoe", 0x8906),
    ("fip", 0x8914),
    ("roce", 0x8915),
    ("hsr", 0x892f),
    ("loop", 0x9000),
    // A packet of which not even the link layer could be read (`Protocol::UNPARSED`).
    ("unparsed", 256),
];

/// Ports by the names that pcap-filter users write (IANA, Service Name and Port Number Registry).
const SERVICES: [(&str, u16); 41] = [
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("http", 80),
    ("www", 80),
    ("kerberos", 88),
    ("pop3", 110),
    ("sunrpc", 111),
    ("nntp", 119),
    ("ntp", 123),
    ("epmap", 135),
    ("netbios-ns", 137),
    ("netbios-dgm", 138),
    ("netbios-ssn", 139),
    ("imap", 143),
    ("imap2", 143),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("bgp", 179),
    ("ldap", 389),
    ("https", 443),
    ("microsoft-ds", 445),
    ("isakmp", 500),
    ("syslog", 514),
    ("submission", 587),
    ("ldaps", 636),
    ("imaps", 993),
    ("pop3s", 995),
    ("ms-sql-s", 1433),
    ("radius", 1812),
    ("mysql", 3306),
    ("postgresql", 5432),
    ("sip", 5060),
    ("mdns", 5353),
    ("redis", 6379),
];

/// DNS types (IANA, Domain Name System Parameters).
const DNS_TYPES: [(&str, u16); 24] = [
    ("A", 1),
    ("NS", 2),
    ("CNAME", 5),
    ("SOA", 6),
    ("NULL", 10),
    ("PTR", 12),
    ("HINFO", 13),
    ("MX", 15),
    ("TXT", 16),
    ("AAAA", 28),
    ("SRV", 33),
    ("NAPTR", 35),
    ("OPT", 41),
    ("DS", 43),
    ("RRSIG", 46),
    ("NSEC", 47),
    ("DNSKEY", 48),
    ("NSEC3", 50),
    ("TLSA", 52),
    ("SVCB", 64),
    ("HTTPS", 65),
    ("IXFR", 251),
    ("AXFR", 252),
    ("ANY", 255),
];

/// DNS response codes (same registry).
const DNS_RCODES: [(&str, u16); 11] = [
    ("NOERROR", 0),
    ("FORMERR", 1),
    ("SERVFAIL", 2),
    ("NXDOMAIN", 3),
    ("NOTIMP", 4),
    ("REFUSED", 5),
    ("YXDOMAIN", 6),
    ("YXRRSET", 7),
    ("NXRRSET", 8),
    ("NOTAUTH", 9),
    ("NOTZONE", 10),
];

/// TLS versions as they stand in the handshake (RFC 8446, 4.1.2; RFC 6101).
const TLS_VERSIONS: [(&str, u16); 6] = [
    ("SSL 2.0", 0x0002),
    ("SSL 3.0", 0x0300),
    ("TLS 1.0", 0x0301),
    ("TLS 1.1", 0x0302),
    ("TLS 1.2", 0x0303),
    ("TLS 1.3", 0x0304),
];

pub(crate) fn protocol(name: &str) -> Option<u16> {
    find(&PROTOCOLS, name)
}

pub(crate) fn service(name: &str) -> Option<u16> {
    find(&SERVICES, name)
}

pub(crate) fn dns_type(name: &str) -> Option<u16> {
    find(&DNS_TYPES, name)
}

pub(crate) fn dns_rcode(name: &str) -> Option<u16> {
    find(&DNS_RCODES, name)
}

/// The name of a DNS type, if it has a well-known one: `AAAA`.
pub fn dns_type_name(number: u16) -> Option<&'static str> {
    name_of(&DNS_TYPES, number)
}

/// The name of a DNS response code: `NXDOMAIN`.
pub fn dns_rcode_name(number: u16) -> Option<&'static str> {
    name_of(&DNS_RCODES, number)
}

/// The first name of a port, as queries know it: `https`.
pub fn service_name(port: u16) -> Option<&'static str> {
    name_of(&SERVICES, port)
}

/// A version as people write it: `1.2`, `TLS 1.2`, and `TLSv1.2` or `TLSv12` as other tools do.
pub(crate) fn tls_version(text: &str) -> Option<u16> {
    let plain = |text: &str| -> String {
        let text = text.to_ascii_lowercase();
        text.chars().filter(|letter| !" v._-".contains(*letter)).collect()
    };
    let wanted = plain(text);
    // A bare number is one of the handshake, unless it has a point.
    let has_word = wanted.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let short = wanted.strip_suffix('0').unwrap_or(&wanted);
    TLS_VERSIONS.iter().find_map(|&(name, number)| {
        let name = plain(name);
        let is = if has_word {
            name == wanted || name.strip_suffix('0') == Some(short)
        } else {
            text.contains('.') && name.strip_prefix("tls") == Some(&wanted)
        };
        is.then_some(number)
    })
}

/// What a TLS version is called: `TLS 1.2`.
pub fn tls_version_name(version: u16) -> Option<&'static str> {
    name_of(&TLS_VERSIONS, version)
}

fn name_of(table: &[(&'static str, u16)], number: u16) -> Option<&'static str> {
    table.iter().find(|(_, known)| *known == number).map(|&(name, _)| name)
}

fn find(table: &[(&str, u16)], name: &str) -> Option<u16> {
    table.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, number)| number)
}

#[cfg(test)]
mod tests {
    use wire::Protocol;

    use super::*;

    #[test]
    fn every_name_of_a_protocol_in_answers_is_one_in_queries() {
        for number in 0..=u16::MAX {
            if let Some(name) = Protocol(number).name() {
                assert_eq!(protocol(name), Some(number), "{name}");
            }
        }
    }

    #[test]
    fn versions_are_read_as_people_and_tools_write_them() {
        for (text, version) in [
            ("1.2", Some(0x0303)),
            ("1.0", Some(0x0301)),
            ("TLS 1.3", Some(0x0304)),
            ("TLSv1.3", Some(0x0304)),
            ("TLSv13", Some(0x0304)),
            ("TLSv1", Some(0x0301)),
            ("tls1.1", Some(0x0302)),
            ("SSLv3", Some(0x0300)),
            ("SSL 2.0", Some(2)),
            ("1.4", None),
            ("771", None),
            ("12", None),
            ("tls", None),
            ("", None),
        ] {
            assert_eq!(tls_version(text), version, "{text}");
        }
        assert_eq!(tls_version_name(0x0303), Some("TLS 1.2"));
    }
}
