//! The engine of all writing parts: blocks in a given order, several under way, each with a stamp.
//!
//! Content is random, made once: no disk compresses it. The stamp in each row, its place and the
//! number of the write, makes every row different and is what is looked for afterwards.

use core::ops::Range;
use core::time::Duration;

use device::{Completion, Device, Pool, ROW_SIZE};
use units::Random;

use crate::bench::Bench;
use crate::error::Error;
use crate::number::{between, to_u64, to_usize};
use crate::plan::Part;
use crate::readers::Readers;
use crate::report::{CURVE_POOLS, CurvePoint, Fill, Sample, Verified, Window};

/// Blocks under way: as many as a recorder with full stripes has, and as case A's job of fio.
pub(crate) const DEPTH: usize = 8;
/// Windows of a fill, and the time that each takes at least: completions come in bunches, and the
/// rate of a bunch is none.
const WINDOWS: u64 = 512;
const WINDOW_NS: u64 = 10_000_000;
/// Writes of a fill whose time and place are kept.
const SAMPLES: u64 = 1024;
/// A pool of fewer blocks is full whatever the disk does.
const CURVE_BLOCKS_MIN: u64 = 4;
/// Rows read back behind a fill.
const VERIFIED_ROWS: u64 = 64;
/// The longest wait for a write before the user is asked again whether to go on.
const PATIENCE: Duration = Duration::from_millis(200);

/// Buffers with content, and the tokens of what is under way.
pub(crate) struct Stream {
    pool: Pool,
    block_bytes: u64,
    stamps: bool,
    /// By token: offset and length; `None` is free.
    flying: Vec<Option<(u64, u64)>>,
    completions: Vec<Completion>,
    /// Writes so far: part of the stamp.
    number: u64,
}

/// A write that was done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) latency_ns: u64,
}

impl Stream {
    pub(crate) fn new(
        block_bytes: u64,
        depth: usize,
        stamps: bool,
        random: &mut Random,
    ) -> Result<Self, Error> {
        let pool = Pool::new(depth, to_usize(block_bytes))?;
        if stamps {
            let mut buffers: Vec<_> = core::iter::from_fn(|| pool.take()).collect();
            for buffer in &mut buffers {
                random.fill(buffer);
            }
        }
        let flying = vec![None; depth];
        Ok(Self { pool, block_bytes, stamps, flying, completions: Vec::new(), number: 0 })
    }

    pub(crate) fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    pub(crate) fn has_room(&self) -> bool {
        self.flying.iter().any(Option::is_none)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.flying.iter().all(Option::is_none)
    }

    /// Submits a block; there is space. Gives its token.
    pub(crate) fn write(&mut self, writer: &mut dyn Device, offset: u64, len: u64) -> usize {
        let token = self.flying.iter().position(Option::is_none).expect("the caller saw space");
        let mut buffer = self.pool.take().expect("each block under way has one buffer");
        if self.stamps {
            let rows = buffer.chunks_exact_mut(ROW_SIZE).zip((offset..).step_by(ROW_SIZE));
            rows.for_each(|(row, at)| stamp(row, at, self.number));
        }
        self.number += 1;
        if let Some(place) = self.flying.get_mut(token) {
            *place = Some((offset, len));
        }
        writer.submit_write(to_u64(token), offset, buffer.freeze(), to_usize(len));
        token
    }

    /// Waits up to `wait` for writes and gives those that were done, with their tokens.
    pub(crate) fn reap(
        &mut self,
        writer: &mut dyn Device,
        wait: Duration,
        done: &mut Vec<(usize, Done)>,
    ) -> Result<(), Error> {
        writer.reap(Some(wait), &mut self.completions);
        for completion in self.completions.drain(..) {
            completion.result?;
            let token = to_usize(completion.token);
            let place = self.flying.get_mut(token).and_then(Option::take);
            let (offset, len) = place.expect("a completion has the token of its submission");
            done.push((token, Done { offset, len, latency_ns: completion.latency_ns }));
        }
        Ok(())
    }
}

