//! Numbers that have names. Rooms open no files, so these stand in for /etc/services and
//! /etc/protocols.

/// IP protocols (IANA, Protocol Numbers) and the `EtherTypes` that sessions without IP are filed
/// by.
const PROTOCOLS: [(&str, u16); 27] = [
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

/// TLS versions as they stand in the handshake (RFC 8446, 4.1.2).
const TLS_VERSIONS: [(&str, u16); 4] =
    [("1.0", 0x0301), ("1.1", 0x0302), ("1.2", 0x0303), ("1.3", 0x0304)];

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

pub(crate) fn tls_version(name: &str) -> Option<u16> {
    find(&TLS_VERSIONS, name)
}

fn name_of(table: &[(&'static str, u16)], number: u16) -> Option<&'static str> {
    table.iter().find(|(_, known)| *known == number).map(|&(name, _)| name)
}

fn find(table: &[(&str, u16)], name: &str) -> Option<u16> {
    table.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, number)| number)
}
