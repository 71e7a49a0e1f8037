//! Targets compared: each written in turn, forth and back (A B, B A, A B ...), so that what drifts
//! meets all of them alike.
//!
//! Every run is a stretch of the same bytes at the same place of each target; the place goes on
//! from round to round. What is recorded with a run are the factors that may explain why runs
//! differ; [`judge`] looks for modes, changes and explanations.

mod judge;
mod reports;
mod runs;

use core::ops::Range;

use units::Random;

pub use reports::compare_reports;
pub use runs::{
    Comparison, Contender, EffectFound, Fact, FactorFound, Measure, RateChange, RateWindow, Run,
    TwoModes,
};

use crate::bench::Bench;
use crate::error::Error;
use crate::number::{between, to_u64, to_usize};
use crate::plan::Part;
use crate::report::Fill;
use crate::stream::{DEPTH, Done, Log, Stream, fill};

/// A window of a run takes at least so long: shorter ones measure bunches, not rates.
const WINDOW_NS: u64 = 250_000_000;

/// One of the targets that are compared.
#[derive(Debug)]
pub struct Contestant<'a> {
    /// What it is called.
    pub name: String,
    /// Where it is driven.
    pub bench: Bench<'a>,
    /// Members that hold its data: each has as many blocks under way as a single one.
    pub columns: usize,
}

/// How targets are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contest {
    /// Runs of each target.
    pub rounds: u32,
    /// Bytes of a run, at most the size of the smallest target; what is less than a stripe of all
    /// targets is left out.
    pub run_bytes: u64,
    /// Bytes of a block; 8 are under way on each member.
    pub block_bytes: u64,
    /// Memory between capture and disk, for the guaranteed rate of a run.
    pub pool_bytes: u64,
    /// Blocks get stamps of their own, as in a [`crate::Plan`].
    pub verifies: bool,
}

impl Contest {
    /// Bytes that are whole stripes of targets with so many columns of data each.
    pub fn stripe_bytes(&self, columns: impl IntoIterator<Item = usize>) -> u64 {
        let blocks = columns.into_iter().map(to_u64).fold(1, least_common_multiple);
        self.block_bytes.saturating_mul(blocks)
    }
}

