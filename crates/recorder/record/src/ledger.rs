//! What every queue has counted of every interface, for all threads to see. Totals of an interface
//! are sums over its queues.
//!
//! Invariant: a queue enters a packet here before the ring writer hears of it, so a thread that
//! looks at what is stored first, and here afterwards, never finds more stored than taken.

use capture::Counters;
use format::directory::Gap;
use format::piece::Statistics;
use recording::{Account, Loss, QueueAccount, both};
use stage::sync::atomic::{AtomicUsize, Ordering};
use stage::sync::{Mutex, MutexGuard};
use units::{InterfaceId, QueueId};

use crate::claim::Claim;

/// What one queue has counted of one interface.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InterfaceCounts {
    /// Totals of the source, as of the last look.
    pub(crate) counters: Counters,
    /// Packets put into columns.
    pub(crate) taken: u64,
    pub(crate) writer_drops: u64,
    /// Packets that a class left out, and copies.
    pub(crate) cut: u64,
    pub(crate) copies: u64,
    pub(crate) headers_only: u64,
    pub(crate) too_long: u64,
}

impl InterfaceCounts {
    /// The source's counters lag behind the packets that it has given.
    fn received(&self) -> u64 {
        let left_out = self.cut + self.copies;
        let seen = self.taken + left_out + self.writer_drops + self.counters.kernel_drops;
        self.counters.received.max(seen)
    }

    fn account(&self) -> QueueAccount {
        QueueAccount {
            received: self.received(),
            taken: self.taken,
            kernel_drops: self.counters.kernel_drops,
            ring_freezes: self.counters.ring_freezes,
            writer_drops: self.writer_drops,
        }
    }
}

/// Most losses that are kept one by one; the accounts have them all.
const LOSSES_MAX: usize = 1000;

/// The counts of all queues.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: Mutex<Entries>,
    /// Slots whose writes have not ended.
    unfinished_slots: AtomicUsize,
}

#[derive(Debug, Default)]
struct Entries {
    /// Names of the interfaces, by their number.
    names: Vec<String>,
    /// By queue and interface.
    queues: Vec<Vec<InterfaceCounts>>,
    /// By queue: up to when it has sent everything.
    claims: Vec<Claim>,
    losses: Vec<Loss>,
}

impl Entries {
    fn of(&self, interface: InterfaceId) -> impl Iterator<Item = &InterfaceCounts> {
        self.queues.iter().filter_map(move |queue| queue.get(interface.place()))
    }
}

impl Ledger {
    pub(crate) fn new(queues: usize) -> Self {
        let (all, claims) = (vec![Vec::new(); queues], vec![Claim::NONE; queues]);
        let entries = Entries { queues: all, claims, ..Entries::default() };
        Self { entries: Mutex::new(entries), unfinished_slots: AtomicUsize::new(0) }
    }

    /// Learns from the ring writer how many slots it has under way.
    pub(crate) fn note_unfinished(&self, slots: usize) {
        self.unfinished_slots.store(slots, Ordering::Relaxed);
    }

    /// How many slots have unfinished writes.
    pub(crate) fn unfinished_slots(&self) -> usize {
        self.unfinished_slots.load(Ordering::Relaxed)
    }

    /// Keeps what was lost, up to a bound, with the free columns, the unfinished slots, and the
    /// bytes that the queue had stored before and behind it.
    pub(crate) fn lose(&self, queue: QueueId, gap: Gap, standing: (usize, usize, [u64; 2])) {
        let (pool_free, unfinished_slots, stored_bytes) = standing;
        let [stored_bytes_before, stored_bytes_behind] = stored_bytes;
        let mut entries = self.lock();
        if entries.losses.len() < LOSSES_MAX {
            let name = gap.interface.and_then(|id| entries.names.get(id.place())).cloned();
            let interface = name.unwrap_or_default();
            entries.losses.push(Loss {
                interface,
                queue,
                gap,
                pool_free,
                unfinished_slots,
                stored_bytes_before,
                stored_bytes_behind,
            });
        }
    }

    /// A queue has sent so many columns, and everything up to a time.
    pub(crate) fn claim(&self, queue: QueueId, claim: Claim) {
        *self.lock().claims.get_mut(queue.place()).expect("queues are numbered from 0") = claim;
    }

    /// What a queue has claimed last.
    pub(crate) fn claim_of(&self, queue: QueueId) -> Claim {
        self.lock().claims.get(queue.place()).copied().unwrap_or(Claim::NONE)
    }

    /// What was lost, in the order in which it was noticed.
    pub(crate) fn losses(&self) -> Vec<Loss> {
        self.lock().losses.clone()
    }

