//! Looks at all sockets at an interval, and keeps for each its first and last state, and a few
//! numbers of every look.

use core::ops::ControlFlow;
use std::collections::{BTreeMap, BTreeSet};

use host::sockets::{
    Counters, Namespace, NamespaceLook, Owner, Owners, Settings, TcpSocket, network_namespaces,
};
use units::{NANOS_PER_SECOND, Sleep};

use crate::finding::Unseen;

/// Looks kept of a socket; of a longer watch every second one is given up, again and again.
const POINTS_MAX: usize = 512;

/// Where a socket is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Number of its namespace.
    pub inode: u64,
    /// In words.
    pub name: String,
    /// It is the one that we are in.
    pub is_own: bool,
}

/// What was there at one moment.
#[derive(Clone, Debug, Default)]
pub struct TcpLook {
    /// Each namespace and what it had.
    pub namespaces: Vec<(Place, NamespaceLook)>,
    /// Owners by the numbers of sockets.
    pub owners: BTreeMap<u32, Owner>,
    /// What could not be looked at.
    pub unseen: Vec<Unseen>,
}

impl Default for Place {
    fn default() -> Self {
        Self { inode: 0, name: "this one".to_owned(), is_own: true }
    }
}

/// Something that shows the sockets.
pub trait Source {
    /// All sockets now.
    fn look(&mut self) -> Result<TcpLook, host::Error>;
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
    fn look(&mut self) -> Result<TcpLook, host::Error> {
        let mut found = network_namespaces()?;
        if self.is_own_only {
            found.seen.retain(|namespace| namespace.is_own);
            found.unseen.clear();
            found.unseen_processes = 0;
        }
        let mut look = TcpLook::default();
        for namespace in &found.seen {
            match namespace.look() {
                Ok(seen) => look.namespaces.push((place(namespace), seen)),
                Err(error) if namespace.is_own => return Err(error),
                Err(_) => look.unseen.push(Unseen {
                    what: format!("sockets of {}", place(namespace).name),
                    needs: "CAP_SYS_ADMIN: run as root".to_owned(),
                }),
            }
        }
        look.unseen.extend(found.unseen.into_iter().map(|unseen| Unseen {
            what: unseen.what,
            needs: "CAP_SYS_ADMIN: run as root".to_owned(),
        }));
        let sockets = look.namespaces.iter().flat_map(|(_, seen)| &seen.sockets);
        let inodes: Vec<u32> = sockets.map(|socket| socket.inode).collect();
        self.owners.learn(inodes.iter().copied());
        let owner = |inode: &u32| Some((*inode, self.owners.get(*inode)?.clone()));
        look.owners = inodes.iter().filter_map(owner).collect();
        let hidden = self.owners.unseen_processes().max(found.unseen_processes);
        if hidden > 0 {
            look.unseen.push(Unseen {
                what: match hidden {
                    1 => "the sockets and namespace of another process".to_owned(),
                    hidden => format!("the sockets and namespaces of {hidden} other processes"),
                },
                needs: "CAP_SYS_PTRACE: run as root".to_owned(),
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
    Place { inode: namespace.inode, name, is_own: namespace.is_own }
}

/// A socket for all time: cookies are the same in different namespaces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// Number of its namespace.
    pub namespace: u64,
    /// Its cookie.
    pub cookie: u64,
}

/// Some numbers of a connection at one look.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Since the machine was started.
    pub at_ns: i64,
    /// Congestion window in segments.
    pub congestion_window: u32,
    /// Smoothed round trip in microseconds.
    pub rtt_us: u32,
    /// Bytes acknowledged by the other side so far.
    pub bytes_acked: u64,
    /// Bytes received in order so far.
    pub bytes_received: u64,
    /// Segments retransmitted so far.
    pub retransmitted: u32,
    /// Latest rate at which the other side took data, in bytes a second.
    pub delivery_rate: u64,
}

/// A socket through the watch.
#[derive(Clone, Debug)]
pub struct Track {
    /// As it was seen first.
    pub first: TcpSocket,
    /// As it was seen last.
    pub last: TcpSocket,
    /// Whose it is.
    pub owner: Option<Owner>,
    /// Most connections that waited to be accepted, of a listener.
    pub queue_max: u32,
    /// Each look, or every second, fourth, ... one.
    pub points: Vec<Point>,
}

/// A namespace through the watch.
#[derive(Clone, Debug)]
pub struct NamespaceHistory {
    /// Which.
    pub place: Place,
    /// Its counters when the watch began.
    pub before: Counters,
    /// And at its end.
    pub after: Counters,
    /// Its settings.
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

    /// Whether a setting is on, as it is by default.
    pub fn is_on(&self, setting: &str) -> bool {
        self.settings.get(setting).is_none_or(|value| value != "0")
    }
}

/// All looks.
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
    pub unseen: Vec<Unseen>,
    thinned: usize,
}

impl Watch {
    /// How long it took, in seconds.
    pub fn seconds(&self) -> f64 {
        // Exact for any watch of less than a hundred days.
        core::time::Duration::from_nanos(u64::try_from(self.ns).unwrap_or(0)).as_secs_f64()
    }

