//! Follows threads from record to record.

use std::collections::{BTreeMap, BTreeSet};

use observe::tracepoints::calls::{CallEvent, CallHappened, Left, NowIn, Scheduled};

use crate::ledger::{Done, Ledger, known_name};
use crate::machine::Machine;
use crate::names::of_bytes;
use crate::reason::Reason;
use crate::runs::Runs;
use crate::seen::{CallWatch, ProcessSeen};
use crate::threads::{Away, Call, Divided, Thread, add_taker};

/// Threads that are followed at a time, and processes that are known.
const THREADS_MAX: usize = 1 << 14;
const PROCESSES_MAX: usize = 1 << 14;

/// Whose records count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// All but this process.
    AllBut(u32),
    /// Those of these processes, and of what they start.
    These(BTreeSet<u32>),
}

pub(crate) struct Follower<'m> {
    pub(crate) machine: &'m mut dyn Machine,
    ledger: Ledger,
    wanted: Wanted,
    threads: BTreeMap<u32, Thread>,
    /// Who started a process that has made no call yet.
    parents: BTreeMap<u32, u32>,
    runs: Runs,
    begun_ns: u64,
}

impl<'m> Follower<'m> {
    pub(crate) fn new(machine: &'m mut dyn Machine, wanted: Wanted, begun_ns: u64) -> Self {
        let mut ledger = Ledger::new();
        ledger.realtime_ahead_ns = machine.realtime_ahead_ns();
        let (threads, parents) = (BTreeMap::new(), BTreeMap::new());
        let runs = Runs::default();
        Self { machine, ledger, wanted, threads, parents, runs, begun_ns }
    }

    fn is_wanted(&self, process: u32) -> bool {
        match &self.wanted {
            Wanted::AllBut(own) => process != *own && process != 0 && process != u32::MAX,
            Wanted::These(processes) => processes.contains(&process),
        }
    }

    /// A program of ours that has not begun to run its own code.
    pub(crate) fn starts(&mut self, process: u32) {
        let thread = Thread { process, is_before_exec: true, ..Thread::default() };
        self.threads.insert(process, thread);
    }

    /// A thread that waits already.
    pub(crate) fn waits(&mut self, (process, thread): (u32, u32), now: NowIn) {
        let since_ns = self.begun_ns;
        let left = if now.is_blocked { Left::Blocked } else { Left::Sleeping };
        let away = Away { since_ns, left, runnable_ns: None, waker: None };
        if let Some(it) = self.thread(process, thread, since_ns) {
            it.call = Some(Call::new(now.number, now.arguments, since_ns));
            it.away = Some(away);
            it.is_known = true;
        }
    }

    pub(crate) fn take(&mut self, event: CallEvent) {
        let CallEvent { time_ns, process, thread, happened } = event;
        match happened {
            CallHappened::Entered { number, arguments } => {
                let Some(it) = self.of_call((process, thread), time_ns) else { return };
                let mut call = Call::new(number, arguments, time_ns);
                call.pointed = it.pending.take();
                it.call = Some(call);
            }
            CallHappened::Returned { number, value } => {
                let Some(it) = self.of_call((process, thread), time_ns) else { return };
                it.pending = None;
                let is_before_exec = it.is_before_exec;
                let call = it.call.take().filter(|call| call.number == number);
                if let Some(call) = call.filter(|_| !is_before_exec) {
                    self.returned((process, thread), &call, (value, time_ns));
                }
            }
            CallHappened::Pointed(pointed) => {
                let Some(it) = self.of_call((process, thread), time_ns) else { return };
                match &mut it.call {
                    Some(call) if call.pointed.is_none() => call.pointed = Some(pointed),
                    _ => it.pending = Some(pointed),
                }
            }
            CallHappened::Switched { processor, from, left, to } => {
                // One that has ended has no number any more.
                let is_numbered = left != Left::Ended && thread != u32::MAX;
                if is_numbered && thread != from.thread && thread != 0 && from.thread != 0 {
                    self.ledger.seen.has_foreign_numbers = true;
                }
                if !self.ledger.seen.has_foreign_numbers {
                    self.runs.ended(processor, from, time_ns);
                    self.leaves((process, from), left, time_ns);
                    self.comes(to.thread, Some(processor), time_ns);
                }
            }
            CallHappened::Woke { thread: woken, is_interrupt } => {
                if let Some(away) = self.threads.get_mut(&woken).and_then(|it| it.away.as_mut()) {
                    away.runnable_ns.get_or_insert(time_ns);
                    if !is_interrupt {
                        away.waker = Some((process, thread));
                    }
                }
            }
            CallHappened::Requested { .. }
            | CallHappened::RequestFile { .. }
            | CallHappened::RequestDone { .. } => {
                self.ledger.request(self.machine, (process, thread), &happened);
            }
            CallHappened::Forked { child } => self.forked(process, child),
            CallHappened::Executed => self.executed((process, thread), time_ns),
            CallHappened::Ended { name } => self.ended((process, thread), &name, time_ns),
        }
    }

