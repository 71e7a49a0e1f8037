//! What is wrong with what packets go through: queues, interfaces, neighbours, the connection table
//! of netfilter, and with what goes by UDP.

mod conntrack;
mod dns;
mod duplex;
mod interfaces;
mod neighbours;
mod queues;
pub(super) mod reverse_path;
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
        reverse_path::findings(machine),
        udp::findings(machine),
    ];
    all.into_iter().flatten().collect()
}
