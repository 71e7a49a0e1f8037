//! Calls that may hang: a thread that waits for a disk that does not answer waits in the kernel,
//! beyond any signal. So such a call is made by a helper thread, and who asked for it waits for a
//! time.
//!
//! A call that is overdue keeps its thread, and what it needs is its own; nothing else waits for
//! that thread, the end of the process included (which the kernel may hold up all the same). While
//! one is overdue, every further call at the same path is refused at once: the disk is silent, and
//! asking it again would cost the same time again. When the overdue call returns, the path is asked
//! as before, but with little patience until it has answered in time.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::thread;

use stage::lock;

use crate::Error;
use crate::clock::monotonic_ns;

/// How long a disk may take for one call. One that has to spin up answers within it.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long who gives a device up waits for what is under way.
pub(crate) const LEAVE: Duration = Duration::from_secs(2);
/// As [`PATIENCE`], for a disk that has not answered in time before, and since.
const PATIENCE_AGAIN: Duration = Duration::from_secs(1);
/// As [`PATIENCE`], for writing back what the page cache holds.
const PATIENCE_WRITING_BACK: Duration = Duration::from_mins(1);
/// As [`PATIENCE`], when the process is to stop.
const PATIENCE_AT_STOP: Duration = Duration::from_secs(1);
/// How often a waiting thread looks whether to stop. Time is counted in these, so that a process
/// that was suspended does not blame the disk.
const LOOK: Duration = Duration::from_millis(50);
/// How long a helper waits for another call.
const IDLE: Duration = Duration::from_secs(1);

/// Whether the process is to stop.
static IS_STOPPING: OnceLock<fn() -> bool> = OnceLock::new();
/// The paths at which some call was overdue, and whether none was answered in time since.
static SILENT: Mutex<BTreeMap<PathBuf, bool>> = Mutex::new(BTreeMap::new());
/// The paths that are being called.
static CALLEES: Mutex<BTreeMap<PathBuf, Weak<Callee>>> = Mutex::new(BTreeMap::new());
static HELPERS: Helpers = Helpers {
    state: Mutex::new(HelpersState { jobs: VecDeque::new(), idle: 0 }),
    posted: Condvar::new(),
};

/// From now on no call waits longer than a second for a disk once `is_stopping` says so: the call
/// ends with [`Error::Interrupted`]. To be said once; later ones change nothing.
pub fn hear_stop(is_stopping: fn() -> bool) {
    IS_STOPPING.get_or_init(|| is_stopping);
}

/// Does what may hang at `path`, such as looking it up.
///
/// # Errors
/// [`Error::Silent`] after [`PATIENCE`], or 1 s if it was silent before, at once while an earlier
/// call there is overdue; [`Error::Interrupted`], see [`hear_stop`].
pub fn patiently<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    Callee::at(path).call(work)
}

/// The paths at which some call of this process was overdue, and whether one is so still: the
/// kernel may not let the process end before that returns.
pub fn silent_paths() -> Vec<(PathBuf, bool)> {
    let is_overdue = |path: &Path| lock(&Callee::at(path).overdue).count > 0;
    let silent: Vec<PathBuf> = lock(&SILENT).keys().cloned().collect();
    silent.into_iter().map(|path| (path.clone(), is_overdue(&path))).collect()
}

fn is_stopping() -> bool {
    IS_STOPPING.get().is_some_and(|is_stopping| is_stopping())
}

/// Gives something back, and waits this long until that is done. What takes longer says nothing
/// of the disk: the machine may be busy, and nobody needs what is given back.
pub(crate) fn give_back(patience: Duration, work: impl FnOnce() + Send + 'static) {
    let given = Arc::new((Mutex::new(false), Condvar::new()));
    let giving = Arc::clone(&given);
    HELPERS.post(Box::new(move || {
        work();
        let (is_done, done) = &*giving;
        *lock(is_done) = true;
        done.notify_one();
    }));
    let (is_done, done) = &*given;
    let _waited = done
        .wait_timeout_while(lock(is_done), patience, |is_done| !*is_done)
        .unwrap_or_else(PoisonError::into_inner);
}

