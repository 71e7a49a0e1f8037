//! Calls that returned, counted.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::Path;

use observe::tracepoints::calls::{CallHappened, call_name};

use crate::descriptors::Descriptors;
use crate::effects;
use crate::filesystems::is_served;
use crate::machine::Machine;
use crate::reason::Reason;
use crate::requests::{Requested, Requests};
use crate::seen::{
    CallSeen, CallWatch, LockSeen, Lookups, NameServer, SlowCall, THREADS_OF_USE, ThreadSeen,
    UseKey, count_waker,
};
use crate::shape::{Shape, Waits, Work, shape_of};
use crate::target::Target;
use crate::text::{self, FUTEX_MASK, Made};
use crate::threads::Call;

/// The slowest calls that are kept.
const SLOWEST: usize = 64;
/// Uses, locks, processes with lookups and name servers.
const USES_MAX: usize = 1 << 15;
const LOCKS_MAX: usize = 1 << 13;
const LOOKUPS_MAX: usize = 1 << 12;
const SERVERS_MAX: usize = 1 << 10;
/// Paths of missing files, of all processes: some three megabytes.
const PATHS_MAX: usize = 1 << 14;
/// Threads of which it is known what they waited for.
const THREADS_MAX: usize = 1 << 13;
/// Files whose file systems are asked for.
const FILES_ASKED: usize = 1 << 12;
/// Of one lock.
const LOCK_THREADS_MAX: usize = 64;
/// A call that reads or writes no more does little for its cost.
const SMALL: u64 = 512;
/// The port of name servers.
const NAMES: u16 = 53;
/// `ENOENT` and `ENOTDIR`, the same on all processors.
const MISSING: [i32; 2] = [2, 20];

/// A call, and who made it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done<'a> {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) call: &'a Call,
    /// The result; `None` while it is under way.
    pub(crate) value: Option<i64>,
    pub(crate) ns: u64,
}

/// What is counted.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) seen: CallWatch,
    pub(crate) descriptors: Descriptors,
    shapes: BTreeMap<u32, (&'static str, Shape)>,
    slowest: BinaryHeap<Reverse<Slow>>,
    paths: usize,
    requests: Requests,
    /// Added to times by `CLOCK_MONOTONIC`.
    pub(crate) realtime_ahead_ns: i64,
}

/// In the order of their times.
#[derive(Debug)]
struct Slow(SlowCall);

impl PartialEq for Slow {
    fn eq(&self, other: &Self) -> bool {
        self.0.ns == other.0.ns
    }
}

impl Eq for Slow {}

impl PartialOrd for Slow {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slow {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.0.ns.cmp(&other.0.ns)
    }
}

impl Ledger {
    pub(crate) fn new() -> Self {
        let known = (0..1 << 10).filter_map(|number| Some((number, call_name(number)?)));
        let names: BTreeMap<u32, &'static str> = known.collect();
        let shapes = names.iter().map(|(number, name)| (*number, (*name, shape_of(name))));
        Self {
            shapes: shapes.collect(),
            seen: CallWatch { names, ..CallWatch::default() },
            descriptors: Descriptors::default(),
            slowest: BinaryHeap::new(),
            paths: 0,
            requests: Requests::default(),
            realtime_ahead_ns: 0,
        }
    }

    fn shape(&self, number: u32) -> (&'static str, Shape) {
        let known = self.shapes.get(&number).copied();
        known.unwrap_or_else(|| ("unknown", shape_of("unknown")))
    }

    /// What happened to requests that threads gave to the kernel.
    pub(crate) fn request(
        &mut self,
        machine: &mut dyn Machine,
        by: (u32, u32),
        happened: &CallHappened,
    ) {
        match *happened {
            CallHappened::Requested { request, operation } => {
                self.requests.begin(by, request, operation);
            }
            CallHappened::RequestFile { request, descriptor } => {
                let both = (machine, &mut self.descriptors);
                self.requests.of_file(both, (request, descriptor));
            }
            CallHappened::RequestDone { request } => self.requests.end(request),
            _ => {}
        }
    }

