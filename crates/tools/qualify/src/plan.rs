//! What is to be measured, and how much of it.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use device::ROW_SIZE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number::to_u64;
use crate::traffic::Mix;

/// A part of a qualification.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Rates at places of the surface.
    Sweep,
    /// The surface written from the first byte to the last.
    Fill,
    /// Two fills that separate the effects of place, amount and time.
    Passes,
    /// The surface written in the order of a zone-levelled ring.
    Ring,
    /// Throughput by the bytes between two jumps.
    Extents,
    /// Latency of writes that arrive at a constant rate.
    Latency,
    /// Writing beside readers.
    Mixed,
    /// Latency of random reads.
    Reads,
    /// Random writes of 4 KiB.
    Iops,
    /// Files of a directory, written and removed as recorders do that use a file system.
    Files,
    /// Processor time for checksums and parity.
    Cpu,
}

/// What a target has for parts to use, besides being read.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Provided {
    /// It may be written to.
    pub writer: bool,
    /// There is a directory beside it in which files may be made.
    pub folder: bool,
    /// There is a processor whose time can be measured: a modelled disk has none.
    pub processor: bool,
}

impl Part {
    /// All of them, in the order in which they run.
    pub const ALL: [Self; 11] = [
        Self::Sweep,
        Self::Fill,
        Self::Passes,
        Self::Ring,
        Self::Extents,
        Self::Latency,
        Self::Mixed,
        Self::Reads,
        Self::Iops,
        Self::Files,
        Self::Cpu,
    ];

    /// Its name in the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Fill => "fill",
            Self::Passes => "passes",
            Self::Ring => "ring",
            Self::Extents => "extents",
            Self::Latency => "latency",
            Self::Mixed => "mixed",
            Self::Reads => "reads",
            Self::Iops => "iops",
            Self::Files => "files",
            Self::Cpu => "cpu",
        }
    }

    /// Whether it runs with what is provided; a sweep reads where nothing may be written.
    pub fn runs_with(self, provided: Provided) -> bool {
        match self {
            Self::Sweep | Self::Reads => true,
            Self::Files => provided.folder,
            Self::Cpu => provided.processor,
            Self::Fill
            | Self::Passes
            | Self::Ring
            | Self::Extents
            | Self::Latency
            | Self::Mixed
            | Self::Iops => provided.writer,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParsePartError;

impl fmt::Display for ParsePartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Part::ALL.map(Part::name).join(", ");
        write!(f, "no part of a qualification; there are {names}")
    }
}

impl core::error::Error for ParsePartError {}

impl FromStr for Part {
    type Err = ParsePartError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|part| part.name() == text).ok_or(ParsePartError)
    }
}

/// Most bytes of a block.
pub const BLOCK_BYTES_MAX: u64 = 64 << 20;

/// What is to be measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The parts, each once, in the order of [`Part::ALL`].
    pub parts: Vec<Part>,
    /// Bytes of a write, a multiple of [`ROW_SIZE`].
    pub block_bytes: u64,
    /// The sweep.
    pub sweep: SweepPlan,
    /// Bytes that the ring writes in one zone before it goes to the next.
    pub extent_bytes: u64,
    /// Zones of the ring: 1, or an even number.
    pub zones: u16,
    /// Bytes written for each size of extents, at most.
    pub extents_bytes: u64,
    /// How long writes arrive at a constant rate.
    pub latency_time: Duration,
    /// At how many bytes a second; `None` for four fifths of what the disk took before.
    pub latency_bytes_per_s: Option<u64>,
    /// Bytes written beside readers, and without them.
    pub mixed_bytes: u64,
    /// The readers; a fifth of what the target writes without them where the streams' rate is 0.
    pub readers: ReadLoad,
    /// Random reads.
    pub reads: u64,
    /// Their time, at most.
    pub reads_time: Duration,
    /// How long random writes go on with each number of them under way.
    pub iops_time: Duration,
    /// Bytes that the files of a directory may take.
    pub files_bytes: u64,
    /// How often as many bytes are written to it.
    pub file_laps: u32,
    /// Processor time that each computation is given.
    pub cpu_time: Duration,
    /// Blocks get a stamp of their own, and some are read back. A modelled disk that forgets what
    /// it holds cannot do that.
    pub verifies: bool,
}

