//! System calls one by one, and what the scheduler does with the threads that make them.
//!
//! Four sets of rings, so that a storm of one kind takes no space from the others: calls, and
//! requests to rings of `io_uring(7)`, of some threads and what they start or of all; turns of
//! processors, always of all, because who had the processor instead is asked for; and what pointers
//! of calls lead to. Needs `CAP_PERFMON` and a
//! tracefs that can be read; what pointers lead to needs `CAP_BPF`, too.

mod event;
mod names;
mod now;
mod program;

use std::path::Path;

use event::{CallDecoder, Kind};
pub use event::{CallEvent, CallHappened, Left, Pointed, Scheduled};
pub use names::{call_name, error_name, open_flags};
pub use now::{NowIn, disk_of, filesystem_of, now_in, stands_in};
use program::Pointers;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::format::Format;
use super::not_traced::NotTraced;
use super::place::{format_of, tracefs};
use super::set::{self, Set, Whose, up_to};
use crate::perf::{self, ring_size, settled_ns};

/// Of the ring of a processor: 25 000 calls of 150 bytes, beginning and end.
const CALL_RING: usize = 4 << 20;
/// The same of turns: 10 000 of 200 bytes.
const TURN_RING: usize = 2 << 20;
/// The same of requests: 5000 of 100 bytes, each with its file and its end.
const REQUEST_RING: usize = 2 << 20;
/// Events at most; each is a descriptor.
const EVENTS_MAX: usize = 1 << 14;

/// Whose calls are followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Callers {
    /// Everybody's but our own.
    All,
    /// Those of these threads, and of what they start from now on.
    Threads(Vec<u32>),
    /// Those of what the calling thread starts from now on; its own come, too.
    Started,
}

/// System calls and turns of processors, as they come.
#[derive(Debug)]
pub struct CallTracer {
    calls: Set<CallDecoder>,
    turns: Set<CallDecoder>,
    /// `None` where the kernel has no rings for requests, or does not report them.
    requests: Option<Set<CallDecoder>>,
    pointers: Result<Pointers, NotTraced>,
    /// Read, and not yet handed out.
    waiting: Vec<CallEvent>,
}

impl CallTracer {
    /// Begins to listen. Threads that would take too many descriptors are followed by listening to
    /// all: the caller leaves out what is not wanted.
    pub fn open(callers: &Callers) -> Result<Self, NotTraced> {
        let place = tracefs()?;
        let calls = decoders(
            &place,
            &[(Kind::Entered, "raw_syscalls/sys_enter"), (Kind::Returned, "raw_syscalls/sys_exit")],
        )?;
        let turns = decoders(
            &place,
            &[
                (Kind::Switched, "sched/sched_switch"),
                (Kind::Woke, "sched/sched_waking"),
                (Kind::Forked, "sched/sched_process_fork"),
                (Kind::Executed, "sched/sched_process_exec"),
                (Kind::Ended, "sched/sched_process_exit"),
            ],
        )?;
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let threads: Vec<i32> = match callers {
            Callers::All => Vec::new(),
            Callers::Started => vec![own],
            Callers::Threads(threads) => {
                threads.iter().filter_map(|thread| i32::try_from(*thread).ok()).collect()
            }
        };
        let requests = requests(&place).unwrap_or_default();
        let each = (calls.len() + requests.len()) * perf::online().len();
        let events = threads.len().saturating_mul(each);
        let is_of_all = threads.is_empty() || !may_open(events);
        let whose = if is_of_all { Whose::All } else { Whose::Of(&threads) };
        let calls = Set::open_of(whose, calls, "", ring_size(CALL_RING))?;
        let requests = Some(requests)
            .filter(|requests| !requests.is_empty())
            .and_then(|it| Set::open_of(whose, it, "", ring_size(REQUEST_RING)).ok());
        let pointers = Pointers::open(&place, is_of_all && *callers == Callers::All);
        let turns = Set::open(turns, "", ring_size(TURN_RING))?;
        let tracer = Self { calls, turns, requests, pointers, waiting: Vec::new() };
        if *callers == Callers::Started {
            tracer.want_pointers(std::process::id());
        }
        Ok(tracer)
    }

    /// What pointers of this process's calls lead to is wanted, and of what it starts.
    pub fn want_pointers(&self, process: u32) {
        if let Ok(pointers) = &self.pointers {
            pointers.want(process);
        }
    }

    /// A process or thread has ended.
    pub fn forget(&self, process: u32) {
        if let Ok(pointers) = &self.pointers {
            pointers.forget(process);
        }
    }

    /// Why it is not known what pointers of calls lead to.
    pub fn no_pointers(&self) -> Option<&NotTraced> {
        self.pointers.as_ref().err()
    }

    /// What happened until a few milliseconds ago, in the order of time.
    pub fn read(&mut self, into: &mut Vec<CallEvent>) {
        self.take(settled_ns(), into);
    }

    /// Ends it: everything that has been read or waits in the rings, and what is missing is
    /// counted.
    pub fn finish(&mut self, into: &mut Vec<CallEvent>) {
        self.sets().for_each(|set| set.stop());
        self.take(u64::MAX, into);
        self.sets().for_each(Set::count_missing);
    }