    /// The file of the request that a thread waits for, and whether it waits for nothing but files.
    pub(crate) fn requested(&self, (process, thread): (u32, u32), call: &Call) -> Requested {
        let (name, shape) = self.shape(call.number);
        let [context, ..] = call.arguments;
        match shape.waits {
            Waits::Requests if name == "io_uring_enter" => {
                self.requests.waits_for(&self.descriptors, thread)
            }
            // Nothing else is usual with aio.
            Waits::Requests => {
                Requested { is_file: true, place: self.requests.of_context(process, context) }
            }
            _ => Requested::default(),
        }
    }

    /// What a thread waits for that is in this call.
    pub(crate) fn reason(
        &mut self,
        machine: &mut dyn Machine,
        process: u32,
        call: &Call,
    ) -> Reason {
        let (_, shape) = self.shape(call.number);
        match shape.waits {
            Waits::File => Reason::File,
            Waits::Futex => Reason::Futex,
            Waits::FileLock => Reason::FileLock,
            Waits::Timer => Reason::Timer,
            Waits::Events if self.asked(process, call).is_some() => Reason::Network,
            Waits::Events | Waits::Requests => Reason::Events,
            Waits::Accept => Reason::Accept,
            Waits::Child => Reason::Child,
            Waits::Memory => Reason::Memory,
            Waits::Network => Reason::Network,
            Waits::Unknown => Reason::Unknown,
            Waits::Descriptor => {
                let place = self.place(machine, process, call, shape);
                match place.and_then(|place| self.descriptors.target(place)) {
                    Some(Target::File(_)) => Reason::File,
                    Some(Target::Socket(_) | Target::Local(_)) => Reason::Network,
                    Some(Target::Pipe(_)) => Reason::Pipe,
                    Some(Target::Event(_)) => Reason::Events,
                    Some(Target::Terminal(_)) => Reason::Terminal,
                    Some(Target::Other(_)) | None => Reason::Unknown,
                }
            }
        }
    }

    /// A thread that waits for a disk is woken by nothing else, and one that waits for the server
    /// of a file system may be. At another file it sleeps for somebody at its other end.
    pub(crate) fn of_sleeping(
        &mut self,
        machine: &mut dyn Machine,
        process: u32,
        call: &Call,
    ) -> Reason {
        let (name, shape) = self.shape(call.number);
        if shape.work == Work::Lookup {
            return of_sleeping_lookup(machine, name, call);
        }
        let Some(place) = self.place(machine, process, call, shape) else { return Reason::File };
        let Some(Target::File(path)) = self.descriptors.target(place) else { return Reason::File };
        let kinds = &mut self.seen.filesystems;
        if !kinds.contains_key(&place) && kinds.len() < FILES_ASKED {
            kinds.insert(place, machine.filesystem(path).unwrap_or_default());
        }
        let kind = kinds.get(&place);
        if kind.is_some_and(|kind| is_served(kind)) { Reason::File } else { Reason::Pipe }
    }

    /// The socket among those that are polled by which something was sent, and whose answer is
    /// waited for therefore.
    fn asked(&mut self, process: u32, call: &Call) -> Option<usize> {
        let polled = text::polled(call.pointed.as_ref());
        let known = polled.into_iter().filter_map(|it| self.descriptors.known(process, it));
        let places: Vec<usize> = known.collect();
        let is_asked = |place: &usize| {
            self.descriptors.socket(*place).asked > 0 && self.descriptors.is_client(*place)
        };
        places.into_iter().find(is_asked)
    }

    fn place(
        &mut self,
        machine: &mut dyn Machine,
        process: u32,
        call: &Call,
        shape: Shape,
    ) -> Option<usize> {
        use crate::shape::Argument::Descriptor;
        let [first, ..] = call.arguments;
        let is_first = shape.arguments.first() == Some(&Descriptor);
        let number = text::descriptor(first).filter(|_| is_first)?;
        self.descriptors.place(machine, (process, number))
    }

