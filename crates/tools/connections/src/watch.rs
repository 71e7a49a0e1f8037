//! Looks at all sockets at an interval, and keeps for each its first and last state.

use core::ops::ControlFlow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use network::sockets::{NamespaceLook, Owner, TcpSocket, TcpState};
use observe::tracepoints::FailedAttempt;
use units::{NANOS_PER_SECOND, Sleep};

use super::history::NamespaceHistory;
use super::place::Place;
use super::tally::{AttemptBy, Failures, Question, UdpTrack};

use findings::Unseen;

/// What was there at one moment.
#[derive(Clone, Debug, Default)]
pub struct TcpLook {
    /// Each namespace and what it had.
    pub namespaces: Vec<(Place, NamespaceLook)>,
    /// Owners by the numbers of sockets.
    pub owners: BTreeMap<u32, Arc<Owner>>,
    /// Connections that could not be opened since the last look, and who asked for them.
    pub attempts: Vec<(FailedAttempt, Option<AttemptBy>)>,
    /// What could not be looked at.
    pub unseen: Vec<Unseen>,
}

/// Something that shows the sockets.
pub trait Source {
    /// All sockets now.
    fn look(&mut self) -> Result<TcpLook, network::Error>;

    /// Looks at what is gone before the next look, where that costs little; asked for ten times a
    /// second, with the time since boot.
    fn glance(&mut self, _at_ns: i64) {}
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
    /// When it was seen last, in nanoseconds since the first look.
    pub last_ns: i64,
    /// What was so at how many looks.
    pub looks: TrackLooks,
}

/// What was so of a socket at how many looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TrackLooks {
    /// It was there.
    pub all: u32,
    /// Its SYN had not been answered.
    pub unanswered: u32,
    /// Most times that its SYN had been sent again.
    pub syn_retries_max: u8,
    /// Less than a segment waited to be sent, for the acknowledgement of what was under way.
    pub held: u32,
    /// The program had not handed over what there was space for.
    pub app_limited: u32,
    /// Something waited to be read.
    pub unread: u32,
    /// Nine tenths of what the receiver allows were under way, and more waited.
    pub filled: u32,
    /// Less than a segment waited to be sent, with nothing under way and space in the window.
    pub corked: u32,
    /// Sum of its smoothed round trips, in microseconds.
    pub rtt_us: u64,
    /// Least and most of them; nothing where it was at no look.
    pub rtt_us_range: Option<(u32, u32)>,
    /// Most segments under way.
    pub unacked_max: u32,
}

impl TrackLooks {
    fn take(&mut self, socket: &TcpSocket) {
        self.all = self.all.saturating_add(1);
        if socket.state == TcpState::SynSent {
            self.unanswered = self.unanswered.saturating_add(1);
            self.syn_retries_max = self.syn_retries_max.max(socket.retries);
        }
        let Some(info) = &socket.info else { return };
        let unsent = info.unsent_bytes.unwrap_or(0);
        // The window has space, and still a short segment is held back (RFC 896).
        let is_held = unsent > 0
            && unsent < info.send_mss
            && info.unacked > 0
            && info.unacked < info.congestion_window;
        // Nothing but the program holds it back (TCP_CORK, MSG_MORE).
        let has_space = info.send_window.is_some_and(|window| window >= info.send_mss);
        let is_corked = unsent > 0 && unsent < info.send_mss && info.unacked == 0 && has_space;
        self.held = self.held.saturating_add(is_held.into());
        self.corked = self.corked.saturating_add(is_corked.into());
        let window = info.send_window.map_or(u64::MAX, u64::from);
        let under_way = u64::from(info.unacked) * u64::from(info.send_mss);
        let fills = under_way.saturating_mul(10) >= window.saturating_mul(9);
        self.filled = self.filled.saturating_add((fills && unsent >= info.send_mss).into());
        self.app_limited = self.app_limited.saturating_add(info.is_app_limited.into());
        self.unread = self.unread.saturating_add((socket.receive_queue > 0).into());
        self.rtt_us = self.rtt_us.saturating_add(info.rtt_us.into());
        let (least, most) = self.rtt_us_range.unwrap_or((info.rtt_us, info.rtt_us));
        self.rtt_us_range = Some((least.min(info.rtt_us), most.max(info.rtt_us)));
        self.unacked_max = self.unacked_max.max(info.unacked);
    }

    /// Mean of its smoothed round trips, in microseconds.
    pub fn rtt_us_mean(&self) -> u64 {
        self.rtt_us.checked_div(self.all.into()).unwrap_or(0)
    }
}

