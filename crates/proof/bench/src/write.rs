//! Writing synthetic full columns with parity onto several files of one disk, against fio; and
//! against the same writes without checksums, and without parity as well.

use core::ops::ControlFlow;
use core::time::Duration;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use device::{Buffer, Completion, Device, Pool, Shared};
use format::head::{HeadKey, Kind, Totals, VolumeId};
use format::superblock::MemberEntry;
use host::SystemClock;
use parity::Codec;
use serde_json::{Value, json};
use units::number::real;
use units::{ByteSize, Clock, Timestamp};
use volume::{CreateOptions, Identity};
use writer::{Filled, FilledColumn, Writer};

use crate::machine::{FileSystem, Workplace, settle};
use crate::outcome::Outcome;
use crate::program::{self, now_seconds};
use crate::statistics::Sample;

/// Against fio, and with checksums against without.
const GOAL: f64 = 0.9;
const GOAL_OF_SUMS: f64 = 0.97;
const PIECE_BYTES: u32 = 2 << 20;
/// Each side of a pair is the median of this many.
const RUNS: usize = 3;
/// Of the writer without checksums: what a volume of this shape does, too.
const WINDOW: usize = 32;
/// The writer's: a completed write waits no longer for others to share its flush.
const FLUSH_AFTER_SECONDS: f64 = 0.02;
/// Of a column: parity is computed over so much of all columns at a time, as the writer does.
const TILE_BYTES: usize = 16 << 10;
const WAIT: Duration = Duration::from_millis(1);

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// A directory on the disk to measure
    #[arg(long, default_value = ".")]
    directory: PathBuf,
    /// Data columns
    #[arg(long, default_value_t = 4)]
    data: u8,
    /// Parity columns
    #[arg(long, default_value_t = 2)]
    parity: u8,
    /// Size of each of the files, which are written from end to end before
    #[arg(long, default_value = "1G")]
    size: ByteSize,
    /// Stripes of a run
    #[arg(long, default_value_t = 400)]
    stripes: u32,
    /// Memory for columns
    #[arg(long, default_value = "128M")]
    pool: ByteSize,
    /// Groups of ours, fio, fio, ours
    #[arg(long, default_value_t = 5)]
    groups: u32,
}

/// What one way of writing did.
#[derive(Clone, Copy, Debug)]
struct Run {
    bytes: u64,
    flushes: u64,
    seconds: f64,
    cpu_seconds: f64,
}

impl Run {
    fn rate(&self) -> f64 {
        real(self.bytes) / self.seconds
    }

    fn json(&self) -> Value {
        json!({ "bytes": self.bytes, "bytes_per_s": self.rate(), "cpu_seconds": self.cpu_seconds,
                "flushes": self.flushes })
    }
}

/// The ways, each the median of [`RUNS`].
#[derive(Clone, Copy, Debug)]
struct Group {
    ours: Run,
    /// Parity, no checksums, no heads.
    unchecked: Run,
    /// Nothing is computed.
    plain: Run,
    fio_rate: f64,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    ensure!(options.groups > 0 && options.stripes > 0, "at least one group and one stripe");
    let written = u64::from(PIECE_BYTES) * (1 + u64::from(options.stripes));
    ensure!(written <= options.size.0, "files of {} do not hold so many stripes", options.size);
    let place = Workplace::new(&options.directory)?;
    let members = options.data + options.parity;
    let members: Vec<PathBuf> =
        (0..members).map(|number| place.path(&format!("member-{number}"))).collect();
    for path in &members {
        let file =
            device::CreateOptions { size_bytes: options.size.0, sparse: false, overwrite: false };
        device::create_file(path, &file, &mut |_, _| ControlFlow::Continue(()))?;
    }
    settle()?;
    // The first lap shows how often flushes come, and takes what is slow only once.
    let first = ours(options, &members)?;
    let groups = (0..options.groups)
        .map(|number| {
            let ours = || median(Run::rate, || ours(options, &members));
            let codec = Codec::new()?;
            let unchecked = || median(Run::rate, || bare(options, &members, Some(codec)));
            let plain = || median(Run::rate, || bare(options, &members, None));
            let fio = || median(|rate| *rate, || fio(options, &members, &first));
            // ABBA, over two groups.
            let (ours, unchecked, plain, fio_rate) = if number % 2 == 0 {
                (ours()?, unchecked()?, plain()?, fio()?)
            } else {
                let (fio_rate, plain, unchecked) = (fio()?, plain()?, unchecked()?);
                (ours()?, unchecked, plain, fio_rate)
            };
            Ok(Group { ours, unchecked, plain, fio_rate })
        })
        .collect::<Result<Vec<Group>>>()?;
    report(options, &place, &groups)
}

