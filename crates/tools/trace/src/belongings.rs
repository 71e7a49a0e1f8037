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
    /// Its sockets, each with the process that has it.
    pub sockets: Vec<(Endpoint, Arc<Owner>)>,
    /// The process that everything belongs to whose socket was gone before anybody looked: there
    /// was never another one.
    pub only: Option<Arc<Owner>>,
}

impl Seen {
    /// The sockets of the namespace that this thread is in, as far as they belong to wanted
    /// processes.
    pub fn of_namespace(
        owners: &mut Owners,
        is_wanted: impl Fn(u32) -> bool,
        only: Option<u32>,
    ) -> Result<Self, network::Error> {
        let endpoints = endpoints()?;
        owners.learn(endpoints.iter().map(|endpoint| endpoint.inode));
        let owned = endpoints.into_iter().filter_map(|endpoint| {
            let owner = owners.get(endpoint.inode)?;
            is_wanted(owner.process).then(|| (endpoint, Arc::clone(owner)))
        });
        let sockets = owned.collect();
        Ok(Self { sockets, only: only.map(|process| Arc::new(Owner::of_process(process))) })
    }
}

/// What is known so far.
#[derive(Clone, Debug, Default)]
pub struct Belongings {
    /// By both ends, in the direction-free form.
    connections: HashMap<FiveTuple, Arc<Owner>>,
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
                let address = Some(local.ip()).filter(|ip| !ip.is_unspecified());
                self.ends.insert((protocol, address, local.port()), Arc::clone(owner));
            } else {
                let tuple = FiveTuple {
                    orig: local.ip().into(),
                    resp: remote.ip().into(),
                    orig_port: local.port(),
                    resp_port: remote.port(),
                    proto: protocol,
                };
                self.connections.insert(tuple.canonical().0, Arc::clone(owner));
            }
        }
        self.only.clone_from(&seen.only);
    }

    /// Learns who sent a packet between these ends, which says more than a socket that several
    /// processes have.
    pub fn tell(&mut self, tuple: &FiveTuple, owner: Arc<Owner>) {
        self.make_room();
        self.connections.insert(tuple.canonical().0, owner);
    }

    fn make_room(&mut self) {
        if self.connections.len() + self.ends.len() > KNOWN_MAX {
            self.connections.clear();
            self.ends.clear();
        }
    }

    /// Whether it is known of a connection, and not only of one end.
    pub fn has_connection(&self, tuple: &FiveTuple) -> bool {
        self.connections.contains_key(&tuple.canonical().0)
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
        self.connections.get(&tuple.canonical().0).or_else(by_end)
    }

    /// The same, or else the only process that there ever was.
    pub fn owner_or_only(&self, tuple: &FiveTuple) -> Option<&Arc<Owner>> {
        self.owner(tuple).or(self.only.as_ref())
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

    fn socket(protocol: u8, local: &str, remote: &str, process: u32) -> (Endpoint, Arc<Owner>) {
        let (local, remote) = (local.parse().unwrap(), remote.parse().unwrap());
        (Endpoint { protocol, local, remote, inode: 1 }, owner(process))
    }

    fn tuple(proto: Protocol, orig: &str, resp: &str) -> FiveTuple {
        let [orig, resp]: [SocketAddr; 2] = [orig, resp].map(|text| text.parse().unwrap());
        FiveTuple {
            orig: orig.ip().into(),
            resp: resp.ip().into(),
            orig_port: orig.port(),
            resp_port: resp.port(),
            proto,
        }
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
}
