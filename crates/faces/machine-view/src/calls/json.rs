//! What was seen of system calls as JSON.

use std::collections::BTreeMap;

use calls::{CallSeen, CallWatch, Reason, SlowCall, Taker, ThreadSeen, Tracing, Woken};
use findings::Diagnosis;
use page::safe::json_pretty;
use serde::Serialize;

use super::{by_target, longest};
use crate::diagnosis::DiagnosisJson;

#[derive(Serialize)]
struct CallsJson<'a> {
    #[serde(flatten)]
    diagnosis: DiagnosisJson<'a>,
    duration_ns: u64,
    own_ns: u64,
    tracing: TracingJson<'a>,
    calls: Vec<CallJson<'a>>,
    idle_calls: Vec<CallJson<'a>>,
    slowest: Vec<SlowJson<'a>>,
    off_processor: Vec<ReasonJson>,
    processes: Vec<ProcessJson<'a>>,
    threads: Vec<ThreadJson<'a>>,
    uses: Vec<UseJson<'a>>,
}

#[derive(Serialize)]
struct TracingJson<'a> {
    is_on: bool,
    needs: Option<&'a str>,
    lost_calls: Option<u64>,
    lost_turns: Option<u64>,
    lost_pointers: Option<u64>,
    has_paths: bool,
    left_out: u64,
}

#[derive(Serialize)]
struct CallJson<'a> {
    call: &'a str,
    count: u64,
    errors: Vec<ErrorJson>,
    total_ns: u64,
    waited_ns: u64,
    bytes: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    buckets: Vec<BucketJson>,
}

#[derive(Serialize)]
struct ErrorJson {
    error: String,
    count: u64,
}

#[derive(Serialize)]
struct BucketJson {
    from_ns: u64,
    count: u64,
}

#[derive(Serialize)]
struct SlowJson<'a> {
    call: &'a str,
    arguments: &'a str,
    result: Option<&'a str>,
    start_ns: i64,
    duration_ns: u64,
    process: u32,
    process_name: &'a str,
    thread: u32,
    off_processor: Vec<ReasonJson>,
    woken_by: Option<&'a str>,
    processor_taken_by: Option<&'a str>,
}

#[derive(Serialize)]
struct ReasonJson {
    reason: &'static str,
    ns: u64,
    is_by_design: bool,
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    process: u32,
    name: &'a str,
    begin_ns: u64,
    end_ns: u64,
    lookups: u64,
    missing: u64,
}

#[derive(Serialize)]
struct ThreadJson<'a> {
    thread: u32,
    process: u32,
    name: &'a str,
    calls: u64,
    begin_ns: u64,
    end_ns: u64,
    ran_ns: u64,
    off_processor: Vec<ReasonJson>,
    processor_taken_by: Vec<TakerJson<'a>>,
}

#[derive(Serialize)]
struct TakerJson<'a> {
    thread: u32,
    name: &'a str,
    ns: u64,
}

#[derive(Serialize)]
struct UseJson<'a> {
    process: u32,
    call: &'a str,
    target: String,
    count: u64,
    total_ns: u64,
    waited_ns: u64,
    bytes: u64,
    woken_by: Vec<WokenJson<'a>>,
}

#[derive(Serialize)]
struct WokenJson<'a> {
    process: u32,
    name: &'a str,
    count: u64,
}

/// The report and what was seen as JSON.
pub fn calls_json(watch: &CallWatch, report: &Diagnosis) -> String {
    json_pretty(&CallsJson {
        diagnosis: DiagnosisJson::of(report),
        duration_ns: watch.ns,
        own_ns: watch.own_ns,
        tracing: tracing(watch),
        calls: longest(&watch.calls).into_iter().map(call).collect(),
        idle_calls: longest(&watch.idle).into_iter().map(call).collect(),
        slowest: watch.slowest.iter().map(slow).collect(),
        off_processor: reasons(&watch.reasons()),
        processes: processes(watch),
        threads: watch.threads.iter().map(thread).collect(),
        uses: uses(watch),
    })
}