    fn of_call(&mut self, (process, thread): (u32, u32), now_ns: u64) -> Option<&mut Thread> {
        if !self.is_wanted(process) {
            return None;
        }
        let it = self.thread(process, thread, now_ns)?;
        it.is_known = true;
        Some(it)
    }

    /// A thread that is followed, or will be from now on.
    fn thread(&mut self, process: u32, thread: u32, now_ns: u64) -> Option<&mut Thread> {
        if !self.threads.contains_key(&thread) {
            if self.threads.len() >= THREADS_MAX {
                self.ledger.seen.left_out += 1;
                return None;
            }
            self.process(process, now_ns);
            let since_ns = now_ns.saturating_sub(self.begun_ns);
            // One that was there before has been there all the time.
            let parent = self.parents.remove(&thread);
            let begun_ns = parent.map_or(0, |_| since_ns);
            // A thread has the descriptors of its process, a process begins with copies.
            if let Some(parent) = parent.filter(|_| process == thread) {
                self.ledger.descriptors.inherit(parent, process);
            }
            let name = self.machine.name(thread);
            if let Some(seen) = self.ledger.thread(process, thread, begun_ns) {
                seen.name = name.unwrap_or_default();
            }
            self.threads.insert(thread, Thread { process, ..Thread::default() });
        }
        self.threads.get_mut(&thread)
    }

    fn process(&mut self, process: u32, now_ns: u64) {
        let processes = &mut self.ledger.seen.processes;
        if processes.contains_key(&process) {
            return;
        }
        if processes.len() >= PROCESSES_MAX {
            self.ledger.seen.left_out += 1;
            return;
        }
        let parent = self.parents.get(&process).copied();
        let begun_ns = parent.map_or(0, |_| now_ns.saturating_sub(self.begun_ns));
        let of_parent = parent.and_then(|parent| processes.get(&parent));
        let of_parent = of_parent.map(|parent| parent.name.clone());
        let name = self.machine.name(process).or(of_parent).unwrap_or_default();
        processes.insert(process, ProcessSeen { name, begun_ns, ended_ns: 0 });
    }

    fn returned(
        &mut self,
        (process, thread): (u32, u32),
        call: &Call,
        (value, now_ns): (i64, u64),
    ) {
        if let Some(seen) = self.ledger.thread(process, thread, 0) {
            seen.calls += 1;
        }
        let ns = now_ns.saturating_sub(call.begun_ns);
        let done = Done { process, thread, call, value: Some(value), ns };
        self.ledger.take(self.machine, &done);
    }

    /// A thread loses its processor.
    fn leaves(&mut self, (process, from): (u32, Scheduled), left: Left, now_ns: u64) {
        // One that computes makes no call by which it would be known.
        let is_asked_for = matches!(&self.wanted, Wanted::These(these) if these.contains(&process));
        if is_asked_for && left != Left::Ended {
            self.thread(process, from.thread, now_ns);
        }
        let Some(it) = self.threads.get_mut(&from.thread) else { return };
        let runnable_ns = (left == Left::Runnable).then_some(now_ns);
        it.away = match left {
            Left::Ended => None,
            _ => Some(Away { since_ns: now_ns, left, runnable_ns, waker: None }),
        };
        self.named((process, from.thread), &from.name);
    }

