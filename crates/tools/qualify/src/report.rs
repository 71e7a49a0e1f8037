//! What a qualification found: the parts, and what follows from them.

use core::ops::Range;

use blockdev::disk::Layer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Timestamp;

use crate::judged::{Answer, Doubt, Verdict};
use crate::limits::GroupLimit;
use crate::number::{rate, real, whole};
use crate::plan::{Part, ReadLoad};
use crate::readers::ReadResult;
use crate::trace::{POOLS_MIN, Trace};
use vitals::Eighth;
use vitals::Latencies;
use vitals::Meanwhile;

/// Pools of the curve that a fill gives, in bytes.
pub const CURVE_POOLS: [u64; 9] =
    [16 << 20, 64 << 20, 256 << 20, 512 << 20, 1 << 30, 2 << 30, 4 << 30, 8 << 30, 16 << 30];

/// A whole qualification.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Qualification {
    /// What was looked at.
    pub target: Target,
    /// Time at which the qualification began.
    #[serde(rename = "started_ns")]
    pub started: Timestamp,
    /// How long it took; of a modelled disk, in its own time.
    pub ns: u64,
    /// The parts in the order in which they ran.
    pub parts: Vec<PartResult>,
    /// What follows; `None` where no part says anything of a rate.
    pub verdict: Option<Verdict>,
    /// Where the target was written to: all bytes changed lie in these ranges.
    pub written: Vec<Range<u64>>,
    /// How much was written; `None` of a modelled disk, and where the kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<WrittenBytes>,
    /// What else the machine did; `None` of a modelled disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<Meanwhile>,
    /// It was broken off: parts may be missing.
    pub is_interrupted: bool,
    /// The part that was broken off and is not whole.
    #[serde(default)]
    pub unfinished: Option<Part>,
    /// What the user should know of how it was measured.
    pub notes: Vec<String>,
}

/// Bytes written, as the kernel counts them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WrittenBytes {
    /// By this program, and by programs that it ran: files of its own and what was removed again
    /// among it.
    pub own: u64,
    /// To the disk or partition that the target is on, by everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<u64>,
}

impl Qualification {
    /// Rows that did not hold what was written to them last.
    pub fn wrong_rows(&self) -> u64 {
        let fills = self.parts.iter().filter_map(|part| match part {
            PartResult::Fill(fill) => fill.verified,
            _ => None,
        });
        fills.map(|verified| verified.wrong).sum()
    }

    /// Whether a limit of a control group, and not the disk, is what was measured.
    pub fn is_limited(&self) -> bool {
        let doubts = self.verdict.iter().flat_map(|verdict| &verdict.doubts);
        doubts.into_iter().any(|doubt| matches!(doubt, Doubt::Limited { .. }))
    }

    /// Whether the target does what it was asked for: a rate, or, where none was given, to be
    /// measured to the end, for a guarantee. Rows that are not what was written are never right.
    pub fn answer(&self) -> Answer {
        let of_verdict = self.verdict.as_ref().map(|verdict| match verdict.asked {
            Some(asked) => asked.answer,
            None if verdict.doubts.is_empty() => Answer::Fits,
            None => Answer::CannotJudge,
        });
        match of_verdict.unwrap_or(Answer::Fits) {
            _ if self.wrong_rows() > 0 => Answer::TooSlow,
            Answer::Fits if self.is_interrupted => Answer::CannotJudge,
            answer => answer,
        }
    }
}

/// What a target is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A file made for it, and removed.
    OwnFile,
    /// A file that was there: read only.
    File,
    /// A block device, read only or, with consent, written.
    Device,
    /// A disk in memory that follows a profile.
    Model,
}

/// What was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// Kind of the target.
    pub kind: TargetKind,
    /// Its path; of a model, that of the profile.
    pub path: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// The devices below it, the uppermost first.
    pub layers: Vec<Layer>,
    /// What is written there lies in memory, and not on a disk.
    #[serde(default)]
    pub is_in_memory: bool,
    /// What control groups allow this process there.
    #[serde(default)]
    pub limits: Vec<GroupLimit>,
}

