//! Where passwords are hashed: on a thread or two of their own, so that neither the threads that
//! serve nor memory are theirs, whoever floods. Few wait.

use core::time::Duration;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;
use tokio::time::timeout;

/// Each takes 19 MiB and a processor, and the machine records besides: one of eight processors
/// hashes, one at least, two at most. A thread keeps its memory, so there is no more of them.
const PROCESSORS_OF_ONE: usize = 8;
const THREADS_MAX: usize = 2;
/// Some 50 ms each. Beyond that a login is refused at once, and keeps no connection.
const WAITING: usize = 32;
const PATIENCE: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

/// The threads that hash; they end with this value.
#[derive(Debug)]
pub struct Hashing {
    queue: SyncSender<Work>,
}

impl Hashing {
    /// Starts them.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start() -> std::io::Result<Self> {
        let processors = host::allowed_cpus().map_or(1, |processors| processors.len());
        let (queue, works) = sync_channel(WAITING);
        let works = Arc::new(Mutex::new(works));
        for _ in 0..(processors / PROCESSORS_OF_ONE).clamp(1, THREADS_MAX) {
            let works = Arc::clone(&works);
            let thread = std::thread::Builder::new().name("passwords".to_owned());
            thread.spawn(move || run_all(&works))?;
        }
        Ok(Self { queue })
    }

    /// Does work that takes as long as a hash; `None` where too much waits. What a client does not
    /// wait for any more is left.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = oneshot::channel();
        let work: Work = Box::new(move || {
            if !tell.is_closed() {
                drop(tell.send(work()));
            }
        });
        self.queue.try_send(work).ok()?;
        timeout(PATIENCE, told).await.ok().and_then(Result::ok)
    }
}

fn run_all(works: &Mutex<Receiver<Work>>) {
    loop {
        // Who waits for the next one holds it back from nobody.
        let next = stage::lock(works).recv();
        match next {
            Ok(work) => work(),
            Err(_) => return,
        }
    }
}
