//! A qualification as JSON, and back: docs/qualification.md has the schema.

use core::fmt;
use core::ops::Range;

use ::qualify::{self as q, PartResult, Qualification};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use units::Timestamp;

use crate::safe::json_pretty;

/// Of the schema. Readers take files of this version; fields that they do not know are passed over.
const VERSION: u32 = 1;

/// Something of the schema and what it stands for, each made of the other.
trait Mirror<T> {
    fn of(value: &T) -> Self;
    fn back(self) -> T;
}

impl<T, M: Mirror<T>> Mirror<Vec<T>> for Vec<M> {
    fn of(values: &Vec<T>) -> Self {
        values.iter().map(M::of).collect()
    }

    fn back(self) -> Vec<T> {
        self.into_iter().map(M::back).collect()
    }
}

impl<T, M: Mirror<T>> Mirror<Option<T>> for Option<M> {
    fn of(value: &Option<T>) -> Self {
        value.as_ref().map(M::of)
    }

    fn back(self) -> Option<T> {
        self.map(M::back)
    }
}

macro_rules! as_it_is {
    ($($kind:ty)*) => {$(
        impl Mirror<$kind> for $kind {
            fn of(value: &$kind) -> Self {
                value.clone()
            }

            fn back(self) -> $kind {
                self
            }
        }
    )*};
}

as_it_is!(u64 u32 u8 i64 i32 bool String);

