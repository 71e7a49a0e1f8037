//! The highest rate without loss: doubling, then bisection. Pure: it says what to try next.

/// Bisection ends when the bounds are this close: one sixteenth of the lower.
const CLOSE: u64 = 16;
/// Below this many packets a second there is nothing worth to be found.
const LEAST: u64 = 1000;

/// What a trial showed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// Nothing was lost at the rate asked for.
    Lossless,
    /// Something was lost.
    Lost,
    /// Nothing was lost, but the sender reached only so many packets a second.
    Slow {
        /// Packets a second.
        reached: u64,
    },
}

/// Where a search ended. Rates are packets a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Lossless up to here, and loss a little above.
    Recorder {
        /// The highest rate without loss.
        lossless: u64,
        /// The lowest with loss.
        lossy: u64,
    },
    /// The sender reaches no more than this, without loss.
    Sender {
        /// What it reached.
        lossless: u64,
    },
    /// Even this loses packets.
    Nothing {
        /// The lowest rate that was tried.
        lossy: u64,
    },
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    repeats: u32,
    rate: u64,
    /// Trials at this rate without loss so far.
    passed: u32,
    /// Further trials in which the sender was too slow.
    slow: u32,
    /// The least that it reached in those.
    slowest: Option<u64>,
    lossless: Option<u64>,
    upper: Option<Upper>,
    limit: Option<Limit>,
}

/// What is known not to work.
#[derive(Clone, Copy, Debug)]
enum Upper {
    Lossy(u64),
    Slow(u64),
}

impl Upper {
    fn rate(self) -> u64 {
        match self {
            Self::Lossy(rate) | Self::Slow(rate) => rate,
        }
    }
}

impl Search {
    /// Begins at `rate` packets a second; a rate counts as lossless after so many trials.
    pub fn new(rate: u64, repeats: u32) -> Self {
        Self {
            repeats: repeats.max(1),
            rate: rate.max(LEAST),
            passed: 0,
            slow: 0,
            slowest: None,
            lossless: None,
            upper: None,
            limit: None,
        }
    }

    /// The rate to try next; `None` when the search has ended.
    pub fn next_rate(&self) -> Option<u64> {
        self.limit.is_none().then_some(self.rate)
    }

    /// The limit that the search found.
    pub fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// Takes what a trial at [`Self::next_rate`] showed.
    pub fn tell(&mut self, seen: Seen) {
        match seen {
            Seen::Lost => self.upper = Some(Upper::Lossy(self.rate)),
            Seen::Lossless => {
                self.passed += 1;
                if self.passed < self.repeats {
                    return;
                }
                self.lossless = Some(self.rate);
            }
            Seen::Slow { reached } => {
                // A sender that was disturbed once is not at its limit.
                self.slow += 1;
                let slowest = self.slowest.map_or(reached, |slowest| slowest.min(reached));
                self.slowest = Some(slowest);
                if self.slow < self.repeats {
                    return;
                }
                // What it reached was without loss; no more can be asked for.
                self.lossless = Some(self.lossless.map_or(slowest, |best| best.max(slowest)));
                self.upper = Some(Upper::Slow(self.rate.min(slowest + slowest / CLOSE)));
            }
        }
        (self.passed, self.slow, self.slowest) = (0, 0, None);
        self.choose();
    }

    fn choose(&mut self) {
        match (self.lossless, self.upper) {
            (lossless, None) => self.rate = lossless.unwrap_or(self.rate).saturating_mul(2),
            (None, Some(upper)) if upper.rate() <= LEAST => {
                self.limit = Some(Limit::Nothing { lossy: upper.rate() });
            }
            (None, Some(upper)) => self.rate = (upper.rate() / 2).max(LEAST),
            (Some(lossless), Some(upper)) => {
                let between = upper.rate().saturating_sub(lossless);
                if between <= lossless / CLOSE {
                    self.limit = Some(match upper {
                        Upper::Lossy(lossy) => Limit::Recorder { lossless, lossy },
                        Upper::Slow(_) => Limit::Sender { lossless },
                    });
                } else {
                    self.rate = lossless + between / 2;
                }
            }
        }
    }

