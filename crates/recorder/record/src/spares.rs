//! Spares: their devices are opened by a thread for each member that was expelled, and handed to
//! the ring writer, who waits for no disk. The end of a recording waits for them only shortly.

use std::path::Path;
use std::sync::Arc;

use core::time::Duration;

use device::Device;
use events::Watches;
use format::superblock::Spare;
use stage::{Sender, Watched};
use units::MemberId;
use volume::NewPlace;

use crate::discards;
use crate::opening::Opened;
use crate::options::{Discard, Options};
use crate::storage::Storage;
use crate::task::Task;
use crate::way::Way;

/// How long the end of a recording waits for a spare that is being opened.
const END: Duration = Duration::from_secs(1);

/// How devices are opened that join a recording while it goes on.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) watches: Watches,
    pub(crate) discard: Discard,
    /// Bytes of a run of slots that are discarded together.
    pub(crate) run_bytes: u64,
}

impl Opening {
    pub(crate) fn new(options: &Options, opened: &Opened, storage: &Arc<dyn Storage>) -> Self {
        Self {
            storage: Arc::clone(storage),
            watches: opened.watches.clone(),
            discard: options.discard,
            run_bytes: opened.writer.discard_bytes(),
        }
    }

    /// A device, watched; `None` where it cannot be opened.
    pub(crate) fn open(&self, path: &Path, member: Option<MemberId>) -> Option<Box<dyn Device>> {
        let device = self.storage.open(path).ok()?;
        Some(self.watches.over(device, member, path))
    }

    fn first_of(&self, member: MemberId, spares: Vec<Spare>) -> Option<Task> {
        spares.into_iter().find_map(|spare| {
            let path = self.storage.place_of(&spare)?;
            let device = self.open(&path, None)?;
            let takes_discards = self.takes_discards(&path);
            let place = self.storage.new_place(&path, spare.uuid, &spare.path);
            let spare = place.map_or(spare, |NewPlace { uuid, path }| Spare { uuid, path });
            Some(Task::Spare { member, spare, device, takes_discards })
        })
    }

    /// Whether it is to hear ahead of the head what is needed no more.
    pub(crate) fn takes_discards(&self, path: &Path) -> bool {
        discards::is_wanted(self.storage.disk(path), self.discard, self.run_bytes)
    }
}

/// Has spares opened.
pub(crate) struct Spares {
    opening: Opening,
    tasks: Way,
    /// How many threads open spares at this moment.
    working: Watched<usize>,
}

/// The end of a recording: when this is dropped nothing comes from the threads any more.
pub(crate) struct SparesEnd {
    tasks: Way,
    working: Watched<usize>,
}

impl Drop for SparesEnd {
    fn drop(&mut self) {
        // Whether it has come to that or not, no thread waits longer.
        let _in_time = self.working.wait("a spare that is opened", END, |count| *count == 0);
        self.tasks.close();
    }
}

pub(crate) fn start(opening: Opening, tasks: Sender<Task>) -> (Spares, SparesEnd) {
    let (tasks, working) = (Way::new(tasks), Watched::default());
    let end = SparesEnd { tasks: tasks.clone(), working: working.clone() };
    (Spares { opening, tasks, working }, end)
}

impl Spares {
    /// Looks for the first of `spares` that is there, for the place of a member. It comes as a
    /// task.
    pub(crate) fn look(&self, member: MemberId, spares: Vec<Spare>) {
        if spares.is_empty() {
            return;
        }
        let (opening, tasks) = (self.opening.clone(), self.tasks.clone());
        let working = self.working.clone();
        let body = move || {
            if let Some(task) = opening.first_of(member, spares) {
                // Otherwise the recording is over.
                drop(tasks.send(task));
            }
            working.change(|count| *count -= 1);
        };
        self.working.change(|count| *count += 1);
        if stage::spawn("spare", body).is_err() {
            // The member stays away, as without a spare.
            self.working.change(|count| *count -= 1);
        }
    }
}
