//! What a process of the service is asked about a volume, what it says at the end, and the place
//! where a page of an answer ends.
//!
//! Both go as a line of JSON over a private socket between two processes of one program; the bytes
//! of an answer go over another one. `server` asks, `worker` answers; not here: how a question is
//! answered.

use core::cmp::Reverse;
use std::path::PathBuf;

use evidence::ApprovedForm;
use found::Weight;
use manifest::CaseInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use units::hex;

/// A question to one volume.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Question {
    /// Any member of the volume.
    pub volume: PathBuf,
    /// Where index files are cached, if not in the user's cache.
    pub index_dir: Option<PathBuf>,
    /// A file of private keys, if the volume is encrypted.
    pub identity: Option<PathBuf>,
    /// What is asked.
    pub what: What,
    /// Of who sees a part of the sessions: the times of that part. Nothing outside is named.
    #[serde(default)]
    pub sees_ns: Option<(i64, i64)>,
    /// When the answer has to end, in time since boot.
    pub until_ns: i64,
    /// Address space that the worker may take.
    pub memory_bytes: u64,
}

/// A query within a filter.
pub fn narrowed(filter: Option<&str>, query: &str) -> String {
    match (filter, query.trim()) {
        (None, query) => query.to_owned(),
        (Some(filter), "") => filter.to_owned(),
        (Some(filter), query) => format!("({filter}) and ({query})"),
    }
}

/// What is asked of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum What {
    /// Sessions.
    Sessions(SessionsWanted),
    /// What sessions sum up to.
    Summary(SummaryWanted),
    /// Packets, decoded.
    Packets(PacketsWanted),
    /// Packets, as another program decodes them.
    Decode(DecodeWanted),
    /// Packets, as a file.
    Extract(Box<ExtractWanted>),
    /// Rows of SQL.
    Sql(SqlWanted),
    /// Packets are put aside.
    Hold(HoldWanted),
    /// What is looked at besides.
    Look(Look),
    /// Sessions are tagged.
    Tag(TagWanted),
    /// What takes long.
    Job(JobWanted),
    /// How the volume and its recorder stand.
    Status,
}

/// Sessions, a line of JSON each, by their start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionsWanted {
    /// The query, within the filter of who asks.
    pub query: String,
    /// What relative times count from.
    pub now_ns: i64,
    /// Which sessions come first.
    pub order: Order,
    /// In the order of a field instead: all are looked at before the first is sent.
    pub sort: Option<SortWanted>,
    /// Only those behind this place.
    pub after: Option<Cursor>,
    /// At most so many.
    pub limit: Option<u64>,
    /// At most so many bytes.
    pub bytes_max: u64,
}

/// An order of sessions by a field.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SortWanted {
    /// Name of the field, checked.
    pub field: String,
    /// The largest first.
    pub is_descending: bool,
}

/// Which sessions come first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Order {
    /// The earliest start.
    Oldest,
    /// The latest start.
    Newest,
}

impl Order {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Oldest, Self::Newest];

    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Oldest => "oldest",
            Self::Newest => "newest",
        }
    }

    /// First character of a cursor.
    fn mark(self) -> &'static str {
        match self {
            Self::Oldest => "1",
            Self::Newest => "2",
        }
    }
}

/// What the sessions sum up to: over time, and by the values of fields.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SummaryWanted {
    /// The query, within the filter of who asks.
    pub query: String,
    /// What relative times count from.
    pub now_ns: i64,
    /// Names of fields, checked.
    pub fields: Vec<String>,
    /// Values of a field, those with the most first.
    pub limit: usize,
    /// Of which those with the most.
    pub by: Weight,
    /// Name of the field by which traffic over time is told apart, checked; else by protocol.
    pub series: Option<String>,
    /// What of the traffic is counted over time.
    pub over_time: Weight,
}

