//! Readers beside a writer: streams that read on, and reads at random places, each at a rate of
//! its own whatever the disk does.
//!
//! They share the writer's thread, so that they run in virtual time, too. A read holds up the
//! thread and not the disk: as many writes are under way as the disk does meanwhile. What it holds
//! up is seen late, never early, so that no guarantee is too high by it.

use device::{Buffer, Pool, ROW_SIZE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::Bench;
use crate::error::Error;
use crate::number::{between, real, to_u64, to_usize, whole};
use crate::plan::ReadLoad;
use vitals::Latencies;

/// Bytes of a read of a stream: what an extract of a long session reads.
const STREAM_BYTES: u64 = 1 << 20;

/// Reads in a row, before the writer comes in between: as many as its blocks under way.
const BURST: u64 = 8;

/// Result of the readers.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReadResult {
    /// Bytes of the streams.
    pub stream_bytes: u64,
    /// How long they asked.
    pub ns: u64,
    /// Of the reads of streams.
    pub streams: Latencies,
    /// Of the random reads.
    pub random: Latencies,
}

impl ReadResult {
    /// Bytes a second that the streams got.
    pub fn stream_rate(&self) -> u64 {
        crate::number::rate(self.stream_bytes, self.ns)
    }
}

/// Reads that come again and again.
struct Beat {
    next_ns: i64,
    interval_ns: u64,
}

impl Beat {
    fn new(begin_ns: i64, per_s: f64) -> Option<Self> {
        let interval_ns = whole(1e9 / per_s.max(1e-9)).max(1);
        (per_s > 0.0).then_some(Self { next_ns: begin_ns, interval_ns })
    }

    /// The one that is due is done. What is too far behind is left out: writes come first.
    fn go_on(&mut self, now_ns: i64) {
        self.next_ns = self.next_ns.saturating_add_unsigned(self.interval_ns);
        let behind = between(self.next_ns, now_ns) / self.interval_ns;
        let left_out = behind.saturating_sub(BURST).saturating_mul(self.interval_ns);
        self.next_ns = self.next_ns.saturating_add_unsigned(left_out);
    }
}

/// Readers at work.
pub(crate) struct Readers {
    stream: Option<Beat>,
    random: Option<Beat>,
    /// Where each stream goes on; the first is next.
    places: std::collections::VecDeque<u64>,
    buffer: Option<Buffer>,
    begin_ns: i64,
    result: ReadResult,
}

impl Readers {
    /// None at all.
    pub(crate) fn none() -> Self {
        Self {
            stream: None,
            random: None,
            places: std::collections::VecDeque::new(),
            buffer: None,
            begin_ns: 0,
            result: ReadResult::default(),
        }
    }

    pub(crate) fn new(bench: &Bench<'_>, load: &ReadLoad) -> Result<Self, Error> {
        let (size, begin_ns) = (bench.size_bytes(), bench.now_ns());
        let blocks = size / STREAM_BYTES;
        let streams = u64::from(load.streams);
        let place = |stream: u64| blocks / streams.max(1) * stream * STREAM_BYTES;
        let pool = Pool::new(1, to_usize(STREAM_BYTES))?;
        let per_s = real(load.stream_bytes_per_s) / real(STREAM_BYTES);
        let has_streams = streams > 0 && blocks > 0;
        Ok(Self {
            stream: Beat::new(begin_ns, per_s).filter(|_| has_streams),
            random: Beat::new(begin_ns, real(load.random_per_s)),
            places: (0..streams).map(place).collect(),
            buffer: pool.take(),
            begin_ns,
            result: ReadResult::default(),
        })
    }

    /// When the next read is due.
    pub(crate) fn next_ns(&self) -> i64 {
        let next = |beat: &Option<Beat>| beat.as_ref().map_or(i64::MAX, |beat| beat.next_ns);
        next(&self.stream).min(next(&self.random))
    }

    /// Does the reads that are due, if any, but not too many in a row.
    pub(crate) fn serve(&mut self, bench: &mut Bench<'_>) -> Result<(), Error> {
        for _ in 0..BURST {
            if self.next_ns() > bench.now_ns() {
                break;
            }
            self.read_next(bench)?;
        }
        Ok(())
    }

    fn read_next(&mut self, bench: &mut Bench<'_>) -> Result<(), Error> {
        let now_ns = bench.now_ns();
        let is_due = |beat: &&mut Beat| beat.next_ns <= now_ns;
        let Some(buffer) = self.buffer.as_mut() else { return Ok(()) };
        if let Some(beat) = self.random.as_mut().filter(is_due) {
            let rows = bench.size_bytes() / to_u64(ROW_SIZE);
            let offset = bench.random.below(rows) * to_u64(ROW_SIZE);
            let latency_ns = read(bench, buffer, (offset, to_u64(ROW_SIZE)))?;
            self.result.random.add(latency_ns);
            beat.go_on(bench.now_ns());
        } else if let Some(beat) = self.stream.as_mut().filter(is_due) {
            let offset = self.places.pop_front().expect("a beat of streams has streams");
            let latency_ns = read(bench, buffer, (offset, STREAM_BYTES))?;
            self.result.streams.add(latency_ns);
            self.result.stream_bytes += STREAM_BYTES;
            let next = offset + STREAM_BYTES;
            let fits = next + STREAM_BYTES <= bench.size_bytes();
            self.places.push_back(if fits { next } else { 0 });
            beat.go_on(bench.now_ns());
        }
        Ok(())
    }

    pub(crate) fn finish(mut self, bench: &Bench<'_>) -> ReadResult {
        self.result.ns = between(self.begin_ns, bench.now_ns());
        self.result
    }
}

fn read(
    bench: &mut Bench<'_>,
    buffer: &mut Buffer,
    (offset, len): (u64, u64),
) -> Result<u64, Error> {
    let begin_ns = bench.now_ns();
    let into = buffer.get_mut(..to_usize(len)).expect("a read fits into the buffer");
    bench.reader.read_at(offset, into)?;
    Ok(between(begin_ns, bench.now_ns()))
}