    /// Trials that are left, about; without an upper bound a few doublings are guessed.
    pub fn trials_left(&self) -> u32 {
        const GUESS: u32 = 4;
        let steps = match (self.lossless, self.upper) {
            (_, None) => 2 * GUESS,
            (None, Some(_)) => GUESS,
            (Some(lossless), Some(upper)) => {
                let close = (lossless / CLOSE).max(1);
                let ratio = upper.rate().saturating_sub(lossless).div_ceil(close).max(1);
                ratio.next_power_of_two().trailing_zeros()
            }
        };
        // Half of the steps of a bisection lose packets, at the first trial as a rule.
        steps * self.repeats.div_ceil(2).max(1) + (self.repeats - self.passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches where more than `recorder` is lost and the sender reaches `sender`; the rates that
    /// were tried, and where it ended.
    fn search(start: u64, [recorder, sender]: [u64; 2]) -> (Vec<u64>, Limit) {
        let (mut search, mut tried) = (Search::new(start, 2), Vec::new());
        while let Some(rate) = search.next_rate() {
            assert!(search.trials_left() > 0 && tried.len() < 100);
            tried.push(rate);
            let reached = rate.min(sender);
            search.tell(match () {
                () if reached > recorder => Seen::Lost,
                () if reached < rate => Seen::Slow { reached },
                () => Seen::Lossless,
            });
        }
        (tried, search.limit().unwrap())
    }

    #[test]
    fn the_limit_of_the_recorder_is_found_within_a_sixteenth() {
        for recorder in [1000, 1001, 50_000, 777_777, 12_000_000] {
            for start in [1000, 60_000, 2_000_000] {
                let (tried, limit) = search(start, [recorder, u64::MAX]);
                let Limit::Recorder { lossless, lossy } = limit else { panic!("{limit:?}") };
                assert!(lossless <= recorder && recorder < lossy, "{recorder}: {limit:?}");
                assert!(lossy - lossless <= lossless / CLOSE);
                assert!(tried.len() < 60, "{tried:?}");
            }
        }
    }

    #[test]
    fn the_limit_of_the_sender_is_said_to_be_that() {
        let (tried, limit) = search(100_000, [u64::MAX, 900_000]);
        assert_eq!(limit, Limit::Sender { lossless: 900_000 });
        // Each of 100, 200, 400, 800 and 1600 thousand twice.
        assert_eq!(tried.len(), 10, "{tried:?}");
        let (_, limit) = search(2_000_000, [u64::MAX, 900_000]);
        assert_eq!(limit, Limit::Sender { lossless: 900_000 });
    }

    #[test]
    fn a_sender_only_a_little_faster_than_the_recorder_does_not_hide_its_limit() {
        let (_, limit) = search(100_000, [800_000, 1_100_000]);
        let Limit::Recorder { lossless, lossy } = limit else { panic!("{limit:?}") };
        assert!(lossless <= 800_000 && lossy > 800_000);
    }

    #[test]
    fn a_recorder_that_always_loses_has_no_limit() {
        let (_, limit) = search(50_000, [0, u64::MAX]);
        assert!(matches!(limit, Limit::Nothing { lossy } if lossy < 2 * LEAST), "{limit:?}");
    }

    #[test]
    fn a_sender_that_was_disturbed_once_is_asked_again() {
        let mut search = Search::new(10_000, 2);
        search.tell(Seen::Slow { reached: 4000 });
        search.tell(Seen::Lossless);
        assert_eq!(search.next_rate(), Some(10_000));
        search.tell(Seen::Lossless);
        assert_eq!((search.next_rate(), search.passed), (Some(20_000), 0));
    }

    #[test]
    fn one_loss_ends_the_trials_of_a_rate() {
        let mut search = Search::new(10_000, 5);
        search.tell(Seen::Lossless);
        assert_eq!((search.next_rate(), search.passed), (Some(10_000), 1));
        search.tell(Seen::Lost);
        assert_eq!((search.next_rate(), search.passed), (Some(5000), 0));
    }
}
