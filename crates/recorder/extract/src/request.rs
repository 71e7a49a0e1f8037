//! What an extract is asked for.

use core::ops::RangeInclusive;
use core::time::Duration;
use std::collections::BTreeSet;

use anonymise::Anonymiser;
use filters::PacketFilter;
use packet_output::Contents;
use query::Query;
use serde::{Deserialize, Serialize};

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
    pub slots: Option<RangeInclusive<u64>>,
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

/// What an extract is made for, in the words of who makes it. Nothing of it is checked. Fields are
/// keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CaseInfo {
    /// The case that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// Why it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Who has asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<String>,
}

impl CaseInfo {
    /// Bytes of UTF-8 that each of the texts may have.
    pub const BYTES_MAX: usize = 1024;

    /// What is said, each with its name.
    pub fn lines(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all =
            [("case", &self.case), ("purpose", &self.purpose), ("requester", &self.requester)];
        all.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?)))
    }
}

/// What an extract may have and no more. What is beyond is left out, and the answer says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Limits {
    /// Sessions, in the order of the ring.
    #[serde(rename = "limit", skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u64>,
    /// Packets, in the order of time.
    #[serde(rename = "limit_packets", skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Bytes that packets take in the output.
    #[serde(rename = "limit_bytes", skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
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
