//! Random writes of 4 KiB: how many a second, by how many are under way.

use core::time::Duration;

use device::ROW_SIZE;
use serde::{Deserialize, Serialize};

use crate::bench::Bench;
use crate::error::Error;
use crate::histogram::Latencies;
use crate::number::{between, to_u64, to_usize};
use crate::plan::{Part, Plan};
use crate::stream::Stream;

/// Writes under way at a time.
pub(crate) const DEPTHS: [u32; 4] = [1, 8, 64, 256];
/// The longest wait before the user is asked again whether to go on.
const PATIENCE: Duration = Duration::from_millis(200);

/// Random writes of 4 KiB.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Iops {
    /// By the writes under way, the fewest first.
    pub steps: Vec<IopsStep>,
}

/// So many under way.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IopsStep {
    /// Writes under way at a time.
    pub depth: u32,
    /// Time for all of them, the flush at the end included.
    pub ns: u64,
    /// From submission to the end, of each.
    pub latency: Latencies,
}

impl IopsStep {
    /// Writes a second.
    pub fn writes_per_s(&self) -> u64 {
        crate::number::rate(self.latency.count(), self.ns)
    }
}

impl Iops {
    /// The most writes a second of any step; 0 of none.
    pub fn peak(&self) -> u64 {
        self.steps.iter().map(IopsStep::writes_per_s).max().unwrap_or(0)
    }
}

/// For the planned time with each number of writes under way.
pub(crate) fn run(bench: &mut Bench<'_>, plan: &Plan) -> Result<Iops, Error> {
    // Anywhere: thousands of places of their own are no ranges.
    bench.written.add(0, bench.size_bytes());
    let time_ns = u64::try_from(plan.iops_time.as_nanos()).unwrap_or(u64::MAX);
    let mut iops = Iops::default();
    for depth in DEPTHS {
        if bench.is_interrupted {
            break;
        }
        iops.steps.push(step(bench, plan, depth, time_ns)?);
    }
    Ok(iops)
}

fn step(bench: &mut Bench<'_>, plan: &Plan, depth: u32, time_ns: u64) -> Result<IopsStep, Error> {
    let row_bytes = to_u64(ROW_SIZE);
    let rows = bench.size_bytes() / row_bytes;
    let places = to_usize(u64::from(depth));
    let mut stream = Stream::new(row_bytes, places, plan.verifies, &mut bench.random)?;
    let mut step = IopsStep { depth, ..IopsStep::default() };
    let (begin_ns, mut done) = (bench.now_ns(), Vec::new());
    loop {
        let elapsed_ns = between(begin_ns, bench.now_ns());
        let is_over = bench.is_over(Part::Iops, elapsed_ns.min(time_ns), time_ns);
        let writer = bench.writer.as_deref_mut().expect("a part that writes has a writer");
        while elapsed_ns < time_ns && !is_over && stream.has_room() {
            let offset = bench.random.below(rows) * row_bytes;
            stream.write(writer, offset, row_bytes);
        }
        if stream.is_idle() {
            writer.flush()?;
            step.ns = between(begin_ns, bench.now_ns());
            return Ok(step);
        }
        stream.reap(writer, PATIENCE, &mut done)?;
        done.drain(..).for_each(|(_, done)| step.latency.add(done.latency_ns));
    }
}