    fn sets(&mut self) -> impl Iterator<Item = &mut Set<CallDecoder>> {
        let Self { calls, turns, requests, pointers, .. } = self;
        let further = requests.iter_mut().chain(pointers.as_mut().ok().map(|it| &mut it.set));
        [calls, turns].into_iter().chain(further)
    }

    fn take(&mut self, until_ns: u64, into: &mut Vec<CallEvent>) {
        let mut waiting = core::mem::take(&mut self.waiting);
        self.sets().for_each(|set| set.read(&mut waiting));
        into.extend(up_to(&mut waiting, until_ns));
        self.waiting = waiting;
    }

    /// Records of calls that did not come; before the end those that did not fit.
    pub fn lost_calls(&self) -> u64 {
        self.calls.lost()
    }

    /// The same of turns of processors.
    pub fn lost_turns(&self) -> u64 {
        self.turns.lost()
    }

    /// The same of requests to rings.
    pub fn lost_requests(&self) -> u64 {
        self.requests.as_ref().map_or(0, Set::lost)
    }

    /// The same of what pointers lead to.
    pub fn lost_pointers(&self) -> u64 {
        self.pointers.as_ref().map_or(0, |pointers| pointers.set.lost())
    }
}

fn decoders(place: &Path, wanted: &[(Kind, &'static str)]) -> Result<Vec<CallDecoder>, NotTraced> {
    let decoder = |(kind, name): &(Kind, &'static str)| {
        let decoder = CallDecoder::new(*kind, &format_of(place, name)?);
        decoder.ok_or(NotTraced::NoTracepoint(name))
    };
    wanted.iter().map(decoder).collect()
}

/// What is reported of requests to rings: since Linux 6.0 all of these.
fn requests(place: &Path) -> Result<Vec<CallDecoder>, NotTraced> {
    let wanted = [
        (Kind::Requested, "io_uring/io_uring_submit_req"),
        (Kind::RequestFile, "io_uring/io_uring_file_get"),
        (Kind::RequestDone, "io_uring/io_uring_complete"),
    ];
    decoders(place, &wanted)
}

/// Whether so many descriptors may be had, beside those that are needed anyway; the limit is raised
/// as far as everybody may.
fn may_open(events: usize) -> bool {
    const BESIDE: u64 = 256;
    let needed = u64::try_from(events).unwrap_or(u64::MAX).saturating_add(BESIDE);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if events > EVENTS_MAX || maximum.is_some_and(|most| most < needed) {
        return false;
    }
    let is_enough = current.is_none_or(|current| current >= needed);
    is_enough || setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).is_ok()
}

/// For tests that give any bytes: the layout of a tracepoint, and records of it.
pub(super) fn read_any_records(format: &Format, records: &[u8]) -> usize {
    let mut events = Vec::new();
    for kind in Kind::ALL {
        let decoders: Vec<_> = CallDecoder::new(kind, format).into_iter().collect();
        set::take(&decoders, (0, records), &mut events);
    }
    events.len()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn number(name: &str) -> u32 {
        (0..1000).find(|number| call_name(*number) == Some(name)).unwrap()
    }

    #[test]
    fn calls_of_a_program_come_with_their_paths_and_their_results() {
        let mut tracer = match CallTracer::open(&Callers::Started) {
            Ok(tracer) => tracer,
            Err(error) => return println!("not run: tracing takes {error}"),
        };
        let mut child =
            Command::new("cat").arg("/nonexistent/such").stderr(Stdio::null()).spawn().unwrap();
        let process = child.id();
        child.wait().unwrap();
        let mut events = Vec::new();
        tracer.finish(&mut events);
        assert!(events.is_sorted_by_key(|event| event.time_ns));
        let of_child = || events.iter().filter(|event| event.process == process);
        let has =
            |wanted: &dyn Fn(&CallHappened) -> bool| of_child().any(|it| wanted(&it.happened));
        let lost = (tracer.lost_calls(), tracer.lost_turns(), tracer.lost_pointers());
        if lost != (0, 0, 0) {
            return println!("not run: the kernel kept {lost:?} records back");
        }
        let openat = number("openat");
        let is_missing = |it: &CallHappened| {
            *it == CallHappened::Returned { number: openat, value: -i64::from(libc::ENOENT) }
        };
        assert!(has(&is_missing), "the call has its result");
        assert!(has(&|it| *it == CallHappened::Executed), "the program begins");
        assert!(has(&|it| matches!(it, CallHappened::Ended { .. })), "and ends");
        assert!(
            has(&|it| matches!(it, CallHappened::Switched { left: Left::Ended, .. })),
            "it leaves its processor for good"
        );
        if let Some(needs) = tracer.no_pointers() {
            return println!("not run: paths take {needs}");
        }
        let path = Pointed::Path(b"/nonexistent/such".to_vec());
        let pointed = events.iter().filter(|it| matches!(it.happened, CallHappened::Pointed(_)));
        let pointed: Vec<_> = pointed.take(20).collect();
        assert!(has(&|it| *it == CallHappened::Pointed(path.clone())), "{pointed:?}");
    }
}
