//! The machine that we run on, as something to look at.

use core::mem::take;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use network::paths::{LinkLook, LinkMode, Monitor, Neighbour};
use network::sockets::{DatagramSocket, Namespace, NamespaceLook, Namespaces, Owner, Owners};
use observe::tracepoints::{ConnectAttempts, FailedAttempt, NotTraced};

use super::place::Place;
use super::tally::AttemptBy;
use super::watch::{Source, TcpLook};
use findings::Unseen;

/// Namespaces that are listened to between looks.
const MONITORS_MAX: usize = 128;
/// What is kept of one namespace from look to look.
const KEPT_MAX: usize = 10_000;
/// Processes whose names are kept.
const ASKERS_MAX: usize = 4096;

/// The machine that we run on.
#[derive(Debug, Default)]
pub struct Live {
    owners: Owners,
    is_own_only: bool,
    monitors: BTreeMap<u64, Monitored>,
    /// How links run, with the changes of their carrier after which that was asked.
    modes: BTreeMap<(u64, u32), (u32, Option<LinkMode>)>,
    attempts: Attempts,
}

#[derive(Debug)]
struct Monitored {
    monitor: Monitor,
    changes: Vec<Neighbour>,
    questions: Vec<(i64, DatagramSocket)>,
}

#[derive(Debug, Default)]
struct Attempts {
    /// Opened at the first look.
    tracer: Option<Result<ConnectAttempts, NotTraced>>,
    failed: Vec<FailedAttempt>,
    askers: BTreeMap<u32, AttemptBy>,
}

impl Live {
    /// The namespace that we are in, and no other.
    pub fn own() -> Self {
        Self { is_own_only: true, ..Self::default() }
    }

    /// Listens to namespaces that are new, and no longer to those that are gone.
    fn follow(&mut self, seen: &[Namespace]) {
        let there: BTreeSet<u64> = seen.iter().map(|namespace| namespace.inode).collect();
        self.monitors.retain(|inode, _| there.contains(inode));
        self.modes.retain(|(inode, _), _| there.contains(inode));
        for namespace in seen {
            if self.monitors.len() >= MONITORS_MAX || self.monitors.contains_key(&namespace.inode) {
                continue;
            }
            // One that cannot be entered is reported by the look at it.
            if let Ok(monitor) = namespace.monitor() {
                let new = Monitored { monitor, changes: Vec::new(), questions: Vec::new() };
                self.monitors.insert(namespace.inode, new);
            }
        }
    }

    /// Adds how the links run to a look.
    fn add_modes(&mut self, namespace: &Namespace, links: &mut [LinkLook]) {
        let key = |link: &LinkLook| (namespace.inode, link.ifindex);
        let is_unknown = |link: &&LinkLook| {
            let known = self.modes.get(&key(link));
            known.is_none_or(|(changes, _)| *changes != link.carrier_changes)
        };
        let asked: Vec<&LinkLook> =
            links.iter().filter(|link| has_mode(link)).filter(is_unknown).collect();
        if !asked.is_empty() {
            let names: Vec<&str> = asked.iter().map(|link| &*link.name).collect();
            let modes = namespace.link_modes(&names).unwrap_or_default();
            for (link, mode) in asked.iter().zip(modes) {
                self.modes.insert(key(link), (link.carrier_changes, mode));
            }
        }
        for link in links {
            link.mode = self.modes.get(&key(link)).and_then(|(_, mode)| *mode);
        }
    }

    /// What was heard of a namespace since the last look.
    fn add_heard(&mut self, inode: u64, seen: &mut NamespaceLook) {
        if let Some(monitored) = self.monitors.get_mut(&inode) {
            seen.neighbour_changes = take(&mut monitored.changes);
            seen.questions = take(&mut monitored.questions);
        }
    }
}

/// Devices have a duplex, and those that stand for one; others have nothing to collide with.
fn has_mode(link: &LinkLook) -> bool {
    !link.is_loopback && link.kind.as_deref().is_none_or(|kind| kind == "tun")
}

impl Attempts {
    fn listen(&mut self) {
        let Some(Ok(tracer)) = &mut self.tracer else { return };
        let failed = tracer.failed();
        for process in failed.iter().map(|attempt| attempt.process).filter(|&it| it != 0) {
            if self.askers.len() >= ASKERS_MAX {
                self.askers.clear();
            }
            self.askers.entry(process).or_insert_with(|| AttemptBy {
                owner: Arc::new(Owner::of_process(process)),
                namespace: Namespace::of_process(process).ok().map(|found| found.inode),
            });
        }
        self.failed.extend(failed);
        self.failed.truncate(KEPT_MAX);
    }

