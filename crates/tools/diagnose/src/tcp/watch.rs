//! Looks at all sockets at an interval, and keeps for each its first and last state.

use core::ops::ControlFlow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use network::sockets::{
    Counters, Namespace, NamespaceLook, Namespaces, Owner, Owners, Settings, TcpSocket,
};
use units::{NANOS_PER_SECOND, Sleep};

use crate::finding::Unseen;

/// Where a socket is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Number of its namespace.
    pub inode: u64,
    /// Name of the place in words.
    pub name: String,
    /// It is the one that we are in.
    pub is_own: bool,
    /// What stands before a command that is to run in it; nothing for our own.
    pub enter: String,
}

/// What was there at one moment.
#[derive(Clone, Debug, Default)]
pub struct TcpLook {
    /// Each namespace and what it had.
    pub namespaces: Vec<(Place, NamespaceLook)>,
    /// Owners by the numbers of sockets.
    pub owners: BTreeMap<u32, Arc<Owner>>,
    /// What could not be looked at.
    pub unseen: Vec<Unseen>,
}

impl Default for Place {
    fn default() -> Self {
        Self { inode: 0, name: "this one".to_owned(), is_own: true, enter: String::new() }
    }
}

/// Something that shows the sockets.
pub trait Source {
    /// All sockets now.
    fn look(&mut self) -> Result<TcpLook, network::Error>;
}

/// The machine that we run on.
#[derive(Debug, Default)]
pub struct Live {
    owners: Owners,
    is_own_only: bool,
}

impl Live {
    /// The namespace that we are in, and no other.
    pub fn own() -> Self {
        Self { is_own_only: true, ..Self::default() }
    }
}

impl Source for Live {
    fn look(&mut self) -> Result<TcpLook, network::Error> {
        let found = if self.is_own_only { Namespaces::own()? } else { Namespaces::all()? };
        let mut look = TcpLook::default();
        for namespace in &found.seen {
            match namespace.look() {
                Ok(seen) => look.namespaces.push((place(namespace), seen)),
                Err(error) if namespace.is_own => return Err(error),
                Err(_) => look.unseen.push(Unseen {
                    what: format!("sockets of {}", place(namespace).name),
                    needs: "CAP_SYS_ADMIN: root, outside of a container".to_owned(),
                }),
            }
        }
        look.unseen.extend(found.unseen.into_iter().map(|name| Unseen {
            what: format!("the network namespace {name}"),
            needs: "CAP_SYS_ADMIN: root, outside of a container".to_owned(),
        }));
        let sockets = look.namespaces.iter().flat_map(|(_, seen)| &seen.sockets);
        let inodes: Vec<u32> = sockets.map(|socket| socket.inode).collect();
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
                needs: "CAP_SYS_PTRACE: root, outside of a container".to_owned(),
            });
        }
        Ok(look)
    }
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

/// A socket for all time: cookies are the same in different namespaces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// Number of its namespace.
    pub namespace: u64,
    /// Cookie of the socket.
    pub cookie: u64,
}

/// A socket through the watch.
#[derive(Clone, Debug)]
pub struct Track {
    /// As it was seen first.
    pub first: TcpSocket,
    /// As it was seen last.
    pub last: TcpSocket,
    /// Process that owns the socket.
    pub owner: Option<Arc<Owner>>,
    /// Most connections that waited to be accepted, of a listener.
    pub queue_max: u32,
    /// It was not there at the first look.
    pub is_new: bool,
}

/// A namespace through the watch.
#[derive(Clone, Debug)]
pub struct NamespaceHistory {
    /// Place of the namespace.
    pub place: Place,
    /// Its counters when the watch began.
    pub before: Counters,
    /// And at its end.
    pub after: Counters,
    /// Settings of the namespace.
    pub settings: Settings,
}

impl NamespaceHistory {
    /// What a counter has counted since the namespace began.
    pub fn total(&self, name: &str) -> u64 {
        self.after.get(name).copied().unwrap_or(0)
    }

    /// And during the watch.
    pub fn gained(&self, name: &str) -> u64 {
        self.total(name).saturating_sub(self.before.get(name).copied().unwrap_or(0))
    }

