//! What a recording says of itself in the end.

use core::time::Duration;

use events::{Disks, Event};
use format::head::StripeId;
use indexer::GaveWay;
use recording::{Account, Loss, MemberChange};
use serde::{Serialize, Serializer};
use units::Epoch;
use writer::{ClockDoubt, Recovery, WriterCounters};

/// Lines for the report that are kept: a recording may go on for years.
const NOTES_MAX: usize = 1000;

/// A recording that has ended.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Sum over all interfaces.
    #[serde(flatten)]
    pub total: Account,
    /// Packets stored without a row in the index: the indexer was too far behind.
    pub unindexed: u64,
    /// Of those, packets that stay without one, because they ended the indexer twice.
    pub left_out: u64,
    /// How often the indexer ended before its time, and another one was started.
    pub indexer_deaths: u64,
    /// Packets for which the indexer had no time when they came, and found it later.
    pub indexed_late: u64,
    /// Packets indexed whose payload was not looked at for names, because there was no time.
    pub unread: u64,
    /// What the indexer left out for lack of memory.
    pub gave_way: GaveWay,
    /// Columns of the pool.
    pub pool_columns: usize,
    /// Most of them that were in use at once.
    pub pool_columns_used_max: usize,
    /// Rows written to the index.
    #[serde(rename = "sessions")]
    pub rows: u64,
    /// Segments closed.
    pub segments: u64,
    /// Bytes of index.
    pub index_bytes: u64,
    /// What was sent to the member, and how long its slowest write took.
    #[serde(flatten)]
    pub writer: WriterCounters,
    /// Before the first packet was asked for: opening inputs and volume, memory, the mount.
    pub opening_ns: i64,
    /// From the first packet asked for to the last acknowledgement.
    pub elapsed_ns: i64,
    /// The last part of that: no packet was left to take, columns and indexes were.
    pub closing_ns: i64,
    /// CPU time of the recorder and its indexers meanwhile.
    #[serde(rename = "cpu_ns", serialize_with = "nanos")]
    pub cpu: Duration,
    /// Number of this opening.
    pub epoch: Epoch,
    /// Everything up to here is durable.
    pub acknowledged: StripeId,
    /// What the volume looked like when it was opened.
    #[serde(flatten)]
    pub recovery: Recovery,
    /// One account per interface.
    pub interfaces: Vec<Account>,
    /// What became of members, in the order of time.
    #[serde(rename = "members")]
    pub changes: Vec<MemberChange>,
    /// What the members did, beside what they were qualified for.
    pub disks: Disks,
    /// Inputs that broke off, one line each: which, where, why.
    pub broken_off: Vec<String>,
    /// Things the user should know, one line each.
    pub notes: Vec<String>,
    /// What was lost, with what stood in the way; the first thousand.
    pub losses: Vec<Loss>,
    /// The packets are of capture files, or of a pipe.
    #[serde(skip)]
    pub is_of_files: bool,
    /// Parts of earlier recordings that had no index yet, and could not be read to make one.
    #[serde(skip)]
    pub unreadable: u64,
    /// Stripes with packets that were too old already when they were stored: no answer gives those
    /// out.
    #[serde(skip)]
    pub withheld: u64,
    /// Packets did not expire by the clock.
    #[serde(skip)]
    pub clock_doubt: Option<ClockDoubt>,
    /// What happened and was not said before the end.
    #[serde(skip)]
    pub news: Vec<Event>,
}

fn nanos<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i64(units::nanos(*time))
}

impl Report {
    /// # Panics
    ///
    /// When a packet is in no counter, or in two.
    pub(crate) fn assert_accounted(&self) {
        for account in &self.interfaces {
            let settled = account.is_balanced() && account.in_flight == 0;
            assert!(settled, "every packet is accounted for: {account:?}");
        }
    }
}

/// Keeps lines for the report, unless there are very many.
pub(crate) fn keep_notes(notes: &mut Vec<String>, lines: impl IntoIterator<Item = String>) {
    let room = NOTES_MAX.saturating_sub(notes.len());
    notes.extend(lines.into_iter().take(room));
}
