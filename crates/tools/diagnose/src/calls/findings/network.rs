//! Name servers, and others that answer late.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ::calls::{CallWatch, NameServer, Target, Use, UsesOf, Work};

use super::measure::{is_share, long, reach, slowest, waited, wakers};
use findings::words::plural;
use findings::{Finding, Remedy, Severity};

pub(super) fn findings(watch: &CallWatch) -> Vec<Finding> {
    let names = watch.name_servers.iter();
    let names =
        names.filter_map(|((process, server), seen)| name_server(watch, (*process, *server), seen));
    let writes = watch.uses_for(Work::Write);
    let readers = writes.iter().filter_map(|of| reader(watch, of));
    let connects = watch.uses_for(Work::Connect);
    let connects = connects.iter().filter_map(|of| connect(watch, of));
    names.chain(answers(watch)).chain(readers).chain(connects).collect()
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
        all.threads.extend(&seen.threads);
    }
    let finding = |((process, place), seen): ((u32, usize), Use)| {
        let target = watch.targets.get(place)?;
        let life_ns = watch.life_ns(process);
        let is_name = target.remote().is_some_and(|remote| remote.port() == NAMES);
        if is_name || !is_share(seen.answer_ns, life_ns, 30) {
            return None;
        }
        // A protocol without answers looks like an end that is silent.
        let is_silent = watch.unanswered.contains(&place);
        let cause = if is_silent {
            "Nothing came from the other end in that time: it hangs, or what was sent asks for no \
             answer, as with logs, measurements and copies of changes. Which of these it is cannot \
             be told from here."
        } else {
            "The other end takes that long, or the way there does; this program does nothing else \
             meanwhile."
        };
        Some(Finding {
            kind: "calls.peer",
            severity: if is_silent { Severity::Note } else { Severity::Warning },
            reach: reach(seen.answer_ns),
            what: format!(
                "{} for answers by {target}",
                waited(watch, process, (seen.answer_ns, seen.threads.len()))
            ),
            evidence: vec![format!(
                "{}, each after something had been sent; {} waiting in the mean",
                plural(usize::try_from(seen.count).unwrap_or(usize::MAX), "call"),
                long(seen.answer_ns / seen.count.max(1))
            )],
            cause: cause.to_owned(),
            remedies: vec![
                Remedy::by_hand("wirespool diagnose tcp tells whether packets were lost or late"),
                Remedy::by_hand("look at the other end with this command"),
                Remedy::by_hand("ask for several things at once, or remember answers"),
            ],
        })
    };
    by.into_iter().filter_map(finding).collect()
}

/// Somebody who does not read what is written to a pipe or a socket: a write to one waits for
/// nothing else than space.
fn reader(watch: &CallWatch, of: &UsesOf) -> Option<Finding> {
    let target = of.target(watch)?;
    let is_stream = matches!(target, Target::Pipe(_) | Target::Local(_) | Target::Socket(_));
    let Use { count, waited_ns, .. } = of.all;
    if !is_stream || !is_share(waited_ns, watch.life_ns(of.process), 30) {
        return None;
    }
    let is_remote = matches!(target, Target::Socket(_));
    let mut evidence = vec![format!(
        "{} of {}, {} waiting for each in the mean",
        plural(usize::try_from(count).unwrap_or(usize::MAX), "call"),
        of.calls.join(" and "),
        long(waited_ns / count.max(1))
    )];
    evidence.extend(slowest(watch, |call| of.has(call, &target.to_string())));
    evidence.extend(wakers(&of.all.woken_by).filter(|_| !is_remote));
    let (cause, remedies) = if is_remote {
        (
            "The socket's buffer is full: the other end, or the way there, takes less than is \
             written.",
            vec![Remedy::by_hand(
                "wirespool diagnose tcp tells whether the reader, the way or the buffer limits it",
            )],
        )
    } else {
        (
            "What it writes to is full: the program at the other end reads more slowly than this \
             one writes.",
            vec![
                Remedy::by_hand("look at the reader with this command: who ended the waits"),
                Remedy::by_hand("write less, or drop what nobody has time for"),
            ],
        )
    };
    Some(Finding {
        kind: "calls.reader",
        severity: Severity::Warning,
        reach: reach(waited_ns),
        what: format!(
            "{} for the reader of {target}",
            waited(watch, of.process, (waited_ns, of.all.threads.len()))
        ),
        evidence,
        cause: cause.to_owned(),
        remedies,
    })
}

/// Connections that take long to be made, or are not.
fn connect(watch: &CallWatch, of: &UsesOf) -> Option<Finding> {
    let Use { count, waited_ns, .. } = of.all;
    if !is_share(waited_ns, watch.life_ns(of.process), 30) {
        return None;
    }
    let target = of.target(watch);
    let name = target.map_or_else(|| "others".to_owned(), ToString::to_string);
    let mut evidence = vec![format!(
        "{} of connect, {} waiting for each in the mean",
        plural(usize::try_from(count).unwrap_or(usize::MAX), "call"),
        long(waited_ns / count.max(1))
    )];
    evidence.extend(slowest(watch, |call| of.has(call, &name)));
    let is_here = matches!(target, Some(Target::Local(_)));
    let cause = if is_here {
        "The queue of the listener is full: its program does not accept as fast as others connect."
    } else {
        "A connection takes one round trip. Where it takes longer, nothing has answered: what was \
         sent or its answer is dropped on the way, or the listener's queue is full. The kernel \
         sends again after 1, 3 and 7 seconds."
    };
    Some(Finding {
        kind: "calls.connect",
        severity: Severity::Warning,
        reach: reach(waited_ns),
        what: format!(
            "{} for connections to be made: {name}",
            waited(watch, of.process, (waited_ns, of.all.threads.len()))
        ),
        evidence,
        cause: cause.to_owned(),
        remedies: if is_here {
            vec![Remedy::by_hand("look at the listener's program with this command")]
        } else {
            vec![
                Remedy::by_hand("wirespool diagnose tcp names attempts that nobody answers"),
                Remedy::by_hand("connections that are kept, and a timeout of the program's own"),
            ]
        },
    })
}
