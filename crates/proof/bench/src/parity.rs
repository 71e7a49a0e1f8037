//! Checksums and parity, gigabytes of data a second on one core: each alone, one after another, and
//! all in one pass. In the recorder's memory: huge pages, columns of a head and a body.

use core::hint::black_box;

use anyhow::{Context, Result};
use device::Pool;
use format::checksum::{RowAddress, body_crc};
use format::head::{BODY_ROWS_MAX, HEAD_BYTES};
use parity::{Codec, Path};
use serde_json::json;
use units::number::real;
use units::{Epoch, Sequence};

use crate::outcome::Outcome;
use crate::program::now_seconds;
use crate::statistics::Sample;

const REPETITIONS: usize = 7;
const DATA_COLUMNS: [usize; 5] = [2, 4, 6, 10, 22];
/// The geometry that the goal is about, where the caches have it.
const GOAL_COLUMNS: usize = 6;
const GOAL_GB: f64 = 12.0;
const STRIPE: RowAddress =
    RowAddress { epoch: Epoch(1), sequence: Sequence(1000), sub: 0, column: 0 };

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Memory that is walked through for stripes out of memory, MiB: more than the caches hold
    #[arg(long, default_value_t = 1024)]
    memory_mib: usize,
    /// Least time of one repetition, milliseconds
    #[arg(long, default_value_t = 20)]
    repetition_ms: u32,
}

/// Where the columns are when they are needed.
struct Place {
    name: &'static str,
    column_bytes: usize,
    /// How much memory is walked through before the same stripe comes again.
    walked_bytes: usize,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let mut outcome = Outcome::new("parity: checksums and parity, GB/s of data on one core");
    let (small, full) = (16 * HEAD_BYTES, (1 + BODY_ROWS_MAX) * HEAD_BYTES);
    let memory_bytes = options.memory_mib << 20;
    let places = [
        Place { name: "near (64 KiB columns)", column_bytes: small, walked_bytes: 0 },
        Place { name: "warm (2 MiB columns)", column_bytes: full, walked_bytes: 0 },
        Place { name: "memory (2 MiB columns)", column_bytes: full, walked_bytes: memory_bytes },
    ];
    let widest = DATA_COLUMNS.into_iter().max().expect("there are geometries") + 2;
    let pool = Pool::new(1, memory_bytes.max(widest * full))?;
    let mut memory = pool.take().context("the pool has one buffer")?;
    let mut state = 1_u64;
    for word in memory.chunks_exact_mut(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        word.copy_from_slice(&state.to_le_bytes());
    }
    for place in &places {
        for columns in DATA_COLUMNS {
            measure(&mut outcome, options, place, (columns, &mut memory))?;
        }
    }
    outcome.not_proven("what a member takes: nothing is written");
    outcome.not_proven("two cores at once, which share the way to memory");
    Ok(outcome)
}

/// All works on one geometry in one place.
fn measure(
    outcome: &mut Outcome,
    options: &Options,
    place: &Place,
    (columns, memory): (usize, &mut [u8]),
) -> Result<()> {
    let mut parts = Vec::new();
    for (name, work) in works()? {
        let sample = rate(options, place, (columns, memory), &work)?;
        if columns == GOAL_COLUMNS && name == FUSED && place.walked_bytes == 0 {
            let what = format!("{}, K = {columns}, all in one pass, GB/s", place.name);
            outcome.judge(&what, &sample, GOAL_GB);
        }
        parts.push(format!("{name} {:.1} ({:.0} %)", sample.median(), sample.spread() * 100.0));
        outcome.push_json(
            "rates",
            json!({ "place": place.name, "data_columns": columns, "work": name,
                    "gb_per_s": sample.median(), "spread": sample.spread() }),
        );
    }
    outcome.line(format!("{}, K = {columns}: {}", place.name, parts.join(", ")));
    Ok(())
}

