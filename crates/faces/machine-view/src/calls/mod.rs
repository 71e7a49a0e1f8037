//! What system calls took and waited for: tables, a histogram and the slowest calls, and as JSON.

mod html;
mod json;

use core::cmp::Reverse;
use std::collections::BTreeMap;

use calls::{CallSeen, CallWatch, Reason, SlowCall, ThreadSeen, Use, UseKey};
use page::safe::printable;
use page::text::grouped;
use units::{ByteSize, Histogram};

use crate::tables::{Table, bar, number, share, time, words};

pub(crate) use html::add_calls;
pub use json::calls_json;

/// Histograms that are drawn in text: of the calls that took most.
const DRAWN: usize = 3;

/// What was seen, in words; the findings are [`crate::diagnosis`].
pub fn calls(watch: &CallWatch, width: Option<usize>) -> String {
    let mut text = doing(watch).text(width);
    for (name, seen) in longest(&watch.calls).into_iter().take(DRAWN) {
        text.push_str(&histogram(name, &seen.times));
    }
    text.push_str(&slowest(watch).text(width));
    text.push_str(&reasons(watch).text(width));
    text.push_str(&threads(watch).text(width));
    text.push_str(&targets(watch).text(width));
    text.push_str(&idle(watch).text(width));
    text
}

fn longest(all: &BTreeMap<String, CallSeen>) -> Vec<(&String, &CallSeen)> {
    let mut sorted: Vec<_> = all.iter().collect();
    sorted.sort_by_key(|(_, seen)| Reverse(seen.total_ns));
    sorted
}

fn doing(watch: &CallWatch) -> Table {
    table_of("System calls", &watch.calls)
}

fn idle(watch: &CallWatch) -> Table {
    table_of("Calls that wait for something to do (they take long by design)", &watch.idle)
}

fn table_of(title: &str, all: &BTreeMap<String, CallSeen>) -> Table {
    let columns = [
        words("CALL", 12),
        number("COUNT", 0),
        number("ERRORS", 3),
        number("TOTAL", 0),
        number("WAITING", 2),
        number("50%", 1),
        number("99%", 1),
        number("LONGEST", 0),
        number("BYTES", 4),
    ];
    let rows = longest(all).into_iter().map(|(name, seen)| {
        [
            printable(name),
            grouped(seen.count),
            grouped(seen.failed()),
            time(seen.total_ns),
            share(seen.waited_ns, seen.total_ns),
            time(seen.times.quantile_ns(500)),
            time(seen.times.quantile_ns(990)),
            time(seen.times.max_ns()),
            ByteSize(seen.bytes).to_string(),
        ]
    });
    Table::new(title, columns, rows)
}

/// How long calls of one kind took.
fn histogram(name: &str, times: &Histogram) -> String {
    let steps = times.doublings();
    let most = steps.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let columns = [number("FROM", 0), number("COUNT", 0), words("", 24)];
    let rows = steps
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(from, count)| [time(from), grouped(count), bar(count, most)]);
    Table::new(&format!("How long {} took", printable(name)), columns, rows).text(None)
}

/// `file 3 ms, processor 120 us`.
fn waits(reasons: &BTreeMap<Reason, u64>) -> String {
    let mut sorted: Vec<_> = reasons.iter().collect();
    sorted.sort_by_key(|(_, ns)| Reverse(**ns));
    let words = sorted.into_iter().map(|(reason, ns)| format!("{} {}", reason.name(), time(*ns)));
    words.collect::<Vec<_>>().join(", ")
}

fn slowest(watch: &CallWatch) -> Table {
    let columns = [
        number("TOOK", 0),
        words("CALL", 32),
        words("RESULT", 8),
        words("BY", 16),
        words("WAITED FOR", 12),
        words("WOKEN BY", 12),
    ];
    let begin_ns = watch.slowest.iter().map(|call| call.at_ns).min().unwrap_or(0);
    let row = |call: &SlowCall| {
        // The times of day are in JSON; here it is seen which came together.
        let after_ns = u64::try_from(call.at_ns.saturating_sub(begin_ns)).unwrap_or(0);
        let name = printable(&call.process_name);
        [
            time(call.ns),
            printable(&format!("{}({})", call.call, call.arguments)),
            call.result.clone().unwrap_or_else(|| "under way".to_owned()),
            format!("{name} ({}/{}) at +{}", call.process, call.thread, time(after_ns)),
            waits(&call.reasons),
            call.woken_by
                .as_deref()
                .or(call.processor_taken_by.as_deref())
                .map_or_else(String::new, printable),
        ]
    };
    Table::new("The slowest calls (process/thread)", columns, watch.slowest.iter().map(row))
}