fn median<T>(rate: impl Fn(&T) -> f64, run: impl Fn() -> Result<T>) -> Result<T> {
    let mut runs = (0..RUNS).map(|_| run()).collect::<Result<Vec<T>>>()?;
    runs.sort_by(|left, right| rate(left).total_cmp(&rate(right)));
    Ok(runs.swap_remove(RUNS / 2))
}

fn open(members: &[PathBuf]) -> Result<Vec<Box<dyn Device>>> {
    let options = device::Options::default();
    let open = |path: &PathBuf| device::open(path, &options).map_err(Into::into);
    members.iter().map(open).collect()
}

/// Columns with something in them: a page that was never written is cheaper to send.
fn columns(options: &Options) -> Result<Pool> {
    let piece = usize::try_from(PIECE_BYTES)?;
    let count = usize::try_from(options.pool.0)? / piece;
    let pool = Pool::new(count, piece)?;
    let mut all: Vec<Buffer> = core::iter::from_fn(|| pool.take()).collect();
    let mut state = 1_u64;
    for word in all.iter_mut().flat_map(|buffer| buffer.as_chunks_mut::<8>().0) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *word = state.to_le_bytes();
    }
    Ok(pool)
}

/// The volume's own writer: from the first column to the last acknowledgement.
fn ours(options: &Options, members: &[PathBuf]) -> Result<Run> {
    let pool = columns(options)?;
    let mut devices = open(members)?;
    let identity = Identity {
        volume_id: VolumeId([1; 16]),
        head_key: HeadKey([2; 32]),
        members: members.iter().map(|_| MemberEntry::new([3; 16], String::new())).collect(),
        spares: Vec::new(),
        created: Timestamp(0),
    };
    let shape = CreateOptions {
        piece_bytes: PIECE_BYTES,
        parity_columns: options.parity,
        ..CreateOptions::default()
    };
    volume::create(&mut devices, &shape, &identity)?;
    let (mut writer, _) = writer::mount(devices, &writer::Opener::alone(&SystemClock))?;
    let before = writer.counters();
    let (cpu, start) = (cpu_seconds()?, now_seconds());
    for _ in 0..options.stripes {
        let stripe = filled(options, &pool, &mut writer)?;
        writer.append(stripe, &SystemClock)?;
    }
    writer.drain(&SystemClock)?;
    let seconds = now_seconds() - start;
    let counters = writer.counters();
    ensure!(writer.expelled().is_empty(), "a member was expelled");
    Ok(Run {
        bytes: counters.bytes - before.bytes,
        flushes: counters.flushes - before.flushes,
        seconds,
        cpu_seconds: cpu_seconds()? - cpu,
    })
}

fn filled(options: &Options, pool: &Pool, writer: &mut Writer) -> Result<Filled> {
    let mut columns = Vec::new();
    while columns.len() < usize::from(options.data) {
        match pool.take() {
            Some(buffer) => columns.push(FilledColumn { buffer, packets: 0 }),
            None => writer.poll(Some(WAIT), &SystemClock)?,
        }
    }
    let now = SystemClock.realtime();
    let rows = u16::try_from(PIECE_BYTES / 4096 - 1)?;
    let (kind, totals) = (Kind::Data, Totals::default());
    let (time_min, time_max, extra_blocks) = (now, now, false);
    Ok(Filled { columns, kind, rows, totals, time_min, time_max, extra_blocks })
}

