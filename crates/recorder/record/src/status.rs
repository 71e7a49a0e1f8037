//! The state of the ring writer, as other threads see it, and in the end what the indexer did.

use std::collections::VecDeque;

use core::time::Duration;

use format::head::StripeId;
use format::piece::InterfaceUse;
use indexer::GaveWay;
use recording::Account;
use stage::sync::{Arc, Mutex};
use units::{Epoch, MemberId, Sequence};
use writer::{ClockDoubt, Recovery, Writer, WriterCounters};

use crate::expiry::Withheld;
use crate::ledger::Ledger;
use crate::members::{self, Changes};

/// What other threads may know of the writer at any moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriterStatus {
    pub(crate) acknowledged: StripeId,
    pub(crate) tail: Sequence,
    /// Everything before was given up, and is being erased.
    pub(crate) given_up_before: Sequence,
    /// In the end: slots of that which are not yet erased.
    pub(crate) unerased: u64,
    pub(crate) counters: WriterCounters,
    /// Packets in acknowledged stripes, by interface.
    pub(crate) stored: Vec<u64>,
    /// Packets in stripes for which the indexer has had no time.
    pub(crate) unindexed: u64,
    /// Packets in such stripes that were indexed since.
    pub(crate) indexed_late: u64,
    /// Packets that stay without an index: they ended the indexer twice.
    pub(crate) left_out: u64,
    /// Indexers that ended before their time.
    pub(crate) indexer_deaths: u64,
    /// What is stored and not given out because of its age.
    pub(crate) withheld: Withheld,
    /// Packets do not expire by the clock.
    pub(crate) clock_doubt: Option<ClockDoubt>,
    /// What became of members, in the order of time.
    pub(crate) changes: Changes,
    /// Number of the opening that goes on: members come and go with it.
    pub(crate) epoch: Epoch,
    /// Oldest sequence that may still be written anew.
    pub(crate) repairable_from: Sequence,
    /// Writes with smaller numbers are durable.
    pub(crate) durable_below: u64,
    /// Members that take no part.
    pub(crate) away: Vec<MemberId>,
    /// Those of them that failed although they were there.
    pub(crate) failed: Vec<MemberId>,
    /// Time since boot when this was noted: a few times a second.
    pub(crate) now_ns: i64,
    /// The devices of expelled members may be opened anew.
    pub(crate) has_let_go: bool,
    /// Which waits are too long now.
    pub(crate) long_waits: Vec<String>,
}

impl WriterStatus {
    /// Of a volume that was just mounted: threads that begin before the ring writer first notes
    /// anything find this.
    pub(crate) fn new(writer: &Writer, recovery: &Recovery, now_ns: i64) -> Self {
        Self {
            acknowledged: writer.acknowledged(),
            tail: writer.tail(),
            repairable_from: writer.repairable().start,
            durable_below: writer.durable_below(),
            changes: Changes::new(members::at_start(writer.membership(), recovery)),
            epoch: writer.epoch(),
            now_ns,
            ..Self::default()
        }
    }

    /// Stripes up to this one are durable, and so are their packets: one step with the number of
    /// the stripe.
    pub(crate) fn acknowledge(
        &mut self,
        acknowledged: StripeId,
        waiting: &mut VecDeque<(StripeId, Vec<InterfaceUse>)>,
    ) {
        while let Some((_, interfaces)) =
            waiting.pop_front_if(|(stripe, _)| *stripe <= acknowledged)
        {
            for used in interfaces {
                self.stored.resize(self.stored.len().max(used.id.place() + 1), 0);
                let stored = self.stored.get_mut(used.id.place()).expect("just resized");
                *stored += u64::from(used.packets);
            }
        }
        self.acknowledged = acknowledged;
    }
}

pub(crate) type SharedStatus = Arc<Mutex<WriterStatus>>;

/// Reads the status; a poisoned lock only means that another thread is going down.
pub(crate) fn status_of(status: &SharedStatus) -> WriterStatus {
    stage::lock(status).clone()
}

/// The status, and what the queues have counted: first what is stored, then what was taken, as the
/// ledger's invariant has it.
pub(crate) fn standing(status: &SharedStatus, ledger: &Ledger) -> (WriterStatus, Vec<Account>) {
    let shown = status_of(status);
    let accounts = ledger.accounts(&shown.stored);
    (shown, accounts)
}

/// What the indexer did.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexerReport {
    pub(crate) rows: u64,
    pub(crate) segments: u64,
    pub(crate) index_bytes: u64,
    /// Packets whose payload was not looked at for names.
    pub(crate) unread: u64,
    /// What had no space.
    pub(crate) gave_way: GaveWay,
    /// Parts of earlier recordings that could not be read to be indexed.
    pub(crate) unreadable: u64,
    /// Processes that ended before their time.
    pub(crate) deaths: u64,
    /// Processor time of all of them.
    pub(crate) cpu: Duration,
    pub(crate) notes: Vec<String>,
}