fn reasons(watch: &CallWatch) -> Table {
    let columns = [
        words("WITHOUT A PROCESSOR, WAITING FOR", 32),
        number("TIME", 0),
        number("SHARE", 0),
        words("", 8),
    ];
    let all = watch.reasons();
    let life_ns: u64 = watch.threads.values().map(ThreadSeen::life_ns).sum();
    let mut sorted: Vec<_> = all.into_iter().collect();
    sorted.sort_by_key(|(_, ns)| Reverse(*ns));
    let rows = sorted.into_iter().map(|(reason, ns)| {
        let mark = if reason.is_by_design() { "by design" } else { "" };
        [reason.words().to_owned(), time(ns), share(ns, life_ns), mark.to_owned()]
    });
    Table::new("Of the time of all threads", columns, rows)
}

fn threads(watch: &CallWatch) -> Table {
    let columns = [
        number("THREAD", 0),
        words("NAME", 12),
        words("OF", 16),
        number("CALLS", 2),
        number("RAN", 0),
        number("QUEUED", 0),
        words("WAITED FOR", 24),
        words("PROCESSOR HAD BY", 16),
    ];
    let mut sorted: Vec<(&u32, &ThreadSeen)> = watch.threads.iter().collect();
    // Those that wait for nothing to do come last.
    let weight = |seen: &ThreadSeen| {
        let counts = seen.reasons.iter().filter(|(reason, _)| !reason.is_by_design());
        counts.map(|(_, ns)| ns).sum::<u64>() + seen.ran_ns
    };
    sorted.sort_by_key(|(_, seen)| Reverse(weight(seen)));
    let rows = sorted.into_iter().map(|(thread, seen)| {
        let queued = seen.reasons.get(&Reason::Processor).copied().unwrap_or(0);
        let mut others = seen.reasons.clone();
        others.remove(&Reason::Processor);
        let taker = seen.takers.iter().max_by_key(|taker| taker.ns);
        [
            thread.to_string(),
            printable(&seen.name),
            printable(&watch.process_label(seen.process)),
            grouped(seen.calls),
            share(seen.ran_ns, seen.life_ns()),
            share(queued, seen.life_ns()),
            waits(&others),
            taker.map_or_else(String::new, |it| {
                printable(&format!("{} ({}) {}", it.name, it.thread, time(it.ns)))
            }),
        ]
    });
    Table::new("Threads", columns, rows)
}

fn targets(watch: &CallWatch) -> Table {
    let columns = [
        words("FILE OR SOCKET", 32),
        words("CALL", 10),
        words("BY", 16),
        number("COUNT", 0),
        number("TOTAL", 0),
        number("WAITING", 0),
        number("BYTES", 2),
    ];
    let rows = by_target(watch).into_iter().map(|(key, target, seen)| {
        let name = watch.names.get(&key.number).copied().unwrap_or("unknown");
        [
            printable(&target),
            name.to_owned(),
            printable(&watch.process_label(key.process)),
            grouped(seen.count),
            time(seen.total_ns),
            time(seen.waited_ns),
            ByteSize(seen.bytes).to_string(),
        ]
    });
    Table::new("Files and sockets", columns, rows)
}

/// Uses of something, those that took most first.
fn by_target(watch: &CallWatch) -> Vec<(&UseKey, String, &Use)> {
    let named = watch
        .uses
        .iter()
        .filter_map(|(key, seen)| Some((key, watch.target(key)?.to_string(), seen)));
    let mut sorted: Vec<_> = named.collect();
    sorted.sort_by_key(|(_, _, seen)| Reverse(seen.total_ns));
    sorted
}

#[cfg(test)]
mod tests;