    /// Takes in a call that returned, or that is under way at the end.
    pub(crate) fn take(&mut self, machine: &mut dyn Machine, made: &Done<'_>) {
        let (name, shape) = self.shape(made.call.number);
        let place = self.place(machine, made.process, made.call, shape);
        // A ring or a context is nothing by itself.
        let place = if shape.work == Work::Requests { made.call.requested } else { place };
        let asked = self.answered(made, shape, place);
        let is_idle = asked.is_none() && self.is_idle(made.call, shape, place);
        if let Some(value) = made.value {
            let all = if is_idle { &mut self.seen.idle } else { &mut self.seen.calls };
            let seen = match all.get_mut(name) {
                Some(seen) => seen,
                None => all.entry(name.to_owned()).or_default(),
            };
            count(seen, made, value, shape);
        }
        self.used(machine, made, shape, (place, asked));
        if let Some(place) = asked {
            self.waited_for_answer(made, shape, place);
        }
        self.futex(machine, made, shape);
        self.looked_up(made, shape);
        if !is_idle {
            self.keep_if_slow(machine, made, (name, shape));
        }
        if let Some(value) = made.value {
            let words = Made {
                process: made.process,
                arguments: &made.call.arguments,
                pointed: made.call.pointed.as_ref(),
            };
            self.submitted(machine, (name, value), &words);
            effects::apply(&mut self.descriptors, name, &words, value);
        }
    }

    /// Requests were given to a context of aio.
    fn submitted(&mut self, machine: &mut dyn Machine, call: (&str, i64), made: &Made<'_>) {
        let ("io_submit", 1..) = call else { return };
        let [context, ..] = *made.arguments;
        if let Some(number) = text::submitted(made.pointed)
            && let Some(place) = self.descriptors.place(machine, (made.process, number))
        {
            self.requests.submitted(made.process, context, place);
        }
    }

    /// Whether programs are in such a call when they have nothing to do.
    fn is_idle(&self, call: &Call, shape: Shape, place: Option<usize>) -> bool {
        let target = place.and_then(|place| self.descriptors.target(place));
        match (shape.waits, shape.work) {
            (Waits::Timer | Waits::Events | Waits::Accept | Waits::Child, _) => true,
            (Waits::Requests, _) => {
                call.waited_ns() > 0 && !call.reasons.contains_key(&Reason::File)
            }
            (Waits::Futex, _) => futex_wait(call).is_some_and(|is_mutex| !is_mutex),
            (Waits::Descriptor, Work::Read) | (Waits::File, Work::Lookup)
                if call.reasons.contains_key(&Reason::Pipe) =>
            {
                true
            }
            (Waits::Descriptor, Work::Read) => matches!(
                target,
                Some(
                    Target::Socket(_)
                        | Target::Local(_)
                        | Target::Pipe(_)
                        | Target::Event(_)
                        | Target::Terminal(_)
                )
            ),
            _ => false,
        }
    }

    /// The socket whose answer was waited for; keeps up whether something was asked, and what name
    /// servers were asked.
    fn answered(&mut self, made: &Done<'_>, shape: Shape, place: Option<usize>) -> Option<usize> {
        let place = match shape.work {
            Work::Poll => self.asked(made.process, made.call)?,
            Work::Read | Work::Write | Work::Connect => place?,
            Work::Sync | Work::Lookup | Work::Requests | Work::Other => return None,
        };
        let target = self.descriptors.target(place)?;
        if !matches!(target, Target::Socket(_) | Target::Local(_)) {
            return None;
        }
        // What a connection is made to is known by the call's own argument.
        let remote = target.remote();
        let is_done = made.value.is_some_and(|value| text::error(value).is_none());
        let messages = self.messages(made);
        let socket = self.descriptors.socket(place);
        let was_asked = socket.asked > 0;
        match shape.work {
            Work::Write if is_done => {
                socket.asked = socket.asked.max(messages);
                socket.sent_ns = made.call.begun_ns.saturating_add(made.ns);
                socket.pending.clear();
            }
            Work::Read if is_done => socket.asked = socket.asked.saturating_sub(1),
            _ => {}
        }
        if let Some(remote) = remote.filter(|remote| remote.port() == NAMES) {
            self.asked_for_a_name((made.process, remote), made, shape);
        }
        let is_answer = was_asked && self.descriptors.is_client(place);
        (is_answer && shape.work != Work::Write).then_some(place)
    }

    /// How many messages a call that sends has sent.
    fn messages(&self, made: &Done<'_>) -> u64 {
        let is_several = self.seen.names.get(&made.call.number) == Some(&"sendmmsg");
        let count = made.value.filter(|_| is_several).unwrap_or(1);
        u64::try_from(count).unwrap_or(0)
    }

