//! Connections that programs try to open and do not get: who asked, whom, and how it ended.
//!
//! A refused connection is gone within microseconds, so that no list of sockets ever has it. The
//! kernel reports each change of a socket's state (`sock:inet_sock_set_state`) and each reset that
//! it received (`tcp:tcp_receive_reset`). Changes are chosen by a filter in the kernel: one record
//! for each attempt, one more for each that fails, and for each open connection that ends without a
//! farewell, of which those count that a reset ended.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::format::{Field, Format};
use super::not_traced::NotTraced;
use super::place::{format_of, tracefs};
use super::set::{Decode, Set, Traced, up_to};
use super::sockets::{CHANGES, CLOSE, Changed, ESTABLISHED, ROUTES, Route, SYN_SENT};
use crate::perf::{ring_size, settled_ns};

const RESETS: &str = "tcp/tcp_receive_reset";
const CALLS: &str = "syscalls/sys_exit_connect";
/// At 20 000 attempts a second on one processor, 120 bytes each, 0.1 s.
const RING: usize = 256 << 10;
/// Attempts that may be under way, and resets; with more than that all are forgotten.
const PENDING_MAX: usize = 1 << 16;
/// A failure follows its reset within so long.
const RESET_NS: u64 = 100_000_000;

/// How an attempt ended that did not succeed, or not for long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttemptEnd {
    /// The other side sent a reset.
    Reset,
    /// It succeeded, and later the other side sent a reset.
    ResetOpen,
    /// Another way: the program gave up, the kernel did, or a router refused it.
    Closed,
    /// No route leads there, or one that refuses.
    NoRoute(NoRoute),
}

/// Why no packet may be sent to an address (`fib_props` of `net/ipv4/fib_semantics.c`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NoRoute {
    /// None matches, not even a default route: `ENETUNREACH`.
    None,
    /// A route of the type `unreachable`: `EHOSTUNREACH`.
    Unreachable,
    /// Of the type `prohibit`: `EACCES`.
    Prohibit,
    /// Of the type `blackhole`: `EINVAL`.
    Blackhole,
}

impl NoRoute {
    /// By the error of a call.
    fn of_error(error: i32) -> Option<Self> {
        match error {
            libc::ENETUNREACH => Some(Self::None),
            libc::EHOSTUNREACH => Some(Self::Unreachable),
            libc::EACCES => Some(Self::Prohibit),
            libc::EINVAL => Some(Self::Blackhole),
            _ => None,
        }
    }
}

/// An attempt that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedAttempt {
    /// The process that asked; 0 where it asked before the watch.
    pub process: u32,
    /// Our end.
    pub local: SocketAddr,
    /// Whom it asked.
    pub remote: SocketAddr,
    /// How long it waited, in nanoseconds; `None` where it asked before the watch.
    pub waited_ns: Option<u64>,
    /// How it ended.
    pub end: AttemptEnd,
}

/// Listens to all attempts of the machine.
#[derive(Debug)]
pub struct ConnectAttempts {
    changes: Set<Decoder>,
    resets: Set<Decoder>,
    /// `None` where the kernel has no such tracepoints.
    routes: Option<Set<Decoder>>,
    waiting: Vec<Traced<Change>>,
    /// When each socket asked, and whose it is.
    pending: BTreeMap<u64, (u64, u32)>,
    /// Sockets that received a reset, and when.
    reset: BTreeMap<u64, u64>,
    /// Of each thread the last address that no route leads to, the error, and when it was.
    unrouted: BTreeMap<u32, (SocketAddr, i32, u64)>,
}

impl ConnectAttempts {
    /// Begins to listen.
    pub fn open() -> Result<Self, NotTraced> {
        let place = tracefs()?;
        let changes = Decoder::changes(&format_of(&place, CHANGES)?);
        let resets = Decoder::resets(&format_of(&place, RESETS)?);
        let changes = changes.ok_or(NotTraced::NoTracepoint(CHANGES))?;
        let resets = resets.ok_or(NotTraced::NoTracepoint(RESETS))?;
        let filter = "protocol == 6 && \
                      ((oldstate == 7 && newstate == 2) || (oldstate == 2 && newstate == 7) || \
                      (oldstate == 1 && newstate == 7))";
        Ok(Self {
            changes: Set::open(vec![changes], filter, ring_size(RING))?,
            resets: Set::open(vec![resets], "", ring_size(RING))?,
            routes: routes(&place),
            waiting: Vec::new(),
            pending: BTreeMap::new(),
            reset: BTreeMap::new(),
            unrouted: BTreeMap::new(),
        })
    }

