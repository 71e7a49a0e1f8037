//! Rates at places of the surface, one block at a time, as a probe by `dd` finds them.

use device::{Buffer, Pool, ROW_SIZE};

use crate::bench::Bench;
use crate::error::Error;
use crate::number::{between, to_u64, to_usize};
use crate::plan::{Part, SweepPlan};
use crate::report::{Sweep, SweepStep};

/// Jumps that are timed: half a second of a slow disk.
const JUMPS: usize = 33;

/// Places at equal distances, and a last one that ends where the target ends.
pub(crate) fn places(size_bytes: u64, plan: &SweepPlan) -> Vec<u64> {
    let align = plan.align_bytes;
    let down = |offset: u64| offset - offset % align;
    let each = size_bytes / align / plan.steps * align;
    let last = down(size_bytes.saturating_sub(plan.blocks_in(size_bytes) * plan.block_bytes));
    // On a small target a single block reaches into the next place, and beyond the end.
    let mut places: Vec<u64> = (0..plan.steps).map(|step| last.min(step * each)).collect();
    places.push(last);
    places.dedup();
    places
}

/// Reads, or writes where that is possible, at all places.
pub(crate) fn run(bench: &mut Bench<'_>, plan: &SweepPlan) -> Result<Sweep, Error> {
    let places = places(bench.size_bytes(), plan);
    let mut sweep = run_at(bench, plan, &places)?;
    if !bench.is_interrupted {
        sweep.jump_ns = Some(jump(bench)?);
    }
    Ok(sweep)
}

/// The time to read a row at another place, as a rule: the middle of some at random places.
fn jump(bench: &mut Bench<'_>) -> Result<u64, Error> {
    let rows = (bench.size_bytes() / to_u64(ROW_SIZE)).max(1);
    let pool = Pool::new(1, ROW_SIZE)?;
    let mut row = pool.take().expect("a new pool has its buffer");
    let mut times = Vec::new();
    for _ in 0..JUMPS {
        let offset = bench.random.below(rows) * to_u64(ROW_SIZE);
        let begin_ns = bench.now_ns();
        bench.reader.read_at(offset, &mut row)?;
        times.push(between(begin_ns, bench.now_ns()));
    }
    times.sort_unstable();
    Ok(times.get(times.len() / 2).copied().unwrap_or(0))
}

/// The same at given places.
pub(crate) fn run_at(
    bench: &mut Bench<'_>,
    plan: &SweepPlan,
    places: &[u64],
) -> Result<Sweep, Error> {
    let blocks = plan.blocks_in(bench.size_bytes());
    if blocks == 0 {
        return Err(Error::TooSmall { part: Part::Sweep, minimum_bytes: plan.block_bytes });
    }
    let pool = Pool::new(1, to_usize(plan.block_bytes))?;
    let mut block = pool.take().expect("a new pool has its buffer");
    let is_write = bench.writer.is_some();
    if is_write {
        bench.random.fill(&mut block);
    }
    let mut sweep =
        Sweep { is_write, block_bytes: plan.block_bytes, steps: Vec::new(), jump_ns: None };
    let total = blocks * u64::try_from(places.len()).unwrap_or(u64::MAX);
    for (&offset, done) in places.iter().zip((0..).step_by(to_usize(blocks))) {
        let mut step = SweepStep { offset, bytes: 0, ns: 0 };
        let begin_ns = bench.now_ns();
        for index in 0..blocks {
            move_block(bench, offset + index * plan.block_bytes, &mut block)?;
            step.bytes += plan.block_bytes;
            if bench.is_over(Part::Sweep, done + index + 1, total) {
                break;
            }
        }
        // What lies in the disk's cache is not yet written.
        if let Some(writer) = bench.writer.as_deref_mut() {
            writer.flush()?;
        }
        step.ns = between(begin_ns, bench.now_ns());
        sweep.steps.push(step);
        if bench.is_interrupted {
            break;
        }
    }
    Ok(sweep)
}

fn move_block(bench: &mut Bench<'_>, offset: u64, block: &mut Buffer) -> Result<(), Error> {
    match bench.writer.as_deref_mut() {
        None => bench.reader.read_at(offset, block)?,
        Some(writer) => {
            writer.write_at(offset, block)?;
            bench.written.add(offset, to_u64(block.len()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_probe() {
        let plan = SweepPlan::of_probe();
        let places = places(32_001_801_322_496, &plan);
        assert_eq!(places.len(), 21);
        // Steps of a twentieth, and 10 000 blocks before the end.
        assert_eq!((places[1], places[20]), (1_600_090_062_848, 31_980_829_802_496));
    }

    #[test]
    fn no_place_reaches_beyond_a_small_target() {
        let plan = SweepPlan { blocks: 64, ..SweepPlan::of_probe() };
        for size in [2_u64 << 20, 5 << 20, 16 << 20, 64 << 20, 3 << 30] {
            let bytes = plan.blocks_in(size) * plan.block_bytes;
            let places = places(size, &plan);
            assert!(places.iter().all(|place| place + bytes <= size), "{size}");
            assert!(places.is_sorted() && places.first() == Some(&0), "{size}: {places:?}");
        }
    }
}
