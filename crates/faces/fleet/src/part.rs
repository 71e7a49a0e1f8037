//! What came of each sensor, and of all: the statement.
//!
//! A whole is the sum of its parts, and its state that of the worst of them: complete only where
//! every sensor said that it is. A sensor that was not heard to its end may have what was asked
//! for, so that something is missing; why it was not, is said with its name.

use core::fmt;

use completeness::State;
use page::safe::printable;
use page::text::plural;

/// Lines of a sensor's own statement that are repeated; it may be anybody's.
const REASONS_MAX: usize = 8;

/// What a sensor said of its answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// What it says of it.
    pub state: State,
    /// The same where a limit that was asked for is no verdict.
    pub state_within_limit: State,
    /// Packets up to now are not reported yet, by its own recorder.
    pub is_behind: bool,
    /// What is missing, in its words.
    pub reasons: Vec<String>,
    /// What it notes besides.
    pub notes: Vec<String>,
}

impl Default for Said {
    fn default() -> Self {
        Self {
            state: State::Complete,
            state_within_limit: State::Complete,
            is_behind: false,
            reasons: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl Said {
    /// Joins what is said of a further part of the same answer.
    pub fn add(&mut self, other: Self) {
        self.state = self.state.max(other.state);
        self.state_within_limit = self.state_within_limit.max(other.state_within_limit);
        self.is_behind |= other.is_behind;
        let known = [&mut self.reasons, &mut self.notes];
        for (known, others) in known.into_iter().zip([other.reasons, other.notes]) {
            for text in others {
                if !known.contains(&text) && known.len() < REASONS_MAX {
                    known.push(text);
                }
            }
        }
    }
}

/// Why a sensor was not heard to its end, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It cannot be reached.
    Down(String),
    /// It does not answer this, or it is not whom we believe.
    Refused(String),
    /// It does not count our credential on this connection: a list of revocations that is written
    /// anew ends those of before.
    Lapsed(String),
    /// It said nothing for too long, or was not done in time.
    Slow(String),
    /// It has too much to do already.
    Busy(String),
    /// It ended in the middle.
    BrokenOff(String),
    /// What it says is no answer.
    Unlike(String),
    /// The user has had enough, or enough is known.
    Stopped,
}

impl Fault {
    /// Another connection may bring what this one did not.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Down(_) | Self::BrokenOff(_) | Self::Busy(_) | Self::Lapsed(_))
    }

    /// The same in a word.
    pub fn condition(&self) -> Condition {
        match self {
            Self::Down(_) => Condition::Down,
            Self::Refused(_) | Self::Lapsed(_) => Condition::Refused,
            Self::Slow(_) | Self::Busy(_) => Condition::Slow,
            Self::BrokenOff(_) => Condition::BrokenOff,
            Self::Unlike(_) => Condition::Unlike,
            Self::Stopped => Condition::Stopped,
        }
    }

    /// Why, in words.
    pub fn why(&self) -> &str {
        match self {
            Self::Down(why)
            | Self::Refused(why)
            | Self::Lapsed(why)
            | Self::Slow(why)
            | Self::Busy(why)
            | Self::BrokenOff(why)
            | Self::Unlike(why) => why,
            Self::Stopped => "it was not heard to its end",
        }
    }
}

/// What a sensor came to, in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Nothing is missing from its answer.
    Complete,
    /// Nothing is known to be missing from it.
    Unknown,
    /// The same, because its recorder has not yet reported the newest packets.
    Behind,
    /// Something is missing from it.
    Incomplete,
    /// It cannot be reached.
    Down,
    /// It does not answer, or is not believed.
    Refused,
    /// It was not done in time.
    Slow,
    /// It ended in the middle.
    BrokenOff,
    /// What it says is no answer.
    Unlike,
    /// It was not heard to its end, because the user ended it.
    Stopped,
}

impl Condition {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Unknown => "unknown",
            Self::Behind => "behind",
            Self::Incomplete => "incomplete",
            Self::Down => "down",
            Self::Refused => "refused",
            Self::Slow => "slow",
            Self::BrokenOff => "broken off",
            Self::Unlike => "no answer",
            Self::Stopped => "stopped",
        }
    }

    /// What it means for the whole.
    pub fn state(self) -> State {
        match self {
            Self::Complete => State::Complete,
            Self::Unknown | Self::Behind => State::Unknown,
            _ => State::Incomplete,
        }
    }
}