/// All looks of a watch.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Sockets that were there at the end, or at any look.
    pub tracks: BTreeMap<Key, Track>,
    /// UDP sockets, in the same way.
    pub udp: BTreeMap<Key, UdpTrack>,
    /// UDP sockets that were connected to port 53.
    pub questions: BTreeMap<Key, Question>,
    /// Connections that could not be opened.
    pub failures: Failures,
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

    /// Nanoseconds from the first look to the last, 1 at least.
    pub(crate) fn ns_positive(&self) -> u64 {
        u64::try_from(self.ns).unwrap_or(0).max(1)
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
            self.take_namespace(place, seen, &look.owners);
        }
        for (attempt, by) in look.attempts {
            self.failures.take(&attempt, by);
        }
        self.unseen.extend(look.unseen);
    }

    fn take_namespace(
        &mut self,
        place: Place,
        seen: NamespaceLook,
        owners: &BTreeMap<u32, Arc<Owner>>,
    ) {
        let NamespaceLook { sockets, counters, settings, udp, paths, .. } = seen;
        let inode = place.inode;
        let new = || NamespaceHistory::new(place, counters.clone());
        let history = self.namespaces.entry(inode).or_insert_with(new);
        (history.after, history.settings) = (counters, settings);
        history.take_paths(paths, &seen.neighbour_changes);
        let key = |cookie| Key { namespace: inode, cookie };
        let begun_ns = self.begun_ns.unwrap_or(0);
        for (at_ns, socket) in seen.questions {
            let owner = owners.get(&socket.inode);
            let after_ns = at_ns.saturating_sub(begun_ns);
            match self.questions.entry(key(socket.cookie)) {
                Entry::Vacant(free) => drop(free.insert(Question::new(socket, after_ns, owner))),
                Entry::Occupied(known) => known.into_mut().take(&socket, after_ns, owner),
            }
        }
        for socket in udp {
            let owner = owners.get(&socket.inode);
            match self.udp.entry(key(socket.cookie)) {
                Entry::Vacant(free) => drop(free.insert(UdpTrack::new(socket, owner))),
                Entry::Occupied(known) => known.into_mut().take(socket, owner),
            }
        }
        for socket in sockets {
            let owner = owners.get(&socket.inode);
            match self.tracks.entry(key(socket.cookie)) {
                Entry::Vacant(free) => {
                    let is_new = self.looks > 1;
                    free.insert(Track { is_new, ..Track::new(socket, owner, self.ns) });
                }
                Entry::Occupied(known) => known.into_mut().take(socket, owner, self.ns),
            }
        }
    }
}

impl Track {
    fn new(socket: TcpSocket, owner: Option<&Arc<Owner>>, at_ns: i64) -> Self {
        let queue_max = socket.receive_queue;
        let mut looks = TrackLooks::default();
        looks.take(&socket);
        Self {
            first: socket.clone(),
            last: socket,
            owner: owner.cloned(),
            queue_max,
            is_new: false,
            last_ns: at_ns,
            looks,
        }
    }

    fn take(&mut self, socket: TcpSocket, owner: Option<&Arc<Owner>>, at_ns: i64) {
        self.last_ns = at_ns;
        self.looks.take(&socket);
        if self.owner.is_none() {
            self.owner = owner.cloned();
        }
        self.queue_max = self.queue_max.max(socket.receive_queue);
        self.last = socket;
    }
}

/// Looks at once, then every `interval_ns` and when `duration_ns` are over, unless `go_on` says no;
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
    /// Glances take one part in so many of the time at most.
    const GLANCE_SHARE: i64 = 50;
    let begun_ns = clock.boottime_ns();
    let mut watch = Watch::default();
    let mut due_ns = begun_ns;
    let mut glance_due_ns = begun_ns;
    loop {
        let at_ns = clock.boottime_ns();
        if at_ns >= glance_due_ns {
            source.glance(at_ns);
            let cost_ns = clock.boottime_ns().saturating_sub(at_ns);
            glance_due_ns = at_ns.saturating_add(cost_ns.saturating_mul(GLANCE_SHARE));
        }
        if at_ns >= due_ns {
            watch.take(at_ns, source.look()?);
            due_ns += interval_ns.max(1) * ((at_ns - due_ns) / interval_ns.max(1) + 1);
            // One look has nothing to be compared with.
            due_ns = due_ns.min(begun_ns.saturating_add(duration_ns));
        }
        let is_over = at_ns - begun_ns >= duration_ns;
        if is_over || go_on(watch.looks).is_break() {
            return Ok(watch);
        }
        clock.sleep_until(due_ns.min(clock.boottime_ns() + NAP_NS));
    }
}
