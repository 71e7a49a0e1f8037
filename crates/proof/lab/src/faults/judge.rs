//! What a report of `wirespool diagnose` says of what was planted.

use serde_json::Value;

use super::situation::Situation;

/// A finding of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: String,
    pub(crate) severity: String,
    pub(crate) what: String,
    /// Everything that it says.
    text: String,
}

/// The findings of a report in JSON, the first one first.
pub(crate) fn findings(report: &Value) -> Vec<Found> {
    let list = report.pointer("/findings").and_then(Value::as_array);
    let text = |finding: &Value, key: &str| {
        finding.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let of = |finding: &Value| {
        let evidence = finding.get("evidence").map(Value::to_string).unwrap_or_default();
        let (what, cause) = (text(finding, "what"), text(finding, "cause"));
        Found {
            kind: text(finding, "kind"),
            severity: text(finding, "severity"),
            text: format!("{what}\n{evidence}\n{cause}"),
            what,
        }
    };
    list.map(|list| list.iter().map(of).collect()).unwrap_or_default()
}

/// How good a report is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The first finding names the cause; of a healthy machine nothing is found.
    Named,
    /// The cause is named, and something that is true as well, or follows, stands before it.
    Later,
    /// Nothing names the cause, and nothing wrong stands first.
    Missed,
    /// A wrong cause stands first, or anything is found on a healthy machine.
    Wrong,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Later => "later",
            Self::Missed => "MISSED",
            Self::Wrong => "WRONG",
        }
    }
}

/// Whether a finding names what was planted.
fn names(planted: &Situation, found: &Found) -> bool {
    planted.findings.contains(&found.kind)
        && planted.names.iter().all(|name| found.text.contains(name))
}

/// Judges the report of a machine on which these were planted. Notes are no causes.
pub(crate) fn judge(planted: &[&Situation], report: &[Found]) -> Verdict {
    let counted: Vec<&Found> = report.iter().filter(|found| found.severity != "note").collect();
    if planted.iter().all(|it| it.findings.is_empty()) {
        return if counted.is_empty() { Verdict::Named } else { Verdict::Wrong };
    }
    let is_named = |found: &Found| planted.iter().any(|it| names(it, found));
    let follows = |found: &Found| planted.iter().any(|it| it.also.contains(&found.kind));
    let has_it = report.iter().any(is_named);
    match counted.first() {
        Some(first) if is_named(first) => Verdict::Named,
        Some(first) if follows(first) && has_it => Verdict::Later,
        Some(first) if follows(first) => Verdict::Missed,
        Some(_) => Verdict::Wrong,
        None if has_it => Verdict::Named,
        None => Verdict::Missed,
    }
}

/// How many of those that were planted are named anywhere.
pub(crate) fn named(planted: &[&Situation], report: &[Found]) -> usize {
    let is_named = |it: &&&Situation| report.iter().any(|found| names(it, found));
    planted.iter().filter(is_named).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(kinds: &[(&str, &str, &str)]) -> Vec<Found> {
        let one = |(kind, severity, what): &(&str, &str, &str)| {
            json!({"kind": kind, "severity": severity, "what": what, "evidence": ["port 9000"],
                   "cause": "because"})
        };
        findings(&json!({ "findings": kinds.iter().map(one).collect::<Vec<_>>() }))
    }

    fn situation(findings: &[&str], names: &[&str], also: &[&str]) -> Situation {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Situation {
            findings: owned(findings),
            names: owned(names),
            also: owned(also),
            ..Situation::default()
        }
    }

    #[test]
    fn the_first_finding_decides() {
        let deaf = situation(&["tcp.accept_queue"], &["9000"], &["tcp.unread"]);
        let right = ("tcp.accept_queue", "problem", "nobody accepts");
        let follows = ("tcp.unread", "problem", "nobody reads");
        let wrong = ("tcp.syn_cookies", "problem", "cookies");
        let of = |kinds: &[_]| judge(&[&deaf], &report(kinds));
        assert_eq!(of(&[right, follows]), Verdict::Named);
        assert_eq!(of(&[follows, right]), Verdict::Later);
        assert_eq!(of(&[follows]), Verdict::Missed);
        assert_eq!(of(&[wrong, right]), Verdict::Wrong);
        assert_eq!(of(&[]), Verdict::Missed);
        // The right kind of another port.
        let other = situation(&["tcp.accept_queue"], &["9001"], &[]);
        assert_eq!(judge(&[&other], &report(&[right])), Verdict::Wrong);
        // Notes stand in nobody's way, and may be what is wanted.
        let note = ("host.scheduler", "note", "port 9000");
        assert_eq!(of(&[note, right]), Verdict::Named);
        let set = situation(&["host.scheduler"], &[], &[]);
        assert_eq!(judge(&[&set], &report(&[note])), Verdict::Named);
    }

    #[test]
    fn a_healthy_machine_has_no_findings_but_notes() {
        let healthy = situation(&[], &[], &[]);
        assert_eq!(judge(&[&healthy], &report(&[("host.scheduler", "note", "")])), Verdict::Named);
        let alarm = [("io.queue", "warning", "")];
        assert_eq!(judge(&[&healthy], &report(&alarm)), Verdict::Wrong);
        assert!(Verdict::Wrong.word() == "WRONG");
    }

    #[test]
    fn of_a_pair_either_may_come_first_and_both_are_counted() {
        let (one, other) = (situation(&["a.b"], &[], &[]), situation(&["c.d"], &[], &["e.f"]));
        let both = report(&[("c.d", "warning", ""), ("a.b", "warning", "")]);
        assert_eq!(judge(&[&one, &other], &both), Verdict::Named);
        assert_eq!(named(&[&one, &other], &both), 2);
        let half = report(&[("e.f", "problem", ""), ("a.b", "warning", "")]);
        assert_eq!(judge(&[&one, &other], &half), Verdict::Later);
        assert_eq!(named(&[&one, &other], &half), 1);
    }
}