/// A struct of the schema, field by field that of a report.
macro_rules! mirror {
    ($($name:ident of $kind:ty {
        $($(#[$attribute:meta])* $field:ident: $shape:ty,)*
        $(; $rest:ident: $value:expr)?
    })*) => {$(
        #[derive(Serialize, Deserialize)]
        struct $name {
            $($(#[$attribute])* $field: $shape,)*
        }

        impl Mirror<$kind> for $name {
            fn of(value: &$kind) -> Self {
                Self { $($field: Mirror::of(&value.$field),)* }
            }

            fn back(self) -> $kind {
                type Kind = $kind;
                Kind { $($field: self.$field.back(),)* $($rest: $value)? }
            }
        }
    )*};
}

/// Words of the schema for the values of an enumeration.
macro_rules! words {
    ($($name:ident of $kind:ty { $($value:ident,)* })*) => {$(
        #[derive(Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum $name {
            $($value,)*
        }

        impl Mirror<$kind> for $name {
            fn of(value: &$kind) -> Self {
                match value {
                    $(<$kind>::$value => Self::$value,)*
                }
            }

            fn back(self) -> $kind {
                match self {
                    $(Self::$value => <$kind>::$value,)*
                }
            }
        }
    )*};
}

mod compare;

pub use compare::comparison_json;

words! {
    KindJson of q::TargetKind { OwnFile, File, Device, Model, }
    RecordingJson of q::Recording { DriveManaged, HostAware, HostManaged, NotTold, }
    PartJson of q::Part {
        Sweep, Fill, Passes, Ring, Extents, Latency, Mixed, Reads, Iops, Files, Cpu,
    }
    OrderJson of q::Order { FirstToLast, ZoneLevelled, }
    AnswerJson of q::Answer { Fits, TooSlow, CannotJudge, }
    CauseJson of q::Cause { Steady, Place, Amount, Pass, Unknown, }
}

mirror! {
    UnreadJson of q::Unread { what: String, needs: String, }
    LinkJson of q::Link { speed: String, speed_most: String, width: u32, width_most: u32, }
    HealthJson of q::Health {
        is_failing: bool,
        used_percent: Option<u64>,
        media_errors: Option<u64>,
        reallocated: Option<u64>,
        pending: Option<u64>,
        power_on_hours: Option<u64>,
        written_bytes: Option<u64>,
        unsafe_shutdowns: Option<u64>,
    }
    DriveJson of q::Drive {
        temperature_c: Option<i32>,
        health: Option<HealthJson>,
        link: Option<LinkJson>,
        turns_per_min: Option<u32>,
        recording: Option<RecordingJson>,
        unread: Vec<UnreadJson>,
    }
    LayerJson of q::Layer {
        name: String,
        size_bytes: u64,
        model: Option<String>,
        serial: Option<String>,
        firmware: Option<String>,
        is_rotational: bool,
        write_cache: Option<String>,
        scheduler: Option<String>,
        drive: Option<DriveJson>,
    }
    TargetJson of q::Target {
        kind: KindJson,
        path: String,
        size_bytes: u64,
        layers: Vec<LayerJson>,
    }
    SweepStepJson of q::SweepStep { offset: u64, bytes: u64, ns: u64, }
    SweepJson of q::Sweep { is_write: bool, block_bytes: u64, steps: Vec<SweepStepJson>, }
    WindowJson of q::Window {
        end_ns: u64,
        bytes: u64,
        offset_low: u64,
        offset_high: u64,
        latency_ns_max: u64,
    }
    SampleJson of q::Sample { end_ns: u64, offset: u64, }
    PointJson of q::CurvePoint { pool_bytes: u64, bytes_per_s: u64, }
    VerifiedJson of q::Verified { rows: u64, wrong: u64, }
    FillJson of q::Fill {
        block_bytes: u64,
        depth: u32,
        windows: Vec<WindowJson>,
        #[serde(default)]
        samples: Vec<SampleJson>,
        curve: Vec<PointJson>,
        verified: Option<VerifiedJson>,
        ; trace: q::Trace::default()
    }
    PassesJson of q::Passes {
        first: FillJson,
        second: FillJson,
        cause: CauseJson,
        by_place: i64,
        by_amount: i64,
        second_to_first: u64,
    }
    ExtentStepJson of q::ExtentStep { extent_bytes: u64, extents: u64, ns: u64, }
    ExtentsJson of q::Extents {
        steps: Vec<ExtentStepJson>,
        jump_ns: u64,
        bytes_per_s: u64,
        knee_bytes: Option<u64>,
    }
    SlowWriteJson of q::SlowWrite { latency_ns: u64, end_ns: u64, offset: u64, }
    LatencyJson of q::Latency {
        offered_bytes_per_s: u64,
        ns: u64,
        block_bytes: u64,
        from_arrival: LatenciesJson,
        of_device: LatenciesJson,
        backlog_bytes_max: u64,
        slowest: Vec<SlowWriteJson>,
    }
    ReadLoadJson of q::ReadLoad {
        streams: u32,
        stream_bytes_per_s: u64,
        random_per_s: u64,
    }
    ReadResultJson of q::ReadResult {
        stream_bytes: u64,
        ns: u64,
        streams: LatenciesJson,
        random: LatenciesJson,
    }
    MixedJson of q::Mixed {
        load: ReadLoadJson,
        pool_bytes: u64,
        alone_bytes_per_s: u64,
        beside_bytes_per_s: u64,
        alone: FillJson,
        beside: FillJson,
        reads: ReadResultJson,
        latency: LatencyJson,
        reads_at_rate: ReadResultJson,
    }
    IopsStepJson of q::IopsStep { depth: u32, ns: u64, latency: LatenciesJson, }
    IopsJson of q::Iops { steps: Vec<IopsStepJson>, }
    FileLapJson of q::FileLap {
        bytes: u64,
        ns: u64,
        files: u64,
        extents: Option<u64>,
        extents_max: Option<u64>,
    }
    FioJson of q::FioRun { version: String, bytes: u64, ns: u64, }
    FilesJson of q::Files {
        budget_bytes: u64,
        file_bytes: u64,
        writers: u32,
        laps: Vec<FileLapJson>,
        fill: FillJson,
        fio: Option<FioJson>,
    }
    CpuStepJson of q::CpuStep {
        data_columns: u32,
        parity_columns: u32,
        bytes: u64,
        cpu_ns: u64,
    }
    CpuJson of q::Cpu { steps: Vec<CpuStepJson>, }
    ReadsJson of q::Reads {
        latency: LatenciesJson,
        cache_hits: u64,
        hit_ns_max: Option<u64>,
    }
    MixJson of q::Mix { name: String, frames: u64, frame_bytes: u64, packet_bytes: u64, }
    JudgedJson of q::Judged {
        basis: PartJson,
        order: OrderJson,
        is_computed: bool,
        is_by_reading: bool,
        pool_bytes: u64,
        guaranteed_bytes_per_s: u64,
        mean_bytes_per_s: u64,
        minimum_bytes_per_s: u64,
        slow_ns: Option<u64>,
        fast_ns: Option<u64>,
    }
    AskedJson of q::Asked {
        bits_per_s: u64,
        needed_bytes_per_s: u64,
        margin_permille: i64,
        answer: AnswerJson,
    }
    ShareJson of q::Share {
        percent: u8,
        size_bytes: u64,
        order: OrderJson,
        is_computed: bool,
        guaranteed_bytes_per_s: u64,
        mean_bytes_per_s: u64,
        minimum_bytes_per_s: u64,
    }
    LostJson of q::Lost {
        members: u8,
        guaranteed_bytes_per_s: Option<u64>,
        rebuild_ns: Option<u64>,
    }
    WithReadersJson of q::WithReaders {
        pool_bytes: u64,
        read_bytes_per_s: u64,
        reads_per_s: u64,
        guaranteed_bytes_per_s: u64,
        guaranteed_traffic_bit_per_s: u64,
    }
    VerdictJson of q::Verdict {
        judged: Vec<JudgedJson>,
        pool_bytes: u64,
        mix: MixJson,
        guaranteed_traffic_bit_per_s: u64,
        with_readers: Option<WithReadersJson>,
        asked: Option<AskedJson>,
        #[serde(default)]
        shares: Vec<ShareJson>,
        #[serde(default)]
        lost: Vec<LostJson>,
    }
}

#[derive(Serialize, Deserialize)]
struct LatenciesJson {
    count: u64,
    min_ns: u64,
    mean_ns: u64,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    p99_9_ns: Option<u64>,
    p99_99_ns: Option<u64>,
    max_ns: u64,
    /// The longest latency of each bucket, and its count.
    histogram: Vec<(u64, u64)>,
}

impl Mirror<q::Latencies> for LatenciesJson {
    fn of(value: &q::Latencies) -> Self {
        Self {
            count: value.count(),
            min_ns: value.min_ns(),
            mean_ns: value.mean_ns(),
            p50_ns: value.quantile_ns(500_000),
            p90_ns: value.quantile_ns(900_000),
            p99_ns: value.quantile_ns(990_000),
            p99_9_ns: value.quantile_ns(999_000),
            p99_99_ns: value.quantile_ns(999_900),
            max_ns: value.max_ns(),
            histogram: value.buckets().collect(),
        }
    }

    fn back(self) -> q::Latencies {
        q::Latencies::from_buckets(&self.histogram, (self.min_ns, self.max_ns, self.mean_ns))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
enum PartResultJson {
    Sweep(SweepJson),
    Fill(FillJson),
    Passes(PassesJson),
    Ring(FillJson),
    Extents(ExtentsJson),
    Latency(LatencyJson),
    Mixed(Box<MixedJson>),
    Reads(ReadsJson),
    Iops(IopsJson),
    Files(FilesJson),
    Cpu(CpuJson),
}

impl Mirror<PartResult> for PartResultJson {
    fn of(value: &PartResult) -> Self {
        match value {
            PartResult::Sweep(sweep) => Self::Sweep(Mirror::of(sweep)),
            PartResult::Fill(fill) => Self::Fill(Mirror::of(fill)),
            PartResult::Passes(passes) => Self::Passes(Mirror::of(passes)),
            PartResult::Ring(fill) => Self::Ring(Mirror::of(fill)),
            PartResult::Extents(extents) => Self::Extents(Mirror::of(extents)),
            PartResult::Latency(latency) => Self::Latency(Mirror::of(latency)),
            PartResult::Mixed(mixed) => Self::Mixed(Box::new(Mirror::of(&**mixed))),
            PartResult::Reads(reads) => Self::Reads(Mirror::of(reads)),
            PartResult::Iops(iops) => Self::Iops(Mirror::of(iops)),
            PartResult::Files(files) => Self::Files(Mirror::of(files)),
            PartResult::Cpu(cpu) => Self::Cpu(Mirror::of(cpu)),
        }
    }

    fn back(self) -> PartResult {
        match self {
            Self::Sweep(sweep) => PartResult::Sweep(sweep.back()),
            Self::Fill(fill) => PartResult::Fill(fill.back()),
            Self::Passes(passes) => PartResult::Passes(passes.back()),
            Self::Ring(fill) => PartResult::Ring(fill.back()),
            Self::Extents(extents) => PartResult::Extents(extents.back()),
            Self::Latency(latency) => PartResult::Latency(latency.back()),
            Self::Mixed(mixed) => PartResult::Mixed(Box::new(mixed.back())),
            Self::Reads(reads) => PartResult::Reads(reads.back()),
            Self::Iops(iops) => PartResult::Iops(iops.back()),
            Self::Files(files) => PartResult::Files(files.back()),
            Self::Cpu(cpu) => PartResult::Cpu(cpu.back()),
        }
    }
}

/// What follows from the parts, beside what the disk claims: computed anew by every reader.
#[derive(Serialize, Default)]
struct SeenJson {
    turns: Option<bool>,
    access_ns: Option<u64>,
    has_cache: Option<bool>,
    is_shingled: Option<bool>,
}

impl SeenJson {
    fn new(seen: q::Seen) -> Self {
        let q::Seen { turns, access_ns, has_cache, is_shingled } = seen;
        Self { turns, access_ns, has_cache, is_shingled }
    }
}

/// The first fields are those that a script asks for; they repeat the verdict.
#[derive(Serialize, Deserialize)]
struct QualificationJson {
    version: u32,
    guaranteed_bytes_per_s: Option<u64>,
    mean_bytes_per_s: Option<u64>,
    minimum_bytes_per_s: Option<u64>,
    guaranteed_traffic_bit_per_s: Option<u64>,
    target: TargetJson,
    started_ns: i64,
    ns: u64,
    verdict: Option<VerdictJson>,
    #[serde(skip_deserializing)]
    seen: SeenJson,
    parts: Vec<PartResultJson>,
    written: Vec<Range<u64>>,
    is_interrupted: bool,
    unfinished: Option<PartJson>,
    notes: Vec<String>,
}

/// A qualification, as JSON.
pub fn qualification_json(found: &Qualification) -> String {
    let first = found.verdict.as_ref().and_then(|verdict| verdict.judged.first());
    let traffic = found.verdict.as_ref().map(|verdict| verdict.guaranteed_traffic_bit_per_s);
    json_pretty(&QualificationJson {
        version: VERSION,
        guaranteed_bytes_per_s: first.map(|judged| judged.guaranteed_bytes_per_s),
        mean_bytes_per_s: first.map(|judged| judged.mean_bytes_per_s),
        minimum_bytes_per_s: first.map(|judged| judged.minimum_bytes_per_s),
        guaranteed_traffic_bit_per_s: traffic,
        target: Mirror::of(&found.target),
        started_ns: found.started.0,
        ns: found.ns,
        verdict: Mirror::of(&found.verdict),
        seen: SeenJson::new(q::seen(&found.parts)),
        parts: Mirror::of(&found.parts),
        written: found.written.clone(),
        is_interrupted: found.is_interrupted,
        unfinished: Mirror::of(&found.unfinished),
        notes: found.notes.clone(),
    })
}

/// The text is no qualification.
#[derive(Debug)]
pub enum QualificationError {
    /// Not JSON, or without the fields of one.
    Form(serde_json::Error),
    /// Written by another version of the program.
    Version(u32),
    /// Of several targets.
    Comparison,
}

impl fmt::Display for QualificationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(error) => write!(f, "not the file of a qualification: {error}"),
            Self::Version(found) => {
                write!(f, "a qualification of version {found}; this program reads {VERSION}")
            }
            Self::Comparison => f.write_str("a comparison, and no report of one target"),
        }
    }
}

impl core::error::Error for QualificationError {}

/// What a report is of.
#[derive(Clone, PartialEq, Debug)]
pub enum QualifyReport {
    /// One target.
    Qualification(Box<Qualification>),
    /// Several.
    Comparison(q::Comparison),
}

/// Reads what [`qualification_json`] or [`comparison_json`] wrote.
pub fn parse_qualify_report(text: &str) -> Result<QualifyReport, QualificationError> {
    #[derive(Deserialize)]
    struct KindJson {
        comparison: Option<IgnoredAny>,
    }
    let form = QualificationError::Form;
    let version = crate::version_of(text).map_err(form)?;
    if version != VERSION {
        return Err(QualificationError::Version(version));
    }
    let kind: KindJson = serde_json::from_str(text).map_err(form)?;
    if kind.comparison.is_some() {
        return compare::read_comparison(text).map(QualifyReport::Comparison).map_err(form);
    }
    let read: QualificationJson = serde_json::from_str(text).map_err(form)?;
    Ok(QualifyReport::Qualification(Box::new(read.into())))
}

/// Reads what [`qualification_json`] wrote.
pub fn parse_qualification(text: &str) -> Result<Qualification, QualificationError> {
    match parse_qualify_report(text)? {
        QualifyReport::Qualification(found) => Ok(*found),
        QualifyReport::Comparison(_) => Err(QualificationError::Comparison),
    }
}

impl From<QualificationJson> for Qualification {
    fn from(read: QualificationJson) -> Self {
        Self {
            target: read.target.back(),
            started: Timestamp(read.started_ns),
            ns: read.ns,
            parts: read.parts.back(),
            verdict: read.verdict.back(),
            written: read.written,
            is_interrupted: read.is_interrupted,
            unfinished: read.unfinished.back(),
            notes: read.notes,
        }
    }
}