/// What one part found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum PartResult {
    /// Rates at places of the surface.
    #[schemars(with = "Sweep")]
    Sweep(Sweep),
    /// The surface written from the first byte to the last.
    #[schemars(with = "Fill")]
    Fill(Fill),
    /// Two fills, the second from the middle on.
    #[schemars(with = "Passes")]
    Passes(Passes),
    /// The surface written in the order of a zone-levelled ring.
    #[schemars(with = "Fill")]
    Ring(Fill),
    /// Throughput by the bytes between two jumps.
    #[schemars(with = "Extents")]
    Extents(Extents),
    /// Latency of writes that arrive at a constant rate.
    #[schemars(with = "Latency")]
    Latency(Latency),
    /// Writing beside readers.
    #[schemars(with = "Mixed")]
    Mixed(Box<Mixed>),
    /// Latency of random reads.
    #[schemars(with = "Reads")]
    Reads(Reads),
    /// Random writes of 4 KiB.
    #[schemars(with = "Iops")]
    Iops(Iops),
    /// Files of a directory, written and removed.
    #[schemars(with = "Files")]
    Files(Files),
    /// Processor time for checksums and parity.
    #[schemars(with = "Cpu")]
    Cpu(Cpu),
}

impl PartResult {
    /// Which part it is.
    pub fn part(&self) -> Part {
        match self {
            Self::Sweep(_) => Part::Sweep,
            Self::Fill(_) => Part::Fill,
            Self::Passes(_) => Part::Passes,
            Self::Ring(_) => Part::Ring,
            Self::Extents(_) => Part::Extents,
            Self::Latency(_) => Part::Latency,
            Self::Mixed(_) => Part::Mixed,
            Self::Reads(_) => Part::Reads,
            Self::Iops(_) => Part::Iops,
            Self::Files(_) => Part::Files,
            Self::Cpu(_) => Part::Cpu,
        }
    }

    /// The surface as it was written one behind the other, the first time; none of another part.
    pub(crate) fn run(&self) -> Option<&Fill> {
        match self {
            Self::Fill(fill) | Self::Ring(fill) => Some(fill),
            Self::Passes(passes) => Some(&passes.first),
            _ => None,
        }
    }
}

/// Rates at places of the surface, each from a run of blocks of its own.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Written, and not read.
    pub is_write: bool,
    /// Bytes of each block; one is under way at a time.
    pub block_bytes: u64,
    /// From the first byte on; the last ends where the target ends.
    pub steps: Vec<SweepStep>,
    /// Of reads at random places behind it, half took no longer: what a jump costs.
    #[serde(default)]
    pub jump_ns: Option<u64>,
}

impl Sweep {
    /// Time of its steps together.
    pub fn ns(&self) -> u64 {
        self.steps.iter().map(|step| step.ns).sum()
    }

    /// Bytes of its steps together.
    pub fn bytes(&self) -> u64 {
        self.steps.iter().map(|step| step.bytes).sum()
    }
}

/// One place of a sweep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SweepStep {
    /// Byte offset at which it begins.
    pub offset: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Time for these bytes.
    pub ns: u64,
}

impl SweepStep {
    /// Bytes a second.
    pub fn rate(&self) -> u64 {
        rate(self.bytes, self.ns)
    }
}

impl Sweep {
    /// Bytes a second at a place; a step speaks for its middle.
    pub fn rate_at(&self, offset: u64) -> f64 {
        let points = self.steps.iter().map(|step| (step.offset + step.bytes / 2, step.rate()));
        let after = points.clone().find(|(at, _)| *at >= offset);
        let before = points.rev().find(|(at, _)| *at < offset);
        match (before, after) {
            (Some((x0, r0)), Some((x1, r1))) => {
                let (r0, r1) = (real(r0), real(r1));
                r0 + (r1 - r0) * real(offset - x0) / real((x1 - x0).max(1))
            }
            (Some((_, rate)), None) | (None, Some((_, rate))) => real(rate),
            (None, None) => 0.0,
        }
    }
}

/// A stretch of writing.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Fill {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Blocks under way at a time.
    pub depth: u32,
    /// In order of time; about the same bytes in each.
    pub windows: Vec<Window>,
    /// Some of its writes, evenly from all of them.
    #[serde(default)]
    pub samples: Vec<Sample>,
    /// What it guarantees by the size of the pool.
    pub curve: Vec<CurvePoint>,
    /// Rows read back behind it that held what was written, and those that did not.
    pub verified: Option<Verified>,
    /// Its completions. Not kept in files: the curve is.
    #[serde(skip)]
    pub trace: Trace,
}

