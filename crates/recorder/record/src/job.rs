//! One recording, from options to report.

use std::sync::Arc;

use core::fmt;
use core::ops::ControlFlow;

use capture::Source;
use index::Files;
use recording::Progress;
use units::Sleep;

use crate::common::Base;
use crate::error::Error;
use crate::opening::Opened;
use crate::options::Options;
use crate::pipeline;
use crate::report::Report;
use crate::sources::Sources;
use crate::storage::{Paths, Storage};
use crate::{opening, settling, succession};

/// Records until the sources end or `progress`, called about five times a second, breaks: then what
/// was accepted is stored, sealed and acknowledged.
pub fn record(
    options: &Options,
    clock: &dyn Sleep,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Report, Error> {
    let opening_ns = clock.boottime_ns();
    // Before anything is opened: a filter that means nothing changes nothing.
    options.selection()?;
    // Memory that card and processors share lies where the card is.
    let near = host::MemoryNear::interfaces(options.input.interfaces());
    let mut sources = succession::open(options, clock)?;
    let storage: Arc<dyn Storage> = Arc::new(Paths::new(options));
    let mut opened = opening::open((options, &*storage), sources.queues(), clock)?;
    drop(near);
    let rings = if sources.may_hand_over { opened.writer.superblock().members.len() } else { 0 };
    let held = settling::held(options, opened.writer.superblock());
    sources.advice.extend(options.settled.call(&held, rings));
    let cpu_before = host::cpu_time()?;
    let start_ns = clock.boottime_ns();
    let (mut why, mut earlier) = (None, None::<Report>);
    let mut report = loop {
        let of_sources = (sources.clock, sources.queues());
        let (mut report, kept) = run((options, clock), (&storage, sources, opened), why, progress)?;
        if let Some(earlier) = earlier.take() {
            report.add_earlier(earlier);
        }
        let kept = (kept, &mut report.notes);
        let Some(next) = succession::wait((options, clock), of_sources, kept)? else {
            break report;
        };
        (sources, why) = (next.0, Some(next.1));
        sources.setup.extend(report.news.drain(..).map(|event| event.text));
        opened = succession::open_again((options, &*storage), sources.queues(), clock)?;
        earlier = Some(report);
    };
    report.opening_ns = start_ns - opening_ns;
    report.elapsed_ns = clock.boottime_ns() - start_ns;
    let cpu = host::cpu_time()?;
    // That of the indexers is there already.
    report.cpu += (cpu.user + cpu.system).saturating_sub(cpu_before.user + cpu_before.system);
    report.assert_accounted();
    Ok(report)
}

/// Records until the sources end, or are handed over: then they are given back. `why` this recorder
/// goes on, where it was to hand over.
fn run(
    (options, clock): (&Options, &dyn Sleep),
    (storage, mut sources, mut opened): (&Arc<dyn Storage>, Sources, Opened),
    why: Option<&str>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<(Report, Vec<Box<dyn Source>>), Error> {
    opened.setup.append(&mut sources.setup);
    let queues = sources.queues();
    let said = if opened.recovery.clean { None } else { opened.reader.said().0 };
    let stored = said.map(|said| said.recorded.through);
    let divisions = sources.before.as_mut().map(|before| before.divide(stored, queues));
    opened.setup.extend(sources.before.as_ref().map(|before| before.line(why, clock)));
    if sources.may_hand_over {
        options.control.may_hand_over();
    }
    let storage = Arc::clone(storage);
    let base = Base { storage, files: None, log: host::log_warning, sources };
    pipeline::run(options, clock, (base, divisions.unwrap_or_default()), opened, progress)
}

/// What a recording stands on, where that is not this machine.
pub struct Ground {
    /// Opens the disks of the members.
    pub storage: Arc<dyn Storage>,
    /// The index directory.
    pub files: Box<dyn Files + Send + Sync>,
    /// Where packets come from: one for each queue.
    pub sources: Vec<Box<dyn Source>>,
}

impl fmt::Debug for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ground").field("storage", &self.storage).finish_non_exhaustive()
    }
}

/// As [`record`], on ground that is given: what `options` say of places is not looked at.
pub fn record_on(
    ground: Ground,
    options: &Options,
    clock: &dyn Sleep,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Report, Error> {
    let selection = options.selection()?;
    let Ground { storage, files, sources } = ground;
    let opened = opening::open((options, &*storage), sources.len(), clock)?;
    let mut sources = sources.into_iter();
    let (first, further) = (sources.by_ref().take(1).collect(), sources.collect());
    let (advice, setup, stamps) = Default::default();
    let (clock_of, may_hand_over, before) = (stamps, false, None);
    let sources = Sources {
        first,
        further,
        advice,
        selection,
        setup,
        clock: clock_of,
        may_hand_over,
        before,
    };
    let base = Base { storage, files: Some(files), log: |_| (), sources };
    let (report, _) = pipeline::run(options, clock, (base, Vec::new()), opened, progress)?;
    report.assert_accounted();
    Ok(report)
}