/// Two words at the start of a row.
fn stamp(row: &mut [u8], offset: u64, number: u64) {
    for (place, word) in row.as_chunks_mut().0.iter_mut().zip([offset, number]) {
        *place = word.to_le_bytes();
    }
}

/// Whether a row is what was written last at `offset`, by its place.
fn is_stamped(row: &[u8], offset: u64) -> bool {
    row.first_chunk().is_some_and(|stamp| u64::from_le_bytes(*stamp) == offset)
}

/// Windows and completions of a fill that is under way.
pub(crate) struct Log {
    fill: Fill,
    window: Window,
    window_bytes: u64,
    begin_ns: i64,
    last_ns: i64,
    /// Writes so far, and those that are to be expected.
    number: u64,
    writes: u64,
}

impl Log {
    /// For `total` bytes, in blocks of so many bytes of which so many are under way.
    pub(crate) fn new(begin_ns: i64, total: u64, (block_bytes, depth): (u64, usize)) -> Self {
        let depth = u32::try_from(depth).expect("few blocks are under way");
        Self {
            fill: Fill { block_bytes, depth, ..Fill::default() },
            window: Window::default(),
            window_bytes: (total / WINDOWS).max(block_bytes),
            begin_ns,
            last_ns: begin_ns,
            number: 0,
            writes: total / block_bytes,
        }
    }

    /// Takes samples with the golden ratio: as even as every hundredth, and in step with no order
    /// of zones and extents.
    fn sample(&mut self, end_ns: u64, offset: u64) {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let share = (u64::MAX / self.writes.max(1)).saturating_mul(SAMPLES);
        if self.number.wrapping_mul(GOLDEN) <= share {
            self.fill.samples.push(Sample { end_ns, offset });
        }
        self.number += 1;
    }

    pub(crate) fn add(&mut self, now_ns: i64, done: Done) {
        self.fill.trace.push(between(self.last_ns, now_ns), done.len);
        self.last_ns = now_ns;
        self.sample(between(self.begin_ns, now_ns), done.offset);
        let window = &mut self.window;
        if window.bytes == 0 {
            window.offset_low = done.offset;
        }
        window.end_ns = between(self.begin_ns, now_ns);
        window.bytes += done.len;
        window.offset_low = window.offset_low.min(done.offset);
        window.offset_high = window.offset_high.max(done.offset + done.len);
        window.latency_ns_max = window.latency_ns_max.max(done.latency_ns);
        let begin_ns = self.fill.windows.last().map_or(0, |last| last.end_ns);
        if window.bytes >= self.window_bytes && window.end_ns >= begin_ns + WINDOW_NS {
            self.fill.windows.push(core::mem::take(window));
        }
    }

    /// The flush at the end is part of the time. What came too late for a window of its own, in
    /// bytes or in time, is added to the last: a rate over microseconds is none.
    pub(crate) fn finish(mut self, now_ns: i64) -> Fill {
        let rest = self.window;
        let end_ns = between(self.begin_ns, now_ns);
        let begin_ns = self.fill.windows.last().map_or(0, |last| last.end_ns);
        let is_short = rest.bytes < self.window_bytes || end_ns < begin_ns + WINDOW_NS;
        match self.fill.windows.last_mut() {
            Some(last) if is_short => {
                if rest.bytes > 0 {
                    last.offset_low = last.offset_low.min(rest.offset_low);
                    last.offset_high = last.offset_high.max(rest.offset_high);
                }
                last.bytes += rest.bytes;
                last.latency_ns_max = last.latency_ns_max.max(rest.latency_ns_max);
            }
            _ if rest.bytes > 0 => self.fill.windows.push(rest),
            _ => {}
        }
        if let Some(last) = self.fill.windows.last_mut() {
            last.end_ns = end_ns;
        }
        self.fill.trace.end(between(self.last_ns, now_ns));
        let trace = &self.fill.trace;
        let point =
            |pool_bytes| CurvePoint { pool_bytes, bytes_per_s: trace.guaranteed(pool_bytes) };
        let least = self.fill.block_bytes.saturating_mul(CURVE_BLOCKS_MIN);
        self.fill.curve =
            CURVE_POOLS.into_iter().filter(|pool| *pool >= least).map(point).collect();
        self.fill
    }
}