/// What readers ask for.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReadLoad {
    /// Streams that read on from places of their own.
    pub streams: u32,
    /// Bytes a second of all streams together.
    pub stream_bytes_per_s: u64,
    /// Reads of 4 KiB at random places, a second.
    pub random_per_s: u64,
}

/// A sweep: the options of a probe by `dd`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SweepPlan {
    /// Bytes of a block, a multiple of [`ROW_SIZE`].
    pub block_bytes: u64,
    /// Blocks at each place; fewer where places would overlap.
    pub blocks: u64,
    /// Places, without the last one at the very end.
    pub steps: u64,
    /// Places are multiples of it, and it is one of [`ROW_SIZE`].
    pub align_bytes: u64,
}

/// Bytes from one jump to the next.
pub(crate) const EXTENT_SIZES: [u64; 8] =
    [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30];
/// Files there are at least.
pub(crate) const FILES_MIN: u64 = 32;
/// Writes under way at a time.
pub(crate) const IOPS_DEPTHS: [u32; 4] = [1, 8, 64, 256];
/// Zones of the ring on disks: docs/benchmarks.md, Zones.
pub(crate) const ZONES: u16 = 8;
/// Extents of a ring at least this large, so that a jump costs about 1 %.
const EXTENT_BYTES: u64 = 256 << 20;
/// A file of case A's recorder.
const FILE_BYTES: u64 = 1 << 30;
/// Files of less say nothing of a file system.
const FILES_BYTES_MIN: u64 = 256 << 20;
/// Laps of files: enough to see a file system age at all.
const FILE_LAPS: u32 = 3;
/// Writes of one lap of a modelled disk, at most: a lap in seconds.
const MODEL_WRITES: u64 = 1 << 20;

impl Plan {
    /// Minutes: what a first look at a target of `size_bytes` needs.
    pub fn quick(size_bytes: u64) -> Self {
        Self {
            parts: Part::ALL
                .into_iter()
                .filter(|part| !matches!(part, Part::Passes | Part::Ring))
                .collect(),
            sweep: SweepPlan { blocks: 64, ..SweepPlan::of_probe() },
            extents_bytes: 512 << 20,
            latency_time: Duration::from_secs(10),
            mixed_bytes: 2 << 30,
            reads: 20_000,
            reads_time: Duration::from_secs(10),
            iops_time: Duration::from_secs(2),
            files_bytes: (size_bytes / 4).max(size_bytes.min(FILES_BYTES_MIN)),
            cpu_time: Duration::from_millis(300),
            ..Self::full(size_bytes)
        }
    }

    /// Everything, over the whole surface.
    pub fn full(size_bytes: u64) -> Self {
        Self {
            parts: Part::ALL.to_vec(),
            block_bytes: 2 << 20,
            sweep: SweepPlan::of_probe(),
            extent_bytes: extent_bytes(size_bytes, 2 << 20),
            zones: ZONES,
            extents_bytes: 4 << 30,
            latency_time: Duration::from_mins(1),
            latency_bytes_per_s: None,
            mixed_bytes: 64 << 30,
            readers: ReadLoad { streams: 4, stream_bytes_per_s: 0, random_per_s: 20 },
            reads: 100_000,
            reads_time: Duration::from_mins(20),
            iops_time: Duration::from_secs(15),
            files_bytes: size_bytes,
            file_laps: FILE_LAPS,
            cpu_time: Duration::from_secs(1),
            verifies: true,
        }
    }

    /// Everything on a modelled disk: its time costs nothing, so only the number of writes is held
    /// in bounds.
    pub fn of_model(size_bytes: u64) -> Self {
        let block_bytes = size_bytes.div_ceil(MODEL_WRITES).next_multiple_of(2 << 20);
        let block_bytes = block_bytes.min(BLOCK_BYTES_MAX);
        Self {
            block_bytes,
            extent_bytes: extent_bytes(size_bytes, block_bytes),
            verifies: false,
            ..Self::full(size_bytes)
        }
    }