impl Fill {
    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.windows.iter().map(|window| window.bytes).sum()
    }

    /// Time in all.
    pub fn ns(&self) -> u64 {
        self.windows.last().map_or(0, |window| window.end_ns)
    }

    /// Bytes a second over all of it.
    pub fn rate(&self) -> u64 {
        rate(self.bytes(), self.ns())
    }

    /// The rate that is guaranteed with as much of a pool as so long a run proves, behind that
    /// pool. Of a fill that was read from a file it comes from its curve: with the largest pool of
    /// it that is not larger; without any, it is the rate of the slowest window.
    pub fn believed(&self, pool_bytes: u64) -> (u64, u64) {
        if self.trace.bytes() > 0 {
            return self.trace.believed(pool_bytes);
        }
        let pool_bytes = pool_bytes.min(self.bytes() / POOLS_MIN);
        let point = self.curve.iter().rev().find(|point| point.pool_bytes <= pool_bytes);
        let slowest = || (0, self.rates().min().unwrap_or(0));
        point.map_or_else(slowest, |point| (point.pool_bytes, point.bytes_per_s))
    }

    /// Bytes a second in each window.
    pub fn rates(&self) -> impl Iterator<Item = u64> {
        let begins = core::iter::once(0).chain(self.windows.iter().map(|window| window.end_ns));
        let windows = self.windows.iter().zip(begins);
        windows.map(|(window, begin_ns)| rate(window.bytes, window.end_ns.saturating_sub(begin_ns)))
    }
}

/// Some of a fill's writes, one after another.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// When the last of them was done, since the beginning of the fill.
    pub end_ns: u64,
    /// Bytes of these blocks.
    pub bytes: u64,
    /// The lowest byte of them.
    pub offset_low: u64,
    /// Behind the highest byte of them.
    pub offset_high: u64,
    /// The longest of them.
    pub latency_ns_max: u64,
}

/// When and where a write was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Since the beginning of the fill.
    pub end_ns: u64,
    /// Byte offset at which it begins.
    pub offset: u64,
}

/// What a pool of this size makes of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Bytes of memory between capture and disk.
    pub pool_bytes: u64,
    /// The highest constant arrival that it never overflows with.
    pub bytes_per_s: u64,
}

/// Rows that were read back behind a fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// Rows looked at.
    pub rows: u64,
    /// Those that did not hold what was written last.
    pub wrong: u64,
}

/// Two fills that lie differently in time: what follows the place, and what the bytes written.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Passes {
    /// From the first byte on.
    pub first: Fill,
    /// From the middle on, round the end.
    pub second: Fill,
    /// What explains the differences.
    pub cause: Cause,
    /// Rank correlation of both passes at the same places, in thousandths.
    pub by_place: i64,
    /// The same at the same amounts written.
    pub by_amount: i64,
    /// Rate of the second pass over that of the first, in thousandths.
    pub second_to_first: u64,
}

/// What the rate of a target follows.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Nothing: it is the same within a few percent.
    #[default]
    Steady,
    /// The place on the surface, as zones of a disk do.
    Place,
    /// The bytes written since the beginning of a pass, as a cache does that fills.
    Amount,
    /// The second pass was slower or faster as a whole: heat, wear, or what was there before.
    Pass,
    /// None of these alone.
    Unknown,
}

/// Throughput by the bytes between two jumps.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Extents {
    /// By extent, the smallest first.
    pub steps: Vec<ExtentStep>,
    /// Time that a jump costs, fitted.
    pub jump_ns: u64,
    /// Bytes a second without jumps, fitted.
    pub bytes_per_s: u64,
    /// The bytes between two jumps from which on 90 % of that is reached; `None` where jumps cost
    /// nothing that can be seen.
    pub knee_bytes: Option<u64>,
}

/// One size of extents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExtentStep {
    /// Bytes from one jump to the next.
    pub extent_bytes: u64,
    /// Number of extents.
    pub extents: u64,
    /// Time for all of them.
    pub ns: u64,
}

impl ExtentStep {
    /// Bytes a second.
    pub fn rate(&self) -> u64 {
        rate(self.extent_bytes.saturating_mul(self.extents), self.ns)
    }
}

/// Writes that arrive at a constant rate whatever the disk does.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Bytes a second that arrived.
    pub offered_bytes_per_s: u64,
    /// Length of the measurement.
    pub ns: u64,
    /// Bytes of a write.
    pub block_bytes: u64,
    /// From the arrival of a write to its end: waiting included.
    pub from_arrival: Latencies,
    /// From its submission to its end.
    pub of_device: Latencies,
    /// Percentiles from arrival in each eighth of the time.
    #[serde(default)]
    pub eighths: Vec<Eighth>,
    /// The most bytes that had arrived and were not written: the pool that this rate needs.
    pub backlog_bytes_max: u64,
    /// The longest writes.
    pub slowest: Vec<SlowWrite>,
}

