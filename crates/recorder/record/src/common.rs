//! What the threads of a recording share.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use device::Pool;
use events::Events;
use index::Files;
use units::Clock;
use volume::Retention;

use crate::error::Error;
use crate::ledger::Ledger;
use crate::opening::Opened;
use crate::options::{Input, Options};
use crate::sources::Sources;
use crate::status::{SharedStatus, WriterStatus};
use crate::storage::Storage;
use crate::waits::Waits;
use crate::{expiry, index_directory};

/// What a recording stands on.
pub(crate) struct Base {
    pub(crate) storage: Arc<dyn Storage>,
    /// `None`: as the options say.
    pub(crate) files: Option<Box<dyn Files + Send + Sync>>,
    /// Where changes of members are reported.
    pub(crate) log: fn(&str),
    pub(crate) sources: Sources,
}

/// Made before the first thread starts, and there until the last one has ended.
pub(crate) struct Common<'a> {
    pub(crate) options: &'a Options,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) storage: Arc<dyn Storage>,
    /// The index directory.
    pub(crate) files: Box<dyn Files + Send + Sync>,
    /// Where changes of members are reported.
    pub(crate) log: fn(&str),
    pub(crate) retention: Retention,
    /// A file waits for a free column, and for the indexer; a link does not.
    pub(crate) may_wait: bool,
    /// The packets' columns.
    pub(crate) pool: Pool,
    pub(crate) status: SharedStatus,
    pub(crate) ledger: Ledger,
    pub(crate) waits: Waits,
    pub(crate) events: Events,
    /// The ring writer has failed.
    pub(crate) has_failed: AtomicBool,
    /// No queue is to take anything new.
    pub(crate) is_stopping: AtomicBool,
}

impl<'a> Common<'a> {
    /// And why the index directory is one in memory, where it is.
    pub(crate) fn new(
        options: &'a Options,
        clock: &'a dyn Clock,
        Base { storage, files, log, sources }: Base,
        opened: &Opened,
    ) -> Result<(Self, Sources, Option<String>), Error> {
        let (files, note) = index_directory::open(files, options, opened, clock);
        let status = WriterStatus::new(&opened.writer, &opened.recovery, clock.boottime_ns());
        let common = Self {
            options,
            clock,
            storage,
            files,
            log,
            retention: expiry::retention(options, opened.writer.superblock())?,
            may_wait: matches!(options.input, Input::Files(_)),
            pool: opened.pool.clone(),
            status: Arc::new(Mutex::new(status)),
            ledger: Ledger::new(1 + sources.further.len()),
            waits: Waits::default(),
            events: Events::default(),
            has_failed: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
        };
        Ok((common, sources, note))
    }
}