/// The same writes and flushes of the same memory without checksums and heads; with a codec P and Q
/// are computed, without one nothing is.
fn bare(options: &Options, members: &[PathBuf], codec: Option<Codec>) -> Result<Run> {
    let pool = columns(options)?;
    let parity = Pool::new(usize::from(options.parity) * 8, usize::try_from(PIECE_BYTES)?)?;
    let mut lanes: Vec<Plain> = open(members)?.into_iter().map(Plain::new).collect();
    let (cpu, start) = (cpu_seconds()?, now_seconds());
    let mut bytes = 0;
    for stripe in 0..u64::from(options.stripes) {
        let offset = u64::from(PIECE_BYTES) * (1 + stripe);
        let mut data = taken(&pool, options.data, &mut lanes)?;
        let mut sums = taken(&parity, options.parity, &mut lanes)?;
        if let Some(codec) = codec {
            encode(codec, &data, &mut sums);
        }
        data.append(&mut sums);
        for (column, buffer) in data.into_iter().enumerate() {
            let member = (column + usize::try_from(stripe)?) % lanes.len();
            let lane = lanes.get_mut(member).context("a member for each column")?;
            lane.write(stripe, offset, buffer.freeze());
            bytes += u64::from(PIECE_BYTES);
        }
        Plain::poll(&mut lanes)?;
        while lanes.iter().any(|lane| lane.unflushed() >= WINDOW) {
            Plain::poll(&mut lanes)?;
        }
    }
    while lanes.iter().any(|lane| lane.unflushed() > 0) {
        for lane in &mut lanes {
            lane.enough = 1;
        }
        Plain::poll(&mut lanes)?;
    }
    let seconds = now_seconds() - start;
    let flushes = lanes.iter().map(|lane| lane.flushes).sum();
    Ok(Run { bytes, flushes, seconds, cpu_seconds: cpu_seconds()? - cpu })
}

/// So many columns, as soon as there are.
fn taken(pool: &Pool, count: u8, lanes: &mut [Plain]) -> Result<Vec<Buffer>> {
    let mut buffers = Vec::new();
    while buffers.len() < usize::from(count) {
        match pool.take() {
            Some(buffer) => buffers.push(buffer),
            None => Plain::poll(lanes)?,
        }
    }
    Ok(buffers)
}

/// P, and Q if there are two.
fn encode(codec: Codec, data: &[Buffer], parity: &mut [Buffer]) {
    let len = data.first().map_or(0, |buffer| buffer.len());
    for begin in (0..len).step_by(TILE_BYTES) {
        let range = begin..len.min(begin + TILE_BYTES);
        let tile: Vec<&[u8]> = data.iter().filter_map(|body| body.get(range.clone())).collect();
        let mut outputs = parity.iter_mut().filter_map(|body| body.get_mut(range.clone()));
        let (p, q) = (outputs.next(), outputs.next());
        codec.encode(&tile, p, q);
    }
}

/// A member without a volume.
struct Plain {
    device: Box<dyn Device>,
    under_way: usize,
    written: usize,
    flushing: usize,
    enough: usize,
    /// When the oldest write that no flush covers was done.
    oldest_seconds: Option<f64>,
    flushes: u64,
}

const FLUSH: u64 = 1 << 63;

impl Plain {
    fn new(device: Box<dyn Device>) -> Self {
        let (under_way, written, flushing, flushes) = (0, 0, 0, 0);
        let enough = WINDOW / 4;
        Self { device, under_way, written, flushing, enough, oldest_seconds: None, flushes }
    }

    fn unflushed(&self) -> usize {
        self.under_way + self.written + self.flushing
    }

    fn write(&mut self, token: u64, offset: u64, data: Shared) {
        self.under_way += 1;
        let len = data.len();
        self.device.submit_write(token, offset, data, len);
    }

    /// Takes completions of all, and waits a little where there are none.
    fn poll(lanes: &mut [Self]) -> Result<()> {
        let mut done: Vec<Completion> = Vec::new();
        let mut taken = 0;
        for lane in lanes.iter_mut() {
            lane.device.reap(None, &mut done);
            taken += done.len();
            lane.take(&mut done)?;
        }
        let busy = lanes.iter_mut().find(|lane| lane.device.in_flight() > 0);
        if let Some(lane) = busy.filter(|_| taken == 0) {
            lane.device.reap(Some(WAIT), &mut done);
            lane.take(&mut done)?;
        }
        Ok(())
    }

    fn take(&mut self, done: &mut Vec<Completion>) -> Result<()> {
        for completion in done.drain(..) {
            completion.result?;
            if completion.token & FLUSH == 0 {
                self.under_way -= 1;
                self.written += 1;
                self.oldest_seconds.get_or_insert_with(now_seconds);
            } else {
                self.flushing = 0;
                self.flushes += 1;
            }
        }
        let waited = |since: f64| now_seconds() - since >= FLUSH_AFTER_SECONDS;
        let is_due = self.written >= self.enough || self.oldest_seconds.is_some_and(waited);
        if self.flushing == 0 && self.written > 0 && is_due {
            self.oldest_seconds = None;
            self.flushing = core::mem::take(&mut self.written);
            self.device.submit_flush(FLUSH | self.flushes);
        }
        Ok(())
    }
}

