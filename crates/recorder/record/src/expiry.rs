//! Packets that grow too old: they expire, and where the volume says so their slots are erased.
//!
//! The ring writer declares twice a minute what is expired. Which slots hold nothing else a thread
//! of its own finds in their heads: recording must not wait for its reads, nor for it to end, which
//! a disk that hangs may put off for good. Recording comes before erasing. In the end it is given a
//! few seconds; what is left the next recording goes on with, or `erase`.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;

use core::ops::Range;
use core::time::Duration;

use format::head::StripeId;
use format::superblock::Superblock;
use stage::{Receiver, Sender, channel};
use units::{Clock, NANOS_PER_SECOND, Sequence, Timestamp};
use volume::{Reader, Retention};
use writer::{ClockDoubt, Writer};

use crate::Error;
use crate::options::{MaxAge, Options};
use crate::storage::Storage;

/// How often packets expire: the superblocks are written each time.
const EXPIRE_NS: i64 = 30 * NANOS_PER_SECOND;
/// A slot that is open for this part of the maximum age is left: it could not be erased in time.
const OPEN_SHARE: i64 = 8;
/// Longest time that a slot stays open.
const OPEN_NS_MAX: i64 = 3600 * NANOS_PER_SECOND;
/// Slots whose heads are looked at before they are given up.
const SLOTS_AT_ONCE: u64 = 4096;
/// How long the end of a recording goes on erasing.
const FINISH_NS: i64 = 10 * NANOS_PER_SECOND;
/// How often it looks after the members while it waits for the seeker.
const LISTEN: Duration = Duration::from_millis(100);

/// How long packets are kept from now on.
pub(crate) fn retention(options: &Options, before: &Superblock) -> Result<Retention, Error> {
    let max_age_ns = match options.max_age {
        MaxAge::Unchanged => before.max_age_ns,
        MaxAge::Off => 0,
        MaxAge::Age(age) => units::nanos(age),
    };
    if options.erase == Some(true) && max_age_ns == 0 {
        return Err(Error::EraseWithoutAge);
    }
    Ok(Retention { max_age_ns, erases: options.erase.unwrap_or(before.erases) })
}

/// Stripes that are stored with packets which are too old to be given out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Withheld {
    pub(crate) stripes: u64,
    times: Option<Range<Timestamp>>,
}

impl Withheld {
    /// A stripe with such packets of these times.
    pub(crate) fn add(&mut self, times: Range<Timestamp>) {
        self.stripes = self.stripes.saturating_add(1);
        let known = self.times.get_or_insert_with(|| times.clone());
        *known = known.start.min(times.start)..known.end.max(times.end);
    }

    /// For progress and report.
    pub(crate) fn note(&self) -> Option<String> {
        let Range { start, end } = self.times.as_ref()?;
        let what = if self.stripes == 1 { "stripe has" } else { "stripes have" };
        Some(format!(
            "withheld by age: {} {what} packets beyond the maximum age, from {start} to {end}: \
             no answer gives them out, and where the volume erases what is too old they are erased",
            self.stripes
        ))
    }
}

/// What the ring writer knows of the age of packets.
pub(crate) struct Expiry {
    retention: Retention,
    /// The user stated it.
    is_clock_right: bool,
    /// The first reason why packets did not expire by the clock.
    pub(crate) doubt: Option<ClockDoubt>,
    /// When that was last seen to.
    seen_ns: Option<i64>,
    seeker: Option<Seeker>,
    /// What the seeker looks at.
    asked: Option<Range<Sequence>>,
    /// The newest slot with packets or index, and when it got the first of them.
    slot: Option<(Sequence, i64)>,
}

impl Expiry {
    /// On `storage` slots are looked for that may be erased.
    pub(crate) fn new(
        (retention, is_clock_right): (Retention, bool),
        storage: Arc<dyn Storage>,
    ) -> Result<Self, Error> {
        let erases = retention.erases && retention.max_age_ns > 0;
        let seeker = erases.then(|| Seeker::start(storage)).transpose();
        let seeker = seeker.map_err(Error::Thread)?;
        Ok(Self {
            retention,
            is_clock_right,
            doubt: None,
            seen_ns: None,
            seeker,
            asked: None,
            slot: None,
        })
    }

    /// Packets or an index were appended.
    pub(crate) fn note(&mut self, stripe: StripeId, now_ns: i64) {
        if self.slot.is_none_or(|(sequence, _)| sequence != stripe.sequence) {
            self.slot = Some((stripe.sequence, now_ns));
        }
    }

    /// Declares expired what is older than the maximum age: when recording begins and twice a
    /// minute; and erases what it finds, while `is_calm`.
    pub(crate) fn tick(
        &mut self,
        writer: &mut Writer,
        is_calm: bool,
        clock: &dyn Clock,
    ) -> Result<(), volume::Error> {
        let now_ns = clock.boottime_ns();
        if self.seen_ns.is_none_or(|seen_ns| now_ns.saturating_sub(seen_ns) >= EXPIRE_NS) {
            self.seen_ns = Some(now_ns);
            self.declare(writer, clock)?;
            self.destroy_keys(writer, clock)?;
            self.leave_slot(writer, clock)?;
            self.ask(writer, clock);
        }
        let Some(seeker) = &self.seeker else { return Ok(()) };
        if let Ok(found) = seeker.answers.try_recv() {
            let asked = self.asked.take();
            writer.give_up_before(found, clock)?;
            if asked.is_some_and(|asked| asked.end == found) {
                self.ask(writer, clock);
            }
        }
        if is_calm {
            writer.erase_next(clock)?;
        }
        Ok(())
    }