/// Packets, a line of JSON each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PacketsWanted {
    /// The query, within the filter of who asks.
    pub query: String,
    /// What relative times count from.
    pub now_ns: i64,
    /// Of the sessions' packets only those in the query's times.
    pub only_range: bool,
    /// At most so many packets.
    pub packets_max: u64,
}

/// Packets as tshark decodes them, in one text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecodeWanted {
    /// Which packets.
    pub packets: PacketsWanted,
    /// The number of the one of them that is wanted with all its fields; else a line of each.
    pub number: Option<u64>,
    /// The program.
    pub program: PathBuf,
}

/// Packets as a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExtractWanted {
    /// The query, within the filter of who asks.
    pub query: String,
    /// What relative times count from.
    pub now_ns: i64,
    /// How it goes out.
    pub form: Form,
    /// Which packets of the sessions.
    pub narrowed: Narrowed,
    /// At most so many packets.
    pub packets_max: Option<u64>,
    /// At most so many bytes.
    pub bytes_max: Option<u64>,
    /// What a client has of this extract already.
    pub behind: Option<Behind>,
    /// What it is for, as who asks says.
    pub case: CaseInfo,
    /// Who asked and who approved, where that was needed.
    pub approved: Option<ApprovedForm>,
}

/// Which packets of the sessions, as the flags of `extract` say it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Narrowed {
    /// All packets of the sessions, not only those in the query's times.
    pub whole_sessions: bool,
    /// At most so many sessions.
    pub sessions_max: Option<u64>,
    /// All packets from so long before each session to so long after.
    pub around_ms: Option<u64>,
    /// In the words of pcap-filter, not checked.
    pub packet_filter: Option<String>,
    /// A pattern, not checked.
    pub payload: Option<String>,
    /// Each packet has the id of its session as a comment.
    pub comments: bool,
}

/// The first bytes of an extract, which are made again and not sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Behind {
    /// How many they are.
    pub bytes: u64,
    /// Of these bytes, in hex digits.
    pub sha256: String,
}

/// Rows of an SQL query.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SqlWanted {
    /// The query.
    pub text: String,
    /// How it goes out.
    pub form: RowForm,
    /// At most so many rows.
    pub rows_max: Option<u64>,
    /// At most so many bytes.
    pub bytes_max: u64,
}

/// How rows go out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RowForm {
    /// A line of JSON each.
    Lines,
    /// A stream of Arrow's IPC format.
    Arrow,
}

/// What is looked at besides sessions and packets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Look {
    /// As `inspect` shows it.
    Inspection {
        /// For a terminal of this width, not as JSON.
        as_text: bool,
        /// Columns of the terminal.
        width: Option<usize>,
        /// With the ring over the surface.
        has_map: bool,
    },
    /// The ring in cells.
    Ring {
        /// Cells in a row.
        columns: u64,
        /// Rows, about.
        rows: u64,
        /// Manifests of holds from the volume.
        holds: Vec<PathBuf>,
    },
    /// Its recordings.
    Recordings,
    /// Where packets are missing.
    Gaps {
        /// From this time on.
        from_ns: i64,
        /// Up to this time.
        until_ns: i64,
        /// What lies outside of these times is not shown either.
        is_narrowed: bool,
        /// At most so many.
        limit: usize,
    },
    /// What its disks were measured for.
    Qualification {
        /// Files of reports.
        reports: Vec<PathBuf>,
    },
    /// What is wrong with its recorder.
    Findings {
        /// So long threads are looked at.
        for_ms: u64,
    },
}

/// Sessions that are tagged: a line of JSON each, as `tag` prints it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TagWanted {
    /// Of which those with the most.
    pub by: TagBy,
    /// A query that is asked besides.
    pub filter: Option<String>,
    /// What relative times count from.
    pub now_ns: i64,
    /// So many at most.
    pub sessions_max: u64,
}

/// What says which sessions, and with what they are tagged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum TagBy {
    /// A line of a log, not checked.
    Event(String),
    /// The sessions that match a query.
    Query {
        /// The query, within the filter of who asks.
        query: String,
        /// With what.
        tag: String,
        /// 1 is the highest.
        severity: Option<u8>,
    },
}

