//! The threads beside a recording that keep its members whole, and that look after waits.

use std::sync::Arc;

use stage::{Scope, Sender};

use crate::common::Common;
use crate::error::Error;
use crate::patrol::{self, PatrolThread};
use crate::resilver::{self, Working};
use crate::spares::Opening;
use crate::task::Task;
use crate::watchdog;

/// They end when this is dropped, the patrol scrub with [`PatrolThread::end`].
pub(crate) struct Caretakers<'scope> {
    pub(crate) patrol: Option<PatrolThread<'scope>>,
    pub(crate) resilverer: Working,
}

/// Watches waits that are too long, until what this gives is dropped.
pub(crate) fn watch<'scope>(
    scope: &Scope<'scope, '_>,
    common: &'scope Common<'_>,
) -> Result<Sender<()>, Error> {
    let said = (&common.waits, &common.events);
    let log = (common.log, &*common.options.volume);
    watchdog::start(scope, said, (&common.status, common.clock), log)
}

/// Starts the patrol scrub and the resilverer, whose `tasks` the ring writer does.
pub(crate) fn start<'scope>(
    scope: &Scope<'scope, '_>,
    common: &'scope Common<'_>,
    opening: Opening,
    tasks: &Sender<Task>,
) -> Result<Caretakers<'scope>, Error> {
    let Common { options, clock, status, waits, pool, storage, files, .. } = common;
    let parts = ((status, waits), tasks.clone(), pool);
    let patrol = patrol::start(scope, (options, storage), parts, (files.as_ref(), *clock))?;
    let shared = (Arc::clone(status), tasks.clone(), pool.clone());
    let resilverer = resilver::start(opening, shared, waits.clone()).map_err(Error::Thread)?;
    Ok(Caretakers { patrol, resilverer })
}
