//! The queues of a recording: how many there are, and their threads. The first one is the thread
//! that records; the others follow it.

use std::sync::atomic::Ordering;

use core::ops::ControlFlow;

use capture::Source;
use format::directory::Gap;
use format::piece::Frame;
use selection::{Division, Selection};
use stage::{Joining, Scope, Sender};
use units::QueueId;

use crate::common::Common;
use crate::error::Error;
use crate::feed::{Feed, Looking};
use crate::intake::{Intake, IntakeParts, WriterGone};
use crate::sources::Sources;
use crate::task::Task;

/// Notes of the queues, and where their sources broke off.
#[derive(Default)]
pub(crate) struct Fed {
    /// Then the ring writer says why.
    pub(crate) is_writer_gone: bool,
    pub(crate) notes: Vec<String>,
    pub(crate) broken_off: Vec<String>,
    /// What was handed over: one of each queue.
    pub(crate) kept: Vec<Box<dyn Source>>,
}

impl Fed {
    /// What concerns an interface every queue learns of.
    fn add(&mut self, feed: Feed<'_>) {
        for (all, mine) in [(&mut self.notes, feed.notes), (&mut self.broken_off, feed.broken_off)]
        {
            all.extend(mine.into_iter().filter(|line| !all.contains(line)).collect::<Vec<_>>());
        }
        self.kept.extend(feed.kept);
    }
}

/// What the intakes of all queues share.
pub(crate) struct Feeding<'a> {
    pub(crate) common: &'a Common<'a>,
    pub(crate) frame: Frame,
    pub(crate) tasks: Sender<Task>,
    /// What of the packets of each queue is stored here.
    pub(crate) divisions: Vec<Division>,
    /// What the recorder before this one lost.
    pub(crate) crash: Option<Gap>,
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
        let mut first = self.feed(QueueId(0), sources.selection.clone());
        let mut followers = Vec::new();
        for (queue, source) in (1..).map(QueueId).zip(sources.further) {
            match self.follow(scope, (queue, sources.selection.clone()), source) {
                Ok(follower) => followers.push(follower),
                Err(error) => {
                    self.common.is_stopping.store(true, Ordering::Relaxed);
                    return Err(Error::Thread(error));
                }
            }
        }
        pin(cpu_of(QueueId(0), &self.common.options.cpus), &mut first.notes);
        let is_writer_gone = first.all(sources.first, look).is_err();
        self.common.is_stopping.store(true, Ordering::Relaxed);
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
        (queue, selection): (QueueId, Selection),
        source: Box<dyn Source>,
    ) -> std::io::Result<Follower<'scope>> {
        let (mut feed, cpu) =
            (self.feed(queue, selection), cpu_of(queue, &self.common.options.cpus));
        let body = move || {
            pin(cpu, &mut feed.notes);
            let result = feed.all(vec![source], &mut || ControlFlow::Continue(()));
            (feed, result)
        };
        scope.spawn(&format!("queue-{queue}"), body)
    }

    fn feed(&mut self, queue: QueueId, selection: Selection) -> Feed<'scope> {
        let Common { options, clock, .. } = *self.common;
        let intake = Intake::new(IntakeParts {
            queue,
            name: options.name.as_deref().unwrap_or_default(),
            ledger: &self.common.ledger,
            pool: self.common.pool.clone(),
            frame: self.frame,
            tasks: self.tasks.clone(),
            clock,
            may_wait: self.common.may_wait,
            cut_after_ns: units::nanos(options.cut_after),
            writer_failed: &self.common.has_failed,
            gaps: self.crash.take().into_iter().collect(),
            selection,
            control: options.control.clone(),
            waits: self.common.waits.clone(),
        });
        let more = (options.cut_after, self.common.events.clone());
        let division = self.divisions.get(queue.place()).cloned().unwrap_or_else(Division::whole);
        let share = (division, options.control.clone());
        Feed::new(intake, clock, &self.common.is_stopping, (more, share))
    }
}

fn cpu_of(queue: QueueId, cpus: &[usize]) -> Option<usize> {
    cpus.get(queue.place().checked_rem(cpus.len())?).copied()
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
        let given: Vec<_> = QueueId::first(5).map(|queue| cpu_of(queue, &[4, 6])).collect();
        assert_eq!(given, [Some(4), Some(6), Some(4), Some(6), Some(4)]);
        assert_eq!(cpu_of(QueueId(3), &[]), None);
    }
}
