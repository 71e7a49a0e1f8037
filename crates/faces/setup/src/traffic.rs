//! What was seen on the interfaces, and which of them look like a mirror port.

use std::collections::BTreeMap;

use network::{Link, LinkState};
use page::table::{Column, render};
use page::text::bits;
use units::number::per_second;

use crate::machine::Counted;

/// Traffic of less is no sign of a mirror port: protocols of switches make some.
const PACKETS_MIN: u64 = 10;
/// A mirror port receives so many times what is sent on it.
const RECEIVED_TO_SENT: u64 = 20;
/// What a packet takes on the disk besides its bytes (docs/format.md): a block's frame and padding.
const BLOCK_BYTES: u64 = 34;
/// Preamble, check sequence and gap of a frame on Ethernet.
const ON_THE_WIRE_BYTES: u64 = 24;

/// An interface with what passed on it in a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The interface.
    pub link: Link,
    /// What it counted in that time.
    pub counted: Counted,
    /// The time, in nanoseconds.
    pub ns: u64,
}

/// What an interface is for, by what was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    Mirror,
    OwnTraffic,
    Quiet,
    NoCarrier,
    Down,
    Loopback,
}

/// Links with the difference of two looks at their counters; one that was not counted twice has
/// none.
pub(crate) fn seen(
    links: Vec<Link>,
    (before, after): (&BTreeMap<String, Counted>, &BTreeMap<String, Counted>),
    ns: u64,
) -> Vec<Seen> {
    let of = |link: Link| {
        let (from, to) = (before.get(&link.name), after.get(&link.name));
        let both = from.zip(to).map(|(from, to)| Counted {
            received_bytes: to.received_bytes.saturating_sub(from.received_bytes),
            received_packets: to.received_packets.saturating_sub(from.received_packets),
            sent_packets: to.sent_packets.saturating_sub(from.sent_packets),
        });
        Seen { link, counted: both.unwrap_or_default(), ns }
    };
    links.into_iter().map(of).collect()
}

impl Seen {
    pub(crate) fn look(&self) -> Look {
        let Seen { link, counted, .. } = self;
        let is_one_sided = counted.received_packets >= PACKETS_MIN
            && counted.received_packets / RECEIVED_TO_SENT >= counted.sent_packets;
        if link.is_loopback {
            Look::Loopback
        } else if link.state == LinkState::Down {
            Look::Down
        } else if link.state == LinkState::NoCarrier {
            Look::NoCarrier
        } else if link.has_address {
            Look::OwnTraffic
        } else if is_one_sided {
            Look::Mirror
        } else {
            Look::Quiet
        }
    }

    /// Bits a second on the wire.
    fn bits_per_s(&self) -> u64 {
        let Counted { received_bytes, received_packets, .. } = self.counted;
        let bytes = received_bytes.saturating_add(received_packets * ON_THE_WIRE_BYTES);
        per_second(bytes.saturating_mul(8), self.ns)
    }

    /// Bytes a second that a recording of it takes.
    fn stored_bytes_per_s(&self) -> u64 {
        let Counted { received_bytes, received_packets, .. } = self.counted;
        per_second(received_bytes.saturating_add(received_packets * BLOCK_BYTES), self.ns)
    }
}

/// Bytes a second that a recording of these interfaces takes, at what was seen.
pub(crate) fn stored_bytes_per_s(seen: &[Seen], interfaces: &[String]) -> u64 {
    let is_chosen =
        |one: &&Seen| interfaces.iter().any(|name| *name == one.link.name || name == "any");
    seen.iter().filter(is_chosen).map(Seen::stored_bytes_per_s).sum()
}

/// What is proposed: all that look like a mirror port; where none does, the only one that is up and
/// not this machine's own.
pub(crate) fn proposal(seen: &[Seen]) -> Vec<String> {
    let with = |wanted: Look| -> Vec<String> {
        let alike = seen.iter().filter(|one| one.look() == wanted);
        alike.map(|one| one.link.name.clone()).collect()
    };
    match (with(Look::Mirror), with(Look::Quiet)) {
        (mirrors, _) if !mirrors.is_empty() => mirrors,
        (_, quiet) if quiet.len() == 1 => quiet,
        _ => Vec::new(),
    }
}

