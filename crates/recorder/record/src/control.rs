//! What others may ask of a recording while it goes on: that what it has taken so far becomes
//! durable now, and not when its column is full or the flush interval over.
//!
//! Each queue sends its open column to the ring writer and says so; when all have, the ring writer
//! makes a stripe of what there is, waits for its acknowledgement, and puts a head behind it that
//! shows readers. So an answer reaches up to now by the one way that packets have, and what it
//! shows is durable.

use core::time::Duration;

use format::head::StripeId;
use stage::Watched;
use stage::sync::Arc;
use stage::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use units::{Clock, QueueId, Timestamp, is_clock_step, wall_offset_ns};

/// A handle on one recording; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Control {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Questions so far; the number of the newest.
    asked: AtomicU64,
    /// The newest one that was answered.
    answered: Watched<u64>,
    /// See [`Control::hand_over`]: 0 where that cannot be, [`NEVER`] where it was not asked for,
    /// else the time in nanoseconds.
    until: AtomicU64,
    /// How far the clock was ahead of the time since boot then.
    wall_offset_ns: AtomicI64,
    /// How far a hand-over is.
    handing: Watched<Handing>,
}

/// How far a hand-over is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Handing {
    /// This recording goes on, or has not closed the volume.
    #[default]
    Kept,
    /// The volume is free.
    LetGo,
    /// The other one has stored something.
    Taken,
    /// The other one has ended, or nothing was heard of it.
    Failed,
}

/// Between a question for the interfaces and the time from which on they are the other recorder's:
/// by then every queue has heard of it.
const AHEAD: Duration = Duration::from_millis(150);

/// No other recorder has asked for the interfaces.
const NEVER: u64 = u64::MAX;

impl Control {
    /// Makes everything durable that has been taken so far, and waits until readers of the volume
    /// see it. False when that was not so after `patience`.
    pub fn sync(&self, patience: Duration) -> bool {
        let number = self.shared.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let is_answered = |answered: &u64| *answered >= number;
        self.shared.answered.wait("an answer to a question", patience, is_answered)
    }

    /// Another process stores what the interfaces give from a time on, which is told: this
    /// recording reads on for a moment, and lets go ([`Self::has_let_go`]). Then it waits for
    /// [`Self::is_taken`]. `None` where its packets cannot be divided by their times.
    pub fn hand_over(&self, clock: &dyn Clock) -> Option<Timestamp> {
        let ahead = clock.realtime().plus_nanos(units::nanos(AHEAD));
        let wanted = u64::try_from(ahead.0).ok()?;
        // The first one who asks has them.
        let set = |until: u64| (until == NEVER).then_some(wanted);
        let offset_ns = wall_offset_ns(clock);
        let set = self.shared.until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, set);
        set.ok()?;
        self.shared.wall_offset_ns.store(offset_ns, Ordering::Relaxed);
        Some(ahead)
    }

    /// Waits until the volume is free for who asked. `Some(false)`: the recording goes on, because
    /// the clock was set; `None`: not after `patience`.
    pub fn has_let_go(&self, patience: Duration) -> Option<bool> {
        let handing = &self.shared.handing;
        if handing.wait("a volume that is closed", patience, |it| *it == Handing::LetGo) {
            return Some(true);
        }
        (self.shared.until.load(Ordering::Relaxed) == NEVER).then_some(false)
    }

    /// Who asked has stored something, or has ended before.
    pub fn is_taken(&self, is_taken: bool) {
        let to = if is_taken { Handing::Taken } else { Handing::Failed };
        self.shared.handing.change(|handing| *handing = to);
    }

    /// Whether the clock was set since it was agreed when the other recorder's packets begin.
    pub(crate) fn clock_was_set(&self, clock: &dyn Clock) -> bool {
        let before_ns = self.shared.wall_offset_ns.load(Ordering::Relaxed);
        is_clock_step(before_ns, wall_offset_ns(clock))
    }

    /// When the other recorder's packets begin, in time since boot.
    pub(crate) fn until_ns(&self) -> i64 {
        let offset_ns = self.shared.wall_offset_ns.load(Ordering::Relaxed);
        self.until().map_or(0, |until| until.0.saturating_sub(offset_ns))
    }

    /// The volume is closed: waits until another recorder has stored something. False where it has
    /// not.
    pub(crate) fn let_go(&self, patience: Duration) -> bool {
        let handing = &self.shared.handing;
        // Who asked may have ended already.
        let let_go = |handing: &mut Handing| match handing {
            Handing::Kept => *handing = Handing::LetGo,
            Handing::LetGo | Handing::Taken | Handing::Failed => {}
        };
        handing.change(let_go);
        let is_decided = |it: &Handing| matches!(it, Handing::Taken | Handing::Failed);
        handing.wait("a recorder that takes over", patience, is_decided)
            && handing
                .wait("a recorder that takes over", Duration::ZERO, |it| *it == Handing::Taken)
    }

    /// From now on it can hand over.
    pub(crate) fn may_hand_over(&self) {
        self.shared.handing.change(|handing| *handing = Handing::Kept);
        self.shared.answered.change(|answered| *answered = 0);
        self.shared.until.store(NEVER, Ordering::Relaxed);
    }

    /// Up to when packets are to be stored, if another process stores the later ones.
    #[inline]
    pub(crate) fn until(&self) -> Option<Timestamp> {
        let until = self.shared.until.load(Ordering::Relaxed);
        i64::try_from(until).ok().filter(|until| *until > 0).map(Timestamp)
    }

    /// Number of the newest question.
    #[inline]
    pub(crate) fn asked(&self) -> u64 {
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// Everything is durable that had been taken when a question was asked.
    fn answer(&self, number: u64) {
        self.shared.answered.change(|answered| *answered = number.max(*answered));
    }
}