/// Writes all of `ranges`, one after another, as fast as the target takes it.
pub(crate) fn fill(
    bench: &mut Bench<'_>,
    part: Part,
    stream: &mut Stream,
    ranges: &[Range<u64>],
) -> Result<Fill, Error> {
    fill_beside(bench, (part, &mut Readers::none()), stream, ranges)
}

/// The same beside readers.
pub(crate) fn fill_beside(
    bench: &mut Bench<'_>,
    (part, readers): (Part, &mut Readers),
    stream: &mut Stream,
    ranges: &[Range<u64>],
) -> Result<Fill, Error> {
    let total: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let block_bytes = stream.block_bytes;
    let mut blocks = ranges.iter().flat_map(|range| blocks(range.clone(), block_bytes)).peekable();
    let mut log = Log::new(bench.now_ns(), total, (block_bytes, stream.flying.len()));
    let (mut written, mut done) = (0, Vec::new());
    loop {
        let writer = bench.writer.as_deref_mut().expect("a part that writes has a writer");
        while stream.has_room()
            && !bench.is_interrupted
            && let Some((offset, len)) = blocks.next()
        {
            stream.write(writer, offset, len);
            bench.written.add(offset, len);
        }
        if stream.is_idle() {
            writer.flush()?;
            let now_ns = bench.now_ns();
            return Ok(log.finish(now_ns));
        }
        let patience_ns = between(bench.clock.boottime_ns(), readers.next_ns());
        let patience = PATIENCE.min(Duration::from_nanos(patience_ns));
        stream.reap(writer, patience, &mut done)?;
        let now_ns = bench.now_ns();
        for (_, done) in done.drain(..) {
            written += done.len;
            log.add(now_ns, done);
        }
        readers.serve(bench)?;
        bench.is_over(part, written, total);
    }
}

/// The blocks of a range; the last may be shorter.
fn blocks(range: Range<u64>, block_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = range.end;
    let begins = range.step_by(to_usize(block_bytes));
    begins.map(move |begin| (begin, block_bytes.min(end - begin)))
}

/// Reads some rows of what was just filled, and looks for their stamps.
pub(crate) fn verify(bench: &mut Bench<'_>, range: &Range<u64>) -> Result<Verified, Error> {
    let mut row = [0; ROW_SIZE];
    let rows = (range.end - range.start) / to_u64(ROW_SIZE);
    let mut verified = Verified { rows: VERIFIED_ROWS.min(rows), wrong: 0 };
    for _ in 0..verified.rows {
        let offset = range.start + bench.random.below(rows) * to_u64(ROW_SIZE);
        bench.reader.read_at(offset, &mut row)?;
        verified.wrong += u64::from(!is_stamped(&row, offset));
    }
    Ok(verified)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 121 blocks of a MiB, a millisecond each; the last one comes so long after the one before.
    fn finished(last_ns: i64) -> Fill {
        const BLOCK: u64 = 1 << 20;
        let mut log = Log::new(0, 121 * BLOCK, (BLOCK, 1));
        let mut now_ns = 0;
        for number in 0..121 {
            now_ns += if number == 120 { last_ns } else { 1_000_000 };
            let done = Done { offset: number * BLOCK, len: BLOCK, latency_ns: 1000 };
            log.add(now_ns, done);
        }
        log.finish(now_ns)
    }

    /// A cache takes the end of a stream in a moment: that is no rate of the disk.
    #[test]
    fn no_window_is_so_short_that_its_rate_says_nothing() {
        for last_ns in [1_000_000, 8000, 1] {
            let fill = finished(last_ns);
            assert_eq!(fill.bytes(), 121 << 20);
            let most = fill.rates().max().unwrap();
            assert!(most <= 1_200_000_000, "{last_ns}: {most}");
        }
    }
}