    /// Attempts that failed since the last time, until a few milliseconds ago.
    pub fn failed(&mut self) -> Vec<FailedAttempt> {
        self.changes.read(&mut self.waiting);
        self.resets.read(&mut self.waiting);
        self.routes.iter_mut().for_each(|routes| routes.read(&mut self.waiting));
        let until_ns = settled_ns();
        let ready: Vec<Traced<Change>> = up_to(&mut self.waiting, until_ns).collect();
        let failed = ready.into_iter().filter_map(|change| self.take(change)).collect();
        // A reset comes just before the failure, which may be in the next batch; an old one has
        // ended another connection.
        self.reset.retain(|_, at_ns| until_ns.saturating_sub(*at_ns) < RESET_NS);
        self.unrouted.retain(|_, (.., at_ns)| until_ns.saturating_sub(*at_ns) < RESET_NS);
        failed
    }

    fn take(&mut self, change: Traced<Change>) -> Option<FailedAttempt> {
        let Traced { time_ns, process, thread, happened } = change;
        match happened {
            Change::Unrouted { remote, error } => {
                if self.unrouted.len() >= PENDING_MAX {
                    self.unrouted.clear();
                }
                self.unrouted.insert(thread, (remote, error, time_ns));
                None
            }
            Change::CallFailed { error } => {
                let (remote, searched, at_ns) = self.unrouted.remove(&thread)?;
                // A table without a match says so by EAGAIN, and the call by ENETUNREACH.
                let is_same =
                    searched == error || (searched, error) == (libc::EAGAIN, libc::ENETUNREACH);
                let end = NoRoute::of_error(error).filter(|_| is_same).map(AttemptEnd::NoRoute)?;
                let waited_ns = Some(time_ns.saturating_sub(at_ns));
                let local = unspecified(remote);
                Some(FailedAttempt { process, local, remote, waited_ns, end })
            }
            Change::Asked { socket } => {
                if self.pending.len() >= PENDING_MAX {
                    self.pending.clear();
                }
                self.pending.insert(socket, (time_ns, process));
                None
            }
            Change::Reset { socket } => {
                if self.reset.len() >= PENDING_MAX {
                    self.reset.clear();
                }
                self.reset.insert(socket, time_ns);
                None
            }
            Change::Failed { socket, ends: [local, remote], was_open } => {
                let asked = self.pending.remove(&socket);
                let is_reset = self.reset.remove(&socket).is_some();
                let end = match (was_open, is_reset) {
                    (true, true) => AttemptEnd::ResetOpen,
                    // The program has ended it.
                    (true, false) => return None,
                    (false, true) => AttemptEnd::Reset,
                    (false, false) => AttemptEnd::Closed,
                };
                let waited_ns = asked.map(|(at_ns, _)| time_ns.saturating_sub(at_ns));
                let process = asked.map_or(0, |(_, process)| process);
                Some(FailedAttempt { process, local, remote, waited_ns, end })
            }
        }
    }
}

/// What a record says; a socket is told by its address in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Asked {
        socket: u64,
    },
    Failed {
        socket: u64,
        ends: [SocketAddr; 2],
        was_open: bool,
    },
    Reset {
        socket: u64,
    },
    /// The thread looked for a route to there.
    Unrouted {
        remote: SocketAddr,
        error: i32,
    },
    /// Its `connect` failed.
    CallFailed {
        error: i32,
    },
}

/// The address of a socket that has none yet.
fn unspecified(like: SocketAddr) -> SocketAddr {
    match like {
        SocketAddr::V4(_) => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0),
        SocketAddr::V6(_) => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0),
    }
}

/// Searches that find no route, and calls that fail; `None` where the kernel has none of these
/// tracepoints, or does not filter them.
fn routes(place: &Path) -> Option<Set<Decoder>> {
    let format = |name| format_of(place, name).ok();
    let call = Decoder::calls(&format(CALLS)?)?;
    let routes: Vec<Decoder> =
        ROUTES.iter().filter_map(|(name, is_v4)| Decoder::routes(&format(name)?, *is_v4)).collect();
    let both = routes.into_iter().chain([call]).collect();
    Set::open(both, "", ring_size(RING)).ok()
}

/// Searches for TCP that end with an error, and calls that end with one of [`NoRoute`].
const SEARCHES_WANTED: &str = "err < 0 && proto == 6";
const CALLS_WANTED: &str = "ret == -101 || ret == -113 || ret == -13 || ret == -22";

/// Reads the records of one tracepoint.
#[derive(Clone, Debug)]
struct Decoder {
    id: u16,
    fields: Fields,
}

#[derive(Clone, Debug)]
enum Fields {
    Changed(Changed),
    Reset { socket: Field },
    Route { route: Route, error: Field },
    Call { result: Field },
}

