//! What a watch takes from a machine, be it the one that we run on or one that is made up.

use std::collections::BTreeSet;
use std::path::Path;

use observe::budgets::Budget;
use observe::tracepoints::calls::{CallEvent, NowIn};

use crate::seen::Tracing;
use crate::target::Ends;

/// What is asked of a machine.
pub trait Machine {
    /// What has happened since the last time, in order; with `is_last` all there is.
    fn events(&mut self, is_last: bool, into: &mut Vec<CallEvent>);
    /// How well calls are traced.
    fn tracing(&self) -> Tracing;
    /// Why paths and addresses are not known.
    fn no_pointers(&self) -> Option<String>;
    /// Whose calls are wanted; `None` is everybody's but our own.
    fn whom(&self) -> Option<BTreeSet<u32>>;
    /// The program that was started to be watched, which runs our own code at first.
    fn started(&self) -> Option<u32>;
    /// What wanted threads are in: process, thread, call.
    fn now_in(&mut self) -> Vec<(u32, u32, NowIn)>;
    /// What a descriptor of a process leads to, as its link below `/proc` says.
    fn link(&mut self, process: u32, descriptor: u32) -> Option<String>;
    /// The ends of a socket of IP by its number, in the namespace of a process.
    fn ends(&mut self, process: u32, inode: u32) -> Option<Ends>;
    /// The name of a process or a thread now.
    fn name(&mut self, number: u32) -> Option<String>;
    /// A process or thread has ended.
    fn forget(&mut self, number: u32);
    /// The kind of the file system that a path is on.
    fn filesystem(&mut self, path: &Path) -> Option<String>;
    /// The disk that a path is on; `None` of one that is on none.
    fn disk(&mut self, path: &Path) -> Option<String>;
    /// Where in the kernel a thread waits, by the name of the function.
    fn stands_in(&mut self, thread: u32) -> Option<String>;
    /// Whether a process has a file open so that each write to it is durable when it returns.
    fn writes_durably(&mut self, process: u32, path: &Path) -> bool;
    /// Groups with a quota of processor time, and their processes now.
    fn quotas(&mut self) -> Vec<(Budget, BTreeSet<u32>)>;
    /// Whether nobody is left of those whose calls were wanted in the beginning.
    fn is_over(&self) -> bool;
    /// Now, by `CLOCK_MONOTONIC`.
    fn now_ns(&self) -> u64;
    /// How far the time of day is ahead of that.
    fn realtime_ahead_ns(&self) -> i64;
    /// Processor time of our own process.
    fn own_ns(&self) -> u64;
    /// Our own process.
    fn own(&self) -> u32;
    /// Processors that there are.
    fn processors(&self) -> usize;
}