/// What is known of how a path answers.
#[derive(Debug)]
pub(crate) struct Callee {
    path: PathBuf,
    overdue: Mutex<Overdue>,
}

/// Calls that no thread waits for any more.
#[derive(Debug, Default)]
struct Overdue {
    count: usize,
    /// When the first of them was made.
    since_ns: u64,
}

/// Where a call is.
enum Stage<T> {
    Waiting,
    Done(T),
    /// No thread waits for it any more.
    Left,
}

impl Callee {
    /// Shared by all calls at this path.
    pub(crate) fn at(path: &Path) -> Arc<Self> {
        let mut callees = lock(&CALLEES);
        if let Some(callee) = callees.get(path).and_then(Weak::upgrade) {
            return callee;
        }
        callees.retain(|_, callee| callee.strong_count() > 0);
        let callee = Arc::new(Self { path: path.to_path_buf(), overdue: Mutex::default() });
        callees.insert(path.to_path_buf(), Arc::downgrade(&callee));
        callee
    }

    /// Makes a call.
    ///
    /// # Errors
    /// As [`patiently`].
    pub(crate) fn call<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.begin(work)?.end()
    }

    /// Begins a call that is waited for later, so that other paths are called meanwhile.
    ///
    /// # Errors
    /// As [`patiently`], at once while another call is overdue.
    pub(crate) fn begin<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Call<T>, Error> {
        self.check()?;
        Ok(self.begin_beside(work))
    }

    /// The same beside others, whether these are overdue or not.
    pub(crate) fn begin_beside<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Call<T> {
        let is_suspect = lock(&SILENT).get(&self.path).is_some_and(|is_suspect| *is_suspect);
        let patience = if is_suspect { PATIENCE_AGAIN } else { PATIENCE };
        Call { is_suspect, ..self.post(patience, work) }
    }

    /// Makes a call that may take a minute.
    ///
    /// # Errors
    /// As [`patiently`], after that long.
    pub(crate) fn call_long<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.check()?;
        self.call_for(PATIENCE_WRITING_BACK, work)
    }

    /// Makes a call and waits this long for it, also where others are overdue.
    pub(crate) fn call_for<T: Send + 'static>(
        self: &Arc<Self>,
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.post(patience, work).end()
    }

    fn post<T: Send + 'static>(
        self: &Arc<Self>,
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Call<T> {
        let begun_ns = monotonic_ns();
        let call = Arc::new((Mutex::new(Stage::Waiting), Condvar::new()));
        let (callee, answer) = (Arc::clone(self), Arc::clone(&call));
        HELPERS.post(Box::new(move || {
            let value = work();
            let (stage, done) = &*answer;
            let mut stage = lock(stage);
            if matches!(*stage, Stage::Left) {
                drop(stage);
                // A device that was opened too late is closed before it is asked again.
                drop(value);
                lock(&callee.overdue).count -= 1;
            } else {
                *stage = Stage::Done(value);
                done.notify_one();
            }
        }));
        Call { callee: Arc::clone(self), stage: call, begun_ns, patience, is_suspect: false }
    }

    /// Counts a call, still locked by who leaves it, as overdue.
    fn leave(&self, begun_ns: u64) -> Error {
        let mut overdue = lock(&self.overdue);
        if overdue.count == 0 {
            overdue.since_ns = begun_ns;
        }
        overdue.count += 1;
        let refusal = self.refusal(&overdue);
        if refusal.is_silent() {
            lock(&SILENT).insert(self.path.clone(), true);
        }
        refusal
    }

    /// Refuses while a call is overdue.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let overdue = lock(&self.overdue);
        if overdue.count == 0 { Ok(()) } else { Err(self.refusal(&overdue)) }
    }

    fn refusal(&self, overdue: &Overdue) -> Error {
        if is_stopping() {
            return Error::Interrupted;
        }
        let seconds = monotonic_ns().saturating_sub(overdue.since_ns) / 1_000_000_000;
        Error::Silent { path: self.path.clone(), seconds }
    }
}

