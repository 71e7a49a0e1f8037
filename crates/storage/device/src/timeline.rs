//! Virtual time, shared by the devices and the clock readers of one simulation.
//!
//! Time moves when a thread waits: a blocking call on a modelled device moves it to the end of that
//! call, and a simulator moves it from event to event. One thread steps it; so a run of days takes
//! as long as its events take to compute, and the same seed gives the same run.

use core::fmt;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use units::{Clock, Sleep, Timestamp};

/// A handle on the time of one simulation.
#[derive(Clone)]
pub struct Timeline {
    state: Arc<Mutex<State>>,
}

struct State {
    now_ns: i64,
    /// Wall-clock time at 0.
    epoch: Timestamp,
    /// Times at which something will be ready, this one and earlier ones left out.
    events: BTreeSet<i64>,
}

impl Timeline {
    /// Time 0, at which the wall clock shows `start`.
    pub fn new(start: Timestamp) -> Self {
        let state = State { now_ns: 0, epoch: start, events: BTreeSet::new() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Nanoseconds since the simulation began.
    pub fn now_ns(&self) -> i64 {
        self.lock().now_ns
    }

    /// Moves on to `ns`; a time in the past changes nothing.
    pub fn advance_to(&self, ns: i64) {
        let mut state = self.lock();
        state.now_ns = state.now_ns.max(ns);
        let now_ns = state.now_ns;
        state.events = state.events.split_off(&now_ns.saturating_add(1));
    }

    /// Does nothing until `ns`: time moves on, on a stage for all other threads, too.
    pub fn wait_until(&self, ns: i64) {
        match stage::current() {
            Some(stage) => stage.wait_until(ns),
            None => self.advance_to(ns),
        }
    }

    /// Moves on by `ns`.
    pub fn advance_by(&self, ns: u64) {
        let now_ns = self.now_ns();
        self.advance_to(now_ns.saturating_add_unsigned(ns));
    }

    /// Marks a time at which something will be ready: [`Timeline::step`] stops there.
    pub fn wake_at(&self, ns: i64) {
        let mut state = self.lock();
        if ns > state.now_ns {
            state.events.insert(ns);
        }
    }

    /// Moves on to the next marked time; `false` when there is none.
    pub fn step(&self) -> bool {
        let next = self.lock().events.first().copied();
        next.is_some_and(|ns| {
            self.advance_to(ns);
            true
        })
    }

    /// Sets the wall clock forward or back, as a time server may.
    pub fn jump_realtime(&self, nanos: i64) {
        let mut state = self.lock();
        state.epoch = state.epoch.plus_nanos(nanos);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        stage::lock(&self.state)
    }
}

impl Clock for Timeline {
    fn realtime(&self) -> Timestamp {
        let state = self.lock();
        state.epoch.plus_nanos(state.now_ns)
    }

    fn boottime_ns(&self) -> i64 {
        self.now_ns()
    }

    fn boot(&self) -> u64 {
        1
    }
}

/// A thread that sleeps moves the time.
impl Sleep for Timeline {
    fn sleep_until(&self, until_ns: i64) {
        self.wait_until(until_ns);
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeline").field("now_ns", &self.now_ns()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_from_event_to_event_in_order_and_end() {
        let timeline = Timeline::new(Timestamp(1000));
        for ns in [30, 10, 10, 20, 0, -5] {
            timeline.wake_at(ns);
        }
        timeline.advance_to(15);
        let mut seen = Vec::new();
        while timeline.step() {
            seen.push(timeline.now_ns());
        }
        assert_eq!(seen, [20, 30]);
        timeline.advance_to(5);
        assert_eq!((timeline.now_ns(), timeline.realtime()), (30, Timestamp(1030)));
    }

    #[test]
    fn a_jump_of_the_wall_clock_moves_only_the_wall_clock() {
        let timeline = Timeline::new(Timestamp(0));
        timeline.advance_by(7);
        timeline.jump_realtime(-100);
        assert_eq!((timeline.boottime_ns(), timeline.realtime()), (7, Timestamp(-93)));
    }
}
