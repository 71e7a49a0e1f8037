//! The threads of a recording, and the loop that feeds them.

use capture::Source;
use format::piece::Frame;
use selection::Division;
use stage::channel;
use units::Clock;

use crate::caretakers::{self, Caretakers};
use crate::common::{Base, Common};
use crate::ending::Threads;
use crate::error::Error;
use crate::indexing;
use crate::opening::Opened;
use crate::options::Options;
use crate::progress::{ProgressReporter, Progressing};
use crate::queues::Feeding;
use crate::report::Report;
use crate::spares::{self, Opening};
use crate::writing::{self, Begin};

/// Runs one recording, of which each queue stores its share. What is handed over is given back.
pub(crate) fn run(
    options: &Options,
    clock: &dyn Clock,
    (base, divisions): (Base, Vec<Division>),
    opened: Opened,
    progress: Progressing<'_>,
) -> Result<(Report, Vec<Box<dyn Source>>), Error> {
    let (common, sources, note) = Common::new(options, clock, base, &opened)?;
    let opening = Opening::new(options, &opened, &common.storage);
    let (recovery, epoch) = (opened.recovery.clone(), opened.writer.epoch());
    let prepared = indexing::prepare(&common, &opened)?;
    let keyring = opened.keyring.clone();
    let open_reader = || Some(common.storage.reader().ok()?.unlocked(keyring.as_ref()));
    let known = (&opened, &*sources.advice, note);
    let mut progress = ProgressReporter::new(&common, known, progress);

    stage::scope(|scope| {
        let _watched = caretakers::watch(scope, &common)?;
        let (tasks, task_queue) = channel(common.pool.count());
        let (sealed, sealed_queue, skips) = indexing::way(&common);
        let late = (&skips, tasks.clone());
        let indexer = indexing::indexer(&common, &opened, prepared, late, &open_reader);
        let (spares, spares_end) = spares::start(opening.clone(), tasks.clone());
        let begin = Begin {
            queues: sources.queues(),
            clock: sources.clock,
            from: sources.from(),
            recorded_until: opened.reader.recorded_until(),
        };
        let hands = (sealed, skips, spares);
        let ring = writing::start(scope, &common, (opened.writer, begin), task_queue, hands)?;
        let Caretakers { patrol, resilverer } = caretakers::start(scope, &common, opening, &tasks)?;
        let index = indexing::start(scope, indexer, sealed_queue, opened.reader)?;
        let feeding = Feeding {
            common: &common,
            frame: if keyring.is_some() { Frame::Encrypted } else { Frame::Plain },
            tasks,
            divisions,
            crash: sources.crash(&recovery, clock.realtime()),
        };
        let fed = feeding.all(scope, sources, &mut || progress.tell())?;
        drop(resilverer);
        let mut report = Threads { ring, patrol, index, spares_end }.end(&common)?;
        assert!(!fed.is_writer_gone, "a writer that is gone has said why");
        (report.recovery, report.epoch) = (recovery, epoch);
        progress.finish((fed.notes, fed.broken_off), &mut report);
        Ok((report, fed.kept))
    })
}
