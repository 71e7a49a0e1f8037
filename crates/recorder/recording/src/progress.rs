//! A recording under way.

use std::collections::BTreeMap;

use events::{Disks, Event};
use format::head::StripeId;
use serde::{Deserialize, Serialize, Serializer};
use units::{MemberId, Sequence};

use crate::account::Account;
use crate::change::MemberChange;
use crate::handover::HandOver;

/// A recording under way. What has a default is not in the report of one that has ended, was not
/// said by programs of earlier versions, or is not read again.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Sums over all interfaces.
    #[serde(flatten)]
    pub total: Account,
    /// Packets stored for which the indexer has had no time so far.
    pub unindexed: u64,
    /// Packets that stay without an index, because they ended the indexer twice.
    #[serde(default)]
    pub left_out: u64,
    /// How often the indexer ended before its time, and another one was started.
    #[serde(default)]
    pub indexer_deaths: u64,
    /// Waits inside the recorder that are too long now: which thread, for what, how long.
    #[serde(default)]
    pub long_waits: Vec<String>,
    /// What became of the last hand-over to another recorder, which this one answers for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_over: Option<HandOver>,
    /// What became of members so far. Reports have those that the recording goes on without.
    #[serde(rename = "members_away", serialize_with = "away", skip_deserializing)]
    pub changes: Vec<MemberChange>,
    /// The newest things that happened and were said, the oldest of them first.
    #[serde(skip_deserializing)]
    pub events: Vec<Event>,
    /// All columns of the pool.
    pub pool_columns: usize,
    /// Free columns of the pool.
    #[serde(default)]
    pub pool_columns_free: usize,
    /// Bytes sent to all members.
    #[serde(default)]
    pub member_bytes: u64,
    /// Time since the start.
    pub elapsed_ns: i64,
    /// Everything up to here is durable.
    #[serde(skip_deserializing)]
    pub acknowledged: StripeId,
    /// What a whole ring holds at the rate of the last minute, in nanoseconds; `None` from files,
    /// whose packets do not come at their own pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds_ns: Option<i64>,
    /// One account per interface.
    pub interfaces: Vec<Account>,
    /// What the members did so far, beside what they were qualified for.
    pub disks: Disks,
    /// Oldest sequence that the ring holds for certain.
    #[serde(skip)]
    pub tail: Sequence,
    /// Slots that the ring holds for certain, once it has gone round.
    #[serde(skip)]
    pub slots: u64,
    /// What is to be said since the last call: what was decided when it began, and what happened.
    #[serde(skip)]
    pub news: Vec<Event>,
}

/// Of each member the last change, where the recording goes on without it.
fn away<S: Serializer>(changes: &[MemberChange], to: S) -> Result<S::Ok, S::Error> {
    let last: BTreeMap<MemberId, &MemberChange> =
        changes.iter().map(|change| (change.member, change)).collect();
    to.collect_seq(last.into_values().filter(|change| change.what.comeback().is_some()))
}