/// A call under way.
#[must_use = "a call without a waiting thread is never found overdue"]
pub(crate) struct Call<T> {
    callee: Arc<Callee>,
    stage: Arc<(Mutex<Stage<T>>, Condvar)>,
    begun_ns: u64,
    patience: Duration,
    /// The path was silent, and has not answered in time since.
    is_suspect: bool,
}

impl<T> Call<T> {
    /// Waits for its end.
    ///
    /// # Errors
    /// As [`patiently`], its time counted from the beginning of the call.
    pub(crate) fn end(self) -> Result<T, Error> {
        let (stage, done) = &*self.stage;
        let mut stage = lock(stage);
        // What passed while another call was waited for counts, but for the last second: this
        // process may have been suspended then.
        let passed = Duration::from_nanos(monotonic_ns().saturating_sub(self.begun_ns));
        let mut waited = passed.min(self.patience.saturating_sub(PATIENCE_AGAIN));
        let mut stopping = Duration::ZERO;
        while matches!(*stage, Stage::Waiting)
            && waited < self.patience
            && stopping < PATIENCE_AT_STOP
        {
            let waiting = |stage: &mut Stage<T>| matches!(stage, Stage::Waiting);
            (stage, _) = done
                .wait_timeout_while(stage, LOOK, waiting)
                .unwrap_or_else(PoisonError::into_inner);
            waited += LOOK;
            stopping += if is_stopping() { LOOK } else { Duration::ZERO };
        }
        match core::mem::replace(&mut *stage, Stage::Left) {
            Stage::Done(value) => {
                if self.is_suspect {
                    lock(&SILENT).insert(self.callee.path.clone(), false);
                }
                Ok(value)
            }
            Stage::Waiting | Stage::Left => Err(self.callee.leave(self.begun_ns)),
        }
    }
}

impl<T> core::fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Call").field("callee", &self.callee).finish_non_exhaustive()
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads that make calls: as many as calls are under way at once, overdue ones included.
struct Helpers {
    state: Mutex<HelpersState>,
    posted: Condvar,
}

struct HelpersState {
    jobs: VecDeque<Job>,
    /// Helpers that wait for a job, or were woken for one of `jobs`.
    idle: usize,
}

