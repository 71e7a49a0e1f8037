//! What sessions had in the windows, put together by what they have in common.

use core::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use format::session_row::SessionRow;
use wire::{Address, FiveTuple, Protocol};

use crate::history::{History, Moment, WINDOWS};
use crate::known::Known;
use crate::names::Names;

/// By what traffic is put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grouping {
    /// Both ends with their ports, and the protocol.
    Session,
    /// Both addresses.
    Pair,
    /// Each address; a session counts for both of its ends.
    Host,
    /// The port of the responder, under its protocol.
    Port,
    /// The application protocol, else what is below.
    Protocol,
}

/// Whose traffic it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Who {
    /// Originator and responder.
    Session(FiveTuple),
    /// Both addresses, that of the originator of most sessions first.
    Pair(Address, Address),
    /// An address.
    Host(Address),
    /// What the responder is reached by.
    Port(Protocol, u16),
    /// An application protocol.
    Application(wire::App),
    /// A protocol of which the application is not known.
    Protocol(Protocol),
}

/// Bytes and packets in each of [`WINDOWS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sums {
    /// Bytes on the wire from the first end, or from the host.
    pub sent: [u64; 3],
    /// Bytes sent to it.
    pub received: [u64; 3],
    /// Packets both ways.
    pub packets: [u64; 3],
}

impl Sums {
    /// Bytes both ways.
    pub fn bytes(&self) -> [u64; 3] {
        let mut sum = self.sent;
        let pairs = sum.iter_mut().zip(self.received);
        pairs.for_each(|(sum, received)| *sum = sum.saturating_add(received));
        sum
    }

    fn turned(self) -> Self {
        Self { sent: self.received, received: self.sent, packets: self.packets }
    }

    fn add(&mut self, other: &Self) {
        let add = |to: &mut [u64; 3], from: &[u64; 3]| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = to.saturating_add(*from));
        };
        add(&mut self.sent, &other.sent);
        add(&mut self.received, &other.received);
        add(&mut self.packets, &other.packets);
    }
}

/// One line of who talks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Talker {
    /// Whose traffic it is.
    pub who: Who,
    /// What the traffic itself calls it: a TLS server name, an HTTP host, a name that DNS answered
    /// with the address.
    pub name: Option<Arc<str>>,
    /// The application protocol of a session.
    pub app: Option<&'static str>,
    /// Sums of the row.
    pub sums: Sums,
    /// Sessions in the longest window.
    pub sessions: usize,
}

/// As `10.0.0.1:4000 > 10.0.0.2:443 tcp`.
impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(tuple) => {
                let end = |address, port| End { address, port, has_port: tuple.proto.has_ports() };
                let (orig, resp) =
                    (end(tuple.orig, tuple.orig_port), end(tuple.resp, tuple.resp_port));
                write!(f, "{orig} > {resp} {}", Proto(tuple.proto))
            }
            Self::Pair(one, other) => write!(f, "{one} > {other}"),
            Self::Host(address) => write!(f, "{address}"),
            Self::Port(proto, port) if proto.has_ports() => write!(f, "{}/{port}", Proto(*proto)),
            Self::Port(proto, _) | Self::Protocol(proto) => Proto(*proto).fmt(f),
            Self::Application(app) => f.write_str(app.name()),
        }
    }
}

struct Proto(Protocol);

impl fmt::Display for Proto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.name(), self.0.0) {
            (Some(name), _) => f.write_str(name),
            (None, number @ 0x600..) => write!(f, "ethertype {number:#06x}"),
            (None, number) => write!(f, "protocol {number}"),
        }
    }
}

struct End {
    address: Address,
    port: u16,
    has_port: bool,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address, self.has_port) {
            (Address::V6(ip), true) => write!(f, "[{ip}]:{}", self.port),
            (address, true) => write!(f, "{address}:{}", self.port),
            (address, false) => write!(f, "{address}"),
        }
    }
}

impl Who {
    /// A query that selects its sessions.
    pub fn query(&self) -> String {
        match self {
            Self::Session(tuple) => {
                let FiveTuple { orig, resp, orig_port, resp_port, proto } = *tuple;
                let (ends, proto) = (pair(orig, resp), proto_query(proto));
                if !tuple.proto.has_ports() {
                    format!("{ends} and {proto}")
                } else if orig_port == resp_port {
                    format!(
                        "{ends} and orig port {orig_port} and resp port {resp_port} and {proto}"
                    )
                } else {
                    format!("{ends} and port {orig_port} and port {resp_port} and {proto}")
                }
            }
            Self::Pair(one, other) => pair(*one, *other),
            Self::Host(address) => host(*address),
            Self::Port(proto, port) if proto.has_ports() => {
                format!("resp port {port} and {}", proto_query(*proto))
            }
            Self::Port(proto, _) => proto_query(*proto),
            Self::Application(app) => format!("app {}", app.name()),
            Self::Protocol(proto) => format!("{} and not has app", proto_query(*proto)),
        }
    }
}

fn host(address: Address) -> String {
    match address {
        Address::None => "proto = unparsed".to_owned(),
        Address::Mac(_) => format!("ether host {address}"),
        Address::V4(_) | Address::V6(_) => format!("host {address}"),
    }
}

