//! What the processor does for each byte: checksums and parity, as a volume computes them.

use format::checksum::RowAddress;
use parity::Codec;

use crate::bench::Bench;
use crate::error::Error;
use crate::number::{to_u64, to_usize};
use crate::plan::{Part, Plan};
use crate::report::{Cpu, CpuStep};
use device::{Pool, ROW_SIZE};
use units::{Epoch, Sequence};

/// Data columns of the stripe: the middle of what arrays have.
const DATA_COLUMNS: u64 = 6;
/// Rows of a body: all that a full piece has.
const BODY_ROWS: u64 = 511;
/// Where checksums believe to be.
const STRIPE: RowAddress = RowAddress { epoch: Epoch(1), sequence: Sequence(1), sub: 0, column: 0 };

/// Stripes of memory that are protected again and again, for the planned time each.
pub(crate) fn run(bench: &mut Bench<'_>, plan: &Plan) -> Result<Cpu, Error> {
    // A machine without vector instructions has a portable way: only a broken one has none.
    let codec = Codec::new().map_err(|_| Error::NoCodec)?;
    let body_bytes = to_usize(BODY_ROWS * to_u64(ROW_SIZE));
    let pool = Pool::new(to_usize(DATA_COLUMNS) + 2, body_bytes)?;
    let mut columns: Vec<_> = core::iter::from_fn(|| pool.take()).collect();
    for column in &mut columns {
        bench.random.fill(column);
    }
    let mut parity = columns.split_off(to_usize(DATA_COLUMNS));
    let data: Vec<&[u8]> = columns.iter().map(|column| &**column).collect();
    let time_ns = u64::try_from(plan.cpu_time.as_nanos()).unwrap_or(u64::MAX);
    let mut cpu = Cpu::default();
    for parity_columns in 0..=parity.len() {
        let mut places: Vec<&mut [u8]> =
            parity.iter_mut().take(parity_columns).map(|column| &mut **column).collect();
        let mut step = CpuStep {
            data_columns: u32::try_from(data.len()).expect("few columns"),
            parity_columns: u32::try_from(parity_columns).expect("few columns"),
            ..CpuStep::default()
        };
        let begin_ns = processor_ns(bench)?;
        while step.cpu_ns < time_ns && !bench.is_over(Part::Cpu, step.cpu_ns, time_ns) {
            writer::protect(codec, STRIPE, &data, &mut places);
            step.bytes += DATA_COLUMNS * to_u64(body_bytes);
            step.cpu_ns = processor_ns(bench)?.saturating_sub(begin_ns);
        }
        cpu.steps.push(step);
    }
    Ok(cpu)
}

fn processor_ns(bench: &Bench<'_>) -> Result<u64, Error> {
    bench.processor.expect("the part runs only with a processor")()
}