/// Writes every target in turn, or reads them where one may only be read. `facts` says at the
/// beginning of each run what is to be recorded with it; `seed` decides what is left to chance.
///
/// # Panics
/// Without a target.
pub fn compare(
    contestants: &mut [Contestant<'_>],
    contest: &Contest,
    facts: &mut dyn FnMut() -> Vec<Fact>,
    seed: u64,
) -> Result<Comparison, Error> {
    let mut random = Random::new(seed);
    let is_write = contestants.iter().all(|contestant| contestant.bench.writer.is_some());
    let sizes = contestants.iter().map(|contestant| contestant.bench.size_bytes());
    let size = sizes.min().expect("there is something to compare");
    let stripe_bytes = contest.stripe_bytes(contestants.iter().map(|one| one.columns));
    let run_bytes = contest.run_bytes.min(size) / stripe_bytes * stripe_bytes;
    if run_bytes == 0 {
        return Err(Error::TooSmall { part: Part::Fill, minimum_bytes: stripe_bytes });
    }
    let mut targets: Vec<Contender> = contestants.iter().map(named).collect();
    let begin_ns = contestants.first().map_or(0, |first| first.bench.now_ns());
    let mut is_interrupted = false;
    for round in 0..contest.rounds {
        let offset = place(size, run_bytes, round);
        let mut order: Vec<usize> = (0..contestants.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for (turn, at) in (0..).zip(order) {
            let both = contestants.get_mut(at).zip(targets.get_mut(at));
            let (contestant, target) = both.expect("a place of both");
            let bench = &mut contestant.bench;
            let run = Run { round, turn, offset, facts: facts(), ..Run::default() };
            let run = Run { begin_ns: between(begin_ns, bench.now_ns()), ..run };
            let range = offset..offset + run_bytes;
            let (filled, cpu_ns) = if is_write {
                let depth = DEPTH * contestant.columns;
                write(bench, contest, (range, depth))?
            } else {
                read(bench, contest, range)?
            };
            let run = Run { cpu_ns, ..run };
            target.runs.push(described(run, &filled, contest.pool_bytes));
            is_interrupted |= bench.is_interrupted;
            if is_interrupted {
                break;
            }
        }
        if is_interrupted {
            // What has no partner says nothing.
            for target in &mut targets {
                target.runs.retain(|run| run.round < round);
            }
            break;
        }
    }
    let targets: Vec<Contender> =
        targets.into_iter().map(|target| judge::judged(target, &mut random)).collect();
    let effects = judge::effects(&targets);
    Ok(Comparison { is_write, targets, effects, is_interrupted })
}

fn named(contestant: &Contestant<'_>) -> Contender {
    Contender { name: contestant.name.clone(), ..Contender::default() }
}

/// Runs go on over the surface, and begin anew where the next would not fit.
fn place(size_bytes: u64, run_bytes: u64, round: u32) -> u64 {
    u64::from(round) % (size_bytes / run_bytes) * run_bytes
}

/// At most 2^64 - 1, which no size is a multiple of.
fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a.saturating_mul(b / divisor.max(1))
}

fn write(
    bench: &mut Bench<'_>,
    contest: &Contest,
    (range, depth): (Range<u64>, usize),
) -> Result<(Fill, Option<u64>), Error> {
    let mut stream = Stream::new(contest.block_bytes, depth, contest.verifies, &mut bench.random)?;
    let begin_ns = processor_ns(bench)?;
    let filled = fill(bench, Part::Fill, &mut stream, &[range])?;
    Ok((filled, used(begin_ns, processor_ns(bench)?)))
}

/// Time of processors so far, where it is counted.
fn processor_ns(bench: &Bench<'_>) -> Result<Option<u64>, Error> {
    bench.processor.map(|used_ns| used_ns()).transpose()
}

fn used(begin_ns: Option<u64>, end_ns: Option<u64>) -> Option<u64> {
    begin_ns.zip(end_ns).map(|(begin, end)| end.saturating_sub(begin))
}

/// One block after another.
fn read(
    bench: &mut Bench<'_>,
    contest: &Contest,
    range: Range<u64>,
) -> Result<(Fill, Option<u64>), Error> {
    let block_bytes = contest.block_bytes;
    let pool = device::Pool::new(1, to_usize(block_bytes))?;
    let mut buffer = pool.take().expect("a new pool has its buffer");
    let total = range.end - range.start;
    let begin_ns = processor_ns(bench)?;
    let mut log = Log::new(bench.now_ns(), total, (block_bytes, 1));
    for (offset, done) in
        range.step_by(to_usize(block_bytes)).zip((0..).step_by(to_usize(block_bytes)))
    {
        let submitted_ns = bench.now_ns();
        bench.reader.read_at(offset, &mut buffer)?;
        let now_ns = bench.now_ns();
        let latency_ns = between(submitted_ns, now_ns);
        log.add(now_ns, Done { offset, len: block_bytes, latency_ns });
        if bench.is_over(Part::Fill, done + block_bytes, total) {
            break;
        }
    }
    let filled = log.finish(bench.now_ns());
    Ok((filled, used(begin_ns, processor_ns(bench)?)))
}

/// A run, with what its writes say.
fn described(run: Run, fill: &Fill, pool_bytes: u64) -> Run {
    let mut windows: Vec<RateWindow> = Vec::new();
    let (mut open, mut before_ns) = (RateWindow::default(), 0);
    for window in &fill.windows {
        open.bytes += window.bytes;
        open.ns += window.end_ns - before_ns;
        before_ns = window.end_ns;
        if open.ns >= WINDOW_NS {
            windows.push(core::mem::take(&mut open));
        }
    }
    // What is left over has the flush in it: it is slower in every run, and says nothing of the
    // runs. Of a short run it is all there is.
    let has_flush = open.bytes == 0;
    if windows.is_empty() {
        windows.push(open);
    } else if has_flush && windows.len() > 1 {
        windows.pop();
    }
    Run {
        bytes: fill.bytes(),
        ns: fill.ns(),
        guaranteed_bytes_per_s: fill.believed(pool_bytes).1,
        latency_ns_max: fill.windows.iter().map(|window| window.latency_ns_max).max().unwrap_or(0),
        windows,
        ..run
    }
}
