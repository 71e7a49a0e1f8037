//! A directory as recorders fill it that use a file system: files written from first to last by
//! two writers, the oldest removed when nine tenths are full, round after round.
//!
//! The job is that of fio in case A: 2 MiB blocks, direct, 8 under way for each writer, files of
//! 1 GiB whose size is set before. What ages in a file system shows as a rate that falls from lap
//! to lap, and as files in more and more extents.

use core::time::Duration;
use std::ffi::OsString;
use std::path::Path;

use device::Device;

use crate::bench::Bench;
use crate::error::Error;
use crate::folder::Folder;
use crate::number::{between, to_u64};
use crate::plan::{FILES_MIN, Part, Plan};
use crate::report::{FileLap, Files};
use crate::stream::{DEPTH, Log, Stream};

/// Writers at a time.
pub(crate) const WRITERS: u32 = 2;
/// The longest wait before the user is asked again whether to go on.
const PATIENCE: Duration = Duration::from_millis(200);

/// A file that is being written.
struct Current {
    name: String,
    device: Box<dyn Device>,
    /// Bytes that were submitted.
    submitted: u64,
}

/// The directory at one moment.
struct State<'a> {
    folder: &'a dyn Folder,
    file_bytes: u64,
    /// Bytes that files may have before the oldest goes.
    limit_bytes: u64,
    used_bytes: u64,
    /// The oldest that is there, and how many were made: their names are numbers.
    first: u64,
    made: u64,
    lap: FileLap,
}

fn name(file: u64) -> String {
    format!("{file:08}.data")
}

impl State<'_> {
    /// Space first, then a file.
    fn next_file(&mut self) -> Result<Current, Error> {
        while self.used_bytes + self.file_bytes > self.limit_bytes {
            self.folder.remove(&name(self.first))?;
            self.first += 1;
            self.used_bytes -= self.file_bytes;
        }
        let name = name(self.made);
        self.made += 1;
        self.used_bytes += self.file_bytes;
        let device = self.folder.create(&name, self.file_bytes)?;
        Ok(Current { name, device, submitted: 0 })
    }

    fn close(&mut self, current: Current) -> Result<(), Error> {
        drop(current.device);
        let extents = self.folder.extents(&current.name)?;
        self.lap.files += 1;
        self.lap.extents = extents.map(|count| count + self.lap.extents.unwrap_or(0));
        self.lap.extents_max = extents.max(self.lap.extents_max);
        Ok(())
    }
}

/// One of the writers.
struct Writer {
    stream: Stream,
    current: Option<Current>,
}

impl Writer {
    /// Keeps blocks under way; a file that is written to its end is closed, and the next begun.
    fn feed(&mut self, state: &mut State<'_>, is_over: bool) -> Result<(), Error> {
        if let Some(current) = self
            .current
            .take_if(|current| self.stream.is_idle() && current.submitted >= state.file_bytes)
        {
            state.close(current)?;
        }
        if self.current.is_none() && !is_over {
            self.current = Some(state.next_file()?);
        }
        let Some(current) = self.current.as_mut() else { return Ok(()) };
        while !is_over && self.stream.has_room() && current.submitted < state.file_bytes {
            let len = self.stream.block_bytes().min(state.file_bytes - current.submitted);
            self.stream.write(current.device.as_mut(), current.submitted, len);
            current.submitted += len;
        }
        Ok(())
    }
}

/// Writes the planned laps.
pub(crate) fn run(bench: &mut Bench<'_>, plan: &Plan) -> Result<Files, Error> {
    let folder = bench.folder.expect("the part runs only with a directory");
    let (limit_bytes, file_bytes) = (plan.files_limit_bytes(), plan.file_bytes());
    if file_bytes < plan.block_bytes {
        let minimum_bytes = plan.block_bytes * FILES_MIN / 9 * 10;
        return Err(Error::TooSmall { part: Part::Files, minimum_bytes });
    }
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let stream = Stream::new(plan.block_bytes, DEPTH, plan.verifies, &mut bench.random)?;
        writers.push(Writer { stream, current: None });
    }
    let (used_bytes, first, made, lap) = (0, 0, 0, FileLap::default());
    let mut state = State { folder, file_bytes, limit_bytes, used_bytes, first, made, lap };
    let mut files =
        Files { budget_bytes: plan.files_bytes, file_bytes, writers: WRITERS, ..Files::default() };
    let total = limit_bytes * u64::from(plan.file_laps);
    let mut log = Log::new(bench.now_ns(), total, (plan.block_bytes, DEPTH * writers.len()));
    let (mut written, mut lap_ns) = (0, bench.now_ns());
    while written < total && !bench.is_interrupted {
        for writer in &mut writers {
            writer.feed(&mut state, false)?;
            written += reap(bench, writer, &mut log, written)?;
        }
        let lap_bytes = limit_bytes * (to_u64(files.laps.len()) + 1);
        if written >= lap_bytes.min(total) {
            let done = core::mem::take(&mut state.lap);
            let bytes = written - files.laps.iter().map(|lap| lap.bytes).sum::<u64>();
            files.laps.push(FileLap { bytes, ns: between(lap_ns, bench.now_ns()), ..done });
            lap_ns = bench.now_ns();
        }
        bench.is_over(Part::Files, written, total);
    }
    for writer in &mut writers {
        while !writer.stream.is_idle() {
            written += reap(bench, writer, &mut log, written)?;
        }
        writer.current = None;
    }
    drop(writers);
    // Empty again, for another program that writes the same there.
    for file in state.first..state.made {
        folder.remove(&name(file))?;
    }
    files.fill = log.finish(bench.now_ns());
    Ok(files)
}

/// The same job for fio, into this directory: as many bytes as a lap has, with nothing removed.
pub fn fio_arguments(plan: &Plan, directory: &Path) -> Vec<OsString> {
    let per_writer = plan.files_limit_bytes() / plan.file_bytes() / u64::from(WRITERS);
    let mut in_directory = OsString::from("--directory=");
    in_directory.push(directory);
    let numbers = [
        ("bs", plan.block_bytes),
        ("iodepth", to_u64(DEPTH)),
        ("filesize", plan.file_bytes()),
        ("nrfiles", per_writer),
        ("openfiles", 12),
        ("numjobs", u64::from(WRITERS)),
    ];
    let words = "--name=recorder --ioengine=libaio --rw=write --direct=1 --fallocate=truncate \
                 --group_reporting=1 --unique_filename=1 --output-format=json";
    let words = words.split_whitespace().map(OsString::from);
    let numbers = numbers.map(|(name, value)| OsString::from(format!("--{name}={value}")));
    words.chain(numbers).chain([in_directory]).collect()
}

/// Waits for a write of this writer; gives the bytes that were done.
fn reap(bench: &Bench<'_>, writer: &mut Writer, log: &mut Log, before: u64) -> Result<u64, Error> {
    let Some(current) = writer.current.as_mut() else { return Ok(0) };
    let (mut done, mut bytes) = (Vec::new(), 0);
    writer.stream.reap(current.device.as_mut(), PATIENCE, &mut done)?;
    let now_ns = bench.now_ns();
    for (_, mut done) in done {
        done.offset = before + bytes;
        bytes += done.len;
        log.add(now_ns, done);
    }
    Ok(bytes)
}
