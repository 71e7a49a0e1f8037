//! Scenes of what a recording shares: who counts what, who waits for whom, and who has a stripe.

use std::collections::VecDeque;

use core::time::Duration;

use format::head::StripeId;
use format::piece::InterfaceUse;
use indexer::Times;
use shuttle::thread;
use units::{InterfaceId, QueueId, Sequence};

use crate::index_queue::{SealedStripe, queue};
use crate::ledger::{InterfaceCounts, Ledger};
use crate::pool::Pool;
use crate::status::{SharedStatus, standing};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::task::Task;
use crate::waits::{Wait, Waits};
use crate::way::Way;
use crate::{ROW_SIZE, channel, lock};

/// Waits do not end here.
const LONG: Duration = Duration::from_hours(1);
/// Longer than the limit of any wait.
const HOUR_NS: i64 = 3_600_000_000_000;

fn stripe(number: u64) -> StripeId {
    StripeId { sequence: Sequence(number), sub: 0 }
}

fn sealed(number: u64) -> SealedStripe {
    SealedStripe {
        stripe: stripe(number),
        slot_cid: [0; 32],
        columns: Vec::new(),
        starts: Vec::new(),
        len: 0,
        packets: 1,
        times: Times::NONE,
    }
}

/// Two queues take packets and the ring writer stores them, while others look how far it is: what
/// is stored was taken before, and it is as many as the acknowledged stripes have.
pub fn what_is_stored_was_taken() {
    let (ledger, status) = (Arc::new(Ledger::new(2)), SharedStatus::default());
    ledger.know(InterfaceId(0), "link");
    let (tasks, from_queues) = channel(2);
    let intakes = [0, 1].map(|number| {
        let (ledger, tasks) = (Arc::clone(&ledger), tasks.clone());
        thread::spawn(move || {
            for taken in 1..=2 {
                let counts = InterfaceCounts { taken, ..InterfaceCounts::default() };
                ledger.enter(QueueId(number), core::iter::once(counts));
                tasks.send(()).expect("the ring writer takes it");
            }
        })
    });
    drop(tasks);
    let shown = Arc::clone(&status);
    let ring = thread::spawn(move || {
        let mut waiting = VecDeque::new();
        for number in 1.. {
            let Ok(()) = from_queues.recv() else { break };
            waiting
                .push_back((stripe(number), vec![InterfaceUse { id: InterfaceId(0), packets: 1 }]));
            lock(&shown).acknowledge(stripe(number), &mut waiting);
        }
    });
    let look = |status: &SharedStatus, ledger: &Ledger| {
        let (shown, accounts) = standing(status, ledger);
        assert!(accounts.iter().all(|account| account.is_balanced()));
        assert_eq!(accounts.first().map(|it| it.stored), Some(shown.acknowledged.sequence.0));
        accounts.first().map(|it| (it.offered, it.stored))
    };
    let other = (Arc::clone(&status), Arc::clone(&ledger));
    let other = thread::spawn(move || (look(&other.0, &other.1), look(&other.0, &other.1)));
    look(&status, &ledger);
    intakes.into_iter().for_each(|it| it.join().expect("it has sent all"));
    ring.join().expect("it has stored all");
    other.join().expect("it has seen no more stored than taken");
    assert_eq!(look(&status, &ledger), Some((4, 4)));
}

/// Threads wait now and then, and the watchdog looks: of each wait that it calls too long it says
/// the end, too, of no other, and no wait stays behind.
pub fn a_long_wait_is_told_and_so_is_its_end() {
    let waits = Waits::default();
    let threads = [Wait::RingForMembers, Wait::ScrubForRing, Wait::ScrubForMembers].map(|wait| {
        let waits = waits.clone();
        thread::spawn(move || {
            for _ in 0..2 {
                waits.during(wait, thread::yield_now);
            }
        })
    });
    // What was begun by one look is too long at the next.
    let mut told = Vec::new();
    for hour in 1..5 {
        told.extend(waits.look(hour * HOUR_NS));
        thread::yield_now();
    }
    threads.into_iter().for_each(|it| it.join().expect("it only waits"));
    told.extend(waits.look(5 * HOUR_NS));
    let (ends, long): (Vec<_>, Vec<_>) = told.iter().partition(|it| it.ends_with("and goes on"));
    assert_eq!(ends.len(), long.len(), "{told:?}");
    assert!(waits.look(9 * HOUR_NS).is_empty() && waits.long(9 * HOUR_NS).is_empty());
    assert!(!waits.is_without_index(), "none of them has to do with the index");
}

