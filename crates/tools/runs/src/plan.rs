//! How often, and in which order.

use serde::Serialize;
use statistics::Draw as _;
use units::{NANOS_PER_SECOND, Random};

/// Runs with which two modes 10 % apart are found: docs/statistics.md, Power.
const ENOUGH: u32 = 30;
/// Fewer say nothing of modes.
const LEAST: u32 = 10;

/// How subjects are run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Rounds before those that count.
    pub warm_ups: u32,
    /// Rounds that count; in each of them every subject is run once.
    pub rounds: Rounds,
    /// Order within a round.
    pub order: Order,
    /// The processors that runs stay on, one after another; empty for wherever the kernel puts
    /// them.
    pub cpus: Vec<usize>,
}

/// Number of rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rounds {
    /// Fewest rounds.
    pub least: u32,
    /// Most rounds.
    pub most: u32,
    /// So many, while they take less than `long_ns` in all.
    pub enough: u32,
    /// More, while they take less than this in all.
    pub short_ns: u64,
    /// No more than the least, when they take this in all.
    pub long_ns: u64,
}

impl Rounds {
    /// 30; more while they take less than 3 s in all, and 10 where they take over a minute.
    pub fn usual() -> Self {
        let second = NANOS_PER_SECOND.unsigned_abs();
        let (short_ns, long_ns) = (3 * second, 60 * second);
        Self { least: LEAST, most: 1000, enough: ENOUGH, short_ns, long_ns }
    }

    /// Exactly this number of rounds.
    pub fn exactly(count: u32) -> Self {
        Self { least: count, most: count, ..Self::usual() }
    }

    /// As many as fit into a time, and 5 at least.
    pub fn during(ns: u64) -> Self {
        Self { least: 5, most: u32::MAX, enough: 0, short_ns: ns, long_ns: ns }
    }

    /// Whether there is a further round behind `done`, which took so long in all.
    pub(crate) fn go_on(&self, done: u32, elapsed_ns: u64) -> bool {
        let is_short = elapsed_ns < self.short_ns;
        let is_wanted = done < self.enough && elapsed_ns < self.long_ns;
        done < self.least || (done < self.most && (is_short || is_wanted))
    }

    /// How many there will be, if they go on as they did; `None` before the first.
    pub(crate) fn expected(&self, done: u32, elapsed_ns: u64) -> Option<u32> {
        if done == 0 {
            return (self.least == self.most).then_some(self.most);
        }
        let each_ns = (elapsed_ns / u64::from(done.max(1))).max(1);
        let within = |ns: u64| u32::try_from(ns.div_ceil(each_ns)).unwrap_or(u32::MAX);
        let wanted = self.enough.min(within(self.long_ns));
        Some(within(self.short_ns).max(wanted).clamp(self.least, self.most).max(done))
    }
}

/// The order within a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Forth and back: A B, B A, A B.
    Turns,
    /// By chance, anew in each round.
    Random,
}

impl Order {
    /// The subjects of a round.
    pub(crate) fn of(self, round: u32, subjects: usize, random: &mut Random) -> Vec<usize> {
        let mut order: Vec<usize> = (0..subjects).collect();
        match self {
            Self::Turns if round % 2 == 1 => order.reverse(),
            Self::Turns => {}
            Self::Random => random.shuffle(&mut order),
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn rounds_of(rounds: Rounds, each_ns: u64) -> u32 {
        let mut done = 0;
        while rounds.go_on(done, u64::from(done) * each_ns) {
            done += 1;
        }
        let expected = rounds.expected(done / 2 + 1, u64::from(done / 2 + 1) * each_ns);
        assert_eq!(expected, Some(done), "what was expected on the way");
        done
    }

    #[test]
    fn quick_commands_get_more_rounds_and_slow_ones_fewer() {
        let ms = 1_000_000;
        for (each_ns, rounds) in
            [(1000, 1000), (10 * ms, 300), (500 * ms, 30), (2500 * ms, 24), (20_000 * ms, 10)]
        {
            assert_eq!(rounds_of(Rounds::usual(), each_ns), rounds, "{each_ns} ns each");
        }
        assert_eq!(rounds_of(Rounds::exactly(7), 1000), 7);
        assert_eq!(rounds_of(Rounds::during(60_000 * ms), 3000 * ms), 20);
        assert_eq!(rounds_of(Rounds::during(1000 * ms), 3000 * ms), 5);
    }

    #[test]
    fn orders_go_forth_and_back_or_by_chance() {
        let mut random = Random::new(1);
        let turns: Vec<_> = (0..3).map(|round| Order::Turns.of(round, 3, &mut random)).collect();
        assert_eq!(turns, [[0, 1, 2], [2, 1, 0], [0, 1, 2]]);
        let firsts = (0..300).map(|round| Order::Random.of(round, 3, &mut random)[0]);
        let firsts: Vec<usize> = firsts.collect();
        for subject in 0..3 {
            let first = firsts.iter().filter(|first| **first == subject).count();
            assert!((70..130).contains(&first), "{first} of 300");
        }
    }
}
