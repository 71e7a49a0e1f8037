//! The stage: threads of the recorder take turns as the seed wills, and time passes when all of
//! them wait.
//!
//! Each is a thread of the operating system, of which one runs at a time. Every place where threads
//! meet is one where another may be chosen. When no thread can go on and none waits for a time,
//! they wait for each other: that ends the history.

use core::fmt::Write as _;
use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use device::Timeline;
use stage::{Key, Stage};

use crate::random::Random;

/// How often in a hundred another thread is chosen where one may be.
const SWITCH_PERCENT: u64 = 15;
/// A step takes less than this: what processors take.
const STEP_NS: u64 = 4_000;
/// One in so many steps takes longer: a processor that has other things to do.
const SLOW_STEP: u64 = 200;
const SLOW_STEP_NS: u64 = 3_000_000;
/// Longer than anything takes from one step to the next, of real time.
const STUCK: Duration = Duration::from_mins(2);
/// More steps than any recording takes here.
const STEPS_MAX: u64 = 20_000_000;

/// Who runs, who waits.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    timeline: Timeline,
}

#[derive(Debug)]
struct State {
    random: Random,
    players: Vec<Player>,
    running: usize,
    /// Why no thread waits for a turn any more.
    over: Option<String>,
    steps: u64,
}

#[derive(Debug)]
struct Player {
    name: String,
    status: Status,
    turn: Arc<Condvar>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Ready,
    Waiting { key: Key, what: &'static str, until_ns: Option<i64> },
    Gone,
}

impl Turns {
    /// A stage on which the calling thread stands alone.
    pub(crate) fn new(timeline: &Timeline, random: Random) -> Arc<Self> {
        let first = Player::new("main");
        let state = State { random, players: vec![first], running: 0, over: None, steps: 0 };
        let turns = Arc::new(Self { state: Mutex::new(state), timeline: timeline.clone() });
        stage::stand_on(Some(Arc::<Self>::clone(&turns)));
        turns
    }

    /// Threads that have not ended, but for the first.
    pub(crate) fn others(&self) -> Vec<String> {
        let state = self.lock();
        let others = state.players.iter().skip(1).filter(|player| player.status != Status::Gone);
        others.map(|player| player.name.clone()).collect()
    }

    /// A thread of the first name is there, and all of these names wait for others, not for a disk.
    pub(crate) fn are_waiting(&self, names: &[&str]) -> bool {
        let state = self.lock();
        let is_there = |player: &&Player| player.status != Status::Gone;
        let mut there = state.players.iter().filter(is_there);
        let is_waiting = |player: &Player| match player.status {
            Status::Waiting { key, .. } => key != Key::NONE,
            Status::Ready | Status::Gone => false,
        };
        let has_first = there.clone().any(|player| Some(&&*player.name) == names.first());
        has_first && there.all(|player| !names.contains(&&*player.name) || is_waiting(player))
    }

    pub(crate) fn steps(&self) -> u64 {
        self.lock().steps
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        stage::lock(&self.state)
    }

    /// The running thread gives its turn to the chosen one, and waits for its next.
    fn hand_on(&self, mut state: MutexGuard<'_, State>) {
        let me = state.running;
        let Some(next) = state.choose(&self.timeline) else {
            state.end("threads wait for each other");
            return self.check(&state);
        };
        state.running = next;
        if next == me {
            return;
        }
        state.player(next).turn.notify_one();
        if state.player(me).status != Status::Gone {
            self.await_turn(state, me);
        }
    }

    fn await_turn(&self, mut state: MutexGuard<'_, State>, me: usize) {
        let turn = Arc::clone(&state.player(me).turn);
        while state.running != me && state.over.is_none() {
            let (steps, running) = (state.steps, state.running);
            let waited = turn.wait_timeout(state, STUCK).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            let has_moved = (state.steps, state.running) != (steps, running);
            if waited.1.timed_out() && !has_moved {
                let name = state.player(state.running).name.clone();
                state.end(&format!("{name} waits for a lock that another thread holds"));
            }
        }
        self.check(&state);
    }

    /// # Panics
    /// When it is over, unless that is known.
    #[expect(clippy::unused_self, reason = "it reads as a question to the stage")]
    fn check(&self, state: &State) {
        if let Some(why) = &state.over
            && !std::thread::panicking()
        {
            panic!("{why}");
        }
    }
}

impl Player {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), status: Status::Ready, turn: Arc::default() }
    }
}

impl State {
    fn player(&self, number: usize) -> &Player {
        self.players.get(number).expect("players keep their numbers")
    }

    fn set(&mut self, number: usize, status: Status) {
        self.players.get_mut(number).expect("players keep their numbers").status = status;
    }

    /// Whose turn it is next; time passes if it is no thread's otherwise. `None`: no thread's, for
    /// ever.
    fn choose(&mut self, timeline: &Timeline) -> Option<usize> {
        loop {
            let now_ns = timeline.now_ns();
            for player in &mut self.players {
                if let Status::Waiting { until_ns: Some(until_ns), .. } = player.status
                    && until_ns <= now_ns
                {
                    player.status = Status::Ready;
                }
            }
            let is_ready = |player: &Player| player.status == Status::Ready;
            let ready = self.players.iter().filter(|player| is_ready(player)).count();
            if ready > 0 {
                let chosen = self.random.index(ready);
                let all = self.players.iter().enumerate();
                return all.filter(|(_, it)| is_ready(it)).nth(chosen).map(|(number, _)| number);
            }
            let times = self.players.iter().filter_map(|player| match player.status {
                Status::Waiting { until_ns, .. } => until_ns,
                _ => None,
            });
            timeline.advance_to(times.min()?);
        }
    }

