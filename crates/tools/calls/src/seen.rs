//! What a watch of system calls has seen. Fields are keys in JSON, in this order.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use units::Histogram;

use crate::names::error_label;
use crate::reason::{Reason, serialize_reasons};
use crate::target::Target;

/// How well calls were seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tracing {
    /// One by one.
    Seen {
        /// Records of calls that did not come.
        lost_calls: u64,
        /// Records of what processors turned to.
        lost_turns: u64,
        /// Paths and addresses.
        lost_pointers: u64,
    },
    /// Not at all; what it would take.
    Refused(String),
}

impl Default for Tracing {
    fn default() -> Self {
        Self::Seen { lost_calls: 0, lost_turns: 0, lost_pointers: 0 }
    }
}

/// All calls of one kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CallSeen {
    /// How many returned.
    pub count: u64,
    /// Those that failed, by the number of the error.
    #[serde(serialize_with = "serialize_errors")]
    pub errors: BTreeMap<i32, u64>,
    /// Time in them.
    pub total_ns: u64,
    /// Of that without a processor, waiting.
    pub waited_ns: u64,
    /// Bytes that were read or written.
    pub bytes: u64,
    /// How long they took.
    #[serde(flatten, serialize_with = "serialize_times")]
    pub times: Histogram,
}

fn serialize_errors<S: Serializer>(errors: &BTreeMap<i32, u64>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Failed {
        error: String,
        count: u64,
    }
    let failed =
        |(number, count): (&i32, &u64)| Failed { error: error_label(*number), count: *count };
    to.collect_seq(errors.iter().map(failed))
}

fn serialize_times<S: Serializer>(times: &Histogram, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Bucket {
        from_ns: u64,
        count: u64,
    }
    #[derive(Serialize)]
    struct Times {
        p50_ns: u64,
        p99_ns: u64,
        max_ns: u64,
        buckets: Vec<Bucket>,
    }
    let bucket = |(from_ns, count)| Bucket { from_ns, count };
    let times = Times {
        p50_ns: times.quantile_ns(500),
        p99_ns: times.quantile_ns(990),
        max_ns: times.max_ns(),
        buckets: times.doublings().into_iter().map(bucket).collect(),
    };
    times.serialize(to)
}

impl CallSeen {
    /// How many failed.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// Who made a call for what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UseKey {
    /// Process id.
    pub process: u32,
    /// Number of the call.
    pub number: u32,
    /// Place of what its descriptor leads to in [`CallWatch::targets`].
    pub target: Option<usize>,
}

/// Calls of one process and kind, for one file or socket.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Use {
    /// How many returned or are under way.
    pub count: u64,
    /// Time in them.
    pub total_ns: u64,
    /// Of that with a processor.
    #[serde(skip)]
    pub ran_ns: u64,
    /// Without one, waiting for anything else.
    pub waited_ns: u64,
    /// Of that for files.
    #[serde(skip)]
    pub file_ns: u64,
    /// Waiting between a message that was sent and its answer.
    #[serde(skip)]
    pub answer_ns: u64,
    /// Bytes that were read or written.
    pub bytes: u64,
    /// Those that read or wrote something, but no more than 512 bytes.
    #[serde(skip)]
    pub small: u64,
    /// Who ended the waits: a few of them.
    pub woken_by: Vec<Woken>,
    /// Threads that made them, some of them.
    #[serde(skip)]
    pub threads: BTreeSet<u32>,
    /// Where in the kernel a call that is under way at the end waits, where that is known.
    #[serde(skip)]
    pub stands_in: Option<String>,
}

/// Threads that are told apart, of one use.
pub(crate) const THREADS_OF_USE: usize = 64;

/// Who ended waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Woken {
    /// Process id.
    pub process: u32,
    /// Its name.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// `server (process 77): 12`.
impl fmt::Display for Woken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {}): {}", self.name, self.process, self.count)
    }
}

/// Threads that woke others are kept apart, for one use or lock.
pub(crate) const WAKERS_MAX: usize = 4;

/// Counts one that was woken; of more than a few others nothing is kept.
pub(crate) fn count_waker(wakers: &mut Vec<Woken>, process: u32, name: impl FnOnce() -> String) {
    if let Some(woken) = wakers.iter_mut().find(|woken| woken.process == process) {
        woken.count += 1;
    } else if wakers.len() < WAKERS_MAX {
        wakers.push(Woken { process, name: name(), count: 1 });
    }
}

