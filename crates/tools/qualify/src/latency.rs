//! Writes that arrive at a constant rate whatever the disk does, as packets do.
//!
//! A write that has to wait for its turn waits from its arrival on: what a stall holds up is
//! counted for every write behind it, and not only for the one that stalled.

use core::time::Duration;

use crate::bench::Bench;
use crate::error::Error;
use crate::number::{between, real, whole};
use crate::plan::{Part, Plan};
use crate::readers::Readers;
use crate::report::{Latency, SlowWrite};
use crate::stream::{Done, Stream};
use vitals::Eighths;

/// Blocks under way at most; what arrives beyond waits.
const DEPTH: usize = 16;
/// Slow writes that are named.
const SLOWEST: usize = 16;
/// The longest wait before the user is asked again whether to go on.
const PATIENCE_NS: u64 = 100_000_000;

/// The run at one moment.
struct State {
    begin_ns: i64,
    interval_ns: u64,
    blocks: u64,
    submitted: u64,
    written: u64,
    /// Arrival of what is under way, by token.
    arrivals: Vec<i64>,
    eighths: Eighths,
    result: Latency,
}

impl State {
    fn due_ns(&self, block: u64) -> i64 {
        self.begin_ns.saturating_add_unsigned(block.saturating_mul(self.interval_ns))
    }

    /// Blocks that have arrived.
    fn arrived(&self, now_ns: i64) -> u64 {
        (between(self.begin_ns, now_ns) / self.interval_ns + 1).min(self.blocks)
    }

    /// What has arrived and is not written at this moment.
    fn note_backlog(&mut self, now_ns: i64) {
        let waiting = (self.arrived(now_ns) - self.written) * self.result.block_bytes;
        self.result.backlog_bytes_max = self.result.backlog_bytes_max.max(waiting);
    }

    fn complete(&mut self, now_ns: i64, token: usize, done: Done) {
        let part = (self.written, self.blocks);
        self.written += 1;
        let arrival_ns = self.arrivals.get(token).copied().unwrap_or(self.begin_ns);
        self.result.from_arrival.add(between(arrival_ns, now_ns));
        self.eighths.add(part, between(arrival_ns, now_ns));
        self.result.of_device.add(done.latency_ns);
        let end_ns = between(self.begin_ns, now_ns);
        let slow = SlowWrite { latency_ns: done.latency_ns, end_ns, offset: done.offset };
        let slowest = &mut self.result.slowest;
        slowest.push(slow);
        slowest.sort_unstable_by(|a, b| b.cmp(a));
        slowest.truncate(SLOWEST);
    }
}

/// Writes round the target, from its first byte on, at `bytes_per_s` for the planned time.
pub(crate) fn run(bench: &mut Bench<'_>, plan: &Plan, bytes_per_s: u64) -> Result<Latency, Error> {
    run_beside(bench, (Part::Latency, &mut Readers::none()), plan, bytes_per_s)
}

/// The same beside readers.
pub(crate) fn run_beside(
    bench: &mut Bench<'_>,
    (part, readers): (Part, &mut Readers),
    plan: &Plan,
    bytes_per_s: u64,
) -> Result<Latency, Error> {
    let places = bench.size_bytes() / plan.block_bytes;
    if places == 0 {
        return Err(Error::TooSmall { part, minimum_bytes: plan.block_bytes });
    }
    let mut stream = Stream::new(plan.block_bytes, DEPTH, plan.verifies, &mut bench.random)?;
    let interval_ns = whole(real(plan.block_bytes) * 1e9 / real(bytes_per_s.max(1))).max(1);
    let time_ns = u64::try_from(plan.latency_time.as_nanos()).unwrap_or(u64::MAX);
    let mut state = State {
        begin_ns: bench.now_ns(),
        interval_ns,
        blocks: (time_ns / interval_ns).max(1),
        submitted: 0,
        written: 0,
        arrivals: vec![0; DEPTH],
        eighths: Eighths::default(),
        result: Latency {
            offered_bytes_per_s: bytes_per_s,
            block_bytes: plan.block_bytes,
            ..Latency::default()
        },
    };
    while !(stream.is_idle() && (state.submitted == state.blocks || bench.is_interrupted)) {
        submit_due(bench, plan, &mut stream, &mut state, places);
        wait(bench, &mut stream, &mut state, readers.next_ns())?;
        readers.serve(bench)?;
        bench.is_over(part, state.written, state.blocks);
    }
    if let Some(writer) = bench.writer.as_deref_mut() {
        writer.flush()?;
    }
    state.result.ns = between(state.begin_ns, bench.now_ns());
    state.result.eighths = state.eighths.finish();
    Ok(state.result)
}

/// Submits what has arrived, as far as there is space.
fn submit_due(
    bench: &mut Bench<'_>,
    plan: &Plan,
    stream: &mut Stream,
    state: &mut State,
    places: u64,
) {
    let now_ns = bench.now_ns();
    let arrived = state.arrived(now_ns);
    let writer = bench.writer.as_deref_mut().expect("a part that writes has a writer");
    while state.submitted < arrived && stream.has_room() && !bench.is_interrupted {
        let offset = state.submitted % places * plan.block_bytes;
        let token = stream.write(writer, offset, plan.block_bytes);
        bench.written.add(offset, plan.block_bytes);
        let due_ns = state.due_ns(state.submitted);
        if let Some(arrival) = state.arrivals.get_mut(token) {
            *arrival = due_ns;
        }
        state.submitted += 1;
    }
    state.note_backlog(now_ns);
}

/// Until something is done, the next write arrives, or a reader wants to read.
fn wait(
    bench: &mut Bench<'_>,
    stream: &mut Stream,
    state: &mut State,
    reader_ns: i64,
) -> Result<(), Error> {
    let now_ns = bench.now_ns();
    let has_next = state.submitted < state.blocks && stream.has_room();
    let next_ns = if has_next { state.due_ns(state.submitted) } else { i64::MAX };
    let patience_ns = between(now_ns, next_ns.min(reader_ns)).min(PATIENCE_NS);
    if stream.is_idle() {
        if has_next && !bench.is_interrupted {
            bench.clock.sleep_until(now_ns.saturating_add_unsigned(patience_ns));
        }
        return Ok(());
    }
    let mut done = Vec::new();
    let writer = bench.writer.as_deref_mut().expect("a part that writes has a writer");
    stream.reap(writer, Duration::from_nanos(patience_ns), &mut done)?;
    let now_ns = bench.now_ns();
    // What was done meanwhile was waiting just before.
    state.note_backlog(now_ns);
    for (token, done) in done {
        state.complete(now_ns, token, done);
    }
    Ok(())
}
