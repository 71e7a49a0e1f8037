//! Whose packets are: learned from sockets, remembered when these are gone.

use core::net::{IpAddr, SocketAddr};
use std::collections::HashMap;
use std::sync::Arc;

use network::sockets::{Endpoint, Owner, Owners, endpoints};
use wire::{Address, FiveTuple, Protocol};

/// Connections that are remembered; beyond it everything is learned anew.
const KNOWN_MAX: usize = 1 << 18;

/// One look at a namespace.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Its sockets, each with the process that has it; `None` is one that is not asked for.
    pub sockets: Vec<(Endpoint, Option<Arc<Owner>>)>,
    /// The process that everything belongs to whose socket was gone before anybody looked: there
    /// was never another one.
    pub only: Option<Arc<Owner>>,
}

impl Seen {
    /// The sockets of the namespace that this thread is in.
    pub fn of_namespace(owners: &mut Owners, only: Option<u32>) -> Result<Self, network::Error> {
        let endpoints = endpoints()?;
        owners.learn(endpoints.iter().map(|endpoint| endpoint.inode));
        let owned = endpoints.into_iter().filter_map(|endpoint| {
            let owner = owners.get(endpoint.inode)?;
            Some((endpoint, Some(Arc::clone(owner))))
        });
        let sockets = owned.collect();
        Ok(Self { sockets, only: only.map(|process| Arc::new(Owner::of_process(process))) })
    }
}

/// What the kernel reported of a socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// Which packets are of it.
    pub ends: Ends,
    /// Who opened it; `None` is a process that is not asked for.
    pub owner: Option<Arc<Owner>>,
}

/// Where a socket leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// A TCP connection: its own end, then the other one.
    Connection([SocketAddr; 2]),
    /// From a port, of any address, to this one.
    Sender {
        /// TCP or UDP, by its number.
        protocol: u8,
        /// Its own port.
        port: u16,
        /// Where to.
        remote: SocketAddr,
    },
    /// TCP connections that come to this address, which may be any.
    Listener(SocketAddr),
}

/// Whose a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose<'a> {
    /// This one's.
    Of(&'a Arc<Owner>),
    /// Of a process that is not asked for.
    Others,
    /// No socket says.
    Unknown,
}

/// What is known so far.
#[derive(Clone, Debug, Default)]
pub struct Belongings {
    /// By both ends, in the direction-free form; `None` is a process that is not asked for.
    connections: HashMap<FiveTuple, Option<Arc<Owner>>>,
    /// By one end's port and the other end.
    senders: HashMap<(Protocol, u16, SocketAddr), Option<Arc<Owner>>>,
    /// By one end of sockets without a connection; without address where it is any of the
    /// machine's.
    ends: HashMap<(Protocol, Option<IpAddr>, u16), Arc<Owner>>,
    only: Option<Arc<Owner>>,
}

impl Belongings {
    /// Learns from a look; what was known before stays unless another process has it now.
    pub fn learn(&mut self, seen: &Seen) {
        self.make_room();
        for (socket, owner) in &seen.sockets {
            let protocol = Protocol(u16::from(socket.protocol));
            let (local, remote) = (plain(socket.local), plain(socket.remote));
            if remote.port() == 0 {
                self.has_end(protocol, local, owner.as_ref());
                continue;
            }
            let tuple = between(protocol, [local, remote]).canonical().0;
            match owner {
                Some(_) => drop(self.connections.insert(tuple, owner.clone())),
                // Both ends of a connection may be here: one that is asked for is enough.
                None => drop(self.connections.entry(tuple).or_insert(None)),
            }
        }
        self.only.clone_from(&seen.only);
    }

    /// Several may listen at one port (`SO_REUSEPORT`): one that is asked for is enough.
    fn has_end(&mut self, protocol: Protocol, local: SocketAddr, owner: Option<&Arc<Owner>>) {
        let address = Some(local.ip()).filter(|ip| !ip.is_unspecified());
        if let Some(owner) = owner {
            self.ends.insert((protocol, address, local.port()), Arc::clone(owner));
        }
    }

    /// Learns who sent a packet between these ends, which says more than a socket that several
    /// processes have.
    pub fn tell(&mut self, tuple: &FiveTuple, owner: Arc<Owner>) {
        self.make_room();
        self.connections.insert(tuple.canonical().0, Some(owner));
    }

