//! Words of Wireshark, Zeek and Arkime: what has one meaning here is taken, for the rest an error
//! says what to write.

use std::borrow::Cow;

use wire::{App, Protocol};

use crate::error::{Error, Problem};
use crate::field::Field;
use crate::names;
use crate::operator::Join;
use crate::parse::parser::Parser;
use crate::term::Term;
use crate::token::TokenKind;
use crate::value::Value;

/// Their words for fields of ours; those of the last column only of sessions of that protocol.
const FIELDS: [(&str, &str, Option<Protocol>); 76] = [
    // Wireshark.
    ("ip.addr", "host", None),
    ("ipv6.addr", "host", None),
    ("ip.proto", "proto", None),
    ("tcp.port", "port", Some(Protocol::TCP)),
    ("udp.port", "port", Some(Protocol::UDP)),
    ("sctp.port", "port", Some(Protocol::SCTP)),
    ("icmp.type", "icmp_type", Some(Protocol::ICMP)),
    ("icmp.code", "icmp_code", Some(Protocol::ICMP)),
    ("icmpv6.type", "icmp_type", Some(Protocol::ICMPV6)),
    ("icmpv6.code", "icmp_code", Some(Protocol::ICMPV6)),
    ("vlan.id", "vlan", None),
    ("mpls.label", "mpls", None),
    ("vxlan.vni", "vni", None),
    ("gtp.teid", "teid", None),
    ("dns.qry.name", "dns_names", None),
    ("dns.qry.type", "dns_types", None),
    ("dns.flags.rcode", "dns_rcodes", None),
    ("dns.time", "dns_rtt_ns", None),
    ("dns.a", "dns_answers", None),
    ("dns.aaaa", "dns_answers", None),
    ("dns.cname", "dns_answers", None),
    ("http.request.method", "http_method", None),
    ("http.request.uri", "http_path", None),
    ("http.response.code", "http_status", None),
    ("tls.handshake.extensions_server_name", "sni", None),
    ("tls.handshake.version", "tls_version", None),
    ("tls.handshake.ciphersuite", "tls_cipher", None),
    ("tls.handshake.ja3", "ja3", None),
    ("tls.handshake.ja3s", "ja3s", None),
    ("tls.handshake.ja4", "ja4", None),
    ("communityid", "community_id", None),
    // Zeek.
    ("id.orig_h", "orig_ip", None),
    ("id.orig_p", "orig_port", None),
    ("id.resp_h", "resp_ip", None),
    ("id.resp_p", "resp_port", None),
    ("orig_pkts", "orig_packets", None),
    ("resp_pkts", "resp_packets", None),
    ("ts", "start_ns", None),
    ("query", "dns_names", None),
    ("qtype_name", "dns_types", None),
    ("rcode_name", "dns_rcodes", None),
    ("answers", "dns_answers", None),
    ("server_name", "sni", None),
    ("cipher", "tls_cipher", None),
    ("subject", "cert_subject", None),
    ("issuer", "cert_issuer", None),
    ("method", "http_method", None),
    ("uri", "http_path", None),
    ("status_code", "http_status", None),
    // Arkime.
    ("ip.protocol", "proto", None),
    ("port.src", "orig_port", None),
    ("port.dst", "resp_port", None),
    ("protocols", "app", None),
    ("host.http", "http_host", None),
    ("host.dns", "dns_names", None),
    ("host.tls", "sni", None),
    ("host.quic", "sni", None),
    ("http.statuscode", "http_status", None),
    ("http.user-agent", "http_user_agent", None),
    ("dns.query.type", "dns_types", None),
    ("dns.status", "dns_rcodes", None),
    ("packets.src", "orig_packets", None),
    ("packets.dst", "resp_packets", None),
    ("bytes.src", "orig_frame_bytes", None),
    ("bytes.dst", "resp_frame_bytes", None),
    ("databytes", "payload_bytes", None),
    ("databytes.src", "orig_payload_bytes", None),
    ("databytes.dst", "resp_payload_bytes", None),
    ("country.src", "orig_country", None),
    ("country.dst", "resp_country", None),
    ("asn.src", "orig_as_name", None),
    ("asn.dst", "resp_as_name", None),
    ("starttime", "start_ns", None),
    ("stoptime", "end_ns", None),
    ("session.length", "duration_ns", None),
    ("vlan.inner", "vlan_inner", None),
];

