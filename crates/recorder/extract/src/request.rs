//! What an extract is asked for.

use core::ops::RangeInclusive;
use core::time::Duration;
use std::collections::BTreeSet;

use anonymise::Anonymiser;
use filters::PacketFilter;
use manifest::{Asked, CaseInfo, Limits};
use packet_output::Contents;
use query::Query;
use units::Sequence;
use units::number::to_u64;

use crate::identity::RowId;
use crate::payload::Pattern;

/// The packets to extract.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Selects sessions; its times cut their packets too.
    pub query: &'a Query,
    /// The query as it was given.
    pub query_text: &'a str,
    /// All packets of the sessions selected, whatever their time.
    pub whole_sessions: bool,
    /// Packets in slots of these sequences alone: each packet of the ring lies in one.
    pub slots: Option<RangeInclusive<Sequence>>,
    /// These sessions alone, all of their rows.
    pub sessions: Option<SessionIds>,
    /// Not the packets of the rows selected, but all packets of the volume from so long before the
    /// start of each to so long after its end.
    pub around: Option<Duration>,
    /// Of the packets so far those that pass.
    pub packet_filter: Option<PacketFilter>,
    /// Of the packets so far those with this in their payload. With `whole_sessions`: all packets
    /// of the sessions that have such a one.
    pub payload: Option<Pattern>,
    /// Limits at which the extract stops.
    pub limits: Limits,
    /// Each packet gets the id of its session and its direction in that as a comment (pcapng).
    pub comments: bool,
    /// Packets get other addresses.
    pub anonymiser: Option<Anonymiser>,
    /// What it is made for, as the user says.
    pub case: CaseInfo,
}

impl<'a> Request<'a> {
    /// All packets in the query's times of the sessions that match.
    pub fn new(query: &'a Query, query_text: &'a str) -> Self {
        Self {
            query,
            query_text,
            whole_sessions: false,
            slots: None,
            sessions: None,
            around: None,
            packet_filter: None,
            payload: None,
            limits: Limits::default(),
            comments: false,
            anonymiser: None,
            case: CaseInfo::default(),
        }
    }

    /// The same as its manifest says it.
    pub(crate) fn asked(&self) -> Asked {
        let count = |ids: &SessionIds| to_u64(ids.len());
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Asked {
            whole_sessions: self.whole_sessions,
            sessions_named: self.sessions.as_ref().map(count),
            around_ns: self.around.map(nanos),
            packet_filter: self.packet_filter.as_ref().map(|it| it.expression().to_owned()),
            payload: self.payload.as_ref().map(Pattern::to_string),
            limits: self.limits,
            comments: self.comments,
            anonymised: self.anonymiser.is_some(),
            ..Asked::default()
        }
    }

    /// What its outputs hold.
    pub(crate) fn contents(&self) -> Contents<'_> {
        Contents {
            query: self.query_text,
            packets_max: self.limits.packets,
            bytes_max: self.limits.bytes,
            anonymiser: self.anonymiser.clone(),
        }
    }

    /// No session is left out, and the output needs no packet's session.
    pub(crate) fn is_everything(&self) -> bool {
        self.selects_everything()
            && !self.comments
            && !(self.payload.is_some() && self.whole_sessions)
    }

    /// Whatever session there is, it is in the answer.
    pub(crate) fn selects_everything(&self) -> bool {
        *self.query == Query::all()
            && self.sessions.is_none()
            && self.around.is_none()
            && self.limits.sessions.is_none()
    }

    /// And every packet of it.
    pub(crate) fn gives_everything(&self) -> bool {
        let Limits { packets, bytes, .. } = self.limits;
        let is_cut = packets.is_some() || bytes.is_some();
        self.selects_everything()
            && !is_cut
            && self.packet_filter.is_none()
            && self.payload.is_none()
    }
}

/// Ids of sessions, as `find` shows them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionIds(pub(crate) BTreeSet<RowId>);

impl SessionIds {
    /// Adds an id; false where the text is none.
    pub fn add(&mut self, text: &str) -> bool {
        RowId::parse(text).map(|id| self.0.insert(id)).is_some()
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_a_stripe_and_a_row() {
        let mut ids = SessionIds::default();
        assert!(ids.is_empty() && ids.add("4091.0-17") && ids.add("4091.0-17"));
        assert_eq!(ids.len(), 1);
        for text in ["", "17", "4091-17", "4091.0-", "4091.0-x", "4091.0.0-1", "{}"] {
            assert!(!ids.add(text), "{text}");
        }
    }
}
