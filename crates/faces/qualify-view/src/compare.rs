//! A comparison for a terminal.

use ::qualify::{Comparison, Contender, EffectFound, Measure, Run};
use page::PlotStyle;
use page::safe::printable;
use page::text::disk_rate as rate;
use page::text::{nanos, permille, plural};

use super::text::Lines;

/// A comparison, in words and rows of blocks.
pub fn comparison(found: &Comparison, style: PlotStyle) -> String {
    let mut lines = Lines::new(style);
    let done = if found.is_write { "written" } else { "read" };
    let runs = found.targets.first().map_or(0, |target| target.runs.len());
    let of = if runs > 0 {
        let runs = plural(u64::try_from(runs).unwrap_or(u64::MAX), "run");
        format!("{runs} of each, {done} in turn, forth and back")
    } else {
        "reports, place by place".to_owned()
    };
    lines.add("compared", &of);
    for (target, at) in found.targets.iter().zip(0_u32..) {
        self::target(&mut lines, target);
        for effect in found.effects.iter().filter(|effect| effect.target == at) {
            lines.add("", &self::effect(effect, &found.targets));
        }
    }
    if found.is_interrupted {
        lines.add("stopped", "before the end; whole rounds count");
    }
    lines.text
}

fn target(lines: &mut Lines, target: &Contender) {
    let guaranteed = rate(target.guaranteed_bytes_per_s);
    let [low, high] = [target.low_bytes_per_s, target.high_bytes_per_s].map(rate);
    let (name, middle) = (printable(&target.name), rate(target.bytes_per_s));
    lines.add(
        &short(&name),
        &format!("{middle} ({low} to {high}), a run guarantees {guaranteed}: {name}"),
    );
    lines.row(&target.runs.iter().map(Run::rate).collect::<Vec<u64>>());
    let mut processor: Vec<u64> = target.runs.iter().filter_map(Run::cpu_ns_per_gb).collect();
    processor.sort_unstable();
    if let Some(middle) = processor.get(processor.len() / 2) {
        lines.add("", &format!("{} of a processor for a GB", nanos(*middle)));
    }
    if let Some(modes) = &target.modes {
        let [lower, upper] = [modes.lower_bytes_per_s, modes.upper_bytes_per_s].map(rate);
        let share = permille(modes.lower_share);
        let why = match target.between_runs {
            Some(share) if share > 800 => "runs differ and are steady in themselves",
            _ => "it changes within runs",
        };
        lines.add("", &format!("two modes: {lower} in {share} of all, {upper} else; {why}"));
        if target.factors.is_empty() {
            lines.add("", "nothing that was recorded explains them");
        }
    }
    for factor in &target.factors {
        let (name, slower) = (printable(&factor.name), printable(&factor.slower));
        let share = permille(factor.share);
        lines.add("", &format!("{name} explains {share} of the modes: slower with {slower}"));
    }
    for change in &target.changes {
        let [before, after] = [change.before_bytes_per_s, change.after_bytes_per_s].map(rate);
        let (at, round) = (nanos(change.begin_ns), change.round + 1);
        lines.add("", &format!("changed from {before} to {after} after {at}, in round {round}"));
    }
}

/// The end of a path: a label.
fn short(name: &str) -> String {
    name.trim_end_matches('/').rsplit('/').next().unwrap_or(name).to_owned()
}

fn effect(effect: &EffectFound, targets: &[Contender]) -> String {
    let what = match effect.measure {
        Measure::Rate => "rate",
        Measure::Guaranteed => "guaranteed rate",
        Measure::Sweep => "rate of the sweep",
    };
    let first = targets.first().map_or(String::new(), |first| printable(&first.name));
    let [ratio, low, high] = [effect.ratio, effect.low, effect.high].map(permille);
    let confidence = permille(effect.confidence);
    let verdict = match (effect.differs, effect.confidence >= 950) {
        (true, _) if effect.ratio < 1000 => "slower",
        (true, _) => "faster",
        (false, true) => "no significant difference",
        (false, false) => "too few pairs to say",
    };
    format!("{what} {ratio} of {first} ({low} to {high}, confidence {confidence}): {verdict}")
}

#[cfg(test)]
mod tests {
    use ::qualify::{
        FactorFound, QualifyReport, RateChange, TwoModes, parse_qualification, parse_qualify_report,
    };

    use super::super::comparison_json;
    use super::*;

    fn found() -> Comparison {
        let run = |round: u32| Run {
            round,
            bytes: 1 << 30,
            ns: 5_000_000_000 + u64::from(round % 2) * 5_000_000_000,
            cpu_ns: Some(268_435_456),
            ..Run::default()
        };
        let first = Contender {
            name: "/data".to_owned(),
            bytes_per_s: 214_000_000,
            low_bytes_per_s: 210_000_000,
            high_bytes_per_s: 215_000_000,
            guaranteed_bytes_per_s: 200_000_000,
            runs: (0..8).map(run).collect(),
            ..Contender::default()
        };
        let second = Contender {
            name: "/mnt/other\u{1b}[2J".to_owned(),
            between_runs: Some(970),
            modes: Some(TwoModes {
                lower_bytes_per_s: 107_000_000,
                upper_bytes_per_s: 214_000_000,
                lower_share: 500,
                cut_bytes_per_s: 200_000_000,
            }),
            factors: vec![FactorFound {
                name: "odd round".to_owned(),
                share: 1000,
                chance: 1000,
                slower: "from 1".to_owned(),
            }],
            changes: vec![RateChange {
                begin_ns: 9_000_000_000,
                round: 3,
                before_bytes_per_s: 214_000_000,
                after_bytes_per_s: 107_000_000,
                ..RateChange::default()
            }],
            ..first.clone()
        };
        let effect = EffectFound {
            target: 1,
            measure: Measure::Rate,
            ratio: 750,
            low: 500,
            high: 990,
            confidence: 961,
            differs: true,
        };
        Comparison {
            is_write: true,
            targets: vec![first, second],
            effects: vec![effect],
            is_interrupted: false,
        }
    }

    #[test]
    fn a_comparison_is_read_again_and_told_from_a_qualification() {
        let text = comparison_json(&found());
        let read = parse_qualify_report(&text).unwrap();
        assert_eq!(read, QualifyReport::Comparison(found()));
        let error = parse_qualification(&text).unwrap_err();
        assert_eq!(error.to_string(), "a comparison, and no report of one target");
        assert!(parse_qualify_report("{\"version\": 1}").is_err());
        assert!(parse_qualify_report("{\"version\": 1, \"comparison\": {}}").is_err());
        assert!(parse_qualify_report("{\"version\": 9}").is_err());
    }

    #[test]
    fn a_summary_says_how_much_how_sure_and_why() {
        let text = comparison(&found(), PlotStyle { width: 100, is_terminal: false });
        for expected in [
            "compared:      8 runs of each, written in turn, forth and back\n",
            "data:          214 MB/s (210 MB/s to 215 MB/s), a run guarantees 200 MB/s: /data\n",
            "250.0 ms of a processor for a GB\n",
            "rate 75.0 % of /data (50.0 % to 99.0 %, confidence 96.1 %): slower\n",
            "two modes: 107 MB/s in 50.0 % of all, 214 MB/s else;",
            "odd round explains 100.0 % of the modes: slower with from 1\n",
            "changed from 214 MB/s to 107 MB/s after 9.0 s, in round 4\n",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        assert!(!text.contains('\u{1b}'));
    }
}
