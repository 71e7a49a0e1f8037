//! Where passwords are hashed: beside the threads that serve, few at a time, and few that wait.

use core::time::Duration;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::problem::Problem;

/// Each takes 19 MiB and a processor; the machine records besides.
const AT_ONCE: usize = 2;
/// Some 50 ms each. Beyond that a login is refused at once, and keeps no connection.
const WAITING: usize = 32;
const PATIENCE: Duration = Duration::from_secs(10);

/// Room for hashes.
#[derive(Debug)]
pub(crate) struct Hashing {
    room: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

impl Default for Hashing {
    fn default() -> Self {
        Self {
            room: Arc::new(Semaphore::new(AT_ONCE + WAITING)),
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

impl Hashing {
    /// Does work that takes as long as a hash.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let room = Arc::clone(&self.room).try_acquire_owned().map_err(|_| Problem::busy())?;
        let place = timeout(PATIENCE, Arc::clone(&self.places).acquire_owned()).await;
        let place = place.ok().and_then(Result::ok).ok_or_else(Problem::busy)?;
        let done = tokio::task::spawn_blocking(move || {
            // A client that leaves does not make room before the work is done.
            let _held = (room, place);
            work()
        });
        done.await.map_err(|_| Problem::worker_ended())
    }
}