    /// Learns what the kernel reported. The newest is right: ports are used again.
    pub fn take(&mut self, opened: Opened) {
        self.make_room();
        match opened.ends {
            Ends::Connection(ends) => {
                let tuple = between(Protocol::TCP, ends.map(plain));
                self.connections.insert(tuple.canonical().0, opened.owner);
            }
            Ends::Sender { protocol, port, remote } => {
                let key = (Protocol(protocol.into()), port, plain(remote));
                self.senders.insert(key, opened.owner);
            }
            Ends::Listener(at) => self.has_end(Protocol::TCP, plain(at), opened.owner.as_ref()),
        }
    }

    fn make_room(&mut self) {
        if self.connections.len() + self.senders.len() + self.ends.len() > KNOWN_MAX {
            self.connections.clear();
            self.senders.clear();
            self.ends.clear();
        }
    }

    /// Whether it is known of a connection, and not only of one end.
    pub fn has_connection(&self, tuple: &FiveTuple) -> bool {
        matches!(self.connections.get(&tuple.canonical().0), Some(Some(_)))
    }

    /// Whose packets between these ends are. A process that is asked for goes before others: one
    /// may talk with the other.
    pub fn whose(&self, tuple: &FiveTuple) -> Whose<'_> {
        if let Some(owner) = self.owner_or_only(tuple) {
            return Whose::Of(owner);
        }
        let known = self.connections.contains_key(&tuple.canonical().0);
        if known || self.sent_by(tuple).next().is_some() { Whose::Others } else { Whose::Unknown }
    }

    /// Who sends from one of both ends to the other one.
    fn sent_by(&self, tuple: &FiveTuple) -> impl Iterator<Item = Option<&Arc<Owner>>> {
        let ends = [
            (tuple.orig_port, tuple.resp, tuple.resp_port),
            (tuple.resp_port, tuple.orig, tuple.orig_port),
        ];
        ends.into_iter().filter_map(|(port, address, to)| {
            let remote = SocketAddr::new(ip(address)?, to);
            self.senders.get(&(tuple.proto, port, remote)).map(Option::as_ref)
        })
    }

    /// Whose packets between these ends are, as far as sockets say.
    pub fn owner(&self, tuple: &FiveTuple) -> Option<&Arc<Owner>> {
        let ends = [(tuple.orig, tuple.orig_port), (tuple.resp, tuple.resp_port)];
        let bound = |ip: Option<IpAddr>, port| self.ends.get(&(tuple.proto, ip, port));
        let by_end = || {
            let at = |(address, port)| bound(Some(ip(address)?), port);
            ends.into_iter().find_map(at).or_else(|| {
                ends.into_iter().find_map(|(address, port)| {
                    ip(address)?;
                    bound(None, port)
                })
            })
        };
        let connection = self.connections.get(&tuple.canonical().0).and_then(Option::as_ref);
        connection.or_else(|| self.sent_by(tuple).flatten().next()).or_else(by_end)
    }

    /// The same, or else the only process that there ever was.
    pub fn owner_or_only(&self, tuple: &FiveTuple) -> Option<&Arc<Owner>> {
        self.owner(tuple).or(self.only.as_ref())
    }
}

fn between(proto: Protocol, [orig, resp]: [SocketAddr; 2]) -> FiveTuple {
    FiveTuple {
        orig: orig.ip().into(),
        resp: resp.ip().into(),
        orig_port: orig.port(),
        resp_port: resp.port(),
        proto,
    }
}

/// An IPv4 address that a socket of IPv6 has is IPv4 on the wire.
fn plain(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}