/// What came of one sensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Its name.
    pub sensor: String,
    /// How much of the answer is from it.
    pub count: u64,
    /// Of that so much stands behind what is later.
    pub late: u64,
    /// What it said, or why it did not.
    pub outcome: Result<Said, Fault>,
}

impl Part {
    /// In a word. `is_limited`: reaching the limit that was asked for is no verdict.
    pub fn condition(&self, is_limited: bool) -> Condition {
        let said = match &self.outcome {
            Ok(said) => said,
            Err(fault) => return fault.condition(),
        };
        match if is_limited { said.state_within_limit } else { said.state } {
            State::Complete => Condition::Complete,
            State::Unknown if said.is_behind => Condition::Behind,
            State::Unknown => Condition::Unknown,
            State::Incomplete => Condition::Incomplete,
        }
    }

    /// Why it is not complete.
    pub fn reasons(&self) -> Vec<String> {
        match &self.outcome {
            Ok(said) => said.reasons.clone(),
            Err(fault) => vec![fault.why().to_owned()],
        }
    }

    /// It gave an answer, or a part of one.
    fn was_heard(&self) -> bool {
        self.count > 0 || matches!(self.outcome, Ok(_) | Err(Fault::Stopped))
    }
}

/// What came of all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Whole {
    /// In the order of the file.
    pub parts: Vec<Part>,
    /// What is counted: `session`, `packet`.
    pub of: &'static str,
    /// There is more than the limit that was asked for.
    pub is_limited: bool,
    /// The limit is one that was asked for: reaching it is no verdict.
    pub has_limit: bool,
}

impl Whole {
    /// How much of the answer there is.
    pub fn count(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.count))
    }

    /// What can be said of it: the worst of its parts.
    pub fn state(&self) -> State {
        let parts = self.parts.iter().map(|part| part.condition(self.has_limit).state());
        parts.max().unwrap_or(State::Unknown)
    }

    /// It is not what was asked for, also where no one looks at it: not complete, or not in order.
    pub fn needs_word(&self) -> bool {
        self.state() != State::Complete || self.parts.iter().any(|part| part.late > 0)
    }

    /// No sensor gave any answer: there is none.
    pub fn is_none(&self) -> bool {
        !self.parts.iter().any(Part::was_heard)
    }

    fn complete(&self) -> usize {
        let is_complete = |part: &&Part| part.condition(self.has_limit) == Condition::Complete;
        self.parts.iter().filter(is_complete).count()
    }
}

