//! What a recording says of itself, while it goes on and in the end.

use core::time::Duration;

use events::{Disks, Event};
use format::head::StripeId;
use indexer::GaveWay;
use writer::{ClockDoubt, Recovery, WriterCounters};

use crate::account::{Account, Loss};
use crate::change::MemberChange;

/// Lines for the report that are kept: a recording may go on for years.
const NOTES_MAX: usize = 1000;

/// A recording under way.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Time since the start.
    pub elapsed_ns: i64,
    /// One account per interface.
    pub interfaces: Vec<Account>,
    /// Sums over all interfaces.
    pub total: Account,
    /// Bytes sent to the member.
    pub member_bytes: u64,
    /// Free columns of the pool.
    pub pool_free: usize,
    /// All columns of the pool.
    pub pool_count: usize,
    /// Packets stored for which the indexer has had no time so far.
    pub unindexed: u64,
    /// Packets that stay without an index, because they ended the indexer twice.
    pub left_out: u64,
    /// How often the indexer ended before its time, and another one was started.
    pub indexer_deaths: u64,
    /// Waits inside the recorder that are too long now: which thread, for what, how long.
    pub long_waits: Vec<String>,
    /// Oldest sequence that the ring holds for certain.
    pub tail: u64,
    /// Everything up to here is durable.
    pub acknowledged: StripeId,
    /// Slots that the ring holds for certain, once it has gone round.
    pub slots: u64,
    /// What is to be said since the last call: what was decided when it began, and what happened.
    pub news: Vec<Event>,
    /// The newest things that happened and were said.
    pub events: Vec<Event>,
    /// What became of members so far.
    pub changes: Vec<MemberChange>,
    /// What a whole ring holds at the rate of the last minute, in nanoseconds; `None` from files,
    /// whose packets do not come at their own pace.
    pub holds_ns: Option<i64>,
    /// What the members did so far, beside what they were qualified for.
    pub disks: Disks,
}

/// A recording that has ended.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One account per interface.
    pub interfaces: Vec<Account>,
    /// The packets are of capture files, or of a pipe.
    pub is_of_files: bool,
    /// Sum over all interfaces.
    pub total: Account,
    /// What was lost, with what stood in the way; the first thousand.
    pub losses: Vec<Loss>,
    /// Packets stored without a row in the index: the indexer was too far behind.
    pub unindexed: u64,
    /// Packets for which the indexer had no time when they came, and found it later.
    pub indexed_late: u64,
    /// Packets that stay without an index, because they ended the indexer twice.
    pub left_out: u64,
    /// Parts of earlier recordings that had no index yet, and could not be read to make one.
    pub unreadable: u64,
    /// Stripes with packets that were too old already when they were stored: no answer gives those
    /// out.
    pub withheld: u64,
    /// Packets did not expire by the clock.
    pub clock_doubt: Option<ClockDoubt>,
    /// How often the indexer ended before its time, and another one was started.
    pub indexer_deaths: u64,
    /// Packets indexed whose payload was not looked at for names, because there was no time.
    pub unread: u64,
    /// What the indexer left out for lack of memory.
    pub gave_way: GaveWay,
    /// Columns of the pool, and most of them that were in use at once.
    pub pool_columns: (usize, usize),
    /// Rows written to the index.
    pub rows: u64,
    /// Segments closed.
    pub segments: u64,
    /// Bytes of index.
    pub index_bytes: u64,
    /// What was sent to the member, and how long its slowest write took.
    pub writer: WriterCounters,
    /// Before the first packet was asked for: opening inputs and volume, memory, the mount.
    pub opening_ns: i64,
    /// From the first packet asked for to the last acknowledgement.
    pub elapsed_ns: i64,
    /// The last part of that: no packet was left to take, columns and indexes were.
    pub closing_ns: i64,
    /// CPU time of the recorder and its indexers meanwhile.
    pub cpu: Duration,
    /// What the volume looked like when it was opened.
    pub recovery: Recovery,
    /// Number of this opening.
    pub epoch: u32,
    /// Everything up to here is durable.
    pub acknowledged: StripeId,
    /// What became of members, in the order of time.
    pub changes: Vec<MemberChange>,
    /// What the members did, beside what they were qualified for.
    pub disks: Disks,
    /// Things the user should know, one line each.
    pub notes: Vec<String>,
    /// What happened and was not said before the end.
    pub news: Vec<Event>,
    /// Inputs that broke off, one line each: which, where, why.
    pub broken_off: Vec<String>,
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
