//! The machine that we run on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use host::processes;
use network::sockets::{Endpoint, Namespace, endpoints, family};
use observe::budgets::{Budget, budgets};
use observe::cgroups;
use observe::io::{link_of, network_of};
use observe::tracepoints::calls::{
    CallEvent, CallTracer, Callers, NowIn, disk_of, filesystem_of, now_in,
};
use observe::tracepoints::{NotTraced, monotonic_ns};

use crate::machine::Machine;
use crate::seen::Tracing;
use crate::target::Ends;

/// Whose calls are watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Whom {
    /// Everybody's but our own.
    All,
    /// Those of processes, their children and theirs.
    Processes(BTreeSet<u32>),
    /// Those of a program that this thread starts from now on.
    Started,
}

impl Whom {
    /// Processes by their numbers; `None` where none of them is there.
    pub fn of_numbers(numbers: &[u32]) -> Option<Self> {
        let there = numbers.iter().copied().filter(|it| processes::has_process(*it));
        Self::of(there.collect())
    }

    /// The processes of a control group, by its folder, and of those below; `None` where it has
    /// none.
    pub fn of_group(folder: &Path) -> Option<Self> {
        Self::of(cgroups::processes_of(folder))
    }

    /// The processes of a unit of systemd; `None` where it has none.
    pub fn of_unit(name: &str) -> Option<Self> {
        Self::of_group(&cgroups::folder_of(name)?)
    }

    fn of(processes: BTreeSet<u32>) -> Option<Self> {
        (!processes.is_empty()).then_some(Self::Processes(processes))
    }
}

/// The kernel's tracepoints, and `/proc`.
#[derive(Debug)]
pub struct Live {
    tracer: CallTracer,
    whom: Option<BTreeSet<u32>>,
    started: Option<u32>,
    /// Sockets by their numbers, of a namespace by the file that identifies it.
    sockets: BTreeMap<PathBuf, Sockets>,
}

#[derive(Debug)]
struct Sockets {
    ends: BTreeMap<u32, Ends>,
    listed_ns: u64,
}

/// Sockets are listed again for one that is not among them, after this time.
const REST_NS: u64 = 200_000_000;
/// Namespaces whose sockets are known.
const NAMESPACES_MAX: usize = 64;
/// Sockets of one of them.
const SOCKETS_MAX: usize = 1 << 16;
/// Threads whose calls are asked for in the beginning.
const THREADS_MAX: usize = 1 << 12;

impl Live {
    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// The kernel has no such tracepoints, or we may not listen to them.
    pub fn new(whom: &Whom) -> Result<Self, NotTraced> {
        let (tracer, whom) = match whom {
            Whom::All => (CallTracer::open(&Callers::All)?, None),
            Whom::Started => (CallTracer::open(&Callers::Started)?, Some(BTreeSet::new())),
            Whom::Processes(roots) => {
                let all: BTreeSet<u32> = roots.iter().flat_map(|root| family(*root)).collect();
                let threads = all.iter().flat_map(|process| processes::threads(*process));
                let tracer = CallTracer::open(&Callers::Threads(threads.collect()))?;
                for process in &all {
                    tracer.want_pointers(*process);
                }
                (tracer, Some(all))
            }
        };
        Ok(Self { tracer, whom, started: None, sockets: BTreeMap::new() })
    }

    /// The program that was started.
    #[must_use]
    pub fn of_program(mut self, process: u32) -> Self {
        self.whom = Some(BTreeSet::from([process]));
        self.started = Some(process);
        self
    }

    fn wanted(&self) -> Vec<u32> {
        match &self.whom {
            Some(wanted) => wanted.iter().copied().collect(),
            None => processes::processes().into_iter().filter(|it| *it != self.own()).collect(),
        }
    }
}

impl Machine for Live {
    fn events(&mut self, is_last: bool, into: &mut Vec<CallEvent>) {
        if is_last { self.tracer.finish(into) } else { self.tracer.read(into) }
    }