    /// A setting that is a number.
    pub fn number(&self, setting: &str) -> Option<u32> {
        self.settings.get(setting)?.parse().ok()
    }

    /// Whether a setting is on, as it is by default.
    pub fn is_on(&self, setting: &str) -> bool {
        self.settings.get(setting).is_none_or(|value| value != "0")
    }
}

/// All looks of a watch.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Sockets that were there at the end, or at any look.
    pub tracks: BTreeMap<Key, Track>,
    /// Namespaces by their numbers.
    pub namespaces: BTreeMap<u64, NamespaceHistory>,
    /// How often it looked.
    pub looks: u64,
    /// From the first look to the last.
    pub ns: i64,
    /// What could not be looked at.
    pub unseen: BTreeSet<Unseen>,
    begun_ns: Option<i64>,
}

impl Watch {
    /// How long it took, in seconds.
    pub fn seconds(&self) -> f64 {
        // Exact for any watch of less than a hundred days.
        core::time::Duration::from_nanos(u64::try_from(self.ns).unwrap_or(0)).as_secs_f64()
    }

    /// The sockets of one namespace.
    pub fn of_namespace(&self, inode: u64) -> impl Iterator<Item = &Track> {
        let key = |cookie| Key { namespace: inode, cookie };
        self.tracks.range(key(0)..=key(u64::MAX)).map(|(_, track)| track)
    }

    /// Takes a look in.
    pub fn take(&mut self, at_ns: i64, look: TcpLook) {
        self.looks += 1;
        self.ns = at_ns - *self.begun_ns.get_or_insert(at_ns);
        for (place, seen) in look.namespaces {
            let NamespaceLook { sockets, counters, settings } = seen;
            let inode = place.inode;
            let history = self.namespaces.entry(inode).or_insert_with(|| NamespaceHistory {
                place,
                before: counters.clone(),
                after: Counters::new(),
                settings: Settings::new(),
            });
            (history.after, history.settings) = (counters, settings);
            for socket in sockets {
                let key = Key { namespace: inode, cookie: socket.cookie };
                let owner = look.owners.get(&socket.inode);
                match self.tracks.entry(key) {
                    Entry::Vacant(free) => {
                        let is_new = self.looks > 1;
                        free.insert(Track { is_new, ..Track::new(socket, owner) });
                    }
                    Entry::Occupied(known) => known.into_mut().take(socket, owner),
                }
            }
        }
        self.unseen.extend(look.unseen);
    }
}

impl Track {
    fn new(socket: TcpSocket, owner: Option<&Arc<Owner>>) -> Self {
        let queue_max = socket.receive_queue;
        Self {
            first: socket.clone(),
            last: socket,
            owner: owner.cloned(),
            queue_max,
            is_new: false,
        }
    }

    fn take(&mut self, socket: TcpSocket, owner: Option<&Arc<Owner>>) {
        if self.owner.is_none() {
            self.owner = owner.cloned();
        }
        self.queue_max = self.queue_max.max(socket.receive_queue);
        self.last = socket;
    }
}

/// Looks at once and then every `interval_ns` until `duration_ns` are over or `go_on` says no;
/// `go_on` is asked before every look and at least ten times a second.
///
/// # Errors
///
/// The namespace that we are in cannot be looked at.
pub fn watch(
    source: &mut dyn Source,
    clock: &dyn Sleep,
    (interval_ns, duration_ns): (i64, i64),
    go_on: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Watch, network::Error> {
    const NAP_NS: i64 = NANOS_PER_SECOND / 10;
    let begun_ns = clock.boottime_ns();
    let mut watch = Watch::default();
    let mut due_ns = begun_ns;
    loop {
        let at_ns = clock.boottime_ns();
        if at_ns >= due_ns {
            watch.take(at_ns, source.look()?);
            due_ns += interval_ns.max(1) * ((at_ns - due_ns) / interval_ns.max(1) + 1);
        }
        let is_over = at_ns - begun_ns >= duration_ns;
        if is_over || go_on(watch.looks).is_break() {
            return Ok(watch);
        }
        clock.sleep_until(due_ns.min(clock.boottime_ns() + NAP_NS));
    }
}