/// Does its work on the data and the parity of a stripe.
type Work = Box<dyn Fn(&[&[u8]], &mut [&mut [u8]])>;

const FUSED: &str = "one pass";

fn works() -> Result<Vec<(String, Work)>> {
    let mut works: Vec<(String, Work)> = vec![("memcpy".to_owned(), Box::new(copy))];
    for &path in Path::ALL {
        if let Ok(codec) = Codec::on(path) {
            let work: Work = Box::new(move |data, parity| encode(codec, data, parity));
            works.push((format!("P+Q {path:?}"), work));
        }
    }
    works.push(("CRC32C rows".to_owned(), Box::new(|data, _| row_checksums(data.iter()))));
    works.push(("CRC64".to_owned(), Box::new(|data, _| body_checksums(data.iter()))));
    let codec = Codec::new()?;
    let apart: Work = Box::new(move |data, parity| {
        encode(codec, data, parity);
        let parity: Vec<&[u8]> = parity.iter().map(|body| &**body).collect();
        body_checksums(data.iter().chain(&parity));
        row_checksums(data.iter().chain(&parity));
    });
    works.push(("three passes".to_owned(), apart));
    let fused: Work = Box::new(move |data, parity| {
        black_box(writer::protect(codec, STRIPE, data, parity));
    });
    works.push((FUSED.to_owned(), fused));
    Ok(works)
}

fn copy(data: &[&[u8]], parity: &mut [&mut [u8]]) {
    let into = parity.first_mut().expect("P has a place");
    for body in data {
        into.copy_from_slice(body);
        black_box(&into);
    }
}

fn encode(codec: Codec, data: &[&[u8]], parity: &mut [&mut [u8]]) {
    let [p, q] = parity else { unreachable!("P and Q have places") };
    codec.encode(data, Some(p), Some(q));
}

fn row_checksums<'a>(bodies: impl Iterator<Item = &'a &'a [u8]>) {
    for (column, body) in (0..).zip(bodies) {
        let address = RowAddress { column, ..STRIPE };
        for (row, bytes) in (0..).zip(body.chunks_exact(HEAD_BYTES)) {
            black_box(address.row_crc(row, bytes));
        }
    }
}

fn body_checksums<'a>(bodies: impl Iterator<Item = &'a &'a [u8]>) {
    for body in bodies {
        black_box(body_crc(body));
    }
}

/// Gigabytes of data a second, each repetition a while of stripe after stripe.
fn rate(
    options: &Options,
    place: &Place,
    (columns, memory): (usize, &mut [u8]),
    work: &Work,
) -> Result<Sample> {
    let stripe_bytes = (columns + 2) * place.column_bytes;
    let walked = memory.get_mut(..place.walked_bytes.max(stripe_bytes));
    let walked = walked.expect("the memory holds a stripe of every geometry");
    let mut pass = || {
        let mut bytes = 0;
        for stripe in walked.chunks_exact_mut(stripe_bytes) {
            let bodies = stripe.chunks_exact_mut(place.column_bytes);
            let bodies = bodies.filter_map(|column| column.get_mut(HEAD_BYTES..));
            let mut data: Vec<&mut [u8]> = bodies.collect();
            let mut parity = data.split_off(columns);
            let data: Vec<&[u8]> = data.iter().map(|body| &**body).collect();
            work(&data, &mut parity);
            bytes += columns * (place.column_bytes - HEAD_BYTES);
        }
        bytes
    };
    pass();
    let least = f64::from(options.repetition_ms) / 1e3;
    let mut repeat = || {
        let (start, mut bytes) = (now_seconds(), 0);
        loop {
            bytes += pass();
            let seconds = now_seconds() - start;
            if seconds >= least {
                return Ok(real(u64::try_from(bytes)?) / seconds / 1e9);
            }
        }
    };
    Sample::new((0..REPETITIONS).map(|_| repeat()).collect::<Result<Vec<f64>>>()?)
}
