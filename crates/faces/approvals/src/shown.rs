//! A request as it is shown, without the marks of credentials.

use schemars::JsonSchema;
use serde::Serialize;
use units::Timestamp;

use crate::kept::{Kept, State};
use crate::party::{Party, PartyKind};
use crate::request::Approval;

/// A request as it is shown. Fields are keys in JSON, in this order.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Request")]
pub struct Shown<'a> {
    id: &'a str,
    state: State,
    is_yours: bool,
    query: &'a str,
    /// What who asked saw at most; the query has it, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<&'a str>,
    volume: &'a str,
    volume_id: &'a str,
    only_range: bool,
    case: &'a str,
    purpose: &'a str,
    requester: ShownParty<'a>,
    made_ns: i64,
    until_ns: i64,
    /// Who has approved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    approver: Option<ShownParty<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approved_ns: Option<i64>,
    /// As the manifest of its extract has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_blake3: Option<String>,
    /// What the approver has said.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    /// Who has withdrawn or refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_by: Option<ShownParty<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_ns: Option<i64>,
    /// What they have said.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_note: Option<&'a str>,
}

/// Who asked, approved or ended it.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownParty<'a> {
    name: &'a str,
    kind: PartyKind,
}

impl<'a> ShownParty<'a> {
    fn of(party: &'a Party) -> Self {
        Self { name: &party.name, kind: party.kind }
    }
}

impl<'a> Shown<'a> {
    /// A request over the volume of this name, as `who` sees it at a time.
    pub fn of(kept: &'a Kept, volume: &'a str, (who, now): (&Party, Timestamp)) -> Self {
        let Kept { id, asked, approval, over } = kept;
        let (approval, over) = (approval.as_ref(), over.as_ref());
        Self {
            id,
            state: kept.state(now),
            is_yours: asked.requester == *who,
            query: &asked.query,
            filter: asked.filter.as_deref(),
            volume,
            volume_id: &asked.volume_id,
            only_range: asked.only_range,
            case: &asked.case,
            purpose: &asked.purpose,
            requester: ShownParty::of(&asked.requester),
            made_ns: asked.made_ns,
            until_ns: asked.until_ns,
            approver: approval.map(|approval| ShownParty::of(&approval.approver)),
            approved_ns: approval.map(|approval| approval.made_ns),
            approval_blake3: approval.map(Approval::blake3),
            note: approval.and_then(|approval| approval.note.as_deref()),
            ended_by: over.map(|over| ShownParty::of(&over.by)),
            ended_ns: over.map(|over| over.at_ns),
            ended_note: over.and_then(|over| over.note.as_deref()),
        }
    }
}
