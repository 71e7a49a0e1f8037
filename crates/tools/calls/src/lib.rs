//! System calls of processes, followed for a while: how often each is made, how long it takes,
//! which files and sockets it is for, and what threads without a processor wait for.
//!
//! Records come from [`observe::tracepoints::calls`]; here they are put together: descriptors with
//! what they lead to, waits with their reasons, calls with their arguments in words. What was seen
//! comes as an argument, so that everything has a test with a machine that is made up. Every table
//! is bounded, and what did not fit is counted. Judging is for `diagnose`.

mod descriptors;
mod effects;
mod filesystems;
mod follow;
mod ledger;
mod live;
mod machine;
mod names;
mod reason;
mod requests;
mod runs;
mod seen;
mod shape;
mod target;
mod text;
mod threads;
mod uses;
mod watch;

pub use live::{Live, Whom};
pub use machine::Machine;
pub use reason::{Reason, serialize_reasons};
pub use seen::{
    CallSeen, CallWatch, LockSeen, Lookups, NameServer, ProcessSeen, Quota, SlowCall, Taker,
    ThreadSeen, Tracing, Use, UseKey, Woken,
};
pub use shape::{Shape, Work, shape_of};
pub use target::{Ends, Target};
pub use uses::UsesOf;
pub use watch::watch;
