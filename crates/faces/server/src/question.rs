//! What a worker is asked, what it says at the end, and the place where a page of an answer ends.
//!
//! Both go as a line of JSON over a private socket between two processes of one program; the bytes
//! of an answer go over another one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use units::hex;

/// A question to one volume.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    /// Any member of the volume.
    pub(crate) volume: PathBuf,
    /// Where index files are cached, if not in the user's cache.
    pub(crate) index_dir: Option<PathBuf>,
    pub(crate) what: What,
    /// When the answer has to end, in time since boot.
    pub(crate) until_ns: i64,
    /// Address space that the worker may take.
    pub(crate) memory_bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum What {
    Sessions(SessionsWanted),
    Extract(ExtractWanted),
    /// How the volume and its recorder stand.
    Status,
}

/// Sessions, a line of JSON each, by their start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SessionsWanted {
    pub(crate) query: String,
    /// What relative times count from.
    pub(crate) now_ns: i64,
    /// Only those behind this place.
    pub(crate) after: Option<Cursor>,
    pub(crate) limit: Option<u64>,
    pub(crate) bytes_max: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExtractWanted {
    pub(crate) query: String,
    pub(crate) now_ns: i64,
    pub(crate) form: Form,
    /// Of the sessions' packets only those in the query's times.
    pub(crate) only_range: bool,
    pub(crate) packets_max: Option<u64>,
    pub(crate) bytes_max: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Form {
    Pcapng,
    /// Packets of other link types than the first's get its link layer.
    Pcap,
}

/// What a worker says when it has written its last byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Ending {
    Answered(Box<Answered>),
    Refused(Refused),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answered {
    /// Sessions or packets.
    pub(crate) count: u64,
    pub(crate) statement: Statement,
    /// Where the next page begins, if something may be behind the last session.
    pub(crate) next: Option<Cursor>,
    /// Of an extract, unless it is too long to be kept.
    pub(crate) manifest: Option<String>,
}

/// What is missing from an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Statement {
    /// `complete`, `incomplete` or `unknown`.
    pub(crate) state: String,
    /// The same in words, as `find` and `extract` print it.
    pub(crate) text: String,
    /// What cut the answer: `time`, `bytes` or `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cut_by: Option<String>,
    /// What a recorder did not do for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    /// As in the manifest of an extract.
    pub(crate) completeness: serde_json::Value,
}

/// Why there is no answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Refused {
    /// The volume is too damaged, and not only out of reach.
    pub(crate) is_damage: bool,
    pub(crate) detail: String,
}

/// The last session of a page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Cursor {
    pub(crate) start_ns: i64,
    /// Its id, which orders sessions of one start.
    pub(crate) session_id: String,
    /// So many of this start were shown.
    pub(crate) of_start: u64,
    /// What relative times of the query count from, on all pages.
    pub(crate) now_ns: i64,
}

/// What a cursor looks like, as a regular expression.
pub(crate) const CURSOR_PATTERN: &str =
    "^1_-?[0-9]+_[0-9]+[.][0-9]+-[0-9]+_[0-9]+_-?[0-9]+_[0-9a-f]{8}$";

impl Cursor {
    /// As text for a client, which gives it back with the same query.
    pub(crate) fn to_text(&self, query: &str) -> String {
        let Self { start_ns, session_id, of_start, now_ns } = self;
        let mark = mark(query);
        format!("1_{start_ns}_{session_id}_{of_start}_{now_ns}_{mark}")
    }

    /// `None` where the text is none of ours, or belongs to another query.
    pub(crate) fn from_text(text: &str, query: &str) -> Option<Self> {
        let mut parts = text.split('_');
        let mut next = || parts.next();
        let is_known = next()? == "1";
        let cursor = Self {
            start_ns: next()?.parse().ok()?,
            session_id: next()?.to_owned(),
            of_start: next()?.parse().ok()?,
            now_ns: next()?.parse().ok()?,
        };
        let is_whole = next()? == mark(query) && parts.next().is_none();
        (is_known && is_whole && place(&cursor.session_id).is_some()).then_some(cursor)
    }

    /// Whether a session stands behind this place.
    pub(crate) fn is_before(&self, start_ns: i64, session_id: &str) -> bool {
        (self.start_ns, place(&self.session_id)) < (start_ns, place(session_id))
    }
}

/// A few digits by which another query is noticed.
fn mark(query: &str) -> String {
    let hash = Sha256::digest(query.trim().as_bytes());
    hex(hash.get(..4).unwrap_or_default())
}

/// `SEQUENCE.SUB-ROW` as numbers, in the order of the ring.
fn place(session_id: &str) -> Option<(u64, u16, u32)> {
    let (stripe, row) = session_id.split_once('-')?;
    let (sequence, sub) = stripe.split_once('.')?;
    Some((sequence.parse().ok()?, sub.parse().ok()?, row.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(start_ns: i64, session_id: &str) -> Cursor {
        Cursor { start_ns, session_id: session_id.to_owned(), of_start: 1, now_ns: 7 }
    }

    #[test]
    fn a_cursor_comes_back_with_its_query_and_no_other() {
        let cursor = cursor(-5, "4091.0-17");
        let text = cursor.to_text("port 53");
        assert_eq!(Cursor::from_text(&text, " port 53 "), Some(cursor));
        assert_eq!(Cursor::from_text(&text, "port 54"), None);
        for wrong in ["", "1", "1_2_3", &text.replacen('1', "2", 1), &format!("{text}_")] {
            assert_eq!(Cursor::from_text(wrong, "port 53"), None, "{wrong}");
        }
    }

    #[test]
    fn sessions_of_one_start_stand_in_the_order_of_the_ring() {
        let at = cursor(10, "9.0-9");
        for (start_ns, id, is_behind) in [
            (9, "99.0-0", false),
            (10, "9.0-9", false),
            (10, "9.0-10", true),
            (10, "10.0-0", true),
            (11, "1.0-0", true),
        ] {
            assert_eq!(at.is_before(start_ns, id), is_behind, "{start_ns} {id}");
        }
    }
}