/// The interfaces as a table.
pub(crate) fn table(seen: &[Seen]) -> String {
    let columns = [
        Column::whole("INTERFACE", false),
        Column::whole("STATE", false),
        Column::whole("SPEED", true),
        Column::whole("RECEIVED", true),
        Column::whole("PACKETS IN", true),
        Column::whole("OUT", true),
        Column::whole("WHAT IT LOOKS LIKE", false),
    ];
    let rows: Vec<Vec<String>> = seen.iter().map(row).collect();
    render(&columns, &rows, None)
}

fn row(one: &Seen) -> Vec<String> {
    let look = one.look();
    let state = match look {
        Look::Down => "down",
        Look::NoCarrier => "no link",
        _ => "up",
    };
    let speed = one.link.mbit_per_s.map_or_else(
        || "unknown".to_owned(),
        |speed| if speed % 1000 == 0 { format!("{}G", speed / 1000) } else { format!("{speed}M") },
    );
    let means = match look {
        Look::Mirror => "a mirror port: much received, little sent, no address",
        Look::OwnTraffic => "traffic of this machine: it has an address",
        Look::Quiet => "little traffic while it was watched",
        Look::NoCarrier => "no cable, or nothing at its other end",
        Look::Down => "not in use",
        Look::Loopback => "this machine talking to itself",
    };
    let Counted { received_packets, sent_packets, .. } = one.counted;
    vec![
        one.link.name.clone(),
        state.to_owned(),
        speed,
        bits(one.bits_per_s()),
        received_packets.to_string(),
        sent_packets.to_string(),
        means.to_owned(),
    ]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn link(name: &str, has_address: bool) -> Link {
        Link {
            name: name.to_owned(),
            state: LinkState::Up,
            is_loopback: name == "lo",
            mbit_per_s: Some(10_000),
            has_address,
        }
    }

    fn one(link: Link, received_packets: u64, sent_packets: u64) -> Seen {
        let received_bytes = received_packets * 600;
        let counted = Counted { received_bytes, received_packets, sent_packets };
        Seen { link, counted, ns: 1_000_000_000 }
    }

    #[test]
    fn a_mirror_port_is_known_by_what_it_does() {
        let mirror = one(link("eth1", false), 100_000, 2);
        let down = Link { state: LinkState::Down, ..link("eth3", false) };
        let unplugged = Link { state: LinkState::NoCarrier, ..link("eth4", false) };
        let all = [
            one(link("lo", false), 500, 500),
            one(link("eth0", true), 100_000, 2),
            mirror.clone(),
            one(link("eth2", false), 100, 90),
            one(down, 0, 0),
            one(unplugged, 0, 0),
        ];
        let looks: Vec<Look> = all.iter().map(Seen::look).collect();
        assert_eq!(
            looks,
            [
                Look::Loopback,
                Look::OwnTraffic,
                Look::Mirror,
                Look::Quiet,
                Look::Down,
                Look::NoCarrier
            ]
        );
        assert_eq!(proposal(&all), ["eth1"]);
        let text = table(&all);
        assert!(text.contains("a mirror port: much received"), "{text}");
        assert!(text.contains("499.20 Mbit/s"), "with what surrounds a frame: {text}");
        assert_eq!(stored_bytes_per_s(&all, &["eth1".to_owned()]), 63_400_000);
        assert_eq!(mirror.bits_per_s(), 499_200_000);
    }

    #[test]
    fn without_a_mirror_port_the_only_candidate_is_proposed_and_of_two_none() {
        let (own, quiet) = (one(link("eth0", true), 9, 9), one(link("eth1", false), 0, 0));
        assert_eq!(proposal(&[own.clone(), quiet.clone()]), ["eth1"]);
        let other = one(link("eth2", false), 3, 0);
        assert!(proposal(&[own, quiet, other]).is_empty());
    }

    #[test]
    fn counters_of_two_looks_make_what_was_seen() {
        let counted = |bytes, packets| Counted {
            received_bytes: bytes,
            received_packets: packets,
            sent_packets: 0,
        };
        let before = BTreeMap::from([("eth0".to_owned(), counted(100, 1))]);
        let after = BTreeMap::from([
            ("eth0".to_owned(), counted(700, 3)),
            ("new".to_owned(), counted(9000, 9)),
        ]);
        let links = vec![link("eth0", false), link("new", false)];
        let found = seen(links, (&before, &after), 1_000_000_000);
        let counts: Vec<u64> = found.iter().map(|one| one.counted.received_packets).collect();
        assert_eq!(counts, [2, 0], "one that was counted once says nothing");
    }
}