fn tracing(watch: &CallWatch) -> TracingJson<'_> {
    let (has_paths, left_out) = (watch.no_pointers.is_none(), watch.left_out);
    let none = TracingJson {
        is_on: false,
        needs: None,
        lost_calls: None,
        lost_turns: None,
        lost_pointers: None,
        has_paths,
        left_out,
    };
    match &watch.tracing {
        Tracing::Refused(needs) => TracingJson { needs: Some(needs), ..none },
        Tracing::Seen { lost_calls, lost_turns, lost_pointers } => TracingJson {
            is_on: true,
            lost_calls: Some(*lost_calls),
            lost_turns: Some(*lost_turns),
            lost_pointers: Some(*lost_pointers),
            ..none
        },
    }
}

fn call<'a>((name, seen): (&'a String, &'a CallSeen)) -> CallJson<'a> {
    let error = |(number, count): (&i32, &u64)| ErrorJson {
        error: calls::error_label(*number),
        count: *count,
    };
    let bucket = |(from_ns, count)| BucketJson { from_ns, count };
    CallJson {
        call: name,
        count: seen.count,
        errors: seen.errors.iter().map(error).collect(),
        total_ns: seen.total_ns,
        waited_ns: seen.waited_ns,
        bytes: seen.bytes,
        p50_ns: seen.times.quantile_ns(500),
        p99_ns: seen.times.quantile_ns(990),
        max_ns: seen.times.max_ns(),
        buckets: seen.times.doublings().into_iter().map(bucket).collect(),
    }
}

fn slow(call: &SlowCall) -> SlowJson<'_> {
    SlowJson {
        call: &call.call,
        arguments: &call.arguments,
        result: call.result.as_deref(),
        start_ns: call.at_ns,
        duration_ns: call.ns,
        process: call.process,
        process_name: &call.process_name,
        thread: call.thread,
        off_processor: reasons(&call.reasons),
        woken_by: call.woken_by.as_deref(),
        processor_taken_by: call.processor_taken_by.as_deref(),
    }
}

fn reasons(all: &BTreeMap<Reason, u64>) -> Vec<ReasonJson> {
    let reason = |(reason, ns): (&Reason, &u64)| ReasonJson {
        reason: reason.name(),
        ns: *ns,
        is_by_design: reason.is_by_design(),
    };
    all.iter().map(reason).collect()
}

fn processes(watch: &CallWatch) -> Vec<ProcessJson<'_>> {
    let mut all = Vec::new();
    for (process, seen) in &watch.processes {
        let lookups = watch.lookups.get(process);
        all.push(ProcessJson {
            process: *process,
            name: &seen.name,
            begin_ns: seen.begun_ns,
            end_ns: seen.ended_ns,
            lookups: lookups.map_or(0, |it| it.count),
            missing: lookups.map_or(0, |it| it.missing),
        });
    }
    all
}

fn thread<'a>((thread, seen): (&u32, &'a ThreadSeen)) -> ThreadJson<'a> {
    let taker =
        |Taker { thread, name, ns }: &'a Taker| TakerJson { thread: *thread, name, ns: *ns };
    ThreadJson {
        thread: *thread,
        process: seen.process,
        name: &seen.name,
        calls: seen.calls,
        begin_ns: seen.begun_ns,
        end_ns: seen.ended_ns,
        ran_ns: seen.ran_ns(),
        off_processor: reasons(&seen.reasons),
        processor_taken_by: seen.takers.iter().map(taker).collect(),
    }
}

fn uses(watch: &CallWatch) -> Vec<UseJson<'_>> {
    let mut all = Vec::new();
    for (key, target, seen) in by_target(watch) {
        let mut woken_by = Vec::new();
        for Woken { process, name, count } in &seen.woken_by {
            woken_by.push(WokenJson { process: *process, name, count: *count });
        }
        all.push(UseJson {
            process: key.process,
            call: watch.names.get(&key.number).copied().unwrap_or("unknown"),
            target,
            count: seen.count,
            total_ns: seen.total_ns,
            waited_ns: seen.waited_ns,
            bytes: seen.bytes,
            woken_by,
        });
    }
    all
}
