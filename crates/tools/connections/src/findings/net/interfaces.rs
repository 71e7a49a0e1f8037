//! An interface counts errors or drops.
//!
//! Mechanism: a damaged frame never reaches the program, and one for which the card or the kernel
//! had no space neither; both are sent again. Which counter moves says why. Refuted by few beside
//! what went through. Frames of protocols that nobody takes count as drops, too, and are no loss:
//! where only those move, and no TCP connection missed a segment meanwhile, it is a note.

use network::paths::LinkTotals;

use super::super::explain::{Found, Path};
use super::super::machine::Machine;
use crate::{LinkHistory, NamespaceHistory};
use findings::words::percent;
use findings::{Finding, Remedy, Severity};

/// Fewer errors are no finding.
const ERRORS_MIN: u64 = 10;
/// Nor is less than one in so many packets.
const ERRORS_SHARE: u64 = 10_000;
/// The same of drops.
const DROPS_MIN: u64 = 50;
const DROPS_SHARE: u64 = 1000;
/// Segments that came behind a missing one, for each drop: with fewer it is not TCP that was lost.
const MISSED_SHARE: u64 = 10;

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let all = machine.watch.namespaces.iter();
    let of = |(inode, history): (&u64, &NamespaceHistory)| -> Vec<Found> {
        let links = history.links.values();
        links.filter_map(|link| of_link(machine, (*inode, history), link)).collect()
    };
    all.flat_map(of).collect()
}

fn is_many((count, all): (u64, u64), (least, share): (u64, u64)) -> bool {
    count >= least && count.saturating_mul(share) >= all
}

fn of_link(
    machine: &Machine<'_>,
    (inode, history): (u64, &NamespaceHistory),
    link: &LinkHistory,
) -> Option<Found> {
    let gained = link.gained();
    let (errors, drops) = (ERRORS_MIN, DROPS_MIN);
    let in_vain = [
        ("received with an error", gained.receive_errors, gained.received, (errors, ERRORS_SHARE)),
        ("not sent for an error", gained.send_errors, gained.sent, (errors, ERRORS_SHARE)),
        (UNWANTED, gained.receive_drops, gained.received, (drops, DROPS_SHARE)),
        ("missed by the card", gained.missed, gained.received, (drops, DROPS_SHARE)),
        ("to be sent and dropped", gained.send_drops, gained.sent, (drops, DROPS_SHARE)),
    ];
    let hit: Vec<_> = in_vain
        .into_iter()
        .filter(|(_, count, all, least)| is_many((*count, *all), *least))
        .collect();
    let (first, ..) = hit.first()?;
    let evidence = hit.iter().map(|(what, count, all, _)| {
        format!("{count} packets {what}, beside {all} ({})", percent(*count, count + all))
    });
    let is_only_drops = hit.iter().all(|(what, ..)| *what == UNWANTED);
    let missed = history.gained("TcpExtTCPOFOQueue");
    let is_no_loss = is_only_drops && missed.saturating_mul(MISSED_SHARE) < gained.receive_drops;
    let out_of_order = format!(
        "TcpExtTCPOFOQueue: {missed} segments came behind a missing one meanwhile{}",
        machine.inside(inode)
    );
    let evidence = evidence.chain(details(gained)).chain(is_only_drops.then_some(out_of_order));
    let name = &link.last.name;
    let finding = Finding {
        kind: "net.interface_errors",
        severity: if is_no_loss { Severity::Note } else { Severity::Warning },
        reach: machine.connections(inode, link.last.ifindex),
        what: format!("packets are {first} at {name}{}", machine.inside(inode)),
        evidence: evidence.collect(),
        cause: if is_no_loss { NO_LOSS } else { cause(gained) }.to_owned(),
        remedies: if is_no_loss { vec![foreign(history, name)] } else { remedies(history, link) },
    };
    Some(Found::new(finding, Path::of_interface(inode, link.last.ifindex)))
}

const UNWANTED: &str = "received and dropped";
const NO_LOSS: &str = "Nothing shows that these were wanted: no TCP connection missed segments \
    meanwhile. The kernel counts frames of a protocol or VLAN that nobody here takes as dropped, \
    such as LLDP, spanning tree, or those of another VLAN.";

/// How to see frames that nobody takes.
fn foreign(history: &NamespaceHistory, name: &str) -> Remedy {
    Remedy {
        what: "nothing has to be done; to see such frames".to_owned(),
        now: vec![format!("tcpdump -e -nn -c 20 -i {name} 'not ip and not ip6 and not arp'")],
        for_good: Vec::new(),
    }
    .entered_by(&history.place.enter)
}

fn details(gained: LinkTotals) -> Option<String> {
    let all = [
        ("wrong checksums", gained.checksum_errors),
        ("wrong lengths", gained.length_errors),
        ("missed", gained.missed),
        ("without carrier", gained.carrier_errors),
        ("collisions", gained.collisions),
        ("late collisions", gained.late_collisions),
    ];
    let some: Vec<String> = all
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name}: {count}"))
        .collect();
    (!some.is_empty()).then(|| some.join(", "))
}

fn cause(gained: LinkTotals) -> &'static str {
    if gained.late_collisions > 0 {
        "Late collisions: one side of the link runs at half duplex, the other at full."
    } else if gained.checksum_errors > 0 {
        "Frames arrive damaged: a bad cable, connector or transceiver, or a duplex that differs."
    } else if gained.carrier_errors > 0 {
        "The carrier is lost while frames are sent: a cable, or the port at the other end."
    } else if gained.length_errors > 0 {
        "Frames are longer or shorter than this interface takes: the MTU differs between both ends."
    } else if gained.missed > 0 {
        "The ring of the card is full: processors take frames out more slowly than they come."
    } else if gained.receive_drops > gained.send_drops {
        "The kernel drops what was received: longer than the MTU here, of a protocol or VLAN that \
         nobody takes, or for want of memory."
    } else {
        "What is to be sent cannot be handed on: the other end is down, takes only shorter \
         packets, or its ring is full."
    }
}

/// Only what fits the counters that moved.
fn remedies(history: &NamespaceHistory, link: &LinkHistory) -> Vec<Remedy> {
    let (name, gained) = (&link.last.name, link.gained());
    let see = Remedy {
        what: "see which counter moves, and compare the MTU and the state of both ends".to_owned(),
        now: vec![format!("ip -s -s link show dev {name}"), format!("ethtool -S {name}")],
        for_good: Vec::new(),
    };
    let mut remedies = vec![see.entered_by(&history.place.enter)];
    if gained.missed > 0 {
        remedies.push(Remedy::by_hand(format!(
            "a larger ring, for the card misses frames: ethtool -g {name}, ethtool -G {name}"
        )));
    }
    if gained.checksum_errors + gained.carrier_errors + gained.late_collisions > 0 {
        remedies.push(Remedy::by_hand("another cable or port, for frames arrive damaged"));
    }
    remedies
}
