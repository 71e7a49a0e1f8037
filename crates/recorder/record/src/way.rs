//! A way to the ring writer that can be taken away: the ring writer works until no thread has one,
//! and a thread that a disk holds up would keep it.

use stage::Sender;
use stage::sync::{Arc, Mutex};

use crate::task::Task;

/// The recording is over, or its writer is gone.
pub(crate) struct Ended;

/// Clones are taken away together.
#[derive(Clone)]
pub(crate) struct Way(Arc<Mutex<Option<Sender<Task>>>>);

impl Way {
    pub(crate) fn new(tasks: Sender<Task>) -> Self {
        Self(Arc::new(Mutex::new(Some(tasks))))
    }

    pub(crate) fn send(&self, task: Task) -> Result<(), Ended> {
        // The thread that closes it need not wait until there is space.
        let way = stage::lock(&self.0).clone();
        way.and_then(|tasks| tasks.send(task).ok()).ok_or(Ended)
    }

    pub(crate) fn close(&self) {
        *stage::lock(&self.0) = None;
    }
}
