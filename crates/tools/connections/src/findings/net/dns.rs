//! Questions to a DNS server wait.
//!
//! Mechanism: a resolver opens a socket for its question, connects it to port 53 of the server and
//! closes it after the answer, or gives up after some seconds (5 s as a rule) and asks again. So a
//! socket that is there for long and for which nothing has come is a question that waits. Refuted
//! by a socket that has received something: it is kept for more questions, as some resolvers do; by
//! one that is there all the time, and by one that was there before: when it asked is not known.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use super::super::explain::{Found, Path};
use super::super::machine::Machine;
use crate::Question;
use findings::words::{plural, some, time};
use findings::{Finding, Remedy, Severity};

/// A question that was seen this long has waited.
const SLOW_NS: u64 = 400_000_000;
/// Its server does not answer: resolvers try again after one to five seconds.
const SILENT_NS: u64 = 900_000_000;
/// Resolvers have given up by then: it is a socket that is kept.
const KEPT_NS: u64 = 45_000_000_000;
/// Slow ones to one server.
const SLOW_MIN: usize = 2;
const PORT: u16 = 53;

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let mut servers: BTreeMap<(u64, IpAddr), Vec<&Question>> = BTreeMap::new();
    for (key, question) in &machine.watch.questions {
        let server = question.socket.remote.ip().to_canonical();
        servers.entry((key.namespace, server)).or_default().push(question);
    }
    let of = |((inode, server), questions): ((u64, IpAddr), Vec<&Question>)| {
        finding(machine, (inode, server), &questions)
    };
    servers.into_iter().filter_map(of).collect()
}

/// It came while we looked, and was not there all the time.
fn is_slow(machine: &Machine<'_>, question: &Question) -> bool {
    let waited_ns = question.waited_ns();
    let is_new = question.first_ns > FIRST_NS;
    let all_ns = machine.watch.ns_positive();
    is_new && (SLOW_NS..KEPT_NS).contains(&waited_ns) && waited_ns < all_ns
}

/// What is seen in the first moments may have been there before.
const FIRST_NS: i64 = 150_000_000;

fn finding(
    machine: &Machine<'_>,
    (inode, server): (u64, IpAddr),
    questions: &[&Question],
) -> Option<Found> {
    let slow: Vec<&&Question> =
        questions.iter().filter(|question| is_slow(machine, question)).collect();
    let longest_ns = slow.iter().map(|question| question.waited_ns()).max()?;
    let is_silent = longest_ns >= SILENT_NS;
    if slow.len() < SLOW_MIN && !is_silent {
        return None;
    }
    let mut askers: Vec<String> =
        slow.iter().filter_map(|it| it.owner.as_ref()).map(ToString::to_string).collect();
    askers.sort_unstable();
    askers.dedup();
    let whose = if askers.is_empty() {
        "of a process that had ended".to_owned()
    } else {
        format!("of {}", some(askers.into_iter()))
    };
    let inside = machine.inside(inode);
    let at = SocketAddr::new(server, PORT);
    let mean_ns = slow.iter().map(|it| it.waited_ns()).sum::<u64>()
        / u64::try_from(slow.len()).unwrap_or(1).max(1);
    let finding = Finding {
        kind: "net.dns_slow",
        severity: if is_silent { Severity::Problem } else { Severity::Warning },
        reach: slow.len(),
        what: format!("questions {whose} to the DNS server {at} wait{inside}"),
        evidence: vec![
            format!(
                "{} waited {} in the mean and up to {}",
                plural(slow.len(), "question"),
                time(mean_ns),
                time(longest_ns)
            ),
            format!(
                "for none of these had anything come; {} seen in all, in steps of 0.1 s",
                plural(questions.len(), "question")
            ),
        ],
        cause: cause(machine, (inode, server), is_silent),
        remedies: vec![
            Remedy::by_hand(format!(
                "ask it by hand: dig @{server} NAME, and see how long it takes"
            )),
            Remedy::by_hand(
                "another server first in /etc/resolv.conf, or a cache on this machine; there \
                 `options timeout:1 attempts:2` shortens the wait for a server that is down",
            ),
        ],
    };
    let mut path = Path::default();
    let local = slow.first().map(|question| question.socket.local.ip())?;
    path.add_ends(machine, inode, (local, server));
    let there = machine.namespace_of(inode, server);
    path.services.extend(there.map(|there| (there, PORT)));
    Some(Found::new(finding, path))
}

fn cause(machine: &Machine<'_>, (inode, server): (u64, IpAddr), is_silent: bool) -> String {
    let all = if is_silent {
        "The server does not answer, or so late that the question is asked again: it is down, \
         overloaded, or a firewall drops the packets. Programs stand still until their resolver \
         gives up."
    } else {
        "The server answers late: it is busy, far away, or waits itself for other servers."
    };
    let is_here = machine.namespace_of(inode, server);
    let is_server = |socket: &crate::UdpTrack| socket.last.local.port() == PORT;
    let owner = machine
        .watch
        .udp
        .iter()
        .filter(|(key, track)| Some(key.namespace) == is_here && is_server(track))
        .find_map(|(_, track)| track.owner.as_ref());
    match (owner, is_here) {
        (Some(owner), _) => format!("{all} It is {owner} on this machine."),
        (None, Some(_)) => format!("{all} It is an address of this machine."),
        (None, None) => all.to_owned(),
    }
}