/// A few lines, the verdict first; then a line for each sensor that is not complete.
impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |count: usize| units::number::to_u64(count);
        let (complete, all) = (self.complete(), self.parts.len());
        let sensors = plural(number(all), "sensor");
        write!(f, "{} of {sensors}, {}", plural(self.count(), self.of), self.state().name())?;
        if complete < all {
            write!(f, ": {complete} of {all} complete")?;
        }
        if self.is_limited {
            f.write_str("; there are more than the limit")?;
        }
        for part in &self.parts {
            let (name, condition) = (&part.sensor, part.condition(self.has_limit));
            let after = plural(part.count, self.of);
            if condition != Condition::Complete {
                write!(f, "\n{name}: {}, {after}", condition.name())?;
                for reason in part.reasons().iter().take(REASONS_MAX) {
                    write!(f, "\n{name}: {}", printable(reason))?;
                }
            }
            if part.late > 0 {
                let late = plural(part.late, self.of);
                write!(f, "\n{name}: {late} out of order, behind later ones")?;
            }
            let notes = part.outcome.as_ref().map_or(&[][..], |said| &said.notes);
            for note in notes.iter().take(REASONS_MAX) {
                write!(f, "\n{name}: {}", printable(note))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(sensor: &str, outcome: Result<Said, Fault>) -> Part {
        Part { sensor: sensor.to_owned(), count: 1, late: 0, outcome }
    }

    fn said(state: State, reason: &str) -> Said {
        let reasons = vec![reason.to_owned()];
        Said { state, state_within_limit: state, reasons, ..Said::default() }
    }

    #[test]
    fn rows_out_of_order_are_told_of_a_complete_answer_too() {
        let whole = |late: u64| {
            let part = Part { late, ..part("west", Ok(Said::default())) };
            Whole { parts: vec![part], of: "session", is_limited: false, has_limit: false }
        };
        assert_eq!((whole(0).state(), whole(0).needs_word()), (State::Complete, false));
        let late = whole(120);
        assert_eq!((late.state(), late.needs_word()), (State::Complete, true));
        assert!(late.to_string().contains("\nwest: 120 sessions out of order"), "{late}");
    }

    fn any_outcome() -> impl Strategy<Value = Result<Said, Fault>> {
        let why = || "why".to_owned();
        prop_oneof![
            Just(Ok(Said::default())),
            Just(Ok(said(State::Unknown, "not known"))),
            Just(Ok(Said { is_behind: true, ..said(State::Unknown, "behind") })),
            Just(Ok(said(State::Incomplete, "gap"))),
            Just(Err(Fault::Down(why()))),
            Just(Err(Fault::Refused(why()))),
            Just(Err(Fault::Slow(why()))),
            Just(Err(Fault::Busy(why()))),
            Just(Err(Fault::Lapsed(why()))),
            Just(Err(Fault::BrokenOff(why()))),
            Just(Err(Fault::Unlike(why()))),
            Just(Err(Fault::Stopped)),
        ]
    }

    fn whole(outcomes: &[Result<Said, Fault>]) -> Whole {
        let name = |at: usize| format!("s{at}.");
        let parts = outcomes.iter().enumerate();
        let parts = parts.map(|(at, outcome)| part(&name(at), outcome.clone())).collect();
        Whole { parts, of: "session", is_limited: false, has_limit: false }
    }

    proptest! {
        /// Complete if and only if every sensor said complete; every other one is named with its
        /// reason; a further sensor never makes it better, and their order says nothing.
        #[test]
        fn a_whole_is_as_complete_as_the_worst_of_its_parts(
            outcomes in prop::collection::vec(any_outcome(), 1..12), further in any_outcome(),
        ) {
            let all = whole(&outcomes);
            let is_complete = outcomes.iter().all(|outcome| *outcome == Ok(Said::default()));
            prop_assert_eq!(all.state() == State::Complete, is_complete);
            let text = all.to_string();
            for part in &all.parts {
                let is_named = text.lines().skip(1).any(|line| line.starts_with(&part.sensor));
                prop_assert_eq!(is_named, part.outcome != Ok(Said::default()), "{}", text);
                let has_reasons = part.reasons().iter().all(|reason| text.contains(reason));
                prop_assert!(has_reasons, "{}", text);
            }
            let mut more = outcomes.clone();
            more.push(further);
            prop_assert!(whole(&more).state() >= all.state());
            more.reverse();
            let reversed = whole(&more).state();
            more.sort_by_key(|outcome| format!("{outcome:?}"));
            prop_assert_eq!(whole(&more).state(), reversed);
        }
    }

    #[test]
    fn parts_of_one_answer_join_as_their_worst_and_say_each_reason_once() {
        let mut all = said(State::Unknown, "a");
        all.add(Said::default());
        all.add(said(State::Incomplete, "b"));
        all.add(said(State::Unknown, "a"));
        assert_eq!((all.state, all.reasons), (State::Incomplete, vec!["a".into(), "b".into()]));
    }

    #[test]
    fn a_limit_is_no_verdict_and_is_said() {
        let limited = Said { state: State::Incomplete, ..Said::default() };
        let parts = vec![part("a", Ok(limited))];
        let mut all = Whole { parts, of: "session", is_limited: true, has_limit: true };
        let text = "1 session of 1 sensor, complete; there are more than the limit";
        assert_eq!(all.to_string(), text);
        all.has_limit = false;
        assert_eq!(all.state(), State::Incomplete);
    }

    #[test]
    fn what_a_sensor_says_is_made_harmless() {
        let all = whole(&[Err(Fault::Refused("\u{1b}[31m\nb: complete".to_owned()))]);
        let text = all.to_string();
        assert!(!text.contains('\u{1b}') && text.lines().count() == 3, "{text}");
        assert!(!all.is_none(), "a session came");
        let silent = all.parts.into_iter().map(|part| Part { count: 0, ..part }).collect();
        assert!(Whole { parts: silent, ..whole(&[]) }.is_none());
    }
}