    /// With these parts only.
    #[must_use]
    pub fn only(self, parts: &[Part]) -> Self {
        let parts = Part::ALL.into_iter().filter(|part| parts.contains(part)).collect();
        Self { parts, ..self }
    }

    /// Bytes that are read and written of a target of `size_bytes`, where everything is possible.
    pub fn bytes(&self, size_bytes: u64, provided: Provided) -> u64 {
        self.parts_with(provided).map(|part| self.bytes_of(part, size_bytes)).sum()
    }

    /// The parts that run with what is provided.
    pub fn parts_with(&self, provided: Provided) -> impl Iterator<Item = Part> {
        self.parts.iter().copied().filter(move |part| part.runs_with(provided))
    }

    /// Bytes of each of the files: those of case A's recorder, or a 32nd of all, in whole blocks.
    pub fn file_bytes(&self) -> u64 {
        let bytes = (self.files_limit_bytes() / FILES_MIN).min(FILE_BYTES);
        bytes / self.block_bytes * self.block_bytes
    }

    /// Bytes of files at which the oldest goes: nine tenths are full.
    pub fn files_limit_bytes(&self) -> u64 {
        self.files_bytes / 10 * 9
    }

    fn bytes_of(&self, part: Part, size_bytes: u64) -> u64 {
        match part {
            Part::Sweep => self.sweep.bytes(size_bytes),
            Part::Fill | Part::Ring => size_bytes,
            Part::Passes => size_bytes.saturating_mul(2),
            Part::Extents => self.extents_bytes.min(size_bytes) * to_u64(EXTENT_SIZES.len()),
            Part::Mixed => self.mixed_bytes.min(size_bytes).saturating_mul(2),
            Part::Files => self.files_limit_bytes().saturating_mul(u64::from(self.file_laps)),
            // By time, not by bytes.
            Part::Latency | Part::Reads | Part::Iops | Part::Cpu => 0,
        }
    }

    /// Time of the parts that go by time.
    pub fn fixed_time(&self, provided: Provided) -> Duration {
        let depths = u32::try_from(IOPS_DEPTHS.len()).expect("a few");
        let of_part = |part| match part {
            Part::Latency | Part::Mixed => self.latency_time,
            Part::Reads => self.reads_time,
            Part::Iops => self.iops_time * depths,
            Part::Cpu => self.cpu_time * 3,
            _ => Duration::ZERO,
        };
        self.parts_with(provided).map(of_part).sum()
    }
}

impl SweepPlan {
    /// 21 places of 10 000 blocks of 2 MiB.
    pub fn of_probe() -> Self {
        Self { block_bytes: 2 << 20, blocks: 10_000, steps: 20, align_bytes: to_u64(ROW_SIZE) }
    }

    /// Blocks at each place that do not reach into the next one; 0 where there is no space for one.
    pub(crate) fn blocks_in(&self, size_bytes: u64) -> u64 {
        let room = size_bytes / (self.steps + 1) / self.block_bytes;
        self.blocks.min(room.max(u64::from(self.block_bytes <= size_bytes)))
    }

    fn bytes(&self, size_bytes: u64) -> u64 {
        self.blocks_in(size_bytes) * self.block_bytes * (self.steps + 1)
    }
}

/// Of 256 MiB, or a 32 768th of a large disk; a quarter of a zone at most.
fn extent_bytes(size_bytes: u64, block_bytes: u64) -> u64 {
    let most = size_bytes / (4 * u64::from(ZONES));
    let wanted = EXTENT_BYTES.max(size_bytes >> 15).min(most);
    (wanted / block_bytes).max(1) * block_bytes
}

/// What is asked of the parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    /// Bytes of memory between capture and disk.
    pub pool_bytes: u64,
    /// Frames of the traffic.
    pub mix: Mix,
    /// Bits a second on the link that the target is to carry.
    pub bits_per_s: Option<u64>,
    /// The disks that the target is made of, where it is known.
    pub array: Option<Array>,
}

/// Disks side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Array {
    /// Disks of data.
    pub data_disks: u32,
    /// As many may be lost.
    pub parity_disks: u8,
}