/// Sessions between two hosts, whichever of them began it.
fn pair(one: Address, other: Address) -> String {
    match (one == other, one) {
        (true, Address::V4(_) | Address::V6(_)) => format!("orig host {one} and resp host {one}"),
        (true, _) => host(one),
        (false, _) => format!("{} and {}", host(one), host(other)),
    }
}

fn proto_query(proto: Protocol) -> String {
    match proto {
        Protocol::UNPARSED => "proto = unparsed".to_owned(),
        Protocol(number @ 0x600..) => format!("ether proto {number}"),
        Protocol(number) => format!("proto = {number}"),
    }
}

/// Sums of each session in the windows that end at a moment, by its number.
fn by_session(history: &History, known: &Known, at: Moment) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); known.bound()];
    for (count, second) in history.window(at) {
        for entry in &second.entries {
            let place = usize::try_from(entry.session).expect("32 bits fit");
            let sums = sums.get_mut(place).expect("numbers are below the bound");
            let [orig, resp] = entry.bytes;
            let packets: u64 = entry.packets.iter().map(|&packets| u64::from(packets)).sum();
            // Longest window last: a second that is in a shorter one is in it, too.
            for window in WINDOWS.len() - count..WINDOWS.len() {
                let add = |to: &mut [u64; 3], count| {
                    if let Some(to) = to.get_mut(window) {
                        *to = to.saturating_add(count);
                    }
                };
                add(&mut sums.sent, orig);
                add(&mut sums.received, resp);
                add(&mut sums.packets, packets);
            }
        }
    }
    sums
}

/// Who talks in the windows that end at a moment, most in the middle one first, at most so many;
/// and how many more there are.
pub(crate) fn talkers(
    (history, known, names): (&History, &Known, &Names),
    grouping: Grouping,
    at: Moment,
    (selects, limit): (&dyn Fn(&SessionRow) -> bool, usize),
) -> (Vec<Talker>, usize) {
    let sums = by_session(history, known, at);
    let active = (0..).zip(sums).filter(|(_, sums)| sums.packets != [0; 3]);
    let sessions = active.map(|(number, sums)| (known.get(number), sums));
    let sessions = sessions.filter(|(session, _)| selects(session));
    let mut talkers = if grouping == Grouping::Session {
        // Each is a group of its own.
        sessions.map(|(session, sums)| of_session(session, sums)).collect()
    } else {
        put_together(sessions, grouping)
    };
    talkers.sort_unstable_by_key(|talker| {
        let [_, middle, longest] = talker.sums.bytes();
        (Reverse(middle), Reverse(longest), talker.who)
    });
    let more = talkers.len().saturating_sub(limit);
    talkers.truncate(limit);
    for talker in &mut talkers {
        talker.name = match talker.who {
            Who::Host(address) => names.get(address),
            Who::Session(tuple) => {
                known.of_tuple(&tuple).and_then(|session| session_name(session, names))
            }
            _ => None,
        };
    }
    (talkers, more)
}

fn of_session(session: &SessionRow, sums: Sums) -> Talker {
    let who = Who::Session(session.tuple);
    Talker { who, name: None, app: app(session), sums, sessions: 1 }
}

fn put_together<'s>(
    sessions: impl Iterator<Item = (&'s SessionRow, Sums)>,
    grouping: Grouping,
) -> Vec<Talker> {
    let mut groups: HashMap<Who, Talker> = HashMap::new();
    for (session, sums) in sessions {
        for (who, sums) in groups_of(session, grouping, sums) {
            let talker = groups.entry(who).or_insert_with(|| Talker {
                who,
                name: None,
                app: None,
                sums: Sums::default(),
                sessions: 0,
            });
            talker.sums.add(&sums);
            talker.sessions += 1;
        }
    }
    groups.into_values().collect()
}

fn app(session: &SessionRow) -> Option<&'static str> {
    session.app.map(|known| known.app.name())
}

/// What a session calls its responder, or else what DNS called it.
fn session_name(session: &SessionRow, names: &Names) -> Option<Arc<str>> {
    let spoken = session.names.sni.as_deref();
    let spoken = spoken.or_else(|| session.names.http_host.first().map(String::as_str));
    let asked = || session.names.dns_names.first().map(String::as_str);
    spoken.or_else(asked).map(Arc::from).or_else(|| names.get(session.tuple.resp))
}

/// What a session counts for, with its sums seen from there.
fn groups_of(session: &SessionRow, grouping: Grouping, sums: Sums) -> Vec<(Who, Sums)> {
    let tuple = session.tuple;
    match grouping {
        Grouping::Session => vec![(Who::Session(tuple), sums)],
        Grouping::Pair if tuple.orig <= tuple.resp => {
            vec![(Who::Pair(tuple.orig, tuple.resp), sums)]
        }
        Grouping::Pair => vec![(Who::Pair(tuple.resp, tuple.orig), sums.turned())],
        Grouping::Host if tuple.orig == tuple.resp => vec![(Who::Host(tuple.orig), sums)],
        Grouping::Host => {
            vec![(Who::Host(tuple.orig), sums), (Who::Host(tuple.resp), sums.turned())]
        }
        Grouping::Port => vec![(Who::Port(tuple.proto, tuple.resp_port), sums)],
        Grouping::Protocol => {
            let app = session.app.map(|known| Who::Application(known.app));
            vec![(app.unwrap_or(Who::Protocol(tuple.proto)), sums)]
        }
    }
}
