//! A program does not close connections that the other side has closed.
//!
//! Mechanism: a connection whose other side has closed it stays in `CLOSE_WAIT` until the program
//! calls `close()`; the kernel has no timeout for it. A program that forgets to has more and more
//! of them, until its descriptors are used up. Refuted by a number that does not grow, and by a
//! program that closes some of those that were there: it is only late.

use std::collections::BTreeMap;

use network::sockets::TcpState;

use super::super::watch::{Key, Track};
use super::explain::{Found, Path};
use super::machine::Machine;
use findings::words::some;
use findings::{Finding, Remedy, Severity};

/// Fewer are no finding.
const COUNT_MIN: usize = 50;
/// Nor is one that grew by less while we looked.
const GROWN_MIN: usize = 10;
/// A program that has closed one in so many of those that were there does close them.
const CLOSED_SHARE: usize = 10;

/// Connections of a process in `CLOSE_WAIT`.
#[derive(Debug, Default)]
struct Left<'w> {
    /// At the last look.
    there: Vec<(Key, &'w Track)>,
    /// At the first look.
    before: usize,
    /// Of these, those that are gone.
    closed: usize,
}

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let mut processes: BTreeMap<(u64, u32), Left<'_>> = BTreeMap::new();
    for (key, track) in &machine.watch.tracks {
        // One that nobody has accepted belongs to a full queue.
        let Some(owner) = track.owner.as_ref().filter(|_| track.last.inode != 0) else { continue };
        let was_left = !track.is_new && track.first.state == TcpState::CloseWait;
        let is_there = track.last_ns == machine.watch.ns;
        let is_left = is_there && track.last.state == TcpState::CloseWait;
        if was_left || is_left {
            let left = processes.entry((key.namespace, owner.process)).or_default();
            left.before += usize::from(was_left);
            left.closed += usize::from(was_left && !is_left);
            left.there.extend(is_left.then_some((*key, track)));
        }
    }
    let grows = |left: &Left<'_>| {
        let count = left.there.len();
        count >= COUNT_MIN
            && count >= left.before + GROWN_MIN
            && left.closed * CLOSED_SHARE <= left.before
    };
    let hit = processes.into_iter().filter(|(_, left)| grows(left));
    hit.filter_map(|((inode, _), left)| of_process(machine, inode, &left)).collect()
}

fn of_process(machine: &Machine<'_>, inode: u64, left: &Left<'_>) -> Option<Found> {
    let (_, first) = left.there.first()?;
    let program = first.owner.as_ref()?;
    let count = left.there.len();
    let lines = left.there.iter().map(|(key, track)| machine.line(*key, track));
    let finding = Finding {
        kind: "tcp.not_closed",
        severity: Severity::Warning,
        reach: count,
        what: format!(
            "{program} does not close connections that the other side has closed: {count} of \
             them{}",
            machine.inside(inode)
        ),
        evidence: vec![
            format!(
                "{} in CLOSE_WAIT at the first look, {count} at the last, {:.1} s later; of the \
                 first ones it has closed {}",
                left.before,
                machine.watch.seconds(),
                left.closed
            ),
            format!("such as {}", some(lines)),
        ],
        cause: "The program has been told that nothing more comes (read() gives 0), and does not \
                call close(). The kernel keeps each for it without a limit of time, and each takes \
                a descriptor: when these are used up, accept() and open() fail."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand("in the program: close() each connection after read() has given 0"),
            Remedy::by_hand(format!(
                "until then, start {} again before its descriptors are used up (ls /proc/{}/fd | \
                 wc -l, and Max open files in /proc/{}/limits)",
                program.name, program.process, program.process
            )),
        ],
    };
    Some(Found::new(finding, Path::of(machine, left.there.iter().copied())))
}