fn ip(address: Address) -> Option<IpAddr> {
    match address {
        Address::V4(ip) => Some(ip.into()),
        Address::V6(ip) => Some(ip.into()),
        Address::None | Address::Mac(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(process: u32) -> Arc<Owner> {
        Arc::new(Owner { process, name: format!("p{process}") })
    }

    fn socket(
        protocol: u8,
        local: &str,
        remote: &str,
        process: u32,
    ) -> (Endpoint, Option<Arc<Owner>>) {
        let (local, remote) = (local.parse().unwrap(), remote.parse().unwrap());
        (Endpoint { protocol, local, remote, inode: 1 }, Some(owner(process)))
    }

    fn tuple(proto: Protocol, orig: &str, resp: &str) -> FiveTuple {
        between(proto, [orig, resp].map(|text| text.parse().unwrap()))
    }

    fn process(known: &Belongings, tuple: &FiveTuple) -> Option<u32> {
        known.owner(tuple).map(|owner| owner.process)
    }

    #[test]
    fn connections_go_before_ends_and_both_directions_are_one() {
        let mut known = Belongings::default();
        let sockets = vec![
            socket(6, "0.0.0.0:80", "0.0.0.0:0", 1),
            socket(6, "[::ffff:10.0.0.1]:80", "[::ffff:10.0.0.2]:4000", 2),
            socket(17, "10.0.0.1:53", "0.0.0.0:0", 3),
        ];
        known.learn(&Seen { sockets, only: None });
        let of = |proto, orig, resp| process(&known, &tuple(proto, orig, resp));
        assert_eq!(of(Protocol::TCP, "10.0.0.2:4000", "10.0.0.1:80"), Some(2));
        assert_eq!(of(Protocol::TCP, "10.0.0.1:80", "10.0.0.2:4000"), Some(2));
        assert_eq!(of(Protocol::TCP, "10.0.0.9:4000", "10.0.0.1:80"), Some(1), "its listener");
        assert_eq!(of(Protocol::UDP, "10.0.0.9:999", "10.0.0.1:53"), Some(3));
        assert_eq!(of(Protocol::UDP, "10.0.0.9:999", "10.0.0.7:53"), None, "another address");
        assert_eq!(of(Protocol::UDP, "10.0.0.9:80", "10.0.0.7:90"), None, "another protocol");
    }

    #[test]
    fn what_is_gone_stays_known_and_the_only_process_has_the_rest() {
        let mut known = Belongings::default();
        let sockets = vec![socket(17, "10.0.0.1:500", "10.0.0.2:53", 4)];
        known.learn(&Seen { sockets, only: None });
        known.learn(&Seen { sockets: vec![], only: Some(owner(5)) });
        let gone = tuple(Protocol::UDP, "10.0.0.2:53", "10.0.0.1:500");
        let never = tuple(Protocol::UDP, "10.0.0.2:53", "10.0.0.1:501");
        assert_eq!((process(&known, &gone), process(&known, &never)), (Some(4), None));
        assert_eq!(known.owner_or_only(&never).unwrap().process, 5);
        assert_eq!(known.owner_or_only(&gone).unwrap().process, 4);
    }

    #[test]
    fn what_the_kernel_reports_is_known_without_a_look_and_the_newest_is_right() {
        let mut known = Belongings::default();
        let connected = |whose: Option<u32>| Opened {
            ends: Ends::Connection(["10.0.0.1:4000", "10.0.0.2:80"].map(|at| at.parse().unwrap())),
            owner: whose.map(owner),
        };
        let web = tuple(Protocol::TCP, "10.0.0.2:80", "10.0.0.1:4000");
        known.take(connected(Some(1)));
        assert_eq!(known.whose(&web), Whose::Of(&owner(1)));
        known.take(connected(None));
        assert_eq!(known.whose(&web), Whose::Others, "the port is another one's now");
        let remote = "10.0.0.2:53".parse().unwrap();
        let asks = Ends::Sender { protocol: 17, port: 999, remote };
        known.take(Opened { ends: asks, owner: Some(owner(2)) });
        for ends in [["10.0.0.1:999", "10.0.0.2:53"], ["10.0.0.2:53", "10.0.0.1:999"]] {
            let [orig, resp] = ends;
            assert_eq!(known.whose(&tuple(Protocol::UDP, orig, resp)), Whose::Of(&owner(2)));
        }
        let other = tuple(Protocol::UDP, "10.0.0.1:998", "10.0.0.2:53");
        assert_eq!(known.whose(&other), Whose::Unknown);
    }

    #[test]
    fn of_two_ends_on_one_machine_the_one_that_is_asked_for_counts() {
        let ends = ["127.0.0.1:4000", "127.0.0.1:80"].map(|at| at.parse().unwrap());
        let tuple = tuple(Protocol::TCP, "127.0.0.1:4000", "127.0.0.1:80");
        // A client of no interest connects to a server that is.
        let client = Opened { ends: Ends::Connection(ends), owner: None };
        let mut known = Belongings::default();
        known.take(client.clone());
        assert_eq!(known.whose(&tuple), Whose::Others);
        let at = "0.0.0.0:80".parse().unwrap();
        known.take(Opened { ends: Ends::Listener(at), owner: Some(owner(3)) });
        assert_eq!(known.whose(&tuple), Whose::Of(&owner(3)));
        let (ours, mut theirs) = (
            socket(6, "127.0.0.1:80", "127.0.0.1:4000", 4),
            socket(6, "127.0.0.1:4000", "127.0.0.1:80", 5),
        );
        theirs.1 = None;
        let mut known = Belongings::default();
        known.take(client);
        known.learn(&Seen { sockets: vec![ours, theirs], only: None });
        assert_eq!(known.whose(&tuple), Whose::Of(&owner(4)));
    }
}