    fn asked_for_a_name(
        &mut self,
        key: (u32, core::net::SocketAddr),
        made: &Done<'_>,
        shape: Shape,
    ) {
        let messages = self.messages(made);
        let servers = &mut self.seen.name_servers;
        if servers.len() >= SERVERS_MAX && !servers.contains_key(&key) {
            self.seen.left_out += 1;
            return;
        }
        let server: &mut NameServer = servers.entry(key).or_default();
        let waited_ns = made.call.waited_ns();
        server.waited_ns += waited_ns;
        let is_message = made.value.is_some_and(|value| value > 0);
        match shape.work {
            Work::Write if is_message => server.questions += messages,
            Work::Read if is_message => server.answers += 1,
            Work::Poll if made.value == Some(0) && waited_ns > 0 => server.given_up += 1,
            Work::Read if waited_ns > 0 && !is_message => server.given_up += 1,
            _ => {}
        }
    }

    fn used(
        &mut self,
        machine: &mut dyn Machine,
        made: &Done<'_>,
        shape: Shape,
        (place, asked): (Option<usize>, Option<usize>),
    ) {
        let target = asked.or(place);
        self.lies_on(machine, target.filter(|_| call_ns(made.call, Reason::File) > 0));
        let key = UseKey { process: made.process, number: made.call.number, target };
        if self.seen.uses.len() >= USES_MAX && !self.seen.uses.contains_key(&key) {
            self.seen.left_out += 1;
            return;
        }
        let (waker, processes) = (made.call.waker, &self.seen.processes);
        let one = self.seen.uses.entry(key).or_default();
        one.count += 1;
        one.total_ns += made.ns;
        one.ran_ns += made.ns.saturating_sub(made.call.reasons.values().sum());
        let waited_ns = made.call.waited_ns();
        one.waited_ns += waited_ns;
        one.file_ns += call_ns(made.call, Reason::File);
        if one.threads.len() < THREADS_OF_USE {
            one.threads.insert(made.thread);
        }
        let bytes = moved(made.value, shape);
        one.bytes += bytes;
        one.small += u64::from((1..=SMALL).contains(&bytes));
        if let Some((process, _)) = waker {
            let name = || known_name(processes, machine, process);
            count_waker(&mut one.woken_by, process, name);
        }
    }

    /// Learns which disk a file lies on that was waited for.
    fn lies_on(&mut self, machine: &mut dyn Machine, target: Option<usize>) {
        let Some(place) = target.filter(|place| !self.seen.disks.contains_key(place)) else {
            return;
        };
        if let Some(Target::File(path)) = self.descriptors.target(place)
            && self.seen.disks.len() < FILES_ASKED
        {
            self.seen.disks.insert(place, machine.disk(path));
        }
    }

    /// Waits for an answer count when it comes: a program that sends again without one did not wait
    /// for that. What was waited before the last message left, or is over, is no part of it.
    fn waited_for_answer(&mut self, made: &Done<'_>, shape: Shape, place: usize) {
        let key = (made.process, made.call.number);
        let end_ns = made.call.begun_ns.saturating_add(made.ns);
        let waited_ns = made.call.waited_ns();
        let has_data = shape.work == Work::Read && made.value.is_some_and(|value| value > 0);
        let socket = self.descriptors.socket(place);
        let since_ns = end_ns.saturating_sub(socket.sent_ns);
        *socket.pending.entry(key).or_default() += waited_ns.min(since_ns);
        socket.answers += u64::from(has_data);
        if has_data {
            self.confirm(place);
        }
    }

    /// What was waited for by this socket was an answer.
    fn confirm(&mut self, place: usize) {
        for ((process, number), ns) in core::mem::take(&mut self.descriptors.socket(place).pending)
        {
            let key = UseKey { process, number, target: Some(place) };
            if let Some(one) = self.seen.uses.get_mut(&key) {
                one.answer_ns += ns;
            }
        }
    }

    /// Where a call waits that is under way at the end.
    pub(crate) fn stands_in(
        &mut self,
        machine: &mut dyn Machine,
        process: u32,
        call: &Call,
        function: String,
    ) {
        let (_, shape) = self.shape(call.number);
        // Where it waits for requests says nothing of their file.
        if shape.work == Work::Requests {
            return;
        }
        let target = self.place(machine, process, call, shape);
        let key = UseKey { process, number: call.number, target };
        if self.seen.uses.len() < USES_MAX || self.seen.uses.contains_key(&key) {
            self.seen.uses.entry(key).or_default().stands_in.get_or_insert(function);
        }
    }

