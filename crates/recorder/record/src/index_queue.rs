//! The queue of sealed stripes to the indexer, and what the recorder leaves out when it fills up.
//!
//! Recording outranks everything. A stripe that finds more than half of the queue taken is indexed
//! without looking for names in its packets; one that finds all of it taken is left out, until
//! there is time for it.

use core::time::Duration;

use device::Shared;
use format::head::StripeId;
use indexer::Times;
use stage::sync::atomic::{AtomicUsize, Ordering};
use stage::sync::mpsc::{RecvTimeoutError, TryRecvError, TrySendError};
use stage::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use stage::{Receiver, Sender, channel};

/// A sealed data stripe on its way to the indexer.
#[derive(Debug)]
pub(crate) struct SealedStripe {
    pub(crate) stripe: StripeId,
    /// `CID` of the first stripe in its slot.
    pub(crate) slot_cid: [u8; 32],
    pub(crate) columns: Vec<Shared>,
    /// Where the packets of each begin.
    pub(crate) starts: Vec<Vec<u32>>,
    /// Bytes of head and body of each.
    pub(crate) len: usize,
    pub(crate) packets: u64,
    pub(crate) times: Times,
}

/// A stripe that has waited for the indexer.
pub(crate) struct Queued {
    pub(crate) stripe: SealedStripe,
    /// The indexer was so far behind that there is no time for names.
    pub(crate) without_names: bool,
}

/// The ring writer's end.
pub(crate) struct ToIndexer {
    stripes: Sender<Queued>,
    /// What waits can be taken back.
    queued: Weak<Mutex<Receiver<Queued>>>,
    waiting: Arc<AtomicUsize>,
    capacity: usize,
    /// The sender waits for space, sooner or later: there is always time.
    may_wait: bool,
}

/// The indexer's end.
pub(crate) struct FromRing {
    /// Locked by the receiver.
    stripes: Arc<Mutex<Receiver<Queued>>>,
    waiting: Arc<AtomicUsize>,
}

/// The queue of a recording with so many columns. A link leaves the indexer half of them; a file
/// waits for it, by the columns running out, and nothing has to be left out.
pub(crate) fn queue(columns: usize, may_wait: bool) -> (ToIndexer, FromRing) {
    let capacity = if may_wait { columns } else { columns / 2 };
    let (sender, receiver) = channel(capacity);
    let waiting = Arc::new(AtomicUsize::new(0));
    let stripes = Arc::new(Mutex::new(receiver));
    let (queued, counted) = (Arc::downgrade(&stripes), Arc::clone(&waiting));
    let to = ToIndexer { stripes: sender, queued, waiting: counted, capacity, may_wait };
    (to, FromRing { stripes, waiting })
}

impl ToIndexer {
    /// Hands over a stripe; false when the queue is full, or has no receiver.
    pub(crate) fn send(&self, stripe: SealedStripe) -> bool {
        let waiting = self.waiting.load(Ordering::Relaxed);
        let without_names = !self.may_wait && 2 * waiting > self.capacity;
        // Before it can be taken.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        match self.stripes.try_send(Queued { stripe, without_names }) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                false
            }
        }
    }

    /// Takes back what waits, in its order: the indexer shall not have it. Nothing where it is
    /// just looking for the next one.
    pub(crate) fn take_back(&self) -> Vec<SealedStripe> {
        let Some(queued) = self.queued.upgrade() else { return Vec::new() };
        let stripes = match queued.try_lock() {
            Ok(stripes) => stripes,
            Err(TryLockError::Poisoned(stripes)) => stripes.into_inner(),
            Err(TryLockError::WouldBlock) => return Vec::new(),
        };
        let taken = core::iter::from_fn(|| stripes.try_recv().ok());
        let taken: Vec<_> = taken.map(|queued| queued.stripe).collect();
        self.waiting.fetch_sub(taken.len(), Ordering::Relaxed);
        taken
    }
}

impl FromRing {
    /// The next stripe, if one waits.
    pub(crate) fn try_next(&self) -> Result<Queued, TryRecvError> {
        self.lock().try_recv().inspect(|_| self.took())
    }

    /// The next stripe, or none for so long.
    pub(crate) fn next(&self, timeout: Duration) -> Result<Queued, RecvTimeoutError> {
        self.lock().recv_timeout(timeout).inspect(|_| self.took())
    }

    /// A queue has no state that a panic could leave.
    fn lock(&self) -> MutexGuard<'_, Receiver<Queued>> {
        stage::lock(&self.stripes)
    }

    fn took(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use format::head::StripeId;
    use indexer::Times;
    use units::Sequence;

    use super::*;

    fn stripe(sub: u16) -> SealedStripe {
        SealedStripe {
            stripe: StripeId { sequence: Sequence(1), sub },
            slot_cid: [0; 32],
            columns: Vec::new(),
            starts: Vec::new(),
            len: 0,
            packets: 1,
            times: Times::NONE,
        }
    }

    #[test]
    fn names_give_way_first_and_then_the_index() {
        let (to, from) = queue(8, false);
        assert!((0..4).all(|sub| to.send(stripe(sub))));
        assert!(!to.send(stripe(4)));
        let hurries = || core::iter::from_fn(|| from.try_next().ok()).map(|it| it.without_names);
        assert!(hurries().eq([false, false, false, true]));
        assert!(to.send(stripe(5)));
        assert!(hurries().eq([false]));
    }

    #[test]
    fn what_waits_can_be_taken_back() {
        let (to, from) = queue(4, true);
        assert!((0..4).all(|sub| to.send(stripe(sub))));
        assert_eq!(from.try_next().ok().map(|it| it.stripe.stripe.sub), Some(0));
        assert!(to.take_back().into_iter().map(|it| it.stripe.sub).eq(1..4));
        assert!(to.take_back().is_empty() && from.try_next().is_err());
        assert!((4..8).all(|sub| to.send(stripe(sub))), "there is space again");
        drop(from);
        assert!(to.take_back().is_empty() && !to.send(stripe(8)));
    }

    #[test]
    fn a_file_waits_and_nothing_gives_way() {
        let (to, from) = queue(4, true);
        assert!((0..4).all(|sub| to.send(stripe(sub))));
        let taken = core::iter::from_fn(|| from.next(Duration::ZERO).ok());
        assert!(taken.map(|it| it.without_names).eq([false; 4]));
    }
}
