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
use crate::options::Options;
use crate::pipeline;
use crate::report::Report;
use crate::sources::Sources;
use crate::storage::{Paths, Storage};
use crate::{opening, settling, sources};

/// Why interfaces are not taken over.
const NOT_DIVIDED: &str = "packets by AF_XDP, or with the time of the adapter, cannot be divided \
                           between two recorders (--source packet, --timestamps kernel)";

/// Records until the sources end or `progress`, called about five times a second, breaks: then what
/// was accepted is stored, sealed and acknowledged.
pub fn record(
    options: &Options,
    clock: &dyn Sleep,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Report, Error> {
    let opening_ns = clock.boottime_ns();
    // Before anything is opened: a filter that means nothing changes nothing.
    let selection = options.selection()?;
    // Memory that card and processors share lies where the card is.
    let near = host::MemoryNear::interfaces(options.input.interfaces());
    let mut sources = sources::open(options, selection)?;
    // The kernel keeps from now on what the recorder that runs does not take any more.
    sources.from = match &options.take_over {
        Some(_) if !sources.may_hand_over => return Err(Error::TakeOver(NOT_DIVIDED.to_owned())),
        Some(take_over) => take_over.ask().map_err(Error::TakeOver)?,
        None => None,
    };
    let storage: Arc<dyn Storage> = Arc::new(Paths::new(options));
    let mut opened = opening::open((options, &*storage), 1 + sources.further.len(), clock)?;
    opened.setup.append(&mut sources.setup);
    if let Some(from) = sources.from {
        let waited_ns = clock.realtime().since(from).max(0);
        opened.setup.push(format!(
            "taken over from the recorder before, without a gap: packets from {from} on, which \
             waited in the kernel rings for {} ms",
            waited_ns / 1_000_000
        ));
    }
    if sources.may_hand_over {
        options.control.may_hand_over();
    }
    drop(near);
    sources
        .advice
        .extend(options.settled.call(&settling::held(options, opened.writer.superblock())));
    let cpu_before = host::cpu_time()?;
    let start_ns = clock.boottime_ns();
    let base = Base { storage, files: None, log: host::log_warning, sources };
    let mut report = pipeline::run(options, clock, base, opened, progress)?;
    report.opening_ns = start_ns - opening_ns;
    report.elapsed_ns = clock.boottime_ns() - start_ns;
    let cpu = host::cpu_time()?;
    // That of the indexers is there already.
    report.cpu += (cpu.user + cpu.system).saturating_sub(cpu_before.user + cpu_before.system);
    report.assert_accounted();
    Ok(report)
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
    let (clock_of, may_hand_over, from) = (stamps, false, None);
    let sources =
        Sources { first, further, advice, selection, setup, clock: clock_of, may_hand_over, from };
    let base = Base { storage, files: Some(files), log: |_| (), sources };
    let report = pipeline::run(options, clock, base, opened, progress)?;
    report.assert_accounted();
    Ok(report)
}