    fn tracing(&self) -> Tracing {
        Tracing::Seen {
            lost_calls: self.tracer.lost_calls().saturating_add(self.tracer.lost_requests()),
            lost_turns: self.tracer.lost_turns(),
            lost_pointers: self.tracer.lost_pointers(),
        }
    }

    fn no_pointers(&self) -> Option<String> {
        self.tracer.no_pointers().map(|error| match error {
            NotTraced::Forbidden => "CAP_BPF, which root has outside of a container".to_owned(),
            error => error.to_string(),
        })
    }

    fn whom(&self) -> Option<BTreeSet<u32>> {
        self.whom.clone()
    }

    fn started(&self) -> Option<u32> {
        self.started
    }

    fn now_in(&mut self) -> Vec<(u32, u32, NowIn)> {
        let threads = self.wanted().into_iter().flat_map(|process| {
            processes::threads(process).into_iter().map(move |thread| (process, thread))
        });
        let found = threads
            .take(THREADS_MAX)
            .filter_map(|(process, thread)| Some((process, thread, now_in(thread)?)));
        found.collect()
    }

    fn link(&mut self, process: u32, descriptor: u32) -> Option<String> {
        Some(link_of(process, descriptor)?.to_string_lossy().into_owned())
    }

    fn ends(&mut self, process: u32, inode: u32) -> Option<Ends> {
        let namespace = network_of(process)?;
        let known = self.sockets.get(&namespace);
        if let Some(ends) = known.and_then(|known| known.ends.get(&inode)) {
            return Some(*ends);
        }
        let is_fresh = known.is_some_and(|known| monotonic_ns() < known.listed_ns + REST_NS);
        if is_fresh || known.is_none() && self.sockets.len() >= NAMESPACES_MAX {
            return None;
        }
        let ends = sockets_of(process).unwrap_or_default();
        let found = ends.get(&inode).copied();
        self.sockets.insert(namespace, Sockets { ends, listed_ns: monotonic_ns() });
        found
    }

    fn name(&mut self, number: u32) -> Option<String> {
        processes::name(number)
    }

    fn forget(&mut self, number: u32) {
        self.tracer.forget(number);
    }

    fn filesystem(&mut self, path: &Path) -> Option<String> {
        filesystem_of(path).map(|(_, kind)| kind)
    }

    fn disk(&mut self, path: &Path) -> Option<String> {
        disk_of(path)
    }

    fn stands_in(&mut self, thread: u32) -> Option<String> {
        observe::tracepoints::calls::stands_in(thread)
    }

    fn writes_durably(&mut self, process: u32, path: &Path) -> bool {
        observe::io::writes_durably(process, path)
    }

    fn quotas(&mut self) -> Vec<(Budget, BTreeSet<u32>)> {
        let limited = budgets().into_iter().filter(|budget| budget.processors.is_some());
        let with_processes = |budget: Budget| {
            let processes = cgroups::processes_of(&budget.folder);
            (budget, processes)
        };
        limited.map(with_processes).collect()
    }

    fn is_over(&self) -> bool {
        let is_there = |process: &u32| processes::has_process(*process);
        self.whom.as_ref().is_some_and(|whom| !whom.iter().any(is_there))
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn realtime_ahead_ns(&self) -> i64 {
        observe::tracepoints::realtime_ahead_ns()
    }

    fn own_ns(&self) -> u64 {
        let time = host::cpu_time().map(|time| time.user + time.system).unwrap_or_default();
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    fn own(&self) -> u32 {
        host::own_process()
    }

    fn processors(&self) -> usize {
        observe::tracepoints::processors()
    }
}

/// Of the namespace that a process is in.
fn sockets_of(process: u32) -> Option<BTreeMap<u32, Ends>> {
    let namespace = Namespace::of_process(process).ok()?;
    let found = namespace.within(endpoints).ok()?.ok()?;
    let ends = |endpoint: Endpoint| {
        let Endpoint { local, remote, inode, .. } = endpoint;
        let remote = (remote.port() != 0).then_some(remote);
        (inode, Ends { local: Some(local), remote })
    };
    Some(found.into_iter().take(SOCKETS_MAX).map(ends).collect())
}
