//! Jobs for a few threads, and what came of them, under one lock.
//!
//! Both lists are bounded by what the one who gives jobs has under way.

use core::time::Duration;
use std::collections::VecDeque;

use stage::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Jobs that wait for a thread, and results that wait for who asked.
#[derive(Debug)]
pub(crate) struct Jobs<J, D> {
    state: Mutex<State<J, D>>,
    given: Condvar,
    finished: Condvar,
}

#[derive(Debug)]
struct State<J, D> {
    jobs: VecDeque<J>,
    done: Vec<D>,
    is_ending: bool,
}

impl<J, D> Jobs<J, D> {
    pub(crate) fn new() -> Self {
        let state = State { jobs: VecDeque::new(), done: Vec::new(), is_ending: false };
        Self { state: Mutex::new(state), given: Condvar::new(), finished: Condvar::new() }
    }

    pub(crate) fn give(&self, job: J) {
        self.lock().jobs.push_back(job);
        self.given.notify_one();
    }

    /// The next job, or `None` once it is to end and nothing is left.
    pub(crate) fn next(&self) -> Option<J> {
        self.given
            .wait_while(self.lock(), |state| state.jobs.is_empty() && !state.is_ending)
            .unwrap_or_else(PoisonError::into_inner)
            .jobs
            .pop_front()
    }

    pub(crate) fn finish(&self, result: D) {
        self.lock().done.push(result);
        self.finished.notify_one();
    }

    /// Puts what has come of jobs behind `out`; waits this long for one where there is none. Gives
    /// how many they are.
    pub(crate) fn reap(&self, wait: Option<Duration>, out: &mut Vec<D>) -> usize {
        let mut state = self.lock();
        if let Some(wait) = wait {
            (state, _) = self
                .finished
                .wait_timeout_while(state, wait, |state| state.done.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
        }
        let count = state.done.len();
        out.append(&mut state.done);
        count
    }

    /// No more jobs come: threads end when they have done those that are here. False where fewer
    /// than `under_way` were done after `patience`: then jobs that no thread has begun are dropped.
    pub(crate) fn end(&self, under_way: usize, patience: Duration) -> bool {
        let mut state = self.lock();
        state.is_ending = true;
        self.given.notify_all();
        let is_short = |state: &mut State<J, D>| state.done.len() < under_way;
        let (mut state, waited) = self
            .finished
            .wait_timeout_while(state, patience, is_short)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            state.jobs.clear();
        }
        !waited.timed_out()
    }

    /// A thread that panicked has aborted the process; the state is whole.
    fn lock(&self) -> MutexGuard<'_, State<J, D>> {
        stage::lock(&self.state)
    }
}