/// The ring writer's end.
#[derive(Debug)]
pub(crate) struct Questions {
    control: Control,
    /// By queue: the newest question before which everything it had taken was sent.
    heard: Vec<u64>,
    /// That all queues have answered, and what must be acknowledged before it is.
    pending: Option<Pending>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    number: u64,
    stripe: StripeId,
    /// That stripe is the head which lists the packets.
    is_head: bool,
}

/// What is next for a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// No reader asks.
    Rest,
    /// For the acknowledgement.
    Wait,
    /// A head that says what was acknowledged.
    Tell,
}

impl Questions {
    pub(crate) fn new(control: Control, queues: usize) -> Self {
        Self { control, heard: vec![0; queues], pending: None }
    }

    /// A queue has sent what it had taken before a question; true when that was the last to do so.
    pub(crate) fn hear(&mut self, queue: QueueId, number: u64) -> bool {
        let before = self.heard_by_all();
        *self.heard.get_mut(queue.place()).expect("queues have numbers") = number;
        self.heard_by_all() > before
    }

    fn heard_by_all(&self) -> u64 {
        self.heard.iter().copied().min().unwrap_or_default()
    }

    /// All that was taken before the question is in stripes up to this one.
    pub(crate) fn await_stripe(&mut self, stripe: StripeId) {
        self.pending = Some(Pending { number: self.heard_by_all(), stripe, is_head: false });
    }

    /// The head that says so.
    pub(crate) fn await_head(&mut self, stripe: StripeId) {
        if let Some(pending) = &mut self.pending {
            (pending.stripe, pending.is_head) = (stripe, true);
        }
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Answers the question if all is durable. `is_told`: nothing is newer than what heads say.
    pub(crate) fn step(&mut self, acknowledged: StripeId, is_told: bool) -> Step {
        let Some(pending) = self.pending else { return Step::Rest };
        if acknowledged < pending.stripe {
            return Step::Wait;
        }
        if !pending.is_head && !is_told {
            return Step::Tell;
        }
        self.control.answer(pending.number);
        self.pending = None;
        Step::Rest
    }

    /// The volume is closed: all is durable.
    pub(crate) fn end(&self) {
        self.control.answer(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use units::Sequence;

    use super::*;

    #[test]
    fn a_question_is_answered_when_all_queues_and_the_disk_have() {
        let stripe = |sequence| StripeId { sequence, sub: 0 };
        let control = Control::default();
        let answered = |number| {
            control
                .shared
                .answered
                .wait("an answer", Duration::ZERO, |answered| *answered == number)
        };
        assert!(!control.sync(Duration::ZERO) && !control.sync(Duration::ZERO));
        let mut questions = Questions::new(control.clone(), 2);
        assert!(!questions.hear(QueueId(0), 2) && questions.hear(QueueId(1), 1));
        questions.await_stripe(stripe(Sequence(7)));
        assert_eq!(questions.step(stripe(Sequence(6)), false), Step::Wait);
        assert_eq!(questions.step(stripe(Sequence(7)), false), Step::Tell);
        questions.await_head(stripe(Sequence(8)));
        assert_eq!(questions.step(stripe(Sequence(7)), false), Step::Wait);
        assert!(answered(0));
        assert_eq!(questions.step(stripe(Sequence(8)), false), Step::Rest);
        assert!(answered(1));
        assert!(questions.hear(QueueId(1), 2));
        questions.await_stripe(stripe(Sequence(8)));
        assert_eq!(questions.step(stripe(Sequence(8)), true), Step::Rest);
        assert!(answered(2) && !questions.is_pending());
        questions.end();
        assert!(control.sync(Duration::ZERO));
    }
}