/// A word of memory that threads wait at.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LockSeen {
    /// Waits that were seen.
    pub waits: u64,
    /// Their time.
    pub waited_ns: u64,
    /// Threads that waited, some of them.
    pub waiters: BTreeSet<u32>,
    /// Threads that woke others there, some of them.
    pub wakers: BTreeSet<u32>,
    /// Its value was that of a mutex with waiters.
    pub is_mutex: bool,
    /// Who ended the waits: a few of them.
    pub woken_by: Vec<Woken>,
}

impl LockSeen {
    /// Whether it is a lock, and no queue of things to do: by its value, or because a thread that
    /// waits there lets others on.
    pub fn is_lock(&self) -> bool {
        self.is_mutex || self.waiters.iter().any(|waiter| self.wakers.contains(waiter))
    }
}

/// Paths that a process looked up.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lookups {
    /// All of them.
    pub count: u64,
    /// Those of files that are not there.
    pub missing: u64,
    /// Their time.
    pub missing_ns: u64,
    /// Paths of files that are not there, as far as they are known and there was space.
    pub paths: BTreeMap<String, u64>,
}

impl Lookups {
    /// How often files were looked for in vain in each folder.
    pub fn folders(&self) -> BTreeMap<&str, u64> {
        let mut folders = BTreeMap::new();
        for (path, count) in &self.paths {
            let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
            *folders.entry(folder).or_default() += count;
        }
        folders
    }
}

/// A name server, as one process asks it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NameServer {
    /// Messages that were sent there.
    pub questions: u64,
    /// Messages that came from there.
    pub answers: u64,
    /// Waits that ended without an answer.
    pub given_up: u64,
    /// Time of waiting for it.
    pub waited_ns: u64,
}

/// A process that was seen.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ProcessSeen {
    /// The name that it had last.
    pub name: String,
    /// Where it begins in the watch, from the beginning of the watch.
    #[serde(rename = "begin_ns")]
    pub begun_ns: u64,
    /// The same of its end.
    #[serde(rename = "end_ns")]
    pub ended_ns: u64,
}

impl ProcessSeen {
    /// How long it was there.
    pub fn life_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.begun_ns)
    }
}

/// A thread that was seen.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ThreadSeen {
    /// Its process.
    pub process: u32,
    /// The name that it had last.
    pub name: String,
    /// Calls that returned.
    pub calls: u64,
    /// From the beginning of the watch.
    #[serde(rename = "begin_ns")]
    pub begun_ns: u64,
    /// The same.
    #[serde(rename = "end_ns")]
    pub ended_ns: u64,
    /// How long it had a processor; known at the end of the watch.
    pub ran_ns: u64,
    /// Time without a processor.
    #[serde(rename = "off_processor", serialize_with = "serialize_reasons")]
    pub reasons: BTreeMap<Reason, u64>,
    /// Who had the processor instead: a few of them.
    #[serde(rename = "processor_taken_by")]
    pub takers: Vec<Taker>,
}

impl ThreadSeen {
    /// How long it was there.
    pub fn life_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.begun_ns)
    }
}

/// Who had a processor that another one wanted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Taker {
    /// Thread id.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// For how long.
    pub ns: u64,
}

/// A call that took long.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SlowCall {
    /// Name of the call.
    pub call: String,
    /// In words: what its descriptor leads to, path, offset, length.
    pub arguments: String,
    /// In words; `None` while it is under way.
    pub result: Option<String>,
    /// When it began, ns since 1970.
    #[serde(rename = "start_ns")]
    pub at_ns: i64,
    /// How long.
    #[serde(rename = "duration_ns")]
    pub ns: u64,
    /// Process id.
    pub process: u32,
    /// Name of the process at that time.
    pub process_name: String,
    /// Thread id.
    pub thread: u32,
    /// Time without a processor, by reason.
    #[serde(rename = "off_processor", serialize_with = "serialize_reasons")]
    pub reasons: BTreeMap<Reason, u64>,
    /// Who ended its last wait.
    pub woken_by: Option<String>,
    /// Who had the processor that it wanted, most of the time.
    pub processor_taken_by: Option<String>,
}

/// `fsync(3 </data/log>) = 0`.
impl fmt::Display for SlowCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = self.result.as_deref().unwrap_or("under way");
        write!(f, "{}({}) = {result}", self.call, self.arguments)
    }
}

