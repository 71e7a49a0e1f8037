//! Name servers, and others that answer late.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ::calls::{CallWatch, NameServer, Use};

use super::measure::{is_share, long, reach};
use findings::words::plural;
use findings::{Finding, Remedy, Severity};

pub(super) fn findings(watch: &CallWatch) -> Vec<Finding> {
    let names = watch.name_servers.iter();
    let names =
        names.filter_map(|((process, server), seen)| name_server(watch, (*process, *server), seen));
    names.chain(answers(watch)).collect()
}

fn name_server(
    watch: &CallWatch,
    (process, server): (u32, SocketAddr),
    seen: &NameServer,
) -> Option<Finding> {
    let life_ns = watch.life_ns(process);
    if !is_share(seen.waited_ns, life_ns, 20) {
        return None;
    }
    let is_silent = seen.answers == 0;
    let cause = if is_silent {
        "No answer came. The resolver waits five seconds for each, tries again, and then asks the \
         next server of its list."
    } else if seen.given_up > 0 {
        "Some answers come after the resolver has given up, or not at all: it waits five seconds \
         for each, and tries again."
    } else {
        "The server takes that long, because those whom it asks do, or are far away."
    };
    Some(Finding {
        kind: "calls.names",
        severity: Severity::Warning,
        reach: reach(seen.waited_ns),
        what: format!(
            "{} waited {} of {} for the name server {server}",
            watch.process_label(process),
            long(seen.waited_ns),
            long(life_ns)
        ),
        evidence: vec![
            format!(
                "{}, {}",
                plural(usize::try_from(seen.questions).unwrap_or(usize::MAX), "question"),
                plural(usize::try_from(seen.answers).unwrap_or(usize::MAX), "answer"),
            ),
            format!(
                "{} ended without an answer",
                plural(usize::try_from(seen.given_up).unwrap_or(usize::MAX), "wait")
            ),
        ],
        cause: cause.to_owned(),
        remedies: vec![
            Remedy {
                what: "ask it by hand".to_owned(),
                now: vec![format!("dig @{} example.com", server.ip())],
                for_good: Vec::new(),
            },
            Remedy::by_hand(
                "a server that is near and answers first in /etc/resolv.conf, with options \
                 timeout:1 attempts:2; a cache on this machine (systemd-resolved, unbound)",
            ),
            Remedy::by_hand("wirespool top, tab dns, shows which names are asked for"),
        ],
    })
}

/// Somebody else who was asked for something.
fn answers(watch: &CallWatch) -> Vec<Finding> {
    const NAMES: u16 = 53;
    let mut by: BTreeMap<(u32, usize), Use> = BTreeMap::new();
    for (key, seen) in watch.uses.iter().filter(|(_, seen)| seen.answer_ns > 0) {
        let Some(place) = key.target else { continue };
        let all = by.entry((key.process, place)).or_default();
        all.count += seen.count;
        all.answer_ns += seen.answer_ns;
    }
    let finding = |((process, place), seen): ((u32, usize), Use)| {
        let target = watch.targets.get(place)?;
        let life_ns = watch.life_ns(process);
        let is_name = target.remote().is_some_and(|remote| remote.port() == NAMES);
        if is_name || !is_share(seen.answer_ns, life_ns, 30) {
            return None;
        }
        Some(Finding {
            kind: "calls.peer",
            severity: Severity::Warning,
            reach: reach(seen.answer_ns),
            what: format!(
                "{} waited {} of {} for answers by {target}",
                watch.process_label(process),
                long(seen.answer_ns),
                long(life_ns)
            ),
            evidence: vec![format!(
                "{}, each after something had been sent; {} waiting in the mean",
                plural(usize::try_from(seen.count).unwrap_or(usize::MAX), "call"),
                long(seen.answer_ns / seen.count.max(1))
            )],
            cause: "The other end takes that long, or the way there does; this program does \
                    nothing else meanwhile."
                .to_owned(),
            remedies: vec![
                Remedy::by_hand("wirespool diagnose tcp tells whether packets were lost or late"),
                Remedy::by_hand("look at the other end with this command"),
                Remedy::by_hand("ask for several things at once, or remember answers"),
            ],
        })
    };
    by.into_iter().filter_map(finding).collect()
}
