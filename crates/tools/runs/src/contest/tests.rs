use core::time::Duration;

use host::{CpuTime, Taken};
use statistics::{Cell, Draw as _};
use units::{ManualClock, Timestamp};

use super::*;
use crate::plan::{Order, Rounds};
use crate::run::{Fact, Ran, Unit};

/// Made-up commands on a made-up machine: time passes only in them.
struct Made<'a, F> {
    clock: &'a ManualClock,
    noise: Random,
    /// Nanoseconds without noise, by the setting and the number of the run.
    of: F,
    number: u32,
}

impl<F: FnMut(Setting, u32) -> (f64, Vec<Fact>)> Runner for Made<'_, F> {
    type Error = core::convert::Infallible;

    fn run(&mut self, setting: Setting) -> Result<Option<Ran>, Self::Error> {
        let (middle, facts) = (self.of)(setting, self.number);
        self.number += 1;
        let noise = (0..12).map(|_| self.noise.share()).sum::<f64>() - 6.0;
        let value = middle * (1.0 + 0.01 * noise);
        let wall = Duration::from_secs_f64(value / 1e9);
        let wall_ns = u64::try_from(wall.as_nanos()).unwrap();
        self.clock.advance_nanos(i64::try_from(wall_ns).unwrap());
        // It computes for 8 ms, and waits for the rest.
        let cpu = CpuTime { user: Duration::from_millis(8), system: Duration::ZERO };
        let taken = Taken { wall_ns, cpu, code: Some(0), ..Taken::default() };
        Ok(Some(Ran { value, taken: Some(taken), facts }))
    }
}

fn subject(name: &str) -> Subject {
    Subject { name: name.to_owned(), unit: Unit::Nanoseconds, parameters: Vec::new() }
}

fn fact(name: &str, value: &str) -> Fact {
    Fact { name: name.to_owned(), value: Some(Cell::read(value)) }
}

fn plan(rounds: u32) -> Plan {
    Plan { warm_ups: 1, rounds: Rounds::exactly(rounds), order: Order::Turns, cpus: Vec::new() }
}

fn of(
    names: &[&str],
    plan: &Plan,
    seed: u64,
    of: impl FnMut(Setting, u32) -> (f64, Vec<Fact>),
) -> Contest {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let subjects: Vec<Subject> = names.iter().map(|name| subject(name)).collect();
    let mut made = Made { clock: &clock, noise: Random::new(seed), of, number: 0 };
    let mut hear = |_: Going<'_>| ControlFlow::Continue(());
    let mut random = Random::new(seed + 1);
    contest(&subjects, plan, &mut made, (&clock, &mut random), &mut hear).unwrap()
}

fn judged(contest: &Contest, at: usize) -> &Judged {
    contest.series[at].judged.as_ref().unwrap()
}

#[test]
fn commands_go_forth_and_back_and_the_ratio_survives_a_drift() {
    // Everything gets slower by half meanwhile; the second is 10 % slower than the first.
    let found = of(&["a", "b"], &plan(30), 1, |setting, number| {
        let drift = 1.0 + f64::from(number) / 120.0;
        (10e6 * drift * if setting.subject == 1 { 1.1 } else { 1.0 }, Vec::new())
    });
    let turns = |at: usize| -> Vec<u32> {
        found.series[at].runs.iter().take(4).map(|run| run.turn).collect()
    };
    assert_eq!((turns(0), turns(1)), (vec![0, 1, 0, 1], vec![1, 0, 1, 0]));
    let effect = found.series[1].effect.unwrap();
    assert!(effect.differs() && effect.low < 1.1 && 1.1 < effect.high, "{effect:?}");
    assert!(effect.high - effect.low < 0.03, "{effect:?}");
    let drift = judged(&found, 0).drift;
    assert!(drift.is_some() || !judged(&found, 0).changes.is_empty(), "{:?}", judged(&found, 0));
    assert_eq!(found.series[0].runs.len(), 30);
}