/// Bytes a second by fio's own report: a job for each file, all at once, as often flushed as ours.
fn fio(options: &Options, members: &[PathBuf], ours: &Run) -> Result<f64> {
    let writes = u64::from(options.stripes);
    let flushes = ours.flushes.div_ceil(u64::try_from(members.len())?).max(1);
    let mut command = Command::new("fio");
    command
        .args(["--rw=write", "--ioengine=io_uring", "--iodepth=8", "--direct=1", "--thread=1"])
        .args(["--overwrite=1", "--end_fsync=1", "--output-format=json", "--group_reporting=1"])
        .arg(format!("--bs={PIECE_BYTES}"))
        .arg(format!("--size={}", writes * u64::from(PIECE_BYTES)))
        .arg(format!("--offset={PIECE_BYTES}"))
        .arg(format!("--fdatasync={}", writes.div_ceil(flushes)));
    for (number, member) in members.iter().enumerate() {
        command.arg(format!("--name=member-{number}"));
        command.arg(format!("--filename={}", member.display()));
    }
    let report = program::run(&mut command)?.json()?;
    let write = report.pointer("/jobs/0/write").context("fio reports no job")?;
    let number = |name: &str| {
        write.get(name).and_then(Value::as_u64).with_context(|| format!("fio reports no {name}"))
    };
    let bytes = writes * u64::from(PIECE_BYTES) * u64::try_from(members.len())?;
    ensure!(number("io_bytes")? == bytes, "fio wrote something else");
    Ok(real(bytes) / (real(number("runtime")?) / 1e3))
}

fn cpu_seconds() -> Result<f64> {
    let time = host::cpu_time()?;
    Ok((time.user + time.system).as_secs_f64())
}

fn report(options: &Options, place: &Workplace, groups: &[Group]) -> Result<Outcome> {
    let Options { data, parity, size, stripes, pool, .. } = options;
    let mut outcome = Outcome::new("write: full columns, checksums and parity, onto one disk");
    let FileSystem { kind, device } = &place.file_system;
    outcome.line(format!(
        "{stripes} stripes of {data}+{parity} pieces of 2 MiB into files of {size} ({kind} on \
         {device}), pool {pool}, medians of {RUNS}; rates count all columns and heads"
    ));
    outcome.line(
        "  group        MB/s: ours  unchecked  plain   fio  ours/fio  ours/unchecked  ours/plain",
    );
    for (number, group) in groups.iter().enumerate() {
        let Group { ours, unchecked, plain, fio_rate } = group;
        outcome.line(format!(
            "  {:5} {:17.0} {:10.0} {:6.0} {:5.0} {:9.2} {:15.2} {:11.2}",
            number + 1,
            ours.rate() / 1e6,
            unchecked.rate() / 1e6,
            plain.rate() / 1e6,
            fio_rate / 1e6,
            ours.rate() / fio_rate,
            ours.rate() / unchecked.rate(),
            ours.rate() / plain.rate(),
        ));
        for (way, run) in [("ours", ours), ("unchecked", unchecked), ("plain", plain)] {
            outcome.line(format!(
                "        {way}: {:.3} CPU s/GB, {} flushes",
                run.cpu_seconds / (real(run.bytes) / 1e9),
                run.flushes
            ));
        }
        outcome.push_json(
            "groups",
            json!({ "ours": ours.json(), "unchecked": unchecked.json(), "plain": plain.json(),
                    "fio_bytes_per_s": fio_rate }),
        );
    }
    let ratio = |of: fn(&Group) -> f64| Sample::new(groups.iter().map(of));
    let against_fio = ratio(|group| group.ours.rate() / group.fio_rate)?;
    outcome.judge("bytes a second against fio", &against_fio, GOAL);
    let against_unchecked = ratio(|group| group.ours.rate() / group.unchecked.rate())?;
    outcome.judge("with checksums against without", &against_unchecked, GOAL_OF_SUMS);
    let against_plain = ratio(|group| group.ours.rate() / group.plain.rate())?;
    outcome.line(format!(
        "with checksums and parity against nothing computed: {:.2}, spread {:.0} %",
        against_plain.median(),
        against_plain.spread() * 100.0
    ));
    outcome.not_proven("a rate of several disks: all files lie on one");
    outcome.not_proven("a rate of the recorder: nothing is captured, copied or indexed");
    Ok(outcome)
}
