//! The loop of one queue: what a source gives goes into an intake. One thread each.

use std::sync::atomic::{AtomicBool, Ordering};

use core::ops::ControlFlow;
use core::time::Duration;

use capture::{Batch, Next, Packet, Source};
use events::{EventKind, Events};
use selection::{Division, ORDER_NS};
use units::{Clock, Timestamp};

use crate::control::Control;
use crate::intake::{Intake, WriterGone};
use crate::report::keep_notes;

/// How long a source may wait for packets, at most.
const WAIT: Duration = Duration::from_millis(50);
/// How often counters are read and progress is reported.
const LOOK_NS: i64 = 200_000_000;
/// Longest that a packet waits in a kernel ring, as far as that can be said: longer than the
/// timeout of a block that is not full (50 ms), and than that of several rings and the wait for
/// each other (20 and 60 ms).
const IN_KERNEL_NS: i64 = 150_000_000;

/// Inputs that broke off and are named: a directory may have any number.
const BROKEN_OFF_MAX: usize = 1000;

/// Asked at every look whether the recording goes on.
pub(crate) type Looking<'l> = &'l mut dyn FnMut() -> ControlFlow<()>;

/// Feeds one intake.
pub(crate) struct Feed<'a> {
    pub(crate) intake: Intake<'a>,
    /// Notes of the sources, and where they broke off.
    pub(crate) notes: Vec<String>,
    pub(crate) broken_off: Vec<String>,
    clock: &'a dyn Clock,
    /// Set when no queue is to take anything new.
    is_stopping: &'a AtomicBool,
    /// How long a source may wait for packets: a column must be cut in time.
    wait: Duration,
    looked_ns: i64,
    events: Events,
    /// What is stored here, and not by the recorder before or the next one, of which `control`
    /// says when it begins.
    division: Division,
    control: Control,
    /// What was handed over, and is kept until the other recorder has stored something.
    pub(crate) kept: Option<Box<dyn Source>>,
}

/// Whether a source gives nothing any more, or gives another recorder's packets from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Drained,
    HandedOver,
}

impl<'a> Feed<'a> {
    pub(crate) fn new(
        intake: Intake<'a>,
        clock: &'a dyn Clock,
        is_stopping: &'a AtomicBool,
        ((cut_after, events), (division, control)): ((Duration, Events), (Division, Control)),
    ) -> Self {
        Self {
            intake,
            notes: Vec::new(),
            broken_off: Vec::new(),
            clock,
            is_stopping,
            wait: WAIT.min(cut_after / 2),
            looked_ns: i64::MIN,
            events,
            division,
            control,
            kept: None,
        }
    }

    /// Every packet of this recording up to this time was given to the intake.
    fn has_seen(&mut self, through: Timestamp) {
        let last = self.control.until().map_or(Timestamp::MAX, |until| until.plus_nanos(-1));
        self.intake.has_seen(through.min(last));
    }

    /// Another process has what comes, and this one what came before: `next` is the time of the
    /// next packet, if one is there.
    fn is_handed_over(&mut self, until: Option<Timestamp>, next: Option<Timestamp>) -> bool {
        let Some(until) = until else { return false };
        let is_past = next.is_none_or(|next| until.plus_nanos(2 * ORDER_NS) <= next);
        let now = (self.clock.realtime(), self.clock.boottime_ns());
        self.division.is_over((until, is_past), now)
    }

    /// Takes sources one after the other until they end, or the recording ends.
    pub(crate) fn all(
        &mut self,
        sources: Vec<Box<dyn Source>>,
        look: Looking<'_>,
    ) -> Result<(), WriterGone> {
        for mut source in sources {
            if self.is_stopping.load(Ordering::Relaxed) {
                self.leave_out(source.as_mut());
            } else {
                self.intake.begin_source();
                if self.one(source.as_mut(), look)? == End::HandedOver {
                    self.kept = Some(source);
                }
            }
        }
        self.intake.finish()
    }

