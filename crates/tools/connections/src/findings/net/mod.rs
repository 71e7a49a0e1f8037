//! What is wrong with what packets go through: queues, interfaces, neighbours, the connection table
//! of netfilter, and with what goes by UDP.

mod conntrack;
mod dns;
mod duplex;
mod interfaces;
mod neighbours;
mod queues;
mod udp;

use super::explain::Found;
use super::machine::Machine;

/// All of them, in no order.
pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let all = [
        conntrack::findings(machine),
        dns::findings(machine),
        duplex::findings(machine),
        interfaces::findings(machine),
        neighbours::findings(machine),
        queues::findings(machine),
        udp::findings(machine),
    ];
    all.into_iter().flatten().collect()
}

/// How many open connections pass an interface: what a finding of it reaches.
fn connections(machine: &Machine<'_>, namespace: u64, link: u32) -> usize {
    let passes = |track: &&super::super::watch::Track| {
        let ends = (track.last.local.ip(), track.last.remote.ip());
        track.last.info.is_some() && machine.interface_of(namespace, ends) == Some(link)
    };
    machine.watch.of_namespace(namespace).filter(passes).count().max(1)
}
