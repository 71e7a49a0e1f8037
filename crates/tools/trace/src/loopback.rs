//! Services of this machine's loopback, which a program in a namespace of its own does not reach.

use std::collections::BTreeSet;

use network::link_counters;
use network::sockets::{Endpoint, counters, endpoints};

/// Services that a note names.
const PORTS_NAMED: usize = 5;

/// Ports at which something listens on this machine's loopback alone.
pub fn loopback_services() -> BTreeSet<u16> {
    let is_service = |endpoint: &Endpoint| {
        endpoint.local.ip().to_canonical().is_loopback() && endpoint.remote.port() == 0
    };
    let endpoints = endpoints().unwrap_or_default();
    endpoints.iter().filter(|it| is_service(it)).map(|it| it.local.port()).collect()
}

/// What there is to say when the loopback of the namespace that this thread is in has refused
/// somebody.
pub fn refused_on_loopback(services: &BTreeSet<u16>) -> Option<String> {
    let counters = counters();
    let count = |name: &str| counters.get(name).copied().unwrap_or(0);
    let is_used = link_counters("lo").is_ok_and(|of| of.received > 0);
    let is_refused = count("TcpAttemptFails").min(count("TcpOutRsts")) + count("UdpNoPorts") > 0;
    let ports: Vec<String> = services.iter().take(PORTS_NAMED).map(u16::to_string).collect();
    let named = match ports.len() {
        0 => String::new(),
        _ => format!(" (at ports {}, say)", ports.join(", ")),
    };
    (is_used && is_refused).then(|| {
        format!(
            "the program was refused on 127.0.0.1: its loopback is its own, and what listens on \
             this machine's alone{named} is not reached from there; trace the client without a \
             namespace (--pid), or have the service listen on an address of this machine"
        )
    })
}
