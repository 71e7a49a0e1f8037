//! What the thread that keeps the indexer busy is made of.

use device::Pool;
use index::{Catalog, Files, IndexKeys};
use indexer::{Death, Owner};
use stage::Sender;
use units::{Clock, Epoch};

use crate::control::Control;
use crate::late::Late;
use crate::read_back::ReadBack;
use crate::segment::SegmentLimits;
use crate::status::SharedStatus;
use crate::task::Task;
use crate::waits::Waits;
use events::Events;

/// What the thread is made of.
pub(crate) struct Indexer<'a> {
    pub(crate) owner: Owner,
    /// Segments have rows.
    pub(crate) has_sessions: bool,
    /// Packets can wait for the indexer.
    pub(crate) may_wait: bool,
    pub(crate) limits: SegmentLimits,
    pub(crate) epoch: Epoch,
    /// How files are encrypted that go into the ring.
    pub(crate) keys: IndexKeys,
    pub(crate) catalog: Catalog,
    pub(crate) files: &'a (dyn Files + Sync),
    pub(crate) tasks: Sender<Task>,
    /// Columns for the parts of an index.
    pub(crate) pool: Pool,
    pub(crate) data_columns: usize,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) status: SharedStatus,
    pub(crate) events: Events,
    pub(crate) waits: Waits,
    pub(crate) control: Control,
    /// What there was no time for.
    pub(crate) late: Late,
    pub(crate) read_back: ReadBack<'a>,
}

/// Which runs begin with sessions that have rows already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resumes {
    /// Those of the past.
    Past,
    /// And the next live stripe: the indexer before was killed.
    LiveToo,
    /// None: an indexer has ended by itself, and is given nothing but packets.
    Nothing,
}

impl Resumes {
    /// An indexer has ended.
    pub(crate) fn note(&mut self, death: &Death) {
        *self =
            if death.by_itself || *self == Self::Nothing { Self::Nothing } else { Self::LiveToo };
    }
}
