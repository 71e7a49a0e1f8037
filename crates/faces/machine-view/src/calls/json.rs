//! What was seen of system calls as JSON.

use std::collections::BTreeMap;

use calls::{
    CallSeen, CallWatch, ProcessSeen, Reason, SlowCall, ThreadSeen, Tracing, Use, serialize_reasons,
};
use findings::Diagnosis;
use page::safe::json_pretty;
use serde::Serialize;

use super::{by_target, longest};
use crate::diagnosis::Explained;

/// Of the watch what is shown, sorted and with what follows from it.
#[derive(Serialize)]
struct Watched<'a> {
    #[serde(flatten)]
    diagnosis: Explained<'a>,
    duration_ns: u64,
    own_ns: u64,
    tracing: Traced<'a>,
    calls: Vec<Call<'a>>,
    idle_calls: Vec<Call<'a>>,
    slowest: &'a [SlowCall],
    #[serde(serialize_with = "serialize_reasons")]
    off_processor: BTreeMap<Reason, u64>,
    processes: Vec<OfProcess<'a>>,
    threads: Vec<OfThread<'a>>,
    uses: Vec<OneUse<'a>>,
}

/// How completely calls were seen; what is not known is null.
#[derive(Serialize)]
struct Traced<'a> {
    is_on: bool,
    needs: Option<&'a str>,
    lost_calls: Option<u64>,
    lost_turns: Option<u64>,
    lost_pointers: Option<u64>,
    has_paths: bool,
    left_out: u64,
}

#[derive(Serialize)]
struct Call<'a> {
    call: &'a str,
    #[serde(flatten)]
    seen: &'a CallSeen,
}

#[derive(Serialize)]
struct OfProcess<'a> {
    process: u32,
    #[serde(flatten)]
    seen: &'a ProcessSeen,
    lookups: u64,
    missing: u64,
}

#[derive(Serialize)]
struct OfThread<'a> {
    thread: u32,
    #[serde(flatten)]
    seen: &'a ThreadSeen,
}

#[derive(Serialize)]
struct OneUse<'a> {
    process: u32,
    call: &'a str,
    target: String,
    #[serde(flatten)]
    seen: &'a Use,
}

/// The report and what was seen as JSON.
pub fn calls_json(watch: &CallWatch, report: &Diagnosis) -> String {
    json_pretty(&Watched {
        diagnosis: Explained::of(report),
        duration_ns: watch.ns,
        own_ns: watch.own_ns,
        tracing: tracing(watch),
        calls: longest(&watch.calls).into_iter().map(call).collect(),
        idle_calls: longest(&watch.idle).into_iter().map(call).collect(),
        slowest: &watch.slowest,
        off_processor: watch.reasons(),
        processes: watch.processes.iter().map(|seen| process(watch, seen)).collect(),
        threads: watch.threads.iter().map(thread).collect(),
        uses: uses(watch),
    })
}

fn tracing(watch: &CallWatch) -> Traced<'_> {
    let (needs, lost) = match &watch.tracing {
        Tracing::Refused(needs) => (Some(needs.as_str()), [None; 3]),
        Tracing::Seen { lost_calls, lost_turns, lost_pointers } => {
            (None, [*lost_calls, *lost_turns, *lost_pointers].map(Some))
        }
    };
    let [lost_calls, lost_turns, lost_pointers] = lost;
    let (has_paths, left_out) = (watch.no_pointers.is_none(), watch.left_out);
    let is_on = needs.is_none();
    Traced { is_on, needs, lost_calls, lost_turns, lost_pointers, has_paths, left_out }
}

fn call<'a>((call, seen): (&'a String, &'a CallSeen)) -> Call<'a> {
    Call { call, seen }
}

fn thread<'a>((thread, seen): (&u32, &'a ThreadSeen)) -> OfThread<'a> {
    OfThread { thread: *thread, seen }
}

fn process<'a>(watch: &CallWatch, (process, seen): (&u32, &'a ProcessSeen)) -> OfProcess<'a> {
    let (lookups, missing) =
        watch.lookups.get(process).map_or((0, 0), |lookups| (lookups.count, lookups.missing));
    OfProcess { process: *process, seen, lookups, missing }
}

fn uses(watch: &CallWatch) -> Vec<OneUse<'_>> {
    let mut all = Vec::new();
    for (key, target, seen) in by_target(watch) {
        let call = watch.names.get(&key.number).copied().unwrap_or("unknown");
        all.push(OneUse { process: key.process, call, target, seen });
    }
    all
}