    fn futex(&mut self, machine: &mut dyn Machine, made: &Done<'_>, shape: Shape) {
        if shape.waits != Waits::Futex {
            return;
        }
        let [address, ..] = made.call.arguments;
        let key = (made.process, address);
        let wait = futex_wait(made.call);
        let waited_ns = made.call.waited_ns();
        let locks = &mut self.seen.locks;
        let is_known = locks.contains_key(&key);
        // Who wakes and never waits is of no interest before somebody waits there.
        if !is_known && (wait.is_none() && !futex_wakes(made.call) || locks.len() >= LOCKS_MAX) {
            self.seen.left_out += u64::from(locks.len() >= LOCKS_MAX);
            return;
        }
        let lock: &mut LockSeen = locks.entry(key).or_default();
        let Some(is_mutex) = wait else {
            if lock.wakers.len() < LOCK_THREADS_MAX {
                lock.wakers.insert(made.thread);
            }
            return;
        };
        lock.is_mutex |= is_mutex;
        if waited_ns == 0 {
            return;
        }
        lock.waits += 1;
        lock.waited_ns += waited_ns;
        if lock.waiters.len() < LOCK_THREADS_MAX {
            lock.waiters.insert(made.thread);
        }
        if let Some((process, _)) = made.call.waker {
            let processes = &self.seen.processes;
            let name = || known_name(processes, machine, process);
            count_waker(&mut lock.woken_by, process, name);
        }
    }

    fn looked_up(&mut self, made: &Done<'_>, shape: Shape) {
        let Some(value) = made.value.filter(|_| shape.work == Work::Lookup) else { return };
        let all = &mut self.seen.lookups;
        if all.len() >= LOOKUPS_MAX && !all.contains_key(&made.process) {
            self.seen.left_out += 1;
            return;
        }
        let lookups: &mut Lookups = all.entry(made.process).or_default();
        lookups.count += 1;
        if !text::error(value).is_some_and(|error| MISSING.contains(&error)) {
            return;
        }
        lookups.missing += 1;
        lookups.missing_ns += made.ns;
        let Some(path) = text::path(made.call.pointed.as_ref()) else { return };
        match lookups.paths.get_mut(&path) {
            Some(count) => *count += 1,
            None if self.paths < PATHS_MAX => {
                self.paths += 1;
                lookups.paths.insert(path, 1);
            }
            None => self.seen.left_out += 1,
        }
    }

    fn keep_if_slow(
        &mut self,
        machine: &mut dyn Machine,
        made: &Done<'_>,
        (name, shape): (&str, Shape),
    ) {
        let is_slow = |Reverse(least): &Reverse<Slow>| least.0.ns < made.ns;
        if self.slowest.len() >= SLOWEST && !self.slowest.peek().is_some_and(is_slow) {
            return;
        }
        let Done { process, thread, call, value, ns } = *made;
        let words = Made { process, arguments: &call.arguments, pointed: call.pointed.as_ref() };
        let label = |process: u32, name: &str| format!("{name} (process {process})");
        let processes = &self.seen.processes;
        let waker =
            call.waker.map(|(process, _)| label(process, &known_name(processes, machine, process)));
        // Of a part that matters: somebody always ran just before.
        let taker = call.takers.iter().max_by_key(|taker| taker.ns);
        let taker = taker.filter(|taker| taker.ns.saturating_mul(10) >= ns);
        let at_ns = i64::try_from(call.begun_ns).unwrap_or(i64::MAX);
        self.slowest.push(Reverse(Slow(SlowCall {
            ns,
            at_ns: at_ns.saturating_add(self.realtime_ahead_ns),
            process,
            process_name: known_name(processes, machine, process),
            thread,
            call: name.to_owned(),
            arguments: text::arguments(&words, shape, &self.descriptors),
            result: value.map(text::result),
            reasons: call.reasons.clone(),
            woken_by: waker,
            processor_taken_by: taker
                .map(|taker| format!("{} (thread {})", taker.name, taker.thread)),
        })));
        if self.slowest.len() > SLOWEST {
            self.slowest.pop();
        }
    }