/// What takes long.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum JobWanted {
    /// All of the volume is read.
    Verify,
    /// The same, and repaired.
    Scrub {
        /// Nothing is written.
        dry_run: bool,
    },
    /// Packets are put aside.
    Hold(HoldWanted),
}

/// What a worker says of a job, a line of JSON each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum JobSaid {
    /// How far it is.
    Progress {
        /// So much is done.
        done: u64,
        /// Of so much, where that is known before.
        of: Option<u64>,
    },
    /// What came of it.
    Found {
        /// Nothing is damaged, or missing.
        is_clean: bool,
        /// `None` where it is too long.
        result: Option<serde_json::Value>,
    },
}

/// Packets that are put aside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HoldWanted {
    /// The query, within the filter of who asks.
    pub query: String,
    /// That filter, which the manifest keeps.
    pub filter: Option<String>,
    /// What relative times count from.
    pub now_ns: i64,
    /// Of the sessions' packets only those in the query's times.
    pub only_range: bool,
    /// Where it is put aside.
    pub folder: PathBuf,
    /// Bytes that all holds may take.
    pub size_max: u64,
    /// Bytes of packets that this one may have.
    pub bytes_max: u64,
}

/// The form of an extract.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Form {
    /// As pcapng.
    Pcapng,
    /// Packets of other link types than the first's get its link layer.
    Pcap,
}

/// What a worker says when it has written its last byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Ending {
    /// There is an answer.
    Answered(Box<Answered>),
    /// There is none.
    Refused(Refused),
}

/// What is said of an answer behind its last byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answered {
    /// Sessions or packets.
    pub count: u64,
    /// What is missing from it.
    pub statement: Statement,
    /// Where the next page begins, if something may be behind the last session.
    pub next: Option<Cursor>,
    /// Of an extract, unless it is too long to be kept.
    pub manifest: Option<String>,
    /// Of an extract, as the manifest names them.
    pub hashes: Option<Hashes>,
}

/// Of all bytes of an extract, in hex digits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hashes {
    /// SHA-256.
    pub sha256: String,
    /// BLAKE3.
    pub blake3: String,
}

/// What is missing from an answer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Statement {
    /// `complete`, `incomplete` or `unknown`.
    #[schemars(extend("enum" = ["complete", "incomplete", "unknown"]))]
    pub state: String,
    /// The same where a limit that was asked for, and reached, is no verdict.
    #[serde(default)]
    #[schemars(extend("enum" = ["complete", "incomplete", "unknown"]))]
    pub state_within_limit: String,
    /// The same in words, as `find` and `extract` print it.
    pub text: String,
    /// What cut the answer: `time`, `bytes` or `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["time", "bytes", "limit"]))]
    pub cut_by: Option<String>,
    /// What a recorder did not do for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Of an empty answer: which of the names asked for the volume does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Sessions at the end of an order that did not fit into memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
    /// As in the manifest of an extract.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub completeness: serde_json::Value,
}

/// Why there is no answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// In a word.
    pub why: Why,
    /// In words.
    pub detail: String,
}

/// Why there is no answer, in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Why {
    /// The volume is out of reach, or anything else.
    Unreadable,
    /// It is too damaged.
    Damaged,
    /// It is encrypted, and no key opens it.
    Locked,
    /// There is no room for what was to be kept.
    Full,
    /// The folder for what was to be kept cannot be used.
    Unkept,
    /// What a client has of an extract is not its beginning any more.
    MovedOn,
    /// What was asked is wrong.
    Wrong,
    /// Another program makes nothing of the packets.
    Undecoded,
}

impl Refused {
    /// For a reason that is none of the others.
    pub fn because(reason: &impl ToString) -> Self {
        Self { why: Why::Unreadable, detail: reason.to_string() }
    }
}

