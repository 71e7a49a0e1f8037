//! Subjects run in turn, and everything that was recorded with each run.

use core::ops::ControlFlow;

use statistics::Effect;
use units::number::between;
use units::{Clock, Random};

use crate::judge::{Judged, effect, judge};
use crate::plan::Plan;
use crate::run::{Run, Runner, Setting, Subject};

/// Bytes that the environment of a program is longer by, at most: where the stack begins, and with
/// it how it lies to pages and cache lines, depends on them.
const PADDING_MAX: u64 = 4096;

/// A subject with its runs, and what they say.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// The subject that was run.
    pub subject: Subject,
    /// In the order of time.
    pub runs: Vec<Run>,
    /// What they say; `None` without any.
    pub judged: Option<Judged>,
    /// Against the first subject, round by round; `None` of the first.
    pub effect: Option<Effect>,
}

impl Series {
    /// The values, in the order of time.
    pub fn values(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.ran.value).collect()
    }
}

/// Result of a contest.
#[derive(Clone, PartialEq, Debug)]
pub struct Contest {
    /// In the order given.
    pub series: Vec<Series>,
    /// How they were run.
    pub plan: Plan,
    /// It was broken off; only whole rounds count.
    pub is_interrupted: bool,
    /// How long it took, without the rounds before those that count.
    pub ns: u64,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Going<'a> {
    /// Rounds that are done and count; `None` while it warms up.
    pub rounds: Option<u32>,
    /// As many as are expected; `None` before there is anything to estimate it by.
    pub of: Option<u32>,
    /// The subject that is run next.
    pub next: &'a Subject,
}

/// Runs every subject once a round. `tell` hears before each run what is next, and may break it
/// off.
pub fn contest<R: Runner>(
    subjects: &[Subject],
    plan: &Plan,
    runner: &mut R,
    (clock, random): (&dyn Clock, &mut Random),
    tell: &mut dyn FnMut(Going<'_>) -> ControlFlow<()>,
) -> Result<Contest, R::Error> {
    let mut runs: Vec<Vec<Run>> = subjects.iter().map(|_| Vec::new()).collect();
    let (mut begin_ns, mut round) = (clock.boottime_ns(), 0);
    let mut warm_ups = plan.warm_ups;
    let mut is_interrupted = false;
    while !is_interrupted
        && (warm_ups > 0 || plan.rounds.go_on(round, between(begin_ns, clock.boottime_ns())))
    {
        let counts = warm_ups == 0;
        let of = plan.rounds.expected(round, between(begin_ns, clock.boottime_ns()));
        for (turn, at) in (0..).zip(plan.order.of(round, subjects.len(), random)) {
            let Some(next) = subjects.get(at) else { continue };
            let going = Going { rounds: counts.then_some(round), of, next };
            let setting = setting(plan, (at, round, counts), random);
            let started_ns = clock.boottime_ns();
            let ran = match tell(going) {
                ControlFlow::Continue(()) => runner.run(setting)?,
                ControlFlow::Break(()) => None,
            };
            let Some(ran) = ran else {
                is_interrupted = true;
                break;
            };
            if let Some(runs) = runs.get_mut(at).filter(|_| counts) {
                runs.push(Run { round, turn, begin_ns: between(begin_ns, started_ns), ran });
            }
        }
        if counts && !is_interrupted {
            round += 1;
        } else if !counts {
            warm_ups -= 1;
            begin_ns = clock.boottime_ns();
        }
    }
    // What has no partner says nothing.
    for runs in &mut runs {
        runs.retain(|run| run.round < round);
    }
    let ns = between(begin_ns, clock.boottime_ns());
    Ok(Contest { series: told(subjects, runs, random), plan: plan.clone(), is_interrupted, ns })
}

/// Two rounds each on one processor: every subject comes first and last on each of them.
fn setting(
    plan: &Plan,
    (subject, round, counts): (usize, u32, bool),
    random: &mut Random,
) -> Setting {
    let turn = usize::try_from(round / 2).unwrap_or(0);
    let cpu = plan.cpus.get(turn % plan.cpus.len().max(1)).copied();
    let padding_bytes = usize::try_from(random.below(PADDING_MAX)).unwrap_or(0);
    Setting { subject, counts, cpu, padding_bytes }
}

fn told(subjects: &[Subject], runs: Vec<Vec<Run>>, random: &mut Random) -> Vec<Series> {
    let first = runs.first().cloned().unwrap_or_default();
    let several = subjects.len() > 1;
    let series = subjects.iter().zip(runs).enumerate().map(|(at, (subject, runs))| Series {
        subject: subject.clone(),
        judged: judge(&runs, several, random),
        effect: if at > 0 { effect(&first, &runs) } else { None },
        runs,
    });
    series.collect()
}

#[cfg(test)]
mod tests;