    /// `None` for one more thread than there is space for.
    pub(crate) fn thread(
        &mut self,
        process: u32,
        thread: u32,
        now_ns: u64,
    ) -> Option<&mut ThreadSeen> {
        let threads = &mut self.seen.threads;
        if threads.len() >= THREADS_MAX && !threads.contains_key(&thread) {
            self.seen.left_out += 1;
            return None;
        }
        let new = || ThreadSeen { process, begun_ns: now_ns, ..ThreadSeen::default() };
        Some(threads.entry(thread).or_insert_with(new))
    }

    /// All of it.
    pub(crate) fn finish(mut self) -> CallWatch {
        // An answer that is still to come is waited for, too.
        let (waited_for, unanswered) = self.descriptors.asked();
        for place in waited_for {
            self.confirm(place);
        }
        self.seen.unanswered = unanswered;
        let Self { mut seen, descriptors, slowest, requests, .. } = self;
        seen.left_out += requests.left_out;
        let (targets, left_out) = descriptors.into_targets();
        seen.targets = targets;
        seen.left_out += left_out;
        seen.slowest = slowest.into_sorted_vec().into_iter().map(|Reverse(slow)| slow.0).collect();
        // Some call by a number that has no name here.
        seen.names.entry(u32::MAX).or_insert("unknown");
        seen
    }
}

/// The name of a process as it is known, else as it is now.
pub(crate) fn known_name(
    processes: &BTreeMap<u32, crate::seen::ProcessSeen>,
    machine: &mut dyn Machine,
    process: u32,
) -> String {
    let known = processes.get(&process).map(|seen| &seen.name).filter(|name| !name.is_empty());
    known.cloned().or_else(|| machine.name(process)).unwrap_or_default()
}

fn count(seen: &mut CallSeen, made: &Done<'_>, value: i64, shape: Shape) {
    /// The kernel's own errors: the call begins anew.
    const RESTARTED: core::ops::RangeInclusive<i32> = 512..=516;
    seen.count += 1;
    seen.total_ns += made.ns;
    seen.waited_ns += made.call.waited_ns();
    seen.times.add(made.ns);
    seen.bytes += moved(Some(value), shape);
    if let Some(error) = text::error(value).filter(|error| !RESTARTED.contains(error)) {
        *seen.errors.entry(error).or_default() += 1;
    }
}

/// What opens a file waits at a named pipe until somebody opens its other end; nothing else that
/// takes a path sleeps so, but for the server of a file system.
fn of_sleeping_lookup(machine: &mut dyn Machine, name: &str, call: &Call) -> Reason {
    if !matches!(name, "open" | "openat" | "openat2" | "creat") {
        return Reason::File;
    }
    let path = text::path(call.pointed.as_ref()).filter(|path| path.starts_with('/'));
    let kind = path.map(|path| machine.filesystem(Path::new(&path)).unwrap_or_default());
    match kind {
        Some(kind) if is_served(&kind) => Reason::File,
        Some(_) => Reason::Pipe,
        None => Reason::Unknown,
    }
}

fn call_ns(call: &Call, reason: Reason) -> u64 {
    call.reasons.get(&reason).copied().unwrap_or(0)
}

/// Bytes that a call has read or written.
fn moved(value: Option<i64>, shape: Shape) -> u64 {
    let is_moving = matches!(shape.work, Work::Read | Work::Write);
    value.filter(|_| is_moving).and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
}

/// Whether a call waits at a futex, and then whether that is a mutex: the C library and others mark
/// one that has waiters by 2 (`nptl/lowlevellock.h` of glibc).
fn futex_wait(call: &Call) -> Option<bool> {
    const WAIT: u64 = 0;
    const WAIT_BITSET: u64 = 9;
    const LOCK_PI: [u64; 2] = [6, 13];
    const HAS_WAITERS: u64 = 2;
    let [_, operation, value, ..] = call.arguments;
    match operation & FUTEX_MASK {
        WAIT | WAIT_BITSET => Some(value & 0xffff_ffff == HAS_WAITERS),
        operation if LOCK_PI.contains(&operation) => Some(true),
        _ => None,
    }
}

/// `FUTEX_WAKE`, `FUTEX_WAKE_OP`, `FUTEX_UNLOCK_PI` and `FUTEX_WAKE_BITSET`.
fn futex_wakes(call: &Call) -> bool {
    let [_, operation, ..] = call.arguments;
    matches!(operation & FUTEX_MASK, 1 | 5 | 7 | 10)
}
