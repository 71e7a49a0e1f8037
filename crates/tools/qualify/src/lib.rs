//! What rate a target guarantees: the parts of a qualification, and the verdict.
//!
//! A part drives a target that it is given, by a clock that it is given, and so runs unchanged on
//! a disk, a file, or a modelled disk in virtual time. Nothing here prints or writes JSON;
//! `qualify-view` shows a [`Qualification`]. [`open`] decides what may be read and written, by what
//! `blockdev` finds on it: the default never writes to anything but a file of its own.
//!
//! Invariants: without a writer nothing is written; every byte written lies in
//! [`Qualification::written`]; a guaranteed rate is never above the mean, and joining writes of a
//! long run only lowers it.

mod bench;
mod choice;
mod compare;
mod contestants;
mod counted;
mod cpu;
mod diff;
mod doubts;
mod error;
mod extents;
mod files;
mod fill;
mod fio;
mod folder;
mod identity;
mod iops;
mod judged;
mod kept;
mod laps;
mod latency;
mod limits;
mod members;
mod mixed;
mod model;
mod noise;
mod number;
mod partial;
mod parts;
mod plan;
mod readers;
mod reads;
mod report;
mod run;
mod saved;
mod seen;
mod sizing;
mod stack;
mod step;
mod stream;
mod sweep;
mod target;
mod trace;
mod traffic;
mod verdict;

pub use bench::{Bench, Tell};
pub use blockdev::disk::Layer;
pub use blockdev::drive::{Drive, Health, Link, Recording, Unread};
pub use choice::{Choice, Given, Reason, choose};
pub use compare::{
    Comparison, Contender, Contest, Contestant, EffectFound, Fact, FactorFound, Measure,
    RateChange, RateWindow, Run, TwoModes, compare, compare_reports,
};
pub use contestants::{Entry, Field, Site};
pub use diff::{Change, Compared, Diff, Subject};
pub use error::Error;
pub use files::fio_arguments;
pub use fio::parse_fio;
pub use folder::Folder;
pub use identity::{Other, other, report_id};
pub use judged::{
    Answer, Asked, Doubt, Judged, Jump, JumpBy, Lost, Order, Share, Verdict, WithReaders,
};
pub use kept::{Beside, Together, VolumeQualification, beside};
pub use limits::{GroupLimit, LimitOf};
pub use members::{Lent, Members, Protection};
pub use model::modelled;
pub use plan::{
    Array, Ask, BLOCK_BYTES_MAX, ParsePartError, Part, Plan, Provided, ReadLoad, SweepPlan,
};
pub use readers::ReadResult;
pub use report::{
    CURVE_POOLS, Cause, Cpu, CpuStep, CurvePoint, ExtentStep, Extents, FileLap, Files, Fill,
    FioRun, Iops, IopsStep, Latency, Mixed, PartResult, Passes, Qualification, Reads, Sample,
    SlowWrite, Sweep, SweepStep, Target, TargetKind, Verified, Window, WrittenBytes,
};
pub use run::{go_on, resumable, run};
pub use saved::{
    FILE_VERSION, QualificationError, QualifyReport, parse_qualification, parse_qualify_report,
};
pub use seen::{Seen, seen};
pub use sizing::{Disk, Enough, MEMBERS_MAX, Need, Proposal, proposals, typical, typical_names};
pub use target::{Consent, Opened, least_size, open};
pub use trace::Trace;
pub use traffic::Mix;
pub use vitals::{Disturbance, Eighth, Latencies, Meanwhile};