    /// Learns the name of an interface. The queues know the same ones.
    pub(crate) fn know(&self, interface: InterfaceId, name: &str) {
        let mut entries = self.lock();
        if entries.names.len() == interface.place() {
            entries.names.push(name.to_owned());
        }
    }

    /// Enters what a queue has counted so far, interface by interface.
    pub(crate) fn enter(&self, queue: QueueId, counts: impl Iterator<Item = InterfaceCounts>) {
        let mut entries = self.lock();
        let row = entries.queues.get_mut(queue.place()).expect("queues are numbered from 0");
        row.clear();
        row.extend(counts);
    }

    /// One for each interface.
    pub(crate) fn statistics(&self) -> Vec<Statistics> {
        let entries = self.lock();
        let interfaces = (0..entries.names.len()).map(InterfaceId::at);
        let statistics = interfaces.map(|interface| {
            let none = Statistics { interface, interface_drops: Some(0), ..<_>::default() };
            entries.of(interface).fold(none, |sum, counts| Statistics {
                interface,
                received: sum.received + counts.received(),
                interface_drops: both(sum.interface_drops, counts.counters.interface_drops),
                kernel_drops: sum.kernel_drops + counts.counters.kernel_drops,
                writer_drops: sum.writer_drops + counts.writer_drops,
            })
        });
        statistics.collect()
    }

    /// Accounts of the interfaces, of whose packets so many are stored.
    pub(crate) fn accounts(&self, stored: &[u64]) -> Vec<Account> {
        let entries = self.lock();
        let accounts = entries.names.iter().enumerate().map(|(place, name)| {
            let all: Vec<_> = entries.of(InterfaceId::at(place)).collect();
            let sum =
                |count: fn(&InterfaceCounts) -> u64| all.iter().map(|counts| count(counts)).sum();
            let known = |count: fn(&Counters) -> Option<u64>| {
                all.iter().map(|counts| count(&counts.counters)).fold(Some(0), both)
            };
            let (offered, stored): (u64, u64) =
                (sum(InterfaceCounts::received), stored.get(place).copied().unwrap_or(0));
            let kernel_drops = sum(|counts| counts.counters.kernel_drops);
            let writer_drops = sum(|counts| counts.writer_drops);
            let (cut, copies) = (sum(|counts| counts.cut), sum(|counts| counts.copies));
            let left_out: u64 = cut + copies;
            Account {
                name: name.clone(),
                offered,
                stored,
                cut,
                copies,
                headers_only: sum(|counts| counts.headers_only),
                kernel_drops,
                writer_drops,
                in_flight: offered - kernel_drops - writer_drops - left_out - stored,
                interface_drops: known(|counters| counters.interface_drops),
                filter_rejects: known(|counters| counters.filter_rejects),
                ring_freezes: sum(|counts| counts.counters.ring_freezes),
                too_long: sum(|counts| counts.too_long),
                is_away: all.iter().any(|counts| counts.counters.is_away),
                times_down: sum(|counts| counts.counters.times_down),
                queues: all.into_iter().map(InterfaceCounts::account).collect(),
            }
        });
        accounts.collect()
    }

    /// A panic while it was locked takes the process down.
    fn lock(&self) -> MutexGuard<'_, Entries> {
        stage::lock(&self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(received: u64, taken: u64, interface_drops: Option<u64>) -> InterfaceCounts {
        let counters =
            Counters { received, delivered: taken, interface_drops, ..Counters::default() };
        InterfaceCounts { counters, taken, ..InterfaceCounts::default() }
    }

    #[test]
    fn an_interface_has_what_its_queues_have() {
        let ledger = Ledger::new(2);
        ledger.know(InterfaceId(0), "a");
        ledger.know(InterfaceId(1), "b");
        ledger.enter(QueueId(0), [counts(10, 8, Some(3)), counts(1, 1, None)].into_iter());
        // The counters of the source were read before these were taken.
        ledger.enter(QueueId(1), [counts(2, 5, Some(0)), counts(0, 0, Some(0))].into_iter());
        let accounts = ledger.accounts(&[6]);
        let [a, b] = &accounts[..] else { panic!("two interfaces") };
        assert_eq!((a.offered, a.stored, a.in_flight, a.interface_drops), (15, 6, 9, Some(3)));
        assert_eq!((b.offered, b.stored, b.in_flight, b.interface_drops), (1, 0, 1, None));
        assert!(a.is_balanced() && b.is_balanced());
        assert_eq!(a.queues.iter().map(|queue| queue.received).collect::<Vec<_>>(), [10, 5]);
        let received: Vec<_> = ledger.statistics().iter().map(|it| it.received).collect();
        assert_eq!(received, [15, 1]);
    }
}