/// Words that have no one meaning here, and what to write instead.
const HINTS: [(&str, &str); 41] = [
    ("ip.src", "src host ADDRESS (sent a packet) or orig_ip = ADDRESS (opened the session)"),
    ("ip.dst", "dst host ADDRESS (was sent a packet) or resp_ip = ADDRESS (was called)"),
    ("ipv6.src", "src host ADDRESS (sent a packet) or orig_ip = ADDRESS (opened the session)"),
    ("ipv6.dst", "dst host ADDRESS (was sent a packet) or resp_ip = ADDRESS (was called)"),
    ("ip.host", "host ADDRESS; names are in name, sni, http_host and dns_names"),
    ("tcp.srcport", "tcp src port NUMBER, or orig_port = NUMBER"),
    ("tcp.dstport", "tcp dst port NUMBER, or resp_port = NUMBER"),
    ("udp.srcport", "udp src port NUMBER, or orig_port = NUMBER"),
    ("udp.dstport", "udp dst port NUMBER, or resp_port = NUMBER"),
    ("eth.addr", "ether host STATION (sessions without IP only)"),
    ("eth.src", "ether src host STATION (sessions without IP only)"),
    ("eth.dst", "ether dst host STATION (sessions without IP only)"),
    ("eth.type", "ether proto NUMBER"),
    ("mac", "ether host STATION (sessions without IP only)"),
    ("mac.src", "ether src host STATION (sessions without IP only)"),
    ("mac.dst", "ether dst host STATION (sessions without IP only)"),
    ("arp.src.proto_ipv4", "arp src host ADDRESS"),
    ("arp.dst.proto_ipv4", "arp dst host ADDRESS"),
    ("frame", "extract with --payload PATTERN, which searches packets"),
    ("data", "extract with --payload PATTERN, which searches packets"),
    ("payload", "extract with --payload PATTERN, which searches packets"),
    ("frame.len", "bytes > 1K or packets > 10; single packets: extract with --packet-filter"),
    ("frame.time", "after 2026-11-20T10:00Z and before 2026-11-20T11:00Z"),
    ("frame.time_epoch", "after 1795339353.25 and before 1795339400"),
    ("tcp.stream", "community_id or session_id, as find shows them"),
    ("udp.stream", "community_id or session_id, as find shows them"),
    ("tcp.flags.syn", "orig_tcp_flags, resp_tcp_flags, or state = S0 for a SYN without answer"),
    ("tcp.flags.reset", "resets > 0"),
    ("tcpflags.rst", "resets > 0"),
    ("tcp.analysis.retransmission", "retransmitted_packets > 0"),
    ("tcp.analysis.zero_window", "zero_windows > 0"),
    ("tcp.analysis.out_of_order", "out_of_order_packets > 0"),
    ("http.request.full_uri", "http_host = HOST and http_path = PATH"),
    ("http.uri", "http_host = HOST and http_path = PATH"),
    ("tls.handshake.type", "has ja4 (a ClientHello was seen) or has ja3s (a ServerHello)"),
    ("uid", "community_id; find --from-zeek takes lines of Zeek's logs"),
    ("node", "the query without it: an answer is of one volume"),
    ("cert.subject.cn", "cert_subject = *NAME*"),
    ("cert.issuer.cn", "cert_issuer = *NAME*"),
    ("ssh.ver", "ssh_client = *VERSION* or ssh_server = *VERSION*"),
    ("file", "extract with --payload PATTERN; files are not kept"),
];