    fn end(&mut self, why: &str) {
        if self.over.is_some() {
            return;
        }
        let mut text = why.to_owned();
        for player in &self.players {
            if let Status::Waiting { what, .. } = player.status {
                write!(text, "; {} for {what}", player.name).expect("a String takes it");
            }
        }
        self.over = Some(text);
        self.players.iter().for_each(|player| player.turn.notify_one());
    }
}

impl Stage for Turns {
    fn pass(&self) {
        let mut state = self.lock();
        if state.over.is_some() {
            return self.check(&state);
        }
        state.steps += 1;
        if state.steps > STEPS_MAX {
            state.end("the recorder comes to no end");
            return self.check(&state);
        }
        let is_slow = state.random.below(SLOW_STEP) == 0;
        let most_ns = if is_slow { SLOW_STEP_NS } else { STEP_NS };
        let takes_ns = state.random.below(most_ns);
        self.timeline.advance_by(takes_ns);
        if state.random.percent(SWITCH_PERCENT) {
            self.hand_on(state);
        }
    }

    fn wait(&self, key: Key, what: &'static str, timeout: Option<Duration>) {
        let mut state = self.lock();
        if state.over.is_some() {
            return self.check(&state);
        }
        let timeout_ns = timeout.map(|it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
        let until_ns = timeout_ns.map(|ns| self.timeline.now_ns().saturating_add_unsigned(ns));
        let me = state.running;
        state.set(me, Status::Waiting { key, what, until_ns });
        self.hand_on(state);
    }

    fn wake(&self, key: Key) {
        for player in &mut self.lock().players {
            if matches!(player.status, Status::Waiting { key: other, .. } if other == key) {
                player.status = Status::Ready;
            }
        }
    }

    fn now_ns(&self) -> i64 {
        self.timeline.now_ns()
    }

    fn announce(&self, name: &str) -> usize {
        let mut state = self.lock();
        state.players.push(Player::new(name));
        state.players.len() - 1
    }

    fn enter(&self, number: usize) {
        let state = self.lock();
        if state.over.is_none() {
            self.await_turn(state, number);
        }
    }

    fn leave(&self) {
        let mut state = self.lock();
        if state.over.is_none() {
            let me = state.running;
            state.set(me, Status::Gone);
            self.hand_on(state);
        }
    }

    fn give_up(&self) {
        self.lock().end("a thread has panicked");
    }
}

#[cfg(test)]
mod tests {
    use units::Timestamp;

    use super::*;

    fn on_stage<T>(seed: u64, play: impl FnOnce(&Turns) -> T) -> T {
        let timeline = Timeline::new(Timestamp(0));
        let turns = Turns::new(&timeline, Random::new(seed));
        let result = play(&turns);
        stage::stand_on(None);
        result
    }

    /// Three threads give numbers to one, in an order that the seed decides.
    fn order(seed: u64) -> Vec<u64> {
        on_stage(seed, |_| {
            stage::scope(|scope| {
                let (sender, receiver) = stage::channel(2);
                for number in 0..3_u64 {
                    let sender = sender.clone();
                    let body = move || {
                        for turn in 0..5 {
                            sender.send(10 * number + turn).expect("the other end takes them");
                            stage::sleep(Duration::from_millis(turn));
                        }
                    };
                    drop(scope.spawn("gives", body).expect("a thread"));
                }
                drop(sender);
                core::iter::from_fn(|| receiver.recv().ok()).collect()
            })
        })
    }

    #[test]
    fn a_seed_is_an_order_and_another_seed_another() {
        let orders: Vec<_> = (0..20).map(order).collect();
        assert_eq!(orders, (0..20).map(order).collect::<Vec<_>>());
        assert!(orders.iter().any(|other| *other != orders[0]));
        let mut sorted = orders[7].clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..3).flat_map(|it| 10 * it..10 * it + 5).collect::<Vec<_>>());
    }

    #[test]
    fn threads_that_wait_for_each_other_are_seen() {
        let stuck = std::panic::catch_unwind(|| {
            on_stage(0, |_| {
                stage::scope(|scope| {
                    let (to_other, from_first) = stage::channel::<u8>(1);
                    let (to_first, from_other) = stage::channel::<u8>(1);
                    let body = move || {
                        from_first.recv().expect("a number");
                        to_first.send(1).expect("the other end takes it");
                    };
                    drop(scope.spawn("other", body).expect("a thread"));
                    from_other.recv().expect("a number");
                    to_other.send(1).expect("the other end takes it");
                });
            });
        });
        stage::stand_on(None);
        let why = stuck.expect_err("no thread can go on");
        let why = why.downcast_ref::<String>().expect("a text");
        assert!(why.contains("wait for each other; main for a queue; other for a queue"), "{why}");
    }

    #[test]
    fn time_passes_when_all_wait() {
        on_stage(3, |turns| {
            stage::sleep(Duration::from_hours(10));
            assert!(turns.now_ns() >= 36_000_000_000_000 && turns.steps() < 10);
        });
    }
}
