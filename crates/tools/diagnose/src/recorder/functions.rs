//! In which functions a recorder works.

use super::seen::{Functions, HotFunction};
use findings::{Finding, Severity};
use vitals::profile::{By, Profiler, Row, Span};

/// Functions that are shown.
const SHOWN: usize = 10;

/// What was sampled of one process.
pub(super) fn of_profiler(profiler: &mut Profiler) -> Functions {
    let profile = profiler.profile();
    let summary = profile.summary(Span::Total);
    let mut hottest: Vec<HotFunction> =
        profile.rows(By::Function, Span::Total).into_iter().filter_map(hot).collect();
    hottest.truncate(SHOWN);
    Functions {
        busy: thousandths(summary.share_of_one),
        samples: summary.samples,
        hottest,
        unseen: profiler.unseen(),
    }
}

fn hot(row: Row) -> Option<HotFunction> {
    Some(HotFunction {
        library: row.library?.to_string(),
        function: row.function?.to_string(),
        busy: thousandths(row.share_of_one),
    })
}

fn thousandths(share: f64) -> u64 {
    units::number::whole(share * 1000.0)
}

/// Nothing where it did nothing.
pub(super) fn finding(functions: &Functions) -> Option<Finding> {
    let hottest = functions.hottest.first()?;
    let line =
        |it: &HotFunction| format!("{}: {} in {}", percent(it.busy), it.function, it.library);
    Some(Finding {
        kind: "recorder.functions",
        severity: Severity::Note,
        reach: 1,
        what: format!(
            "the recorder works {} of one processor's time, most of all in {}",
            percent(functions.busy),
            hottest.function
        ),
        evidence: functions.hottest.iter().map(line).collect(),
        cause: format!(
            "{} samples of its processors say so, taken while we looked.",
            functions.samples
        ),
        remedies: Vec::new(),
    })
}

fn percent(thousandths: u64) -> String {
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

#[cfg(test)]
mod tests {
    use super::super::{Recording, diagnose};
    use super::*;
    use findings::Unseen;

    #[test]
    fn the_hottest_functions_are_a_note_and_what_could_not_be_seen_is_told() {
        let hot = |function: &str, busy| HotFunction {
            library: "/usr/bin/wirespool".to_owned(),
            function: function.to_owned(),
            busy,
        };
        let unseen = Unseen { what: "the kernel".to_owned(), needs: "CAP_PERFMON".to_owned() };
        let functions = Functions {
            busy: 1234,
            samples: 77,
            hottest: vec![hot("wire::decode", 512), hot("memcpy", 9)],
            unseen: vec![unseen.clone()],
        };
        let of =
            |functions| diagnose(&Recording { functions: Some(functions), ..Recording::default() });
        let found = of(functions);
        assert!(found.is_clean() && found.unseen.contains(&unseen), "{found:?}");
        let finding = &found.findings[0];
        assert!(
            finding.what.ends_with("123.4 % of one processor's time, most of all in wire::decode")
        );
        let lines =
            ["51.2 %: wire::decode in /usr/bin/wirespool", "0.9 %: memcpy in /usr/bin/wirespool"];
        assert_eq!(finding.evidence, lines);
        assert_eq!(of(Functions::default()).findings, []);
    }
}
