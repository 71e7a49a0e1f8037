use ::runs::{
    Against, CpuTime, Fact, Judged, Order, Parameter, Part, Plan, Ran as One, Rounds, Run, Subject,
    Taken, TwoModes, Unit, Verdict, judge, parse_former,
};
use statistics::{Cell, Change, Drift, Effect, Level, Mode, Separation};
use units::Random;

use super::*;

const STYLE: PlotStyle = PlotStyle { width: 100, is_terminal: false };

/// 30 runs; a fifth of them 10 % slower, on another processor.
fn series(name: &str, scale: f64) -> Series {
    let run = |number: u32| {
        let is_slow = number % 5 == 3;
        let wobble = f64::from(number * 7 % 11) * 0.001;
        let value = scale * (if is_slow { 11e6 } else { 10e6 }) * (1.0 + wobble);
        let cpu = CpuTime { user: core::time::Duration::from_millis(8), ..CpuTime::default() };
        let taken = Taken {
            wall_ns: 11_000_000,
            cpu,
            code: Some(0),
            memory_bytes_max: 64 << 20,
            memory_floor_bytes: 8 << 20,
            ..Taken::default()
        };
        let processor = Cell::Word(if is_slow { "1" } else { "0" }.to_owned());
        let facts = vec![Fact { name: "processor".to_owned(), value: Some(processor) }];
        let begin_ns = u64::from(number) * 20_000_000;
        let ran = One { value, taken: Some(taken), facts };
        Run { round: number, turn: 0, begin_ns, ran }
    };
    let runs: Vec<Run> = (0..30).map(run).collect();
    let judged = judge(&runs, false, &mut Random::new(1));
    let subject = Subject {
        name: name.to_owned(),
        unit: Unit::Nanoseconds,
        parameters: vec![Parameter { name: "n".to_owned(), value: "7".to_owned() }],
    };
    Series { subject, judged, runs, effect: None }
}

fn contest(series: Vec<Series>) -> Contest {
    let plan =
        Plan { warm_ups: 3, rounds: Rounds::exactly(30), order: Order::Turns, cpus: Vec::new() };
    Contest { series, plan, is_interrupted: false, ns: 1_200_000_000 }
}

