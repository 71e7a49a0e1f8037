//! The queues of a recording: how many there are, and their threads. The first one is the thread
//! that records; the others follow it.

use std::sync::atomic::{AtomicBool, Ordering};

use core::ops::ControlFlow;

use capture::Source;
use device::Pool;
use events::Events;
use format::directory::Gap;
use format::piece::Frame;
use format::recorded::RecordedClock;
use selection::Selection;
use stage::{Joining, Scope, Sender};
use units::{Clock, Timestamp};

use crate::error::Error;
use crate::feed::{Feed, Looking};
use crate::intake::{Intake, IntakeParts, WriterGone};
use crate::ledger::Ledger;
use crate::options::Options;
use crate::task::Task;
use crate::watchdog::Waits;

/// Where packets come from.
pub(crate) struct Sources {
    /// Those of the first queue, one after the other.
    pub(crate) first: Vec<Box<dyn Source>>,
    /// One of each further queue.
    pub(crate) further: Vec<Box<dyn Source>>,
    /// What the user should know of them beforehand.
    pub(crate) advice: Vec<String>,
    /// What of their packets is stored.
    pub(crate) selection: Selection,
    /// What was decided, one line each.
    pub(crate) setup: Vec<String>,
    /// Who says when their packets came.
    pub(crate) clock: RecordedClock,
    /// Another process that listens sees the same packets with the same times.
    pub(crate) may_hand_over: bool,
    /// Earlier packets are those of the recorder before.
    pub(crate) from: Option<Timestamp>,
}

/// Notes of the queues, and where their sources broke off.
#[derive(Default)]
pub(crate) struct Fed {
    /// Then the ring writer says why.
    pub(crate) is_writer_gone: bool,
    pub(crate) notes: Vec<String>,
    pub(crate) broken_off: Vec<String>,
}

impl Fed {
    /// What concerns an interface every queue learns of.
    fn add(&mut self, feed: Feed<'_>) {
        for (all, mine) in [(&mut self.notes, feed.notes), (&mut self.broken_off, feed.broken_off)]
        {
            all.extend(mine.into_iter().filter(|line| !all.contains(line)).collect::<Vec<_>>());
        }
    }
}

/// What the intakes of all queues share.
pub(crate) struct Feeding<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) pool: Pool,
    pub(crate) frame: Frame,
    pub(crate) tasks: Sender<Task>,
    pub(crate) clock: &'a dyn Clock,
    /// A file waits for a free column; a link does not.
    pub(crate) may_wait: bool,
    pub(crate) writer_failed: &'a AtomicBool,
    /// Set when no queue is to take anything new.
    pub(crate) is_stopping: &'a AtomicBool,
    /// Earlier packets are those of the recorder before.
    pub(crate) from: Timestamp,
    /// What the recorder before this one lost.
    pub(crate) crash: Option<Gap>,
    pub(crate) options: &'a Options,
    pub(crate) waits: Waits,
    pub(crate) events: Events,
}

type Follower<'scope> = Joining<'scope, (Feed<'scope>, Result<(), WriterGone>)>;

impl<'scope> Feeding<'scope> {
    /// Feeds every queue until all sources have ended. Only the first one looks.
    pub(crate) fn all(
        mut self,
        scope: &Scope<'scope, '_>,
        sources: Sources,
        look: Looking<'_>,
    ) -> Result<Fed, Error> {
        let mut first = self.feed(0, sources.selection.clone());
        let mut followers = Vec::new();
        for (queue, source) in (1..).zip(sources.further) {
            match self.follow(scope, (queue, sources.selection.clone()), source) {
                Ok(follower) => followers.push(follower),
                Err(error) => {
                    self.is_stopping.store(true, Ordering::Relaxed);
                    return Err(Error::Thread(error));
                }
            }
        }
        pin(cpu_of(0, &self.options.cpus), &mut first.notes);
        let is_writer_gone = first.all(sources.first, look).is_err();
        self.is_stopping.store(true, Ordering::Relaxed);
        let mut fed = Fed { is_writer_gone, ..Fed::default() };
        let mut ended = Vec::new();
        for follower in followers {
            let (follower, result) = follower.join().expect("a panic aborts");
            fed.is_writer_gone |= result.is_err();
            ended.push(follower);
        }
        first.intake.end();
        fed.add(first);
        for follower in ended {
            fed.add(follower);
        }
        Ok(fed)
    }

    fn follow(
        &mut self,
        scope: &Scope<'scope, '_>,
        (queue, selection): (usize, Selection),
        source: Box<dyn Source>,
    ) -> std::io::Result<Follower<'scope>> {
        let (mut feed, cpu) = (self.feed(queue, selection), cpu_of(queue, &self.options.cpus));
        let body = move || {
            pin(cpu, &mut feed.notes);
            let result = feed.all(vec![source], &mut || ControlFlow::Continue(()));
            (feed, result)
        };
        scope.spawn(&format!("queue-{queue}"), body)
    }

    fn feed(&mut self, queue: usize, selection: Selection) -> Feed<'scope> {
        let intake = Intake::new(IntakeParts {
            queue,
            name: self.options.name.as_deref().unwrap_or_default(),
            ledger: self.ledger,
            pool: self.pool.clone(),
            frame: self.frame,
            tasks: self.tasks.clone(),
            clock: self.clock,
            may_wait: self.may_wait,
            cut_after_ns: units::nanos(self.options.cut_after),
            writer_failed: self.writer_failed,
            gaps: self.crash.take().into_iter().collect(),
            selection,
            control: self.options.control.clone(),
            waits: self.waits.clone(),
        });
        let more = (self.options.cut_after, self.events.clone());
        let share = (self.from, self.options.control.clone());
        Feed::new(intake, self.clock, self.is_stopping, (more, share))
    }
}

fn cpu_of(queue: usize, cpus: &[usize]) -> Option<usize> {
    cpus.get(queue.checked_rem(cpus.len())?).copied()
}

/// A thread that may not stay where it was wanted works all the same.
fn pin(cpu: Option<usize>, notes: &mut Vec<String>) {
    if let Some(Err(error)) = cpu.map(host::pin_thread) {
        notes.push(format!("cannot pin the thread of a queue to its processor: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_given_out_in_turn() {
        let given: Vec<_> = (0..5).map(|queue| cpu_of(queue, &[4, 6])).collect();
        assert_eq!(given, [Some(4), Some(6), Some(4), Some(6), Some(4)]);
        assert_eq!(cpu_of(3, &[]), None);
    }
}