    fn one(&mut self, source: &mut dyn Source, look: Looking<'_>) -> Result<End, WriterGone> {
        let (mut is_stopped, mut stopped_at, mut until) = (false, Timestamp::MIN, None);
        loop {
            if until.is_none() {
                // What is left to another recorder is kept.
                until = self.control.until();
                if let Some(until) = until {
                    source.keep_from(until);
                }
            }
            let began = self.clock.realtime();
            let next = source.next_batch(self.wait);
            self.division.look(self.clock, matches!(next, Ok(Next::Idle)));
            let mut earliest = None;
            match next {
                Ok(Next::Packets(batch)) => {
                    let is_one = batch.interfaces().len() == 1;
                    let times = self.take(batch, until)?;
                    earliest = times.map(|(first, _)| first);
                    // Of several rings it is not known what waits in the others.
                    if let Some((_, last)) = times.filter(|_| is_one && !is_stopped) {
                        self.has_seen(last);
                    }
                }
                Ok(Next::Block(block)) => {
                    self.intake.block(&block)?;
                }
                Ok(Next::Idle) if !is_stopped => {
                    self.has_seen(began.plus_nanos(-IN_KERNEL_NS));
                }
                Ok(Next::Idle) => {}
                Ok(Next::End) => break,
                Err(error) => self.break_off(&error),
            }
            self.intake.cut_if_due()?;
            let ends = self.look(source, look).is_break();
            self.is_stopping.fetch_or(ends, Ordering::Relaxed);
            if !is_stopped && self.is_handed_over(until, earliest) {
                self.has_seen(Timestamp::MAX);
                return Ok(self.finish(source, End::HandedOver));
            }
            // Queues that hand over end each by itself.
            let is_stopping = self.is_stopping.load(Ordering::Relaxed);
            if !is_stopped && (ends || (is_stopping && until.is_none())) {
                is_stopped = true;
                stopped_at = self.clock.realtime();
                source.begin_stop();
            }
        }
        self.has_seen(if is_stopped { stopped_at } else { self.clock.realtime() });
        Ok(self.finish(source, End::Drained))
    }

    fn finish(&mut self, source: &mut dyn Source, end: End) -> End {
        self.count(source);
        keep_notes(&mut self.notes, self.intake.take_left_out().notes());
        end
    }

    /// Stores what is stored here of some packets; gives the times of the first and the last.
    fn take(
        &mut self,
        batch: Batch<'_>,
        until: Option<Timestamp>,
    ) -> Result<Option<(Timestamp, Timestamp)>, WriterGone> {
        self.intake.know(batch.interfaces());
        let is_all_ours = self.division.has_begun() && until.is_none();
        let mut times: Option<(Timestamp, Timestamp)> = None;
        for packet in batch {
            let at = packet.timestamp;
            times = Some((times.map_or(at, |(first, _)| first), at));
            if is_all_ours || self.is_ours(&packet, until) {
                self.intake.packet(&packet)?;
            } else {
                self.intake.leave(&packet);
            }
        }
        Ok(times)
    }

    fn is_ours(&mut self, packet: &Packet<'_>, until: Option<Timestamp>) -> bool {
        let interface = usize::try_from(packet.interface).expect("few interfaces");
        let has_begun = self.division.has_begun();
        (has_begun || self.division.has(interface, packet.timestamp))
            && until.is_none_or(|until| packet.timestamp < until)
    }

    /// The stop came before this input had its turn.
    fn leave_out(&mut self, source: &mut dyn Source) {
        source.begin_stop();
        // Live sources have nothing to say: they are drained where they were begun.
        if let Err(error @ capture::Error::Stopped { .. }) = source.next_batch(Duration::ZERO) {
            self.break_off(&error);
        }
    }

    /// Keeps where an input broke off, unless there are very many.
    fn break_off(&mut self, error: &capture::Error) {
        use capture::Error::{InterfaceGone, InterfaceRemoved};
        let (kind, name) = match error {
            InterfaceGone { name } | InterfaceRemoved { name } => {
                (EventKind::InterfaceGone, &**name)
            }
            _ => (EventKind::InputBroken, ""),
        };
        let error = error.to_string();
        self.events.say(kind, name, error.clone());
        if self.broken_off.len() < BROKEN_OFF_MAX {
            self.broken_off.push(error);
        } else if self.broken_off.len() == BROKEN_OFF_MAX {
            self.broken_off.push("further inputs, of which there are too many to list".to_owned());
        }
    }

    /// Reads the counters, and reports progress, a few times a second.
    fn look(&mut self, source: &mut dyn Source, look: Looking<'_>) -> ControlFlow<()> {
        let now = self.clock.boottime_ns();
        if now.saturating_sub(self.looked_ns) < LOOK_NS {
            return ControlFlow::Continue(());
        }
        self.looked_ns = now;
        self.count(source);
        look()
    }

    fn count(&mut self, source: &mut dyn Source) {
        self.intake.know(source.interfaces());
        self.intake.count(&source.counters());
        for note in source.notes() {
            self.events.say(EventKind::Source, &note, note.clone());
            keep_notes(&mut self.notes, [note]);
        }
    }
}