#[test]
fn a_report_shows_the_runs_and_says_what_explains_them() {
    let text = runs(&contest(vec![series("./a --fast\u{1b}[2J", 1.0)]), Ran::Commands, STYLE);
    for expected in [
        "30 runs, in 1.2 s, behind 3 runs that did not count\n",
        "NAME                   MEDIAN  SPREAD       MIN       MAX      USER  SYSTEM    MEMORY\n",
        "two modes, 10.1 % apart: 24 runs near 10.05 ms, 6 near 11.07 ms\n",
        "processor explains 100.0 % of it: 1 where it is slow, 0 where it is fast\n",
        "|   .    .    .    .    .    . |      6\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn a_second_command_is_told_by_its_ratio() {
    let (first, mut second) = (series("a", 1.0), series("b", 1.25));
    let pairs: Vec<(f64, f64)> = first.values().into_iter().zip(second.values()).collect();
    second.effect = statistics::paired(&pairs);
    let text = runs(&contest(vec![first, second]), Ran::Commands, STYLE);
    assert!(text.contains("30 runs of each, in turn, forth and back, in 1.2 s"), "{text}");
    assert!(text.contains("1.250 (1.250 to 1.250)"), "{text}");
    assert!(text.contains("takes 25.0 % longer than a (25.0 % to 25.0 %"), "{text}");
}

#[test]
fn the_json_has_the_keys_of_hyperfine_and_is_read_again() {
    let found = contest(vec![series("a", 1.0)]);
    let text = runs_json(&found, &[]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let result = &json["results"][0];
    for key in ["mean", "stddev", "median", "user", "system", "min", "max"] {
        assert!(result[key].is_f64(), "{key}: {result:#}");
    }
    assert_eq!(result["command"], "a");
    assert_eq!(result["times"].as_array().unwrap().len(), 30);
    assert_eq!((&result["exit_codes"][0], &result["parameters"]["n"]), (&0.into(), &"7".into()));
    assert!((result["user"].as_f64().unwrap() - 0.008).abs() < 1e-9);
    assert_eq!(result["modes"]["factors"][0]["upper"], "1");
    let former = parse_former(&text).unwrap();
    let is_near = |(a, b): (&f64, f64)| (a - b).abs() < 1.0;
    assert!(former[0].values.iter().zip(found.series[0].values()).all(is_near));
}

/// What was judged, with one of everything, of two runs.
fn small() -> Series {
    let mut small = series("a", 1.0);
    small.runs.truncate(2);
    small.runs[1].ran.facts.extend([
        Fact { name: "size".to_owned(), value: Some(Cell::Number(2.5)) },
        Fact { name: "unknown".to_owned(), value: None },
    ]);
    let change = Change { at: 1, before: 1e9, after: 2e9, p: 0.25 };
    let separation = |name: &str, lower, upper| Separation {
        name: name.to_owned(),
        share: 0.75,
        p: 0.125,
        lower,
        upper,
    };
    let modes = TwoModes {
        lower: Mode { count: 3, median: 1e9 },
        upper: Mode { count: 4, median: 2e9 },
        cut: 1.5e9,
        factors: vec![separation("number", Level::Below(1.5), Level::From(1.5))],
        signs: vec![separation("word", Level::Is("a".to_owned()), Level::Is("b".to_owned()))],
        parts: vec![Part { name: "the kernel", lower: 1e9, upper: 2e9 }],
    };
    small.judged = Some(Judged {
        median: 1e9,
        low: 2e9,
        high: 3e9,
        mean: 4e9,
        standard_deviation: Some(5e9),
        spread: 0.5,
        min: 6e9,
        max: 7e9,
        outliers: vec![0],
        modes: Some(modes),
        changes: vec![change],
        drift: Some(Drift { share: 0.5, p: 0.25 }),
    });
    small.effect = Some(Effect { ratio: 1.5, low: 1.25, high: 1.75, confidence: 0.95 });
    small
}

#[test]
fn json_has_its_names_and_their_order() {
    let mut machine = series("b", 1e-6);
    (machine.runs, machine.judged) = (Vec::new(), None);
    machine.subject =
        Subject { name: "b".to_owned(), unit: Unit::BytesPerSecond, parameters: Vec::new() };
    let found = Contest { is_interrupted: true, ..contest(vec![small(), machine]) };
    let against = |verdict, unit| Held {
        name: "a",
        unit,
        against: Against {
            before: 1e9,
            now: 2e9,
            ratio: 2.0,
            low: 1.5,
            high: 2.5,
            p: 0.5,
            verdict,
        },
    };
    let held = [
        against(Verdict::Better, Unit::Nanoseconds),
        against(Verdict::Same, Unit::PerSecond),
        against(Verdict::Worse, Unit::PerSecond),
        against(Verdict::Unclear, Unit::PerSecond),
    ];
    assert_eq!(runs_json(&found, &held), include_str!("frozen.json"));
}

#[test]
fn csv_has_a_line_for_each_run() {
    let text = runs_csv(&contest(vec![series("a,b", 1.0)]));
    let mut lines = text.lines();
    let heading = "name,run,turn,begin_s,value,exit_code,user_s,system_s,memory_bytes,\
                   major_faults,processor";
    assert_eq!(lines.next(), Some(heading));
    assert_eq!(lines.next(), Some("\"a,b\",1,1,0,0.01,0,0.008,0,67108864,0,0"));
    assert_eq!(lines.count(), 29);
}

#[test]
fn what_was_stopped_before_the_first_round_says_only_that() {
    let mut none = series("a", 1.0);
    (none.runs, none.judged) = (Vec::new(), None);
    let found = Contest { is_interrupted: true, ..contest(vec![none]) };
    let text = runs(&found, Ran::Machine, STYLE);
    assert_eq!(text, "0 runs, in 1.2 s; stopped before the end\n");
    assert!(serde_json::from_str::<serde_json::Value>(&runs_json(&found, &[])).is_ok());
}

#[test]
fn runs_far_away_are_arrows_and_do_not_press_the_others_flat() {
    let mut wild = series("a", 1.0);
    wild.runs[0].ran.value = 90e6;
    wild.judged = judge(&wild.runs, false, &mut Random::new(1));
    let text = runs(&contest(vec![wild]), Ran::Commands, STYLE);
    assert!(text.contains("outliers  ^\n"), "{text}");
    assert!(text.contains("run 1 (90.00 ms) is far from the others\n"), "{text}");
    assert!(text.contains("--warmup 3"), "{text}");
}