/// One of the longest writes.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
pub struct SlowWrite {
    /// From submission to its end.
    pub latency_ns: u64,
    /// When it was done, since the beginning.
    pub end_ns: u64,
    /// Byte offset at which it begins.
    pub offset: u64,
}

/// Reads of 4 KiB at random places, one at a time.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reads {
    /// Latencies of all reads.
    pub latency: Latencies,
    /// Percentiles in each eighth of the time.
    #[serde(default)]
    pub eighths: Vec<Eighth>,
    /// Those that a cache answered: the faster ones, where a gap lies between them and the others.
    pub cache_hits: u64,
    /// The longest of those; `None` where there is no gap.
    pub hit_ns_max: Option<u64>,
}

/// Processor time by the columns of parity.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// Without parity, with P, with P and Q.
    pub steps: Vec<CpuStep>,
}

/// Checksums, and so many columns of parity.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CpuStep {
    /// Columns of data in a stripe.
    pub data_columns: u32,
    /// Columns of parity.
    pub parity_columns: u32,
    /// Bytes of data.
    pub bytes: u64,
    /// Processor time for them.
    pub cpu_ns: u64,
}

impl CpuStep {
    /// Nanoseconds of one processor for a gigabyte (10^9 bytes) of data.
    pub fn ns_per_gb(&self) -> u64 {
        whole(real(self.cpu_ns) * 1e9 / real(self.bytes.max(1)))
    }
}

/// Files written and removed.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Files {
    /// Bytes that the files may take, the tenth that stays free included.
    pub budget_bytes: u64,
    /// Bytes of a file.
    pub file_bytes: u64,
    /// Writers at a time.
    pub writers: u32,
    /// By lap, the first in an empty directory.
    pub laps: Vec<FileLap>,
    /// All laps as one stretch of writing; offsets are bytes written before.
    pub fill: Fill,
    /// The same job of fio behind it, into the directory that is empty again.
    pub fio: Option<FioRun>,
}

/// As many bytes as the directory takes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FileLap {
    /// Bytes written.
    pub bytes: u64,
    /// Time for these bytes.
    pub ns: u64,
    /// Files that were finished.
    pub files: u64,
    /// Extents of all of them; `None` where the file system does not say.
    pub extents: Option<u64>,
    /// Of the file that has most.
    pub extents_max: Option<u64>,
}

impl FileLap {
    /// Bytes a second.
    pub fn rate(&self) -> u64 {
        rate(self.bytes, self.ns)
    }
}

/// What fio said of the same job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FioRun {
    /// Its version, as it calls itself.
    pub version: String,
    /// Bytes written.
    pub bytes: u64,
    /// Time for these bytes.
    pub ns: u64,
}

impl FioRun {
    /// Bytes a second.
    pub fn rate(&self) -> u64 {
        rate(self.bytes, self.ns)
    }
}

/// Random writes of 4 KiB.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Iops {
    /// By the writes under way, the fewest first.
    pub steps: Vec<IopsStep>,
}

/// So many under way.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IopsStep {
    /// Writes under way at a time.
    pub depth: u32,
    /// Time for all of them, the flush at the end included.
    pub ns: u64,
    /// From submission to the end, of each.
    pub latency: Latencies,
    /// Those that ended in each eighth of the time.
    #[serde(default)]
    pub eighths: Vec<u64>,
}

impl IopsStep {
    /// Writes a second.
    pub fn writes_per_s(&self) -> u64 {
        rate(self.latency.count(), self.ns)
    }
}

impl Iops {
    /// The most writes a second of any step; 0 of none.
    pub fn peak(&self) -> u64 {
        self.steps.iter().map(IopsStep::writes_per_s).max().unwrap_or(0)
    }
}

/// Writing without and with readers.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Mixed {
    /// What the readers asked for.
    pub load: ReadLoad,
    /// The pool of both guaranteed rates.
    pub pool_bytes: u64,
    /// What the stretches guarantee without readers.
    pub alone_bytes_per_s: u64,
    /// What they guarantee beside them.
    pub beside_bytes_per_s: u64,
    /// As fast as it goes, without readers.
    pub alone: Fill,
    /// The same stretches beside them.
    pub beside: Fill,
    /// What they got meanwhile.
    pub reads: ReadResult,
    /// Writes at a constant rate beside them.
    pub latency: Latency,
    /// What they got then.
    pub reads_at_rate: ReadResult,
}
