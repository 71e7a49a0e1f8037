//! Which descriptor of which process leads where, from the calls that open and close them; what was
//! open before is asked for once.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::Machine;
use crate::target::{Ends, Target};

/// Descriptors that are known at a time, and targets in all.
const DESCRIPTORS_MAX: usize = 1 << 16;
const TARGETS_MAX: usize = 1 << 15;

/// Targets have places that stay, so that what is counted of them is not copied.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    open: BTreeMap<(u32, u32), usize>,
    targets: Vec<Target>,
    places: BTreeMap<Target, usize>,
    /// Sockets whose ends were asked for, by place.
    sockets: BTreeMap<usize, Socket>,
    left_out: u64,
}

/// What is known of a socket besides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Socket {
    /// Messages that were sent and not answered yet, as far as can be seen: of a stream one, until
    /// something is read.
    pub(crate) asked: u64,
    /// When the last message had been sent.
    pub(crate) sent_ns: u64,
    /// Calls that gave something after a message had been sent.
    pub(crate) answers: u64,
    /// Time of waiting since then, by process and call; what it was for is not known yet.
    pub(crate) pending: BTreeMap<(u32, u32), u64>,
    /// It was seen to be connected by its own program, which asks, therefore, and does not answer.
    is_connected: bool,
}

impl Descriptors {
    /// Where the descriptor of a process leads.
    pub(crate) fn place(
        &mut self,
        machine: &mut dyn Machine,
        (process, descriptor): (u32, u32),
    ) -> Option<usize> {
        let key = (process, descriptor);
        if let Some(place) = self.open.get(&key) {
            return Some(*place);
        }
        let (target, inode) = Target::of_link(&machine.link(process, descriptor)?);
        let place = match inode.filter(|_| matches!(target, Target::Socket(_))) {
            // Each socket is one of its own: they have no names.
            Some(inode) => {
                let ends = machine.ends(process, inode);
                self.add(ends.map_or_else(|| Target::Local(None), Target::Socket))
            }
            None => self.intern(target),
        }?;
        self.opened(key, place);
        Some(place)
    }

    /// Where it leads, if that is known already.
    pub(crate) fn known(&self, process: u32, descriptor: u32) -> Option<usize> {
        self.open.get(&(process, descriptor)).copied()
    }

    /// A descriptor leads to a target from now on.
    pub(crate) fn open(&mut self, process: u32, descriptor: u32, target: Target) {
        let place = match target {
            Target::Socket(_) | Target::Local(_) => self.add(target),
            target => self.intern(target),
        };
        match place {
            Some(place) => self.opened((process, descriptor), place),
            None => self.close(process, descriptor..=descriptor),
        }
    }

    fn opened(&mut self, key: (u32, u32), place: usize) {
        if self.open.len() < DESCRIPTORS_MAX || self.open.contains_key(&key) {
            self.open.insert(key, place);
        } else {
            self.left_out += 1;
        }
    }

    /// A socket was connected, or something was sent to this address by it.
    pub(crate) fn connect(&mut self, process: u32, descriptor: u32, to: Target) {
        let place = self.known(process, descriptor);
        if let Some(place) = place {
            self.socket(place).is_connected = true;
        }
        let target = place.and_then(|place| self.targets.get_mut(place));
        match (target, to) {
            (Some(Target::Socket(ends)), Target::Socket(to)) => ends.remote = to.remote,
            (Some(target), to) => *target = to,
            (None, to) => self.open(process, descriptor, to),
        }
    }

    pub(crate) fn close(&mut self, process: u32, descriptors: core::ops::RangeInclusive<u32>) {
        let keys = (process, *descriptors.start())..=(process, *descriptors.end());
        let gone: Vec<_> = self.open.range(keys).map(|(key, _)| *key).collect();
        for key in gone {
            self.open.remove(&key);
        }
    }

    pub(crate) fn duplicate(&mut self, process: u32, from: u32, to: u32) {
        match self.known(process, from) {
            Some(place) => self.opened((process, to), place),
            None => self.close(process, to..=to),
        }
    }

    /// A new process has what the one that started it has open.
    pub(crate) fn inherit(&mut self, parent: u32, child: u32) {
        let all = self.open.range((parent, 0)..=(parent, u32::MAX));
        let all: Vec<_> = all.map(|((_, descriptor), place)| (*descriptor, *place)).collect();
        for (descriptor, place) in all {
            self.opened((child, descriptor), place);
        }
    }

    /// It has ended, or runs another program: what it has open is asked for again.
    pub(crate) fn forget(&mut self, process: u32) {
        self.close(process, 0..=u32::MAX);
    }

    pub(crate) fn target(&self, place: usize) -> Option<&Target> {
        self.targets.get(place)
    }

    /// Whether the program at this socket asks, and the other end answers: it was connected here,
    /// or its own port is one of those that are given out, and the other is not.
    pub(crate) fn is_client(&self, place: usize) -> bool {
        /// `net.ipv4.ip_local_port_range`, as it is by default.
        const GIVEN_OUT: u16 = 32_768;
        if self.sockets.get(&place).is_some_and(|socket| socket.is_connected) {
            return true;
        }
        match self.targets.get(place) {
            Some(Target::Socket(Ends { local: Some(local), remote: Some(remote) })) => {
                local.port() >= GIVEN_OUT && remote.port() < GIVEN_OUT
            }
            _ => false,
        }
    }

    pub(crate) fn socket(&mut self, place: usize) -> &mut Socket {
        self.sockets.entry(place).or_default()
    }

    /// Sockets by whose place something was asked for: those that an answer is waited for at, and
    /// those by which none has come.
    pub(crate) fn asked(&self) -> (Vec<usize>, BTreeSet<usize>) {
        let asked = self.sockets.iter().filter(|(_, socket)| socket.asked > 0);
        let waits = asked.clone().filter(|(_, socket)| !socket.pending.is_empty());
        let silent = asked.filter(|(_, socket)| socket.answers == 0);
        (waits.map(|(place, _)| *place).collect(), silent.map(|(place, _)| *place).collect())
    }

    pub(crate) fn into_targets(self) -> (Vec<Target>, u64) {
        (self.targets, self.left_out)
    }

    fn intern(&mut self, target: Target) -> Option<usize> {
        if let Some(place) = self.places.get(&target) {
            return Some(*place);
        }
        let place = self.add(target.clone())?;
        self.places.insert(target, place);
        Some(place)
    }

    fn add(&mut self, target: Target) -> Option<usize> {
        if self.targets.len() >= TARGETS_MAX {
            self.left_out += 1;
            return None;
        }
        self.targets.push(target);
        Some(self.targets.len() - 1)
    }
}

/// A socket that was just made, by the first argument of `socket(2)`.
pub(crate) fn new_socket(family: u64) -> Target {
    match family {
        2 | 10 => Target::Socket(Ends::default()),
        1 => Target::Local(None),
        16 => Target::Other("a socket of netlink".to_owned()),
        _ => Target::Other("a socket".to_owned()),
    }
}
