//! What a disk does with a file of ours.

use core::time::Duration;
use std::path::Path;

use device::{Completion, Device, Pool, ROW_SIZE, Read, ReadAt};
use units::Random;
use units::number::{between, real, real_usize, to_u64};

use super::figure::Figure;
use super::slice::{Slice, per_second};
use crate::error::Error;

/// As a recorder writes.
const BLOCK_BYTES: usize = 2 << 20;
const BLOCKS: usize = 8;
/// Small reads and writes under way.
const SMALL: usize = 32;
/// The longest wait for a write.
const PATIENCE: Duration = Duration::from_secs(1);

/// A disk: a file of ours, to be read and written.
#[derive(Debug)]
pub struct Disk<'a> {
    reader: &'a dyn ReadAt,
    writer: &'a mut dyn Device,
    blocks: Pool,
    rows: Pool,
    size_bytes: u64,
    /// Where writing in order goes on, and reading.
    written_to: u64,
    read_to: u64,
    completions: Vec<Completion>,
}

impl<'a> Disk<'a> {
    /// `path` is what it is called in messages.
    pub fn new(
        path: &Path,
        reader: &'a dyn ReadAt,
        writer: &'a mut dyn Device,
        random: &mut Random,
    ) -> Result<Self, Error> {
        let block = to_u64(BLOCK_BYTES);
        let size_bytes = reader.size_bytes().min(writer.size_bytes()) / block * block;
        if size_bytes < block * to_u64(BLOCKS) {
            return Err(Error::TooSmall { path: path.to_path_buf(), size_bytes });
        }
        let [blocks, rows] = [(BLOCKS, BLOCK_BYTES), (SMALL, ROW_SIZE)]
            .map(|(count, size)| filled(count, size, random));
        Ok(Self {
            reader,
            writer,
            blocks: blocks?,
            rows: rows?,
            size_bytes,
            written_to: 0,
            read_to: 0,
            completions: Vec::new(),
        })
    }

    pub(super) fn figure(
        &mut self,
        figure: Figure,
        slice: Slice<'_>,
        random: &mut Random,
    ) -> Result<f64, Error> {
        match figure {
            Figure::Write => self.written(slice),
            Figure::Read => self.read(slice),
            Figure::RandomRead => Ok(1e9 / self.random_reads(slice, 1, random)?),
            Figure::RandomReads => self.random_reads(slice, SMALL, random),
            _ => self.random_writes(slice, random),
        }
    }

    /// Bytes a second.
    fn written(&mut self, slice: Slice<'_>) -> Result<f64, Error> {
        let (size, block) = (self.size_bytes, to_u64(BLOCK_BYTES));
        let mut next = self.written_to;
        let mut place = || {
            let offset = next;
            next = (next + block) % size;
            offset
        };
        let pool = self.blocks.clone();
        let writes = self.writes(slice, &pool, &mut place);
        self.written_to = next;
        Ok(writes? * real(block))
    }

    fn random_writes(&mut self, slice: Slice<'_>, random: &mut Random) -> Result<f64, Error> {
        let rows = self.size_bytes / to_u64(ROW_SIZE);
        let pool = self.rows.clone();
        self.writes(slice, &pool, &mut || random.below(rows) * to_u64(ROW_SIZE))
    }

    /// Buffers of a pool written until the time is over, as many under way as there are: so many a
    /// second, the flush included.
    fn writes(
        &mut self,
        slice: Slice<'_>,
        pool: &Pool,
        place: &mut dyn FnMut() -> u64,
    ) -> Result<f64, Error> {
        let begin_ns = slice.now_ns();
        let (mut token, mut done) = (0, 0);
        loop {
            let is_over = between(begin_ns, slice.now_ns()) >= slice.ns;
            while !is_over && let Some(buffer) = pool.take() {
                let len = buffer.len();
                self.writer.submit_write(token, place(), buffer.freeze(), len);
                token += 1;
            }
            if self.writer.in_flight() == 0 {
                self.writer.flush()?;
                return Ok(per_second(real(done), between(begin_ns, slice.now_ns())));
            }
            self.writer.reap(Some(PATIENCE), &mut self.completions);
            for completion in self.completions.drain(..) {
                completion.result?;
                done += 1;
            }
        }
    }

    /// Bytes a second.
    fn read(&mut self, slice: Slice<'_>) -> Result<f64, Error> {
        let (size, block) = (self.size_bytes, to_u64(BLOCK_BYTES));
        let mut next = self.read_to;
        let mut place = || {
            let offset = next;
            next = (next + block) % size;
            offset
        };
        let reads = self.reads(slice, (&self.blocks, BLOCKS), &mut place);
        self.read_to = next;
        Ok(reads? * real(block))
    }

    fn random_reads(
        &self,
        slice: Slice<'_>,
        count: usize,
        random: &mut Random,
    ) -> Result<f64, Error> {
        let rows = self.size_bytes / to_u64(ROW_SIZE);
        let mut place = || random.below(rows) * to_u64(ROW_SIZE);
        self.reads(slice, (&self.rows, count), &mut place)
    }

    /// So many at a time, until the time is over: reads a second.
    fn reads(
        &self,
        slice: Slice<'_>,
        (pool, count): (&Pool, usize),
        place: &mut dyn FnMut() -> u64,
    ) -> Result<f64, Error> {
        let mut buffers: Vec<_> = core::iter::from_fn(|| pool.take()).take(count).collect();
        let (begin_ns, mut done) = (slice.now_ns(), 0.0);
        loop {
            let mut reads: Vec<Read<'_>> =
                buffers.iter_mut().map(|buffer| Read::new(place(), buffer)).collect();
            self.reader.read_many(&mut reads);
            reads.into_iter().try_for_each(|read| read.result)?;
            done += real_usize(count);
            let ns = between(begin_ns, slice.now_ns());
            if ns >= slice.ns {
                return Ok(per_second(done, ns));
            }
        }
    }
}

/// Buffers with content that no disk compresses.
fn filled(count: usize, size: usize, random: &mut Random) -> Result<Pool, device::Error> {
    let pool = Pool::new(count, size)?;
    let mut buffers: Vec<_> = core::iter::from_fn(|| pool.take()).collect();
    for buffer in &mut buffers {
        random.fill(buffer);
    }
    drop(buffers);
    Ok(pool)
}
