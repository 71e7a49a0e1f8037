//! A request as it is kept, and what may become of it.

use evidence::ApprovedForm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::Timestamp;

use crate::party::Party;
use crate::request::{Approval, Asked};

/// A request that is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// The hash of what was asked.
    pub id: String,
    /// What was asked.
    pub asked: Asked,
    /// That somebody has approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// That somebody has ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
}

/// How a request was ended before its time. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Over {
    /// When, ns since 1970.
    pub at_ns: i64,
    /// Who.
    pub by: Party,
    /// In which part.
    pub how: OverBy,
    /// What they say of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Whose word has ended a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverBy {
    /// Who asked has withdrawn it.
    Withdrawn,
    /// Somebody who may approve has refused it, or has taken an approval back.
    Refused,
}

/// How a request stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RequestState")]
pub enum State {
    /// Nobody has approved it.
    Waiting,
    /// Somebody has.
    Approved,
    /// Its time is over.
    Expired,
    /// Who asked has withdrawn it.
    Withdrawn,
    /// It was refused.
    Refused,
}

impl State {
    /// All that there are.
    pub const ALL: [Self; 5] =
        [Self::Waiting, Self::Approved, Self::Expired, Self::Withdrawn, Self::Refused];

    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Approved => "approved",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Refused => "refused",
        }
    }
}

/// Why nothing becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Refused {
    /// One person would do both.
    #[error("who asked may not approve: that takes another person")]
    OnePerson,
    /// Somebody has approved it before.
    #[error("it was approved before")]
    Twice,
    /// Nobody has approved it.
    #[error("nobody has approved it so far")]
    NotApproved,
    /// Its time is over.
    #[error("it ended at {0}: ask again")]
    Expired(Timestamp),
    /// It was ended by somebody.
    #[error("it was {}: ask again", .0.word())]
    Over(State),
}

impl Kept {
    /// A request that was made just now.
    pub fn new(asked: Asked) -> Self {
        Self { id: asked.id(), asked, approval: None, over: None }
    }

    /// How it stands at a time. What has ended stays as it ended.
    pub fn state(&self, now: Timestamp) -> State {
        match (&self.over, &self.approval) {
            (Some(Over { how: OverBy::Withdrawn, .. }), _) => State::Withdrawn,
            (Some(Over { how: OverBy::Refused, .. }), _) => State::Refused,
            (None, _) if self.asked.until_ns <= now.0 => State::Expired,
            (None, Some(_)) => State::Approved,
            (None, None) => State::Waiting,
        }
    }

    /// When it is or was over.
    pub(crate) fn ends_ns(&self) -> i64 {
        self.over.as_ref().map_or(self.asked.until_ns, |over| over.at_ns)
    }

    /// Whether it is one that was made so, with an approval of it by somebody else.
    pub(crate) fn is_sound(&self) -> bool {
        let is_its = |approval: &Approval| {
            approval.request == self.id && !approval.approver.may_be(&self.asked.requester)
        };
        self.id == self.asked.id() && self.approval.as_ref().is_none_or(is_its)
    }

    fn is_open(&self, now: Timestamp) -> Result<(), Refused> {
        match self.state(now) {
            State::Waiting | State::Approved => Ok(()),
            State::Expired => Err(Refused::Expired(Timestamp(self.asked.until_ns))),
            state => Err(Refused::Over(state)),
        }
    }

    /// Whether somebody may approve it.
    ///
    /// # Errors
    /// When it was asked by the same person, is over, or was approved before.
    pub fn may_be_approved(&self, by: &Party, now: Timestamp) -> Result<(), Refused> {
        if self.asked.requester.may_be(by) {
            return Err(Refused::OnePerson);
        }
        self.is_open(now)?;
        if self.approval.is_some() { Err(Refused::Twice) } else { Ok(()) }
    }

    /// Whether something may be handed out for it, and by whose word.
    ///
    /// # Errors
    /// When it is over, or nobody has approved it.
    pub fn is_approved(&self, now: Timestamp) -> Result<&Approval, Refused> {
        self.is_open(now)?;
        self.approval.as_ref().ok_or(Refused::NotApproved)
    }

    /// Whether it may be ended.
    ///
    /// # Errors
    /// When it is over.
    pub fn may_be_ended(&self, now: Timestamp) -> Result<(), Refused> {
        self.is_open(now)
    }

    /// Who asked and who approved, as a manifest has it.
    pub fn named(&self) -> Option<ApprovedForm> {
        let approval = self.approval.as_ref()?;
        Some(ApprovedForm {
            request_blake3: self.id.clone(),
            approval_blake3: approval.blake3(),
            requested_by: self.asked.requester.to_string(),
            approved_by: approval.approver.to_string(),
        })
    }
}