/// A group of processes that used up its processor time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Quota {
    /// Its name within the hierarchy.
    pub group: String,
    /// The file that the quota stands in.
    pub file: PathBuf,
    /// What is written there to be without it.
    pub unlimited: &'static str,
    /// So much in each period.
    pub quota_us: u64,
    /// Length of a period.
    pub period_us: u64,
    /// Periods in which the group ran.
    pub periods: u64,
    /// Of these, those in which it was stopped.
    pub throttled: u64,
    /// Its processes, with those of the groups below; `None` where all that was watched is in it.
    pub members: Option<BTreeSet<u32>>,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct CallWatch {
    /// Length of the watch.
    pub ns: u64,
    /// Processor time of the process that watches, within it.
    pub own_ns: u64,
    /// How completely calls were seen.
    pub tracing: Tracing,
    /// Why paths and addresses are not known.
    pub no_pointers: Option<String>,
    /// The numbers of the scheduler are others than ours: we are in a namespace of process ids.
    pub has_foreign_numbers: bool,
    /// Calls by name that are there to do something.
    pub calls: BTreeMap<String, CallSeen>,
    /// Calls by name that wait for something to do.
    pub idle: BTreeMap<String, CallSeen>,
    /// The longest of the former, the longest first.
    pub slowest: Vec<SlowCall>,
    /// Calls by process and what they are for.
    pub uses: BTreeMap<UseKey, Use>,
    /// What descriptors lead to.
    pub targets: Vec<Target>,
    /// Names of calls by number.
    pub names: BTreeMap<u32, &'static str>,
    /// Processes by number.
    pub processes: BTreeMap<u32, ProcessSeen>,
    /// Threads by number.
    pub threads: BTreeMap<u32, ThreadSeen>,
    /// Words of memory that threads waited at, by process and address.
    pub locks: BTreeMap<(u32, u64), LockSeen>,
    /// Paths by process.
    pub lookups: BTreeMap<u32, Lookups>,
    /// Name servers, by process and address.
    pub name_servers: BTreeMap<(u32, SocketAddr), NameServer>,
    /// File systems of files that were waited for, by place in [`Self::targets`].
    pub filesystems: BTreeMap<usize, String>,
    /// Disks of files that were waited for, by place in [`Self::targets`]; `None` of one on none.
    pub disks: BTreeMap<usize, Option<String>>,
    /// Files by place in [`Self::targets`] that were written and opened so that each write is
    /// durable when it returns (`O_SYNC`, `O_DSYNC`).
    pub durable: BTreeSet<usize>,
    /// Connections by place in [`Self::targets`] by which something was sent and nothing came.
    pub unanswered: BTreeSet<usize>,
    /// Groups with a quota of processor time that were held back by it.
    pub quotas: Vec<Quota>,
    /// Processors that there are.
    pub processors: usize,
    /// Calls, threads, paths and the like for which there was no space.
    pub left_out: u64,
}

impl CallWatch {
    /// `name (process 12)`.
    pub fn process_label(&self, process: u32) -> String {
        match self.processes.get(&process) {
            Some(seen) if !seen.name.is_empty() => format!("{} (process {process})", seen.name),
            _ => format!("process {process}"),
        }
    }

    /// How many calls returned.
    pub fn count(&self) -> u64 {
        self.calls.values().chain(self.idle.values()).map(|seen| seen.count).sum()
    }

    /// Time without a processor of all threads, by reason.
    pub fn reasons(&self) -> BTreeMap<Reason, u64> {
        let mut all = BTreeMap::new();
        for (reason, ns) in self.threads.values().flat_map(|thread| &thread.reasons) {
            *all.entry(*reason).or_default() += ns;
        }
        all
    }

    /// The quota that held a process back.
    pub fn quota_of(&self, process: u32) -> Option<&Quota> {
        let has = |quota: &&Quota| quota.members.as_ref().is_none_or(|it| it.contains(&process));
        self.quotas.iter().find(has)
    }

    /// What a use is of.
    pub fn target(&self, key: &UseKey) -> Option<&Target> {
        self.targets.get(key.target?)
    }

    /// How long the threads of a process had processors, together.
    pub fn ran_ns(&self, process: u32) -> u64 {
        let of = self.threads.values().filter(|seen| seen.process == process);
        of.map(|seen| seen.ran_ns).sum()
    }

    /// How long a process was there; of an unknown one the whole watch.
    pub fn life_ns(&self, process: u32) -> u64 {
        self.processes.get(&process).map_or(self.ns, ProcessSeen::life_ns)
    }
}
