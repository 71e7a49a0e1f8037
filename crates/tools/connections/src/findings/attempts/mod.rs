//! Connections that cannot be opened, or do not last: nobody answers, or somebody refuses or
//! resets.
//!
//! Mechanism: a SYN that is not answered is sent again after a second, then after two, four and so
//! on; a reset, or an ICMP message, ends the attempt at once. So an attempt whose SYN was sent
//! again got no answer, and one that ended within a round trip was refused. Refuted for a place
//! where nearly all other attempts succeed, and by an attempt that has not yet waited a second.
//! Where no route leads to an address, nothing is sent at all.

mod place;
mod refused;
mod silent;
mod unrouted;

use std::net::SocketAddr;

use super::explain::Found;
use super::machine::Machine;
use place::Place;

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let places = place::places(machine);
    let of = |(at, place): (&(u64, SocketAddr), &Place<'_>)| {
        [
            silent::finding(machine, *at, place),
            refused::finding(machine, &places, (*at, place)),
            refused::reset(machine, *at, place),
            unrouted::finding(machine, &places, (*at, place)),
        ]
    };
    places.iter().flat_map(of).flatten().collect()
}