impl Decoder {
    fn changes(format: &Format) -> Option<Self> {
        Some(Self { id: format.id, fields: Fields::Changed(Changed::of(format)?) })
    }

    fn resets(format: &Format) -> Option<Self> {
        Some(Self { id: format.id, fields: Fields::Reset { socket: format.field("skaddr")? } })
    }

    fn routes(format: &Format, is_v4: bool) -> Option<Self> {
        let (route, error) = (Route::of(format, is_v4)?, format.field("err")?);
        let fields = Fields::Route { route, error };
        Some(Self { id: format.id, fields })
    }

    fn calls(format: &Format) -> Option<Self> {
        Some(Self { id: format.id, fields: Fields::Call { result: format.field("ret")? } })
    }
}

impl Decode for Decoder {
    type Happened = Change;

    fn id(&self) -> u16 {
        self.id
    }

    fn filter(&self) -> Option<&str> {
        match self.fields {
            Fields::Changed(_) | Fields::Reset { .. } => None,
            Fields::Route { .. } => Some(SEARCHES_WANTED),
            Fields::Call { .. } => Some(CALLS_WANTED),
        }
    }

    fn decode(&self, record: &[u8], _processor: usize) -> Option<Change> {
        Some(match &self.fields {
            Fields::Reset { socket } => Change::Reset { socket: socket.number(record)? },
            Fields::Changed(changed) => {
                let socket = changed.socket(record)?;
                match changed.states(record)? {
                    (CLOSE, SYN_SENT) => Change::Asked { socket },
                    (before @ (SYN_SENT | ESTABLISHED), CLOSE) => {
                        let was_open = before == ESTABLISHED;
                        Change::Failed { socket, ends: changed.ends(record)?, was_open }
                    }
                    _ => return None,
                }
            }
            Fields::Route { route, error } => {
                Change::Unrouted { remote: route.remote(record)?, error: errno(*error, record)? }
            }
            Fields::Call { result } => Change::CallFailed { error: errno(*result, record)? },
        })
    }
}

/// The number of an error, which the kernel has as a negative one.
fn errno(field: Field, record: &[u8]) -> Option<i32> {
    field.signed(record).and_then(i32::checked_neg)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_that_is_reset_and_one_that_is_refused_are_seen_with_their_process() {
        let mut attempts = match ConnectAttempts::open() {
            Ok(attempts) => attempts,
            Err(error) => {
                println!("not run: it takes {error}");
                return;
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let opened = TcpStream::connect(at);
        // Nobody has accepted it, so that its other end resets it.
        drop(listener);
        let Ok(_opened) = opened else { return println!("not run: no loopback interface") };
        assert!(TcpStream::connect(at).is_err());
        let until_ns = crate::perf::monotonic_ns() + 5_000_000_000;
        let mut found = Vec::new();
        while found.len() < 2 && crate::perf::monotonic_ns() < until_ns {
            found.extend(attempts.failed());
            found.retain(|one| one.remote == at);
        }
        let ends: Vec<_> = found.iter().map(|one| (one.process, one.end)).collect();
        let own = std::process::id();
        assert_eq!(ends, [(own, AttemptEnd::ResetOpen), (own, AttemptEnd::Reset)]);
        let refused = found.last().unwrap();
        assert!(refused.waited_ns.is_some_and(|ns| ns < 1_000_000_000), "{refused:?}");
    }

    #[test]
    fn an_address_that_no_route_leads_to_is_seen_with_who_asked() {
        let mut attempts = match ConnectAttempts::open() {
            Ok(attempts) if attempts.routes.is_some() => attempts,
            Ok(_) => return println!("not run: the kernel has no tracepoints of routes"),
            Err(error) => return println!("not run: it takes {error}"),
        };
        // For documentation (RFC 3849): leads nowhere unless there is a default route.
        let at: SocketAddr = "[2001:db8::1]:7323".parse().unwrap();
        match TcpStream::connect(at).map_err(|error| error.raw_os_error()) {
            Err(Some(libc::ENETUNREACH)) => {}
            other => return println!("not run: a route leads to {at}: {other:?}"),
        }
        let until_ns = crate::perf::monotonic_ns() + 5_000_000_000;
        let mut found = Vec::new();
        while found.is_empty() && crate::perf::monotonic_ns() < until_ns {
            found.extend(attempts.failed());
            found.retain(|one| one.remote == at);
        }
        let ends: Vec<_> = found.iter().map(|one| (one.process, one.end)).collect();
        assert_eq!(ends, [(std::process::id(), AttemptEnd::NoRoute(NoRoute::None))]);
    }
}