    /// Its name, which may be another one by now.
    fn named(&mut self, (process, thread): (u32, u32), name: &[u8; 16]) {
        let name = of_bytes(name);
        if thread == process
            && let Some(seen) = self.ledger.seen.processes.get_mut(&process)
            && seen.name != name
        {
            seen.name.clone_from(&name);
        }
        if let Some(seen) = self.ledger.seen.threads.get_mut(&thread)
            && seen.name != name
        {
            seen.name = name;
        }
    }

    /// A thread gets a processor, or the watch ends before it does.
    fn comes(&mut self, thread: u32, processor: Option<usize>, now_ns: u64) {
        let Some(it) = self.threads.get_mut(&thread) else { return };
        let Some(away) = it.away.take() else { return };
        if it.is_before_exec {
            return;
        }
        let process = it.process;
        let Divided { waited_ns, queued_ns } = away.divided(now_ns);
        let reason = self.reason(thread, away.left);
        // Who had the processor meanwhile; thread 0 is nobody.
        let since_ns = now_ns.saturating_sub(queued_ns);
        let had = processor.into_iter().flat_map(|it| self.runs.since(it, since_ns));
        let (idle, takers): (Vec<_>, Vec<_>) = had.partition(|(who, _)| who.thread == 0);
        let idle_ns = idle.iter().map(|(_, ns)| ns).sum::<u64>().min(queued_ns);
        let charged = [
            (reason, waited_ns),
            (Reason::WakeUp, idle_ns),
            (Reason::Processor, queued_ns - idle_ns),
        ];
        if let Some(call) = self.threads.get_mut(&thread).and_then(|it| it.call.as_mut()) {
            call.waker = away.waker.or(call.waker);
            charge(&mut call.reasons, &charged);
            for (who, ns) in &takers {
                add_taker(&mut call.takers, who, *ns);
            }
        }
        if let Some(seen) = self.ledger.thread(process, thread, 0) {
            charge(&mut seen.reasons, &charged);
            for (who, ns) in &takers {
                add_taker(&mut seen.takers, who, *ns);
            }
        }
    }

    /// What a thread waits for that was not runnable when it left.
    fn reason(&mut self, thread: u32, left: Left) -> Reason {
        let Some(it) = self.threads.get(&thread) else { return Reason::Unknown };
        match (left, &it.call) {
            (Left::Runnable, _) => Reason::Processor,
            (Left::Stopped, _) => Reason::Stopped,
            (left, Some(call)) => {
                let requested = self.ledger.requested((it.process, thread), call);
                if requested.is_file {
                    return self.waits_for_request(thread, requested.place);
                }
                let reason = self.ledger.reason(self.machine, it.process, call);
                match reason {
                    Reason::File if left == Left::Sleeping => {
                        self.ledger.of_sleeping(self.machine, it.process, call)
                    }
                    reason => reason,
                }
            }
            // Memory is the only thing that is waited for outside of calls.
            (_, None) if it.is_known => Reason::PageFault,
            _ => Reason::Unknown,
        }
    }

    /// A thread has waited for a request to a file.
    fn waits_for_request(&mut self, thread: u32, place: Option<usize>) -> Reason {
        if let Some(call) = self.threads.get_mut(&thread).and_then(|it| it.call.as_mut()) {
            call.requested = place;
        }
        Reason::File
    }

    fn forked(&mut self, parent: u32, child: u32) {
        if !self.is_wanted(parent) || self.threads.get(&parent).is_some_and(|it| it.is_before_exec)
        {
            return;
        }
        if let Wanted::These(processes) = &mut self.wanted
            && processes.len() < PROCESSES_MAX
        {
            // Of a thread the number is never a process's, as long as it is there.
            processes.insert(child);
        }
        if self.parents.len() < PROCESSES_MAX {
            self.parents.insert(child, parent);
        }
    }

