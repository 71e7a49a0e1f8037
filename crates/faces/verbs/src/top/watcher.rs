//! Looks at the machine again and again while the user looks at it.

use core::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use host::{StopFlag, SystemClock};
use units::{Clock, NANOS_PER_SECOND, Sleep};

/// Looking costs something: it ends when no page has asked for so long.
const PATIENCE_NS: i64 = 5 * NANOS_PER_SECOND;
const NAP_NS: i64 = NANOS_PER_SECOND / 20;

/// A thread that looks, and what it saw last.
#[derive(Debug)]
pub struct Watcher<T> {
    seen: Arc<Mutex<Option<Arc<T>>>>,
    asked_ns: Arc<AtomicI64>,
    stop: StopFlag,
    thread: Option<JoinHandle<()>>,
}

/// What a look is to ask whether it goes on.
pub type GoOn<'a> = &'a mut dyn FnMut() -> ControlFlow<()>;

impl<T: Send + Sync + 'static> Watcher<T> {
    /// Ready to look. What looks is made when a page begins to ask, and goes when none does any
    /// more; a look takes as long as it needs, a second or so.
    pub fn new<L: FnMut(GoOn<'_>) -> T>(
        name: &str,
        make: impl Fn() -> L + Send + 'static,
    ) -> std::io::Result<Self> {
        let seen = Arc::new(Mutex::new(None));
        let asked_ns = Arc::new(AtomicI64::new(i64::MIN));
        let stop = StopFlag::default();
        let (shown, asked, stopping) = (Arc::clone(&seen), Arc::clone(&asked_ns), stop.clone());
        let body = move || {
            let mut eyes: Option<L> = None;
            while !stopping.is_set() {
                let now_ns = SystemClock.boottime_ns();
                if now_ns.saturating_sub(asked.load(Ordering::Relaxed)) > PATIENCE_NS {
                    // What was seen long ago is not shown as the present.
                    *stage::lock(&shown) = None;
                    eyes = None;
                    SystemClock.sleep_until(now_ns + NAP_NS);
                    continue;
                }
                let look = eyes.get_or_insert_with(&make);
                let found = look(&mut || stopping.flow());
                *stage::lock(&shown) = Some(Arc::new(found));
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Self { seen, asked_ns, stop, thread: Some(thread) })
    }

    /// What was seen last, if anything was so far.
    pub fn seen(&self) -> Option<Arc<T>> {
        self.asked_ns.store(SystemClock.boottime_ns(), Ordering::Relaxed);
        stage::lock(&self.seen).clone()
    }
}

impl<T> Drop for Watcher<T> {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a panic aborts");
        }
    }
}
