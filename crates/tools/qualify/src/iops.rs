//! Random writes of 4 KiB: how many a second, by how many are under way.

use core::time::Duration;

use device::ROW_SIZE;

use crate::bench::Bench;
use crate::error::Error;
use crate::number::{between, to_u64, to_usize};
use crate::plan::{IOPS_DEPTHS, Part, Plan};
use crate::report::{Iops, IopsStep};
use crate::stream::Stream;
use vitals::Eighths;

/// The longest wait before the user is asked again whether to go on.
const PATIENCE: Duration = Duration::from_millis(200);

/// For the planned time with each number of writes under way.
pub(crate) fn run(bench: &mut Bench<'_>, plan: &Plan) -> Result<Iops, Error> {
    // Anywhere: thousands of places of their own are no ranges.
    bench.written.add(0, bench.size_bytes());
    let time_ns = u64::try_from(plan.iops_time.as_nanos()).unwrap_or(u64::MAX);
    let mut iops = Iops::default();
    for depth in IOPS_DEPTHS {
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
    let mut eighths = Eighths::default();
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
            step.eighths = eighths.counts();
            return Ok(step);
        }
        stream.reap(writer, PATIENCE, &mut done)?;
        let elapsed_ns = between(begin_ns, bench.now_ns());
        for (_, done) in done.drain(..) {
            step.latency.add(done.latency_ns);
            // What ends when no more is begun says nothing of how many end.
            if elapsed_ns < time_ns {
                eighths.add((elapsed_ns, time_ns), done.latency_ns);
            }
        }
    }
}
