//! The qualifiers of an id: `[protocol] [direction] [type]`, as far as they are read.

use wire::Protocol;

use crate::address::AddressSet;
use crate::field::Field;
use crate::names;
use crate::number::number;
use crate::operator::Join;
use crate::term::{End, Place, Term, Test};
use crate::value::Value;

/// What an id is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Type {
    /// A host, or a network if it is written as one.
    #[default]
    Unsaid,
    Host,
    Net,
    Port,
    PortRange,
    Proto,
}

/// What the protocol word before an id says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Scope {
    #[default]
    None,
    Protocol(u16),
    Ip,
    Ip6,
    Ether,
    Tunnel,
}

/// The qualifiers of an id. The ids after it inherit them: `port 80 or 443`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Head {
    pub(super) scope: Scope,
    pub(super) end: End,
    pub(super) kind: Type,
}

/// A field of the grammar.
pub(super) fn field(name: &str) -> &'static Field {
    Field::find(name).expect("fields named in the grammar are in the table")
}

/// A port by number or service.
pub(super) fn port(text: &str) -> Option<u16> {
    let text = text.strip_prefix('\\').unwrap_or(text);
    names::service(text).or_else(|| u16::try_from(number(text)?).ok())
}

impl Scope {
    /// Whether ids of this type belong to what the word stands for.
    pub(super) fn takes(self, kind: Type) -> bool {
        match kind {
            Type::Host | Type::Unsaid => true,
            Type::Net => self != Self::Ether,
            Type::Port | Type::PortRange => !matches!(self, Self::Ether | Self::Tunnel),
            Type::Proto => !matches!(self, Self::Protocol(_) | Self::Tunnel),
        }
    }

    pub(super) fn is_arp(self) -> bool {
        [Self::Protocol(Protocol::ARP.0), Self::Protocol(Protocol::RARP.0)].contains(&self)
    }

    /// The condition that the word is by itself.
    pub(super) fn test(self) -> Option<Term> {
        match self {
            Self::Ip => Some(Test::Version(false).into()),
            Self::Ip6 => Some(Test::Version(true).into()),
            Self::Protocol(number) => {
                Some(Term::equals(field("proto"), Value::Number(number.into())))
            }
            Self::None | Self::Ether | Self::Tunnel => None,
        }
    }

    /// The number by which `ether proto` knows the word.
    pub(super) fn ether_type(self) -> Option<u16> {
        match self {
            Self::Ip => Some(0x0800),
            Self::Ip6 => Some(0x86dd),
            _ => None,
        }
    }
}

impl Head {
    /// Whether the word is a name that may stand for an id of this type.
    pub(super) fn takes_names(self, word: &str) -> bool {
        matches!(self.kind, Type::Port | Type::PortRange) && port(word).is_some()
    }

    pub(super) fn is_arp(self) -> bool {
        self.scope.is_arp()
    }

    /// What has to follow the qualifiers.
    pub(super) fn expected(self) -> &'static str {
        match (self.kind, self.scope) {
            (Type::Port, _) => "a port, 0 to 65535 or the name of a service",
            (Type::PortRange, _) => "a range of ports such as 6000-6008",
            (Type::Proto, Scope::Ether) => "an EtherType such as arp or 0x88cc",
            (Type::Proto, _) => "a protocol, 0 to 255 or a name",
            (_, Scope::Ether) => "a station address such as 00:1b:2c:3d:4e:5f",
            (Type::Net, _) => "a network such as 10.0.0.0/8, 10.1 or 2001:db8::/32",
            (Type::Host | Type::Unsaid, _) => {
                "an IP address; names are not resolved, write sni, http_host or dns_names"
            }
        }
    }

    pub(super) fn place(self, set: AddressSet) -> Term {
        self.test(if self.scope == Scope::Tunnel { Place::Outer(set) } else { Place::Address(set) })
    }

    pub(super) fn test(self, place: Place) -> Term {
        let test = Test::Place(self.end, place).into();
        match self.scope.test() {
            Some(scope) => scope.join(Join::And, test),
            None => test,
        }
    }
}
