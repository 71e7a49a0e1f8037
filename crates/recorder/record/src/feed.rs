//! The loop of one queue: what a source gives goes into an intake. One thread each.

use std::sync::atomic::{AtomicBool, Ordering};

use core::ops::ControlFlow;
use core::time::Duration;

use capture::{Next, Source};
use events::{EventKind, Events};
use selection::{Division, Share};
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
}

impl<'a> Feed<'a> {
    pub(crate) fn new(
        intake: Intake<'a>,
        clock: &'a dyn Clock,
        is_stopping: &'a AtomicBool,
        ((cut_after, events), (from, control)): ((Duration, Events), (Timestamp, Control)),
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
            division: Division::new(from),
            control,
        }
    }

    /// The times of which packets are stored here.
    fn share(&self) -> Share {
        self.division.share(self.control.until())
    }

    /// Every packet of this recording up to this time was given to the intake.
    fn has_seen(&mut self, through: Timestamp) {
        let last = self.share().until;
        let last = if last == Timestamp::MAX { last } else { last.plus_nanos(-1) };
        self.intake.has_seen(through.min(last));
    }

    /// Another process has what comes, and this one what came before.
    fn is_handed_over(&mut self) -> bool {
        let Some(until) = self.control.until() else { return false };
        self.division.is_over(until, (self.clock.realtime(), self.clock.boottime_ns()))
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
                self.one(source.as_mut(), look)?;
            }
        }
        self.intake.finish()
    }

    fn one(&mut self, source: &mut dyn Source, look: Looking<'_>) -> Result<(), WriterGone> {
        let (mut is_stopped, mut stopped_at) = (false, Timestamp::MIN);
        loop {
            let began = self.clock.realtime();
            let next = source.next_batch(self.wait);
            self.division.look(self.clock, matches!(next, Ok(Next::Idle)));
            match next {
                Ok(Next::Packets(batch)) => {
                    self.intake.know(batch.interfaces());
                    let is_one = batch.interfaces().len() == 1;
                    let mut latest = None;
                    let share = self.share();
                    for packet in batch {
                        latest = Some(packet.timestamp).filter(|_| is_one);
                        if share.has(packet.timestamp) {
                            self.intake.packet(&packet)?;
                        } else {
                            self.intake.leave(&packet);
                        }
                    }
                    // A ring gives its packets in their order; of several it is not known what
                    // waits in the others.
                    latest.filter(|_| !is_stopped).into_iter().for_each(|at| self.has_seen(at));
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
            if self.look(source, look).is_break() || self.is_handed_over() {
                self.is_stopping.store(true, Ordering::Relaxed);
            }
            if !is_stopped && self.is_stopping.load(Ordering::Relaxed) {
                let until = self.control.until();
                let note =
                    |at| format!("handed over: another recorder has the packets from {at} on");
                keep_notes(&mut self.notes, until.map(note));
                is_stopped = true;
                stopped_at = self.clock.realtime();
                source.begin_stop();
            }
        }
        self.has_seen(if is_stopped { stopped_at } else { self.clock.realtime() });
        self.count(source);
        keep_notes(&mut self.notes, self.intake.take_left_out().notes());
        Ok(())
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
