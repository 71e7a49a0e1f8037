//! pcap-filter's primitives: `[protocol] [direction] [type] id`, and words that stand for a
//! protocol or a tunnel.

use core::net::Ipv4Addr;

use wire::Protocol;

use crate::address::AddressSet;
use crate::error::{Error, Problem};
use crate::names;
use crate::number::number;
use crate::operator::Join;
use crate::parse::head::{Head, Scope, Type, field, port};
use crate::parse::parser::Parser;
use crate::pattern::Pattern;
use crate::term::{End, Place, Term};
use crate::token::{Token, TokenKind};
use crate::value::Value;

/// Words for protocols; each alone is a condition.
const SCOPES: [(&str, Scope); 17] = [
    ("ip", Scope::Ip),
    ("ip6", Scope::Ip6),
    ("ether", Scope::Ether),
    ("tunnel", Scope::Tunnel),
    ("tcp", Scope::Protocol(Protocol::TCP.0)),
    ("udp", Scope::Protocol(Protocol::UDP.0)),
    ("sctp", Scope::Protocol(Protocol::SCTP.0)),
    ("icmp", Scope::Protocol(Protocol::ICMP.0)),
    ("icmp6", Scope::Protocol(Protocol::ICMPV6.0)),
    ("igmp", Scope::Protocol(2)),
    ("esp", Scope::Protocol(50)),
    ("ah", Scope::Protocol(51)),
    ("pim", Scope::Protocol(103)),
    ("vrrp", Scope::Protocol(112)),
    ("carp", Scope::Protocol(112)),
    ("arp", Scope::Protocol(Protocol::ARP.0)),
    ("rarp", Scope::Protocol(0x8035)),
];

/// Words for tunnels, which may be followed by an id, and the names of their kinds.
const TUNNELS: [(&str, &str); 3] = [("vxlan", "vxlan*"), ("geneve", "geneve"), ("pppoes", "pppoe")];

const TYPES: [(&str, Type); 5] = [
    ("host", Type::Host),
    ("net", Type::Net),
    ("port", Type::Port),
    ("portrange", Type::PortRange),
    ("proto", Type::Proto),
];

fn lookup<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|&(_, value)| value)
}

impl<'a> Parser<'a> {
    /// A condition in pcap-filter's form, if `word` begins one.
    pub(super) fn primitive(&mut self, word: &str) -> Result<Option<Term>, Error> {
        if let Some(kind) = lookup(&TUNNELS, word) {
            self.next += 1;
            return self.tunnel(kind).map(Some);
        }
        let scope = match lookup(&SCOPES, word) {
            Some(scope) => {
                let begins_head =
                    matches!(self.peek_at(1).kind, TokenKind::Word(word) if begins_head(word));
                match scope {
                    // The field of that name.
                    Scope::Tunnel if !begins_head => return Ok(None),
                    Scope::Protocol(0x0600..) if begins_head && !self.begins_arp_host(scope) => {
                        return Err(self.no_such_id(word));
                    }
                    _ => self.next += 1,
                }
                match scope.test() {
                    Some(test) if !begins_head => return Ok(Some(test)),
                    _ => scope,
                }
            }
            None if begins_head(word) => Scope::None,
            None => return Ok(None),
        };
        let end = self.end();
        let kind = match self.peek().kind {
            TokenKind::Word(word) => lookup(&TYPES, word),
            _ => None,
        };
        if !scope.takes(kind.unwrap_or_default()) {
            return Err(self.expected("a word that fits the one before it, such as host"));
        }
        self.next += usize::from(kind.is_some());
        let head = Head { scope, end, kind: kind.unwrap_or_default() };
        self.inherited = Some(head);
        match self.peek().kind {
            TokenKind::Open => self.group().map(Some),
            _ => self.id(head).map(Some),
        }
    }

    /// Sessions without IP have neither networks nor ports, nor hosts but those that ARP names.
    fn no_such_id(&self, word: &str) -> Error {
        let remedy = "write the station, as in \"arp and ether host 00:1b:2c:3d:4e:5f\", or the \
                      address, as in \"arp host 10.0.0.5\"";
        let begin = match self.peek_at(1).kind {
            TokenKind::Word(next) => next,
            _ => "host",
        };
        let word = format!("{word} {begin}");
        Error::new(self.peek().at, Problem::NotOfSessions { word, remedy })
    }

    /// ARP has no hosts between which packets go, yet hosts that it is about.
    fn begins_arp_host(&self, scope: Scope) -> bool {
        let other = |word: &str| ["net", "port", "portrange", "proto"].contains(&word);
        let is_other =
            |place| matches!(self.peek_at(place).kind, TokenKind::Word(word) if other(word));
        scope.is_arp() && !(1..=2).any(is_other)
    }

    /// `src`, `dst`, `src or dst`, `src and dst`, `orig`, `resp`.
    fn end(&mut self) -> End {
        let (end, other) = match self.peek().kind {
            kind if kind.is_word("src") => (End::Src, "dst"),
            kind if kind.is_word("dst") => (End::Dst, "src"),
            kind if kind.is_word("orig") => (End::Orig, ""),
            kind if kind.is_word("resp") => (End::Resp, ""),
            _ => return End::Either,
        };
        self.next += 1;
        match self.peek().kind {
            TokenKind::Join(join) if self.peek_at(1).kind.is_word(other) => {
                self.next += 2;
                if join == Join::And { End::Both } else { End::Either }
            }
            _ => end,
        }
    }

    /// A kind of tunnel and, if a number follows, its id.
    fn tunnel(&mut self, kind: &str) -> Result<Term, Error> {
        let is_kind = Term::equals(field("tunnel"), Value::Text(Pattern::bare(kind)));
        match self.peek().kind {
            TokenKind::Word(word) if word.starts_with(|c: char| c.is_ascii_digit()) => {
                let id = self.value(field("tunnel_id"))?;
                Ok(is_kind.join(Join::And, Term::equals(field("tunnel_id"), id)))
            }
            _ => Ok(is_kind),
        }
    }