/// Operators of Wireshark that stand between a field and a value, and ours.
const OPERATORS: [(&str, &str); 8] = [
    ("contains", PATTERN),
    ("matches", PATTERN),
    ("eq", "= (or ==), as in tcp.port = 80"),
    ("ne", "!=, as in tcp.port != 80"),
    ("gt", ">, as in packets > 10"),
    ("lt", "<, as in packets < 10"),
    ("ge", ">=, as in packets >= 10"),
    ("le", "<=, as in packets <= 10"),
];
const PATTERN: &str = "=, with * for any characters, as in http_host = *example*";
/// What Wireshark called TLS before version 3, in front of a name.
const BEFORE_TLS: &str = "ssl.";

fn is(known: &str, word: &str) -> bool {
    known.eq_ignore_ascii_case(word)
}

/// `tls.handshake.type` for `ssl.handshake.type`.
fn of_today(word: &str) -> Cow<'_, str> {
    match word.split_at_checked(BEFORE_TLS.len()) {
        Some((front, rest)) if is(BEFORE_TLS, front) => format!("tls.{rest}").into(),
        _ => word.into(),
    }
}

/// The field that another program calls so, and the protocol that its sessions have.
pub(super) fn field(word: &str) -> Option<(&'static Field, Option<Protocol>)> {
    let word = of_today(word);
    let &(_, name, proto) = FIELDS.iter().find(|(known, ..)| is(known, &word))?;
    Some((Field::find(name).expect("a test looks every name up"), proto))
}

/// The field of this name, here or else in another program. Asked for every word of a query.
pub(super) fn known(word: &str) -> Option<(&'static Field, Option<Protocol>)> {
    Field::find(word).map(|field| (field, None)).or_else(|| field(word))
}

/// The error for a word of another program.
pub(super) fn hint(word: &str, at: usize) -> Option<Error> {
    let today = of_today(word);
    let &(_, here) = HINTS.iter().find(|(known, _)| is(known, &today))?;
    Some(elsewhere(word, here, at))
}

fn elsewhere(word: &str, here: &'static str, at: usize) -> Error {
    Error::new(at, Problem::Elsewhere { word: word.to_owned(), here })
}

/// The sessions of an application or a protocol that is named by itself: `dns`, `tls`, `lldp`.
pub(super) fn application(word: &str) -> Option<Term> {
    let word = if is("ssl", word) { "tls" } else { word };
    let named = |field, value| {
        let field = Field::find(field).expect("there is such a field");
        Some(Term::equals(field, Value::parse(field.kind, value, false)?))
    };
    match App::meant_by(word) {
        Some(app) => named("app", app.name()),
        None => names::protocol(word).and_then(|_| named("proto", word)),
    }
}

impl Parser<'_> {
    /// What other programs put between a field and a text.
    pub(super) fn refuse_operator(&self) -> Result<(), Error> {
        let TokenKind::Word(word) = self.peek().kind else { return Ok(()) };
        let has_value = matches!(self.peek_at(1).kind, TokenKind::Word(_) | TokenKind::Quoted(_));
        match OPERATORS.iter().find(|(operator, _)| is(operator, word)) {
            Some((_, here)) if has_value => Err(elsewhere(word, here, self.peek().at)),
            _ => Ok(()),
        }
    }

    /// A name of an application behind a port: another port, or a condition of its own?
    pub(super) fn ambiguous(&self, word: &str) -> Error {
        let word = word.to_owned();
        Error::new(self.peek().at, Problem::Ambiguous { word })
    }
}

/// Only sessions of this protocol.
pub(super) fn of_protocol(term: Term, proto: Option<Protocol>) -> Term {
    let Some(proto) = proto else { return term };
    let field = Field::find("proto").expect("there is such a field");
    Term::equals(field, Value::Number(proto.0.into())).join(Join::And, term)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_known_once_and_none_is_ours() {
        let mut words: Vec<&str> = FIELDS.iter().map(|(word, ..)| *word).collect();
        words.extend(HINTS.iter().map(|(word, _)| *word));
        for word in &words {
            assert_eq!(Field::find(word), None, "{word}");
            assert_eq!(words.iter().filter(|other| *other == word).count(), 1, "{word}");
        }
        for (word, name, _) in FIELDS {
            assert!(Field::find(name).is_some(), "{word}");
            assert_eq!(field(word).unwrap().0.name, name);
        }
    }
}