    fn executed(&mut self, (process, thread): (u32, u32), now_ns: u64) {
        if !self.is_wanted(process) {
            return;
        }
        self.ledger.descriptors.forget(process);
        if let Some(it) = self.threads.get_mut(&thread)
            && it.is_before_exec
        {
            // The watch of it begins with this call.
            it.is_before_exec = false;
            it.process = process;
            let since_ns = now_ns.saturating_sub(self.begun_ns);
            let name = self.machine.name(process).unwrap_or_default();
            let seen = ProcessSeen { name: name.clone(), begun_ns: since_ns, ended_ns: 0 };
            self.ledger.seen.processes.insert(process, seen);
            if let Some(seen) = self.ledger.thread(process, thread, since_ns) {
                seen.name = name;
            }
        } else if let Some(name) = self.machine.name(process)
            && let Some(seen) = self.ledger.seen.processes.get_mut(&process)
        {
            seen.name = name;
        }
    }

    fn ended(&mut self, (process, thread): (u32, u32), name: &[u8; 16], now_ns: u64) {
        self.parents.remove(&thread);
        if self.threads.contains_key(&thread) {
            self.named((process, thread), name);
            let since_ns = now_ns.saturating_sub(self.begun_ns);
            if let Some(seen) = self.ledger.seen.threads.get_mut(&thread) {
                seen.ended_ns = since_ns;
            }
            if process == thread
                && let Some(seen) = self.ledger.seen.processes.get_mut(&process)
            {
                seen.ended_ns = since_ns;
            }
            self.threads.remove(&thread);
        }
        if process == thread {
            self.ledger.descriptors.forget(process);
        }
        // A process may go on without its first thread.
        let has_others = || self.threads.values().any(|it| it.process == process);
        if process == thread && has_others() {
            return;
        }
        if let Wanted::These(processes) = &mut self.wanted
            && processes.remove(&thread)
        {
            self.machine.forget(thread);
        }
    }

    /// Whether no thread is followed now.
    pub(crate) fn has_nobody(&self) -> bool {
        self.threads.is_empty()
    }

    /// What is under way is taken in as far as it has come.
    pub(crate) fn finish(mut self, end_ns: u64) -> CallWatch {
        let numbers: Vec<u32> = self.threads.keys().copied().collect();
        for thread in numbers {
            self.comes(thread, None, end_ns);
        }
        let length_ns = end_ns.saturating_sub(self.begun_ns);
        for (thread, it) in core::mem::take(&mut self.threads) {
            if let Some(call) = it.call.filter(|_| !it.is_before_exec) {
                let ns = end_ns.saturating_sub(call.begun_ns);
                self.stands(it.process, thread, &call);
                let done = Done { process: it.process, thread, call: &call, value: None, ns };
                self.ledger.take(self.machine, &done);
            }
            if let Some(seen) = self.ledger.seen.threads.get_mut(&thread) {
                seen.ended_ns = length_ns;
            }
        }
        for seen in self.ledger.seen.processes.values_mut().filter(|seen| seen.ended_ns == 0) {
            seen.ended_ns = length_ns;
        }
        for seen in self.ledger.seen.threads.values_mut() {
            seen.ran_ns = seen.life_ns().saturating_sub(seen.reasons.values().sum());
        }
        self.name_takers();
        let mut watch = self.ledger.finish();
        watch.ns = length_ns;
        watch
    }

    /// Where a call waits that is for a file, and under way at the end.
    fn stands(&mut self, process: u32, thread: u32, call: &Call) {
        if call.reasons.contains_key(&Reason::File)
            && let Some(place) = self.machine.stands_in(thread)
        {
            self.ledger.stands_in(self.machine, process, call, place);
        }
    }

    /// A thread that has a process of another name is called by that, too.
    fn name_takers(&mut self) {
        let processes = self.ledger.seen.processes.clone();
        for thread in self.ledger.seen.threads.values_mut().filter(|it| it.name.is_empty()) {
            thread.name = known_name(&processes, self.machine, thread.process);
        }
    }
}

fn charge(reasons: &mut BTreeMap<Reason, u64>, charged: &[(Reason, u64)]) {
    for (reason, ns) in charged.iter().filter(|(_, ns)| *ns > 0) {
        *reasons.entry(*reason).or_default() += ns;
    }
}