    /// An address or number without a word before it: with the qualifiers of the last one, or as a
    /// host.
    pub(super) fn bare_id(&mut self, word: &str, inherited: Option<Head>) -> Result<Term, Error> {
        let at = self.peek().at;
        self.inherited = Some(inherited.unwrap_or_default());
        self.id(inherited.unwrap_or_default()).map_err(|error| {
            let mut unknown = Error::unknown(at, word);
            if inherited.is_none() && port(word).is_some() {
                unknown.suggestion = Some(format!("port {word}"));
            }
            // A slip in a keyword is likelier than an address that looks like one.
            if inherited.is_some() && unknown.suggestion.is_none() { error } else { unknown }
        })
    }

    /// The id after its qualifiers.
    fn id(&mut self, head: Head) -> Result<Term, Error> {
        let (what, word) = (head.expected(), self.peek().kind);
        let TokenKind::Word(text) = word else { return Err(self.expected(what)) };
        let Token { at, .. } = self.take();
        let term = match head.kind {
            Type::Proto => protocol(head, text),
            Type::Port => port(text).map(|port| head.test(Place::Ports(port, port))),
            Type::PortRange => ports(text).map(|range| head.test(range)),
            Type::Host | Type::Unsaid if head.is_arp() => arp_host(head, text),
            Type::Host | Type::Net | Type::Unsaid => {
                self.address(head, text).map(|set| head.place(set))
            }
        };
        term.ok_or_else(|| {
            let suggestion = match head.kind {
                Type::Host if AddressSet::net(text).is_some() => Some("net"),
                Type::Port if ports(text).is_some() => Some("portrange"),
                _ => None,
            };
            let mut error = Error::new(at, Problem::NotA { what, text: text.to_owned() });
            error.suggestion = suggestion.map(str::to_owned);
            error
        })
    }

    /// The address in `text`, and the tokens after it that belong to a network.
    fn address(&mut self, head: Head, text: &'a str) -> Option<AddressSet> {
        if head.scope == Scope::Ether {
            return AddressSet::mac(text);
        }
        let is_net = |set: AddressSet| (head.kind != Type::Host).then_some(set);
        if self.peek().kind.is_word("mask") {
            let TokenKind::Word(mask) = self.peek_at(1).kind else { return None };
            self.next += 2;
            return AddressSet::net_with_mask(text, mask).and_then(is_net);
        }
        // Stenographer takes blanks around the slash.
        let mut text = text.to_owned();
        while let TokenKind::Word(more) = self.peek().kind {
            if !more.starts_with('/') && !text.ends_with('/') {
                break;
            }
            text.push_str(more);
            self.next += 1;
        }
        match head.kind {
            Type::Net => AddressSet::net(&text),
            Type::Host => AddressSet::host(&text).or_else(|| AddressSet::mac(&text)),
            _ => AddressSet::any(&text),
        }
    }
}

/// The address that ARP asks for or tells of, or that of who does: libpcap's `arp host`.
fn arp_host(head: Head, text: &str) -> Option<Term> {
    let address: Ipv4Addr = text.parse().ok()?;
    let of = |key: &str| {
        let detail = Pattern::quoted(&format!("{key}={address}"));
        Term::equals(field("app_detail"), Value::Text(detail))
    };
    let (sender, target) = (of("arp.sender"), of("arp.target"));
    let term = match head.end {
        End::Src | End::Orig => sender,
        End::Dst | End::Resp => target,
        End::Either => sender.join(Join::Or, target),
        End::Both => sender.join(Join::And, target),
    };
    Some(head.scope.test()?.join(Join::And, term))
}

/// The protocol of `proto`, `ip proto`, `ip6 proto` and `ether proto`.
fn protocol(head: Head, text: &str) -> Option<Term> {
    // pcap-filter has names that are keywords escaped; here they need not be.
    let text = text.strip_prefix('\\').unwrap_or(text);
    let number = lookup(&SCOPES, text)
        .and_then(Scope::ether_type)
        .or_else(|| names::protocol(text).or_else(|| u16::try_from(number(text)?).ok()))?;
    // Smaller numbers in the place of an EtherType are lengths (IEEE 802.3).
    let is_known = if head.scope == Scope::Ether { number >= 0x0600 } else { number <= 255 };
    if head.end != End::Either || !is_known {
        return None;
    }
    let term = match number {
        0x0800 => Scope::Ip.test(),
        0x86dd => Scope::Ip6.test(),
        _ => Scope::Protocol(number).test(),
    };
    match head.scope {
        // Stenographer's ip proto takes IPv6 too, and so does ours: rather more than asked for than
        // less.
        Scope::None | Scope::Ether | Scope::Ip => term,
        Scope::Ip6 => Some(Scope::Ip6.test()?.join(Join::And, term?)),
        Scope::Protocol(_) | Scope::Tunnel => None,
    }
}

/// Whether the word is a direction or a type.
fn begins_head(word: &str) -> bool {
    lookup(&TYPES, word).is_some()
        || ["src", "dst", "orig", "resp"].iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// `FIRST-LAST` in either order, or one port. Names may contain a dash themselves.
fn ports(text: &str) -> Option<Place> {
    if let Some(port) = port(text) {
        return Some(Place::Ports(port, port));
    }
    let (first, last) = text
        .match_indices('-')
        .find_map(|(at, _)| Some((port(text.get(..at)?)?, port(text.get(at + 1..)?)?)))?;
    Some(Place::Ports(first.min(last), first.max(last)))
}