impl Helpers {
    fn post(&'static self, job: Job) {
        let mut state = lock(&self.state);
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            self.posted.notify_one();
            return;
        }
        drop(state);
        let helper = thread::Builder::new().name("disk-call".to_owned());
        if helper.spawn(|| self.serve()).is_err() {
            // Without another thread it is made here, however long it takes.
            let job = lock(&self.state).jobs.pop_back();
            if let Some(job) = job {
                job();
            }
        }
    }

    fn serve(&self) {
        let mut state = lock(&self.state);
        loop {
            while let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = lock(&self.state);
            }
            state.idle += 1;
            let (woken, waited) = self
                .posted
                .wait_timeout_while(state, IDLE, |state| state.jobs.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::sync_channel;

    use super::*;

    const SHORT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn a_path_that_hangs_is_left_and_asked_again_when_it_has_answered() {
        let callee = Callee::at(Path::new("hangs/and/comes/back"));
        let (release, released) = sync_channel::<()>(0);
        let hangs = move || released.recv().unwrap_or_default();
        let left = callee.call_for(SHORT, hangs);
        assert!(matches!(&left, Err(Error::Silent { path, .. }) if path == &callee.path));
        // Refused at once, by whatever way it is asked.
        let other = patiently(Path::new("hangs/and/comes/back"), || panic!("it is not called"));
        assert!(matches!(other, Err(Error::Silent { .. })), "{other:?}");
        assert_eq!(patiently(Path::new("another"), || 7), Ok(7));
        let named = |path: &str| silent_paths().into_iter().find(|(it, _)| it == Path::new(path));
        assert!(named("hangs/and/comes/back").unwrap().1 && named("another").is_none());
        drop(release);
        assert_eq!(callee.call_for(LONG, || 1), Ok(1));
        let answers = || {
            let answer = callee.call(|| 2);
            if answer.is_err() {
                thread::yield_now();
            }
            answer.ok()
        };
        assert_eq!(core::iter::repeat_with(answers).find_map(|it| it), Some(2));
    }

    #[test]
    fn what_is_given_back_is_waited_for_and_says_nothing_of_a_disk() {
        let given = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&given);
        give_back(LONG, move || own.store(1, Ordering::SeqCst));
        assert_eq!(given.load(Ordering::SeqCst), 1);
        let (release, released) = sync_channel::<()>(0);
        let own = Arc::clone(&given);
        give_back(SHORT, move || {
            released.recv().unwrap_or_default();
            own.store(2, Ordering::SeqCst);
        });
        assert_eq!(given.load(Ordering::SeqCst), 1);
        drop(release);
        while given.load(Ordering::SeqCst) == 1 {
            thread::yield_now();
        }
    }

    #[test]
    fn a_value_that_comes_too_late_is_dropped_before_the_path_is_asked_again() {
        struct Open(Arc<AtomicUsize>);
        impl Drop for Open {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let callee = Callee::at(Path::new("opens/too/late"));
        let open = Arc::new(AtomicUsize::new(0));
        let (release, released) = sync_channel::<()>(0);
        let own = Arc::clone(&open);
        let left = callee.call_for(SHORT, move || {
            released.recv().unwrap_or_default();
            own.fetch_add(1, Ordering::SeqCst);
            Open(own)
        });
        assert!(left.is_err());
        drop(release);
        let own = Arc::clone(&open);
        let mut seen = core::iter::repeat_with(|| {
            let own = Arc::clone(&own);
            callee.call(move || own.load(Ordering::SeqCst))
        });
        assert_eq!(seen.find_map(Result::ok), Some(0));
    }

    #[test]
    fn calls_that_hang_side_by_side_cost_little_more_than_one() {
        let released = Arc::new((Mutex::new(false), Condvar::new()));
        let calls = (0..3).map(|number| {
            let callee = Callee::at(&PathBuf::from(format!("hangs/beside/others/{number}")));
            let released = Arc::clone(&released);
            callee.post(PATIENCE_AGAIN, move || {
                let (is_released, told) = &*released;
                let waiting = |is_released: &mut bool| !*is_released;
                drop(told.wait_while(lock(is_released), waiting));
            })
        });
        let calls: Vec<_> = calls.collect();
        // All of them have been asked for that long when the first wait ends.
        let begun_ns = monotonic_ns() - 2 * u64::try_from(PATIENCE.as_nanos()).unwrap();
        let long = calls.into_iter().map(|call| Call { begun_ns, patience: PATIENCE, ..call });
        let (mut looks, before_ns) = (0, monotonic_ns());
        for call in long {
            looks += 1;
            assert!(matches!(call.end(), Err(Error::Silent { .. })));
        }
        // The shortest of waits each, not the long one.
        assert!(looks == 3 && monotonic_ns() - before_ns < 15_000_000_000);
        *lock(&released.0) = true;
        released.1.notify_all();
    }

    /// More calls at once than there are helpers to begin with, each with an answer of its own.
    #[test]
    fn calls_at_the_same_time_do_not_wait_for_each_other() {
        let callee = Callee::at(Path::new("many/at/once"));
        let all = Arc::new(std::sync::Barrier::new(20));
        thread::scope(|scope| {
            for number in 0..20 {
                let (callee, all) = (&callee, Arc::clone(&all));
                scope.spawn(move || {
                    let answer = callee.call_for(LONG, move || {
                        all.wait();
                        number
                    });
                    assert_eq!(answer, Ok(number));
                });
            }
        });
    }
}