    fn add(&mut self, look: &mut TcpLook) {
        let tracer = self.tracer.get_or_insert_with(ConnectAttempts::open);
        if let Err(needs) = tracer {
            look.unseen.push(Unseen {
                what: "who is refused a connection".to_owned(),
                needs: needs.to_string(),
            });
        }
        self.listen();
        let with_asker = |attempt: FailedAttempt| {
            let by = self.askers.get(&attempt.process).cloned();
            (attempt, by)
        };
        look.attempts = take(&mut self.failed).into_iter().map(with_asker).collect();
    }
}

impl Source for Live {
    fn look(&mut self) -> Result<TcpLook, network::Error> {
        let found = if self.is_own_only { Namespaces::own()? } else { Namespaces::all()? };
        self.follow(&found.seen);
        let mut look = TcpLook::default();
        for namespace in &found.seen {
            match namespace.look() {
                Ok(mut seen) => {
                    self.add_modes(namespace, &mut seen.paths.links);
                    self.add_heard(namespace.inode, &mut seen);
                    look.namespaces.push((place(namespace), seen));
                }
                Err(error) if namespace.is_own => return Err(error),
                Err(_) => look.unseen.push(Unseen {
                    what: format!("sockets of {}", place(namespace).name),
                    needs: "CAP_SYS_ADMIN, which root has outside of a container".to_owned(),
                }),
            }
        }
        look.unseen.extend(found.unseen.into_iter().map(|name| Unseen {
            what: format!("the network namespace {name}"),
            needs: "CAP_SYS_ADMIN, which root has outside of a container".to_owned(),
        }));
        let inodes = inodes(&look);
        self.owners.learn(inodes.iter().copied());
        let owner = |inode: &u32| Some((*inode, Arc::clone(self.owners.get(*inode)?)));
        look.owners = inodes.iter().filter_map(owner).collect();
        let hidden = self.owners.unseen_processes().max(found.unseen_processes);
        if hidden > 0 {
            look.unseen.push(Unseen {
                what: match hidden {
                    1 => "the sockets and namespace of another process".to_owned(),
                    hidden => format!("the sockets and namespaces of {hidden} other processes"),
                },
                needs: "CAP_SYS_PTRACE, which root has outside of a container".to_owned(),
            });
        }
        self.attempts.add(&mut look);
        Ok(look)
    }

    fn glance(&mut self, at_ns: i64) {
        for monitored in self.monitors.values_mut() {
            monitored.changes.extend(monitored.monitor.changes());
            monitored.changes.truncate(KEPT_MAX);
            let asked = monitored.monitor.questions().into_iter().map(|socket| (at_ns, socket));
            monitored.questions.extend(asked);
            monitored.questions.truncate(KEPT_MAX);
        }
        self.attempts.listen();
    }
}

/// Numbers of the sockets whose owners are wanted: of those that were seen between looks only the
/// last, which may still be there.
fn inodes(look: &TcpLook) -> Vec<u32> {
    let of = |seen: &NamespaceLook| -> Vec<u32> {
        let last_ns = seen.questions.last().map(|(at_ns, _)| *at_ns);
        let questions = seen.questions.iter().filter(|(at_ns, _)| Some(*at_ns) == last_ns);
        let tcp = seen.sockets.iter().map(|socket| socket.inode);
        let udp = seen.udp.iter().chain(questions.map(|(_, socket)| socket));
        tcp.chain(udp.map(|socket| socket.inode)).filter(|&inode| inode != 0).collect()
    };
    look.namespaces.iter().flat_map(|(_, seen)| of(seen)).collect()
}

fn place(namespace: &Namespace) -> Place {
    let name = match (&namespace.name, namespace.process) {
        _ if namespace.is_own => "this network namespace".to_owned(),
        (Some(name), _) => format!("network namespace {name}"),
        (None, Some(process)) => format!("the network namespace of process {process}"),
        (None, None) => format!("network namespace {}", namespace.inode),
    };
    let enter = match (&namespace.name, namespace.process) {
        _ if namespace.is_own => String::new(),
        (Some(name), _) => format!("ip netns exec {name} "),
        (None, Some(process)) => format!("nsenter --target {process} --net "),
        (None, None) => String::new(),
    };
    Place { inode: namespace.inode, name, is_own: namespace.is_own, enter }
}