/// The last session of a page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cursor {
    /// Its start.
    pub start_ns: i64,
    /// Its id, which orders sessions of one start.
    pub session_id: String,
    /// So many of this start were shown.
    pub of_start: u64,
    /// Which sessions come first.
    pub order: Order,
    /// What relative times of the query count from, on all pages.
    pub now_ns: i64,
}

/// What a cursor is a place of, besides an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Walk {
    /// The volume that is asked.
    pub volume_id: String,
    /// What it is asked.
    pub query: String,
}

impl Cursor {
    /// As text for a client, which gives it back with the same query to the same volume.
    pub fn to_text(&self, walk: &Walk) -> String {
        let Self { start_ns, session_id, of_start, order, now_ns } = self;
        let (order, mark) = (order.mark(), mark(walk, *order));
        format!("{order}_{start_ns}_{session_id}_{of_start}_{now_ns}_{mark}")
    }

    /// `None` where the text is none of ours, or belongs to another query, volume or order.
    pub fn from_text(text: &str, walk: &Walk) -> Option<Self> {
        let mut parts = text.split('_');
        let mut next = || parts.next();
        let first = next()?;
        let cursor = Self {
            order: Order::ALL.into_iter().find(|order| order.mark() == first)?,
            start_ns: next()?.parse().ok()?,
            session_id: next()?.to_owned(),
            of_start: next()?.parse().ok()?,
            now_ns: next()?.parse().ok()?,
        };
        let is_whole = next()? == mark(walk, cursor.order) && parts.next().is_none();
        (is_whole && place(&cursor.session_id).is_some()).then_some(cursor)
    }

    /// Whether a session stands behind this place.
    pub fn is_before(&self, start_ns: i64, session_id: &str) -> bool {
        let own = (self.start_ns, place(&self.session_id));
        let other = (start_ns, place(session_id));
        match self.order {
            Order::Oldest => own < other,
            // Sessions of one start stand in the order of the ring in both.
            Order::Newest => (Reverse(own.0), own.1) < (Reverse(other.0), other.1),
        }
    }
}

/// A few digits by which another query, volume or order is noticed.
fn mark(walk: &Walk, order: Order) -> String {
    let Walk { volume_id, query } = walk;
    let hash = Sha256::digest(format!("{volume_id} {} {}", order.mark(), query.trim()));
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
        let (session_id, order) = (session_id.to_owned(), Order::Oldest);
        Cursor { start_ns, session_id, of_start: 1, order, now_ns: 7 }
    }

    fn walk(volume_id: &str, query: &str) -> Walk {
        Walk { volume_id: volume_id.to_owned(), query: query.to_owned() }
    }

    #[test]
    fn a_cursor_comes_back_with_its_query_volume_and_order_and_no_other() {
        let cursor = cursor(-5, "4091.0-17");
        let newest = Cursor { order: Order::Newest, ..cursor.clone() };
        let own = walk("v", "port 53");
        let text = newest.to_text(&own);
        assert_eq!(Cursor::from_text(&text, &own), Some(newest));
        let text = cursor.to_text(&own);
        assert_eq!(Cursor::from_text(&text, &walk("v", " port 53 ")), Some(cursor));
        for other in [walk("v", "port 54"), walk("w", "port 53"), walk("v 1", "port 53")] {
            assert_eq!(Cursor::from_text(&text, &other), None, "{other:?}");
        }
        let reversed = text.replacen("1_", "2_", 1);
        for wrong in ["", "1", "1_2_3", &text.replacen('1', "3", 1), &format!("{text}_"), &reversed]
        {
            assert_eq!(Cursor::from_text(wrong, &own), None, "{wrong}");
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
            let at = Cursor { order: Order::Newest, ..at.clone() };
            let is_behind = if start_ns == 10 { is_behind } else { !is_behind };
            assert_eq!(at.is_before(start_ns, id), is_behind, "newest first: {start_ns} {id}");
        }
    }
}