#[test]
fn two_modes_ten_percent_apart_are_found_with_their_cause_and_its_sign() {
    // On processor 1, for a fifth of the runs, it waits.
    let found = of(&["a"], &plan(30), 2, |_, number| {
        let is_slow = number % 5 == 3;
        let facts = vec![
            fact("processor", if is_slow { "cpu 1" } else { "cpu 0" }),
            fact("temperature", &(50 + number % 3).to_string()),
            fact("always", "same"),
        ];
        (if is_slow { 11e6 } else { 10e6 }, facts)
    });
    let modes = judged(&found, 0).modes.as_ref().unwrap();
    assert_eq!((modes.lower.count, modes.upper.count), (24, 6));
    let names: Vec<&str> = modes.factors.iter().map(|factor| factor.name.as_str()).collect();
    assert_eq!(names, ["processor"], "{modes:?}");
    assert_eq!(modes.factors[0].upper.to_string(), "cpu 1");
    let waiting = modes.parts.iter().find(|part| part.name == "waiting").unwrap();
    let more = waiting.upper - waiting.lower;
    assert!((0.9e6..1.1e6).contains(&more), "{modes:?}");
}

#[test]
fn every_other_run_and_what_is_pinned_are_factors_too() {
    let found = of(&["a"], &plan(40), 3, |_, number| {
        (if number % 2 == 0 { 10e6 } else { 12e6 }, Vec::new())
    });
    let modes = judged(&found, 0).modes.as_ref().unwrap();
    assert_eq!(modes.factors[0].name, "number of the run");

    let cpus = Plan { cpus: vec![2, 5], ..plan(40) };
    let found = of(&["a", "b"], &cpus, 4, |setting, _| {
        let cpu = setting.cpu.unwrap();
        let facts = vec![fact("processor", &format!("cpu {cpu}"))];
        (if cpu == 5 { 12e6 } else { 10e6 }, facts)
    });
    for at in 0..2 {
        let modes = judged(&found, at).modes.as_ref().unwrap();
        let names: Vec<&str> = modes.factors.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["processor"], "the turn is independent of the processor: {modes:?}");
        assert_eq!(modes.upper.count, 20);
    }
}

#[test]
fn a_step_is_a_change_in_its_place() {
    let found =
        of(&["a"], &plan(60), 5, |_, number| (if number < 36 { 10e6 } else { 11e6 }, Vec::new()));
    let changes = &judged(&found, 0).changes;
    // One run before them did not count.
    assert!(matches!(&changes[..], [one] if one.at.abs_diff(35) <= 2), "{changes:?}");
    assert!(judged(&found, 0).drift.is_none(), "a step is no slope");
}

/// The share of series with a finding, of those with nothing to be found.
#[test]
fn quiet_commands_give_hardly_any_finding() {
    let alarms = (0..100).filter(|seed| {
        let found = of(&["a"], &plan(100), 1000 + seed, |_, _| (10e6, Vec::new()));
        judged(&found, 0).has_findings()
    });
    let alarms = alarms.count();
    assert!(alarms <= 5, "{alarms} of 100");
}

#[test]
fn a_stop_keeps_whole_rounds_and_what_does_not_count_does_not() {
    let clock = ManualClock::new(Timestamp(0));
    let subjects = [subject("a"), subject("b")];
    let of = |_: Setting, _: u32| (10e6, Vec::new());
    let mut made = Made { clock: &clock, noise: Random::new(1), of, number: 0 };
    let mut heard = Vec::new();
    let mut hear = |going: Going<'_>| {
        heard.push((going.rounds, going.next.name.clone()));
        if heard.len() > 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut random = Random::new(1);
    let found = contest(&subjects, &plan(30), &mut made, (&clock, &mut random), &mut hear).unwrap();
    assert!(found.is_interrupted);
    let counts: Vec<usize> = found.series.iter().map(|series| series.runs.len()).collect();
    assert_eq!(counts, [2, 2], "two whole rounds behind one that warms up: {heard:?}");
    assert_eq!(heard.first(), Some(&(None, "a".to_owned())));
    assert_eq!(heard.last(), Some(&(Some(2), "b".to_owned())), "forth, back, forth");
}