/// The index hangs, and every column is in its queue. The intake waits for one, until the watchdog
/// says that the recording goes on without the index: then the ring writer takes them back. When
/// the index has come back it is asked again.
pub fn columns_come_back_from_an_index_that_hangs() {
    let (pool, waits) = (Pool::new(2, ROW_SIZE).expect("memory for two rows"), Waits::default());
    let (to, from) = queue(2, true);
    for number in [1, 2] {
        let column = pool.take().expect("one of two").freeze();
        assert!(to.send(SealedStripe { columns: vec![column], ..sealed(number) }));
    }
    let (taken, waiting) = (Arc::new(AtomicBool::new(false)), (pool.clone(), waits.clone()));
    let has_taken = Arc::clone(&taken);
    let intake = thread::spawn(move || {
        let (pool, waits) = waiting;
        drop(waits.during(Wait::IntakeForColumn, || pool.take_timeout(LONG)).expect("in the end"));
        has_taken.store(true, Ordering::SeqCst);
    });
    let watching = (waits.clone(), Arc::clone(&taken));
    let watchdog = thread::spawn(move || {
        let (waits, taken) = watching;
        let mut told = Vec::new();
        for hour in 1.. {
            told.extend(waits.look(hour * HOUR_NS));
            if taken.load(Ordering::SeqCst) {
                return told;
            }
            thread::yield_now();
        }
        told
    });
    let mut left_out = 0;
    while !taken.load(Ordering::SeqCst) {
        if waits.is_without_index() {
            left_out += to.take_back().len();
        }
        thread::yield_now();
    }
    intake.join().expect("it has its column");
    let told = watchdog.join().expect("it only looks");
    assert!(told.iter().any(|it| it.ends_with("goes on without the index")), "{told:?}");
    assert_eq!((left_out, pool.free_count(), from.try_next().is_err()), (2, 2, true));
    waits.index_is_back();
    assert!(waits.look(i64::MAX).len() <= 1 && !waits.is_without_index());
}

/// Every stripe is either indexed, in its order, or left out, once, whether there is space for it,
/// and whatever is taken back meanwhile; and in the end the queue is known to be empty.
pub fn a_stripe_is_indexed_or_left_out() {
    // One stripe may wait.
    let (to, from) = queue(2, false);
    let index = thread::spawn(move || {
        let mut indexed = Vec::new();
        while let Ok(queued) = from.next(LONG) {
            indexed.push(queued.stripe.stripe.sequence.0);
            if indexed.last() == Some(&5) {
                break;
            }
        }
        (from, indexed)
    });
    let mut left_out = Vec::new();
    for number in 1..=4 {
        if number == 3 {
            left_out.extend(to.take_back().iter().map(|it| it.stripe.sequence.0));
        }
        if !to.send(sealed(number)) {
            left_out.push(number);
        }
    }
    while !to.send(sealed(5)) {
        thread::yield_now();
    }
    let (from, mut all) = index.join().expect("it only takes");
    assert!(all.is_sorted());
    all.append(&mut left_out);
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3, 4, 5]);
    assert!(to.send(sealed(6)));
    let last = from.try_next().expect("it was just sent");
    assert!(!last.without_names, "nothing waited when it was sent");
}

/// A way to the ring writer is closed while a thread waits in it for space: who closes does not
/// wait, what was sent arrives, and the ring writer sees the end.
pub fn a_way_is_closed_behind_who_waits_in_it() {
    let (tasks, to_ring) = channel(1);
    let way = Way::new(tasks);
    let threads = [0, 1].map(|number| {
        let way = way.clone();
        thread::spawn(move || (0..2).filter(|_| way.send(Task(number)).is_ok()).count())
    });
    thread::yield_now();
    way.close();
    let mut arrived = 0;
    while to_ring.recv().is_ok() {
        arrived += 1;
    }
    assert!(way.send(Task(2)).is_err());
    let sent: usize = threads.into_iter().map(|it| it.join().expect("it only sends")).sum();
    assert_eq!(sent, arrived);
}