    /// Takes a look in.
    pub fn take(&mut self, at_ns: i64, look: TcpLook) {
        self.looks += 1;
        let keep_point = self.looks.is_multiple_of(1 << self.thinned) || self.looks == 1;
        for (place, seen) in look.namespaces {
            let NamespaceLook { sockets, counters, settings } = seen;
            let history = self.namespaces.entry(place.inode);
            let history = history.or_insert_with(|| NamespaceHistory {
                place: place.clone(),
                before: counters.clone(),
                after: Counters::new(),
                settings: Settings::new(),
            });
            (history.after, history.settings) = (counters, settings);
            for socket in sockets {
                let key = Key { namespace: place.inode, cookie: socket.cookie };
                let owner = look.owners.get(&socket.inode);
                let track = self.tracks.entry(key).or_insert_with(|| Track::new(&socket));
                track.take(socket, owner, keep_point.then_some(at_ns));
            }
        }
        let unseen: BTreeSet<Unseen> = self.unseen.drain(..).chain(look.unseen).collect();
        self.unseen = unseen.into_iter().collect();
        if self.tracks.values().any(|track| track.points.len() >= POINTS_MAX) {
            self.thin();
        }
    }

    fn thin(&mut self) {
        self.thinned += 1;
        for track in self.tracks.values_mut() {
            let mut number = 0;
            track.points.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
    }
}

impl Track {
    fn new(socket: &TcpSocket) -> Self {
        let socket = socket.clone();
        Self { last: socket.clone(), first: socket, owner: None, queue_max: 0, points: Vec::new() }
    }

    fn take(&mut self, socket: TcpSocket, owner: Option<&Owner>, at_ns: Option<i64>) {
        if self.owner.is_none() {
            self.owner = owner.cloned();
        }
        self.queue_max = self.queue_max.max(socket.receive_queue);
        if let (Some(info), Some(at_ns)) = (&socket.info, at_ns) {
            self.points.push(Point {
                at_ns,
                congestion_window: info.congestion_window,
                rtt_us: info.rtt_us,
                bytes_acked: info.bytes_acked.unwrap_or(0),
                bytes_received: info.bytes_received.unwrap_or(0),
                retransmitted: info.retransmitted,
                delivery_rate: info.delivery_rate.unwrap_or(0),
            });
        }
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
) -> Result<Watch, host::Error> {
    const NAP_NS: i64 = NANOS_PER_SECOND / 10;
    let begun_ns = clock.boottime_ns();
    let mut watch = Watch::default();
    let mut due_ns = begun_ns;
    loop {
        let at_ns = clock.boottime_ns();
        if at_ns >= due_ns {
            watch.take(at_ns, source.look()?);
            watch.ns = at_ns - begun_ns;
            due_ns += interval_ns.max(1) * ((at_ns - due_ns) / interval_ns.max(1) + 1);
        }
        let is_over = at_ns - begun_ns >= duration_ns;
        if is_over || go_on(watch.looks).is_break() {
            return Ok(watch);
        }
        clock.sleep_until(due_ns.min(clock.boottime_ns() + NAP_NS));
    }
}