    /// The same when the recording is over and everything is acknowledged. Gives how many slots are
    /// left to be erased.
    pub(crate) fn finish(
        &mut self,
        writer: &mut Writer,
        clock: &dyn Clock,
    ) -> Result<u64, volume::Error> {
        self.declare(writer, clock)?;
        if self.seeker.is_none() {
            return Ok(0);
        }
        self.destroy_keys(writer, clock)?;
        writer.leave_slot(clock)?;
        let until_ns = clock.boottime_ns().saturating_add(FINISH_NS);
        let left_ns = || until_ns - clock.boottime_ns();
        if self.asked.is_some() {
            self.take_answer(writer, left_ns(), clock)?;
        }
        loop {
            while left_ns() > 0 && writer.erase_next(clock)? {
                // What was erased is flushed at once: no more of it is under way at a time.
                writer.poll_at_once(clock)?;
            }
            let is_asked = left_ns() > 0 && self.ask(writer, clock);
            if !is_asked || !self.take_answer(writer, left_ns(), clock)? {
                break;
            }
        }
        writer.drain(clock)?;
        writer.note_erased(clock)?;
        Ok(writer.left_to_erase())
    }

    fn declare(&mut self, writer: &mut Writer, clock: &dyn Clock) -> Result<(), volume::Error> {
        let (retention, age_ns) = (self.retention, self.retention.max_age_ns);
        if core::mem::take(&mut self.is_clock_right) {
            return writer.expire_by_clock(retention, age_ns, clock);
        }
        self.doubt = self.doubt.or(writer.clock_doubt(age_ns, clock));
        writer.expire(retention, age_ns, clock)
    }

    /// Where what is expired is erased: keys first, each when all that it encrypted has expired.
    fn destroy_keys(&self, writer: &mut Writer, clock: &dyn Clock) -> Result<(), volume::Error> {
        if self.seeker.is_some() {
            writer.destroy_keys(self.retention.max_age_ns, clock)?;
        }
        Ok(())
    }

    fn leave_slot(&mut self, writer: &mut Writer, clock: &dyn Clock) -> Result<(), volume::Error> {
        let open_ns = (self.retention.max_age_ns / OPEN_SHARE).min(OPEN_NS_MAX);
        let is_due =
            |&mut (_, since_ns): &mut (Sequence, i64)| clock.boottime_ns() - since_ns >= open_ns;
        if self.seeker.is_some() && self.slot.take_if(is_due).is_some() {
            writer.leave_slot(clock)?;
        }
        Ok(())
    }

    /// Has the seeker look for what may be given up, unless it does; false when there is nothing to
    /// look at.
    fn ask(&mut self, writer: &Writer, clock: &dyn Clock) -> bool {
        let Some(seeker) = self.seeker.as_ref().filter(|_| self.asked.is_none()) else {
            return false;
        };
        let all = writer.erasable();
        let slots = all.start..all.end.min(all.start + SLOTS_AT_ONCE);
        let through = writer.erasable_through(self.retention.max_age_ns, clock);
        let is_asked = !slots.is_empty() && seeker.ask.try_send((slots.clone(), through)).is_ok();
        self.asked = is_asked.then_some(slots);
        is_asked
    }

    /// Waits for what the seeker has found; whether that was anything. A disk that hangs may hold
    /// the seeker up: meanwhile the members' claims are renewed, or another writer could take them.
    fn take_answer(
        &mut self,
        writer: &mut Writer,
        wait_ns: i64,
        clock: &dyn Clock,
    ) -> Result<bool, volume::Error> {
        let until_ns = clock.boottime_ns().saturating_add(wait_ns);
        let Some(seeker) = &self.seeker else { return Ok(false) };
        let found = loop {
            match seeker.answers.recv_timeout(LISTEN) {
                Ok(found) => break found,
                Err(RecvTimeoutError::Disconnected) => return Ok(false),
                Err(RecvTimeoutError::Timeout) => writer.poll(None, clock)?,
            }
            if clock.boottime_ns() >= until_ns {
                return Ok(false);
            }
        };
        let asked = self.asked.take();
        writer.give_up_before(found, clock)?;
        Ok(asked.is_some_and(|asked| asked.start < found))
    }
}

/// A thread that looks for slots that hold nothing but what is expired.
struct Seeker {
    ask: Sender<(Range<Sequence>, Timestamp)>,
    answers: Receiver<Sequence>,
}

impl Seeker {
    fn start(storage: Arc<dyn Storage>) -> std::io::Result<Self> {
        let (ask, asked) = channel::<(Range<Sequence>, Timestamp)>(1);
        let (answer, answers) = channel(1);
        let body = move || {
            while let Ok((slots, through)) = asked.recv() {
                let find = || -> Result<Sequence, volume::Error> {
                    let found = storage.find_any()?;
                    let reader = Reader::of_members(storage.open_members(&found)?)?;
                    Ok(reader.expired_until(slots.clone(), through))
                };
                // What cannot be read now is looked for again.
                if answer.send(find().unwrap_or(slots.start)).is_err() {
                    return;
                }
            }
        };
        // It ends with the channel, and no thread waits for it: a disk that hangs holds it up.
        stage::spawn("expiry", body)?;
        Ok(Self { ask, answers })
    }
}
