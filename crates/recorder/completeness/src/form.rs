//! How JSON has what a statement stands on: stretches of time without the bounds that are none, and
//! gaps with their interfaces, without what is not known of them.
//!
//! Functions are those of serde's attributes, for reports of all jobs.

use format::directory::{Gap, GapCause};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use units::{InterfaceId, Times, Timestamp};

/// A stretch of time; a bound that is none is left out.
#[derive(Serialize)]
struct Between {
    #[serde(skip_serializing_if = "Option::is_none")]
    from_ns: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_ns: Option<Timestamp>,
}

impl Between {
    fn of((from, to): (Timestamp, Timestamp)) -> Self {
        Self {
            from_ns: Some(from).filter(|from| !is_no_begin(from)),
            to_ns: Some(to).filter(|to| !is_no_end(to)),
        }
    }
}

/// A gap, of which what is not known is left out.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(remote = "Gap")]
#[schemars(rename = "Gap")]
pub struct GapForm {
    cause: GapCause,
    /// Where the loss can be laid to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<InterfaceId>,
    /// Absent is unknown, not zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
    /// Absent is unknown, not zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(rename = "from_ns")]
    from: Timestamp,
    #[serde(rename = "to_ns")]
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

/// Whether a time stands for no bound.
pub fn is_no_begin(from: &Timestamp) -> bool {
    *from == Timestamp::MIN
}

/// The same of an end.
pub fn is_no_end(to: &Timestamp) -> bool {
    *to == Timestamp::MAX
}

/// First and last time; nothing where there are none.
///
/// # Errors
/// Those of the serializer.
pub fn hull<S: Serializer>(
    times: &Option<(Timestamp, Timestamp)>,
    to: S,
) -> Result<S::Ok, S::Error> {
    times.map(|(from, to)| Between { from_ns: Some(from), to_ns: Some(to) }).serialize(to)
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
