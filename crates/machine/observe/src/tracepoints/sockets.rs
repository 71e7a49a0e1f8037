//! What the kernel says of TCP sockets and of ways to addresses: changes of a state, and
//! searches for a route.

use std::net::{IpAddr, SocketAddr};

use super::event::IN_INTERRUPT;
use super::format::{Field, Format};

pub(super) const CHANGES: &str = "sock/inet_sock_set_state";
/// Searches among routes, of IPv4 and not.
pub(super) const ROUTES: [(&str, bool); 2] =
    [("fib/fib_table_lookup", true), ("fib6/fib6_table_lookup", false)];
/// `include/net/tcp_states.h`
pub(super) const ESTABLISHED: u64 = 1;
pub(super) const SYN_SENT: u64 = 2;
pub(super) const CLOSE: u64 = 7;
pub(super) const LISTEN: u64 = 10;
/// `AF_INET`
const IPV4: u64 = 2;

/// A socket gets another state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changed {
    socket: Field,
    states: [Field; 2],
    family: Field,
    ports: [Field; 2],
    ipv4: [Field; 2],
    ipv6: [Field; 2],
}

impl Changed {
    pub(super) fn of(format: &Format) -> Option<Self> {
        let both = |one: &str, other: &str| Some([format.field(one)?, format.field(other)?]);
        Some(Self {
            socket: format.field("skaddr")?,
            states: both("oldstate", "newstate")?,
            family: format.field("family")?,
            ports: both("sport", "dport")?,
            ipv4: both("saddr", "daddr")?,
            ipv6: both("saddr_v6", "daddr_v6")?,
        })
    }

    /// Its address in the kernel.
    pub(super) fn socket(&self, record: &[u8]) -> Option<u64> {
        self.socket.number(record)
    }

    /// The state before, and the one that it gets.
    pub(super) fn states(&self, record: &[u8]) -> Option<(u64, u64)> {
        let [before, after] = self.states;
        Some((before.number(record)?, after.number(record)?))
    }

    /// Its own end, then the other one.
    pub(super) fn ends(&self, record: &[u8]) -> Option<[SocketAddr; 2]> {
        let is_v4 = self.family.number(record)? == IPV4;
        let [own, other] = if is_v4 { self.ipv4 } else { self.ipv6 };
        let [own_port, other_port] = self.ports;
        let end = |ip, port| socket_address((ip, is_v4), port, record);
        Some([end(own, own_port)?, end(other, other_port)?])
    }
}

/// Somebody looks for a route.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    target: Field,
    port: Field,
    flags: Field,
    is_v4: bool,
}

impl Route {
    pub(super) fn of(format: &Format, is_v4: bool) -> Option<Self> {
        Some(Self {
            target: format.field("dst")?,
            port: format.field("dport")?,
            flags: format.field("common_flags")?,
            is_v4,
        })
    }

    /// To where; `None` for an answer or a timer, whose search is no process's.
    pub(super) fn remote(&self, record: &[u8]) -> Option<SocketAddr> {
        let is_of_process = self.flags.number(record)? & IN_INTERRUPT == 0;
        is_of_process.then(|| socket_address((self.target, self.is_v4), self.port, record))?
    }
}

fn socket_address((ip, is_v4): (Field, bool), port: Field, record: &[u8]) -> Option<SocketAddr> {
    let bytes = ip.bytes(record)?;
    let ip = if is_v4 {
        IpAddr::from(*bytes.first_chunk::<4>()?)
    } else {
        IpAddr::from(*bytes.first_chunk::<16>()?)
    };
    Some(SocketAddr::new(ip.to_canonical(), u16::try_from(port.number(record)?).ok()?))
}
