//! How JSON has what a statement stands on: times in nanoseconds since 1970, volumes and stripes by
//! their names, and gaps as the directories of a volume have them.
//!
//! Functions are those of serde's attributes, for reports of all jobs.

use core::fmt::Display;

use format::directory::{Gap, GapCause};
use serde::{Serialize, Serializer};
use units::{Times, Timestamp};

/// A stretch of time; a bound that is none is left out.
#[derive(Serialize)]
struct Between {
    #[serde(skip_serializing_if = "Option::is_none")]
    from_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_ns: Option<i64>,
}

impl Between {
    fn of((from, to): (Timestamp, Timestamp)) -> Self {
        let from_ns = (!is_no_begin(&from)).then_some(from.0);
        Self { from_ns, to_ns: (!is_no_end(&to)).then_some(to.0) }
    }
}

/// A gap, of which what is not known is left out.
#[derive(Serialize)]
#[serde(remote = "Gap")]
struct GapForm {
    #[serde(serialize_with = "cause")]
    cause: GapCause,
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(rename = "from_ns", serialize_with = "ns")]
    from: Timestamp,
    #[serde(rename = "to_ns", serialize_with = "ns")]
    to: Timestamp,
}

/// Gaps with their causes, numbers and times; an unknown number is left out.
///
/// # Errors
/// Those of the serializer.
pub fn gaps<S: Serializer>(gaps: &[Gap], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct One<'a>(#[serde(serialize_with = "GapForm::serialize")] &'a Gap);
    to.collect_seq(gaps.iter().map(One))
}

/// A cause by its name.
///
/// # Errors
/// Those of the serializer.
pub fn cause<S: Serializer>(cause: &GapCause, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(cause.name())
}

/// Nanoseconds since 1970.
///
/// # Errors
/// Those of the serializer.
pub fn ns<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i64(at.0)
}

/// Something as people read it.
///
/// # Errors
/// Those of the serializer.
pub fn shown<S: Serializer>(it: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(it)
}

/// Whether a time stands for no bound.
pub fn is_no_begin(from: &Timestamp) -> bool {
    *from == Timestamp::MIN
}

/// The same of an end.
pub fn is_no_end(to: &Timestamp) -> bool {
    *to == Timestamp::MAX
}

#[expect(clippy::ref_option, reason = "serde hands over references")]
pub(crate) fn some_ns<S: Serializer>(at: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    at.map(|at| at.0).serialize(to)
}

/// First and last time; nothing where there are none.
///
/// # Errors
/// Those of the serializer.
pub fn hull<S: Serializer>(
    times: &Option<(Timestamp, Timestamp)>,
    to: S,
) -> Result<S::Ok, S::Error> {
    times.map(|(from, to)| Between { from_ns: Some(from.0), to_ns: Some(to.0) }).serialize(to)
}

pub(crate) fn times<S: Serializer>(times: &Times, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(times.iter().map(Between::of))
}

/// Times, each with what is said of it.
pub(crate) fn times_with<S: Serializer>(
    all: &[(impl Serialize, Times)],
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct With<'a, T> {
        why: &'a T,
        #[serde(flatten)]
        between: Between,
    }
    let each = all.iter().flat_map(|(why, times)| times.iter().map(move |it| (why, it)));
    to.collect_seq(each.map(|(why, it)| With { why, between: Between::of(it) }))
}

/// Where a stretch has its packets from.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
pub(crate) fn source<S: Serializer>(is_live: &bool, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(if *is_live { "interfaces" } else { "files" })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}
