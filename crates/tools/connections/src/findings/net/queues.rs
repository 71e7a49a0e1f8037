//! A queueing discipline of an interface drops packets.
//!
//! Mechanism: more is sent than the interface, or its shaper, lets through, and the queue in front
//! of it is full; a policer or an emulated loss drops without a queue. The root counts what those
//! inside of it drop. Refuted by drops that are few beside what went through: a discipline that
//! manages its queue (`fq_codel`) drops some to tell senders to slow down.

use network::paths::QueuePlace;
use units::ByteSize;

use super::super::explain::{Found, Path};
use super::super::machine::Machine;
use crate::{LinkHistory, NamespaceHistory, QueueHistory};
use findings::words::{bits_per_second, percent};
use findings::{Finding, Remedy, Severity};

/// Fewer drops are no finding.
const DROPS_MIN: u32 = 10;
/// Nor is less than one packet in so many.
const SHARE: u64 = 1000;
/// A queue that takes so long to empty is rather too long than too short, in nanoseconds.
const LONG_NS: u128 = 100_000_000;

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let all = machine.watch.namespaces.iter();
    let of = |(inode, history): (&u64, &NamespaceHistory)| -> Vec<Found> {
        let queues = history.queues.values();
        queues.filter_map(|queue| of_queue(machine, (*inode, history), queue)).collect()
    };
    all.flat_map(of).collect()
}

fn of_queue(
    machine: &Machine<'_>,
    (inode, history): (u64, &NamespaceHistory),
    queue: &QueueHistory,
) -> Option<Found> {
    if queue.last.place == QueuePlace::Inner {
        return None;
    }
    let drops = queue.drops();
    let all = u64::from(queue.packets()) + u64::from(drops);
    if drops < DROPS_MIN || u64::from(drops) * SHARE < all {
        return None;
    }
    let link = history.links.get(&queue.last.link)?;
    let finding = Finding {
        kind: "net.queue_drops",
        severity: Severity::Warning,
        reach: machine.connections(inode, queue.last.link),
        what: what(machine, inode, (link, queue)),
        evidence: evidence(machine, history, queue),
        cause: cause(queue, &link.last.name),
        remedies: remedies(history, queue, &link.last.name),
    };
    let path = Path::of_interface(inode, queue.last.link);
    Some(Found { is_long_queue: is_long(machine, queue), ..Found::new(finding, path) })
}

/// Whether what waited took long to go through.
fn is_long(machine: &Machine<'_>, queue: &QueueHistory) -> bool {
    let backlog = u128::from(queue.backlog_bytes_max) * u128::from(machine.watch.ns_positive());
    backlog.checked_div(queue.bytes().into()).is_some_and(|ns| ns >= LONG_NS)
}

fn what(machine: &Machine<'_>, inode: u64, (link, queue): (&LinkHistory, &QueueHistory)) -> String {
    let (name, kind, inside) = (&link.last.name, &queue.last.kind, machine.inside(inode));
    match queue.last.place {
        QueuePlace::Ingress => format!("a filter on what {name} receives drops packets{inside}"),
        _ => format!("the queue of {name} ({kind}) drops packets{inside}"),
    }
}

fn evidence(
    machine: &Machine<'_>,
    history: &NamespaceHistory,
    queue: &QueueHistory,
) -> Vec<String> {
    let (drops, packets) = (u64::from(queue.drops()), u64::from(queue.packets()));
    let seconds = machine.watch.ns_positive();
    let bits = u128::from(queue.bytes()) * 8 * 1_000_000_000 / u128::from(seconds);
    let rate = bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX));
    let mut lines = vec![
        format!(
            "{drops} dropped while {packets} packets went through ({})",
            percent(drops, drops + packets)
        ),
        format!("{rate} went through"),
        format!(
            "something waited at {} of {} looks, at most {}; {} times a packet had to wait for \
             the rate that is allowed",
            queue.waiting_looks,
            queue.looks,
            ByteSize(queue.backlog_bytes_max.into()),
            queue.overlimits(),
        ),
    ];
    let inner = history.queues.values().filter(|inner| {
        inner.last.link == queue.last.link
            && inner.last.place == QueuePlace::Inner
            && inner.drops() > 0
    });
    let most = inner.max_by_key(|inner| inner.drops());
    lines.extend(most.map(|inner| {
        let (major, kind) = (inner.last.parent >> 16, &inner.last.kind);
        let minor = inner.last.parent & 0xffff;
        format!("most in {kind} of class {major:x}:{minor:x}: {}", inner.drops())
    }));
    lines
}

fn cause(queue: &QueueHistory, name: &str) -> String {
    match (&*queue.last.kind, queue.last.place) {
        (_, QueuePlace::Ingress) => format!(
            "A policer or another filter (tc filter show dev {name} ingress) drops what comes \
             faster than it allows."
        ),
        ("netem", _) => "netem emulates a network that loses packets, or its queue is too short \
                         for the delay that it adds."
            .to_owned(),
        (kind @ ("tbf" | "htb" | "hfsc" | "cake"), _) => format!(
            "More is sent than the rate that {kind} allows, and its queue is full. Senders notice \
             by the loss, send again, and slow down."
        ),
        _ => "More is sent than the interface takes, and its queue is full. Senders notice by \
              the loss, send again, and slow down."
            .to_owned(),
    }
}

fn remedies(history: &NamespaceHistory, queue: &QueueHistory, name: &str) -> Vec<Remedy> {
    let now = match queue.last.place {
        QueuePlace::Ingress => vec![format!("tc -s filter show dev {name} ingress")],
        _ => {
            vec![format!("tc -s -d qdisc show dev {name}"), format!("tc -s class show dev {name}")]
        }
    };
    let see = Remedy {
        what: "see the limits that are set, and raise the rate or the limit of the queue"
            .to_owned(),
        now,
        for_good: Vec::new(),
    };
    vec![
        see.entered_by(&history.place.enter),
        Remedy::by_hand("send less at once, or give what matters a class of its own"),
    ]
}
