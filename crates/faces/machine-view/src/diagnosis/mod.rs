//! What a diagnosis found: numbered findings with evidence, cause and remedies; as
//! JSON, and as a page with plots of what was seen.

mod html;
mod sockets;

use findings::{Diagnosis, Finding, Share, Unseen};
use schemars::JsonSchema;
use serde::Serialize;

pub use html::{DiagnosisPage, diagnosis_html};

use page::safe::{json_pretty, printable};
use page::text::wrapped;

/// Version of the JSON.
const VERSION: u32 = 1;
/// Where there is no terminal to fit.
const WIDTH: usize = 100;
/// `evidence  `, and what stands before it.
const MARGIN: usize = 14;

/// A diagnosis, in words: the worst finding first, what could not be seen last.
pub fn diagnosis(report: &Diagnosis, width: Option<usize>) -> String {
    let width = width.unwrap_or(WIDTH).max(2 * MARGIN);
    let mut text = String::new();
    for line in &report.looked_at {
        text.push_str(&block("", line, width));
    }
    text.push_str(&shares(report, width));
    if report.findings.is_empty() {
        text.push_str("nothing found\n");
    }
    for (at, finding) in report.findings.iter().enumerate() {
        text.push('\n');
        text.push_str(&one(at + 1, finding, width));
        if let Some(cause) = report.explanation(at) {
            text.push_str(&block("   follows    ", &follows_from(cause), width));
        }
    }
    if !report.unseen.is_empty() {
        text.push_str("\nnot seen:\n");
    }
    for Unseen { what, needs } in &report.unseen {
        text.push_str(&block("  ", &format!("{what} (it takes {needs})"), width));
    }
    text
}

/// A share, and the number of the finding that has the detail.
fn share_of(report: &Diagnosis, share: &Share) -> String {
    let what = &share.what;
    let at = report.detail(share);
    at.map_or_else(|| what.clone(), |at| format!("{what} (finding {})", at + 1))
}

/// What a consequence says of its cause.
fn follows_from(cause: usize) -> String {
    format!("from what finding {} says: look at that first", cause + 1)
}

/// Who has the processors and disks, and who waits; each with the finding that has the detail.
fn shares(report: &Diagnosis, width: usize) -> String {
    let mut text = String::new();
    for share in &report.shares {
        text.push_str(&block("  ", &share_of(report, share), width));
    }
    if text.is_empty() { text } else { format!("\nunder load:\n{text}") }
}

fn one(number: usize, finding: &Finding, width: usize) -> String {
    let Finding { severity, what, evidence, cause, remedies, .. } = finding;
    let mut text = block(&format!("{number}. "), &format!("{}: {what}", severity.name()), width);
    let labels = core::iter::once("   evidence   ").chain(core::iter::repeat(""));
    for (label, line) in labels.zip(evidence) {
        text.push_str(&block(&format!("{label:MARGIN$}"), line, width));
    }
    text.push_str(&block("   cause      ", cause, width));
    let labels = core::iter::once("   remedy     ").chain(core::iter::repeat("   or         "));
    for (label, remedy) in labels.zip(remedies) {
        text.push_str(&block(label, &remedy.what, width));
        // Commands are not broken: they are there to be copied.
        let commands = |name: &str, commands: &[String]| -> String {
            let line = |command: &String| format!("{:MARGIN$}{name}{}\n", "", printable(command));
            commands.iter().map(line).collect()
        };
        text.push_str(&commands("now       ", &remedy.now));
        text.push_str(&commands("for good  ", &remedy.for_good));
    }
    text
}

/// `head` and the words of `text` behind it, broken at blanks; further lines begin below the text.
fn block(head: &str, text: &str, width: usize) -> String {
    let indent = head.chars().count();
    let lines = wrapped(&printable(text), width.saturating_sub(indent), 0);
    let heads = core::iter::once(head.to_owned()).chain(core::iter::repeat(" ".repeat(indent)));
    heads.zip(lines).map(|(head, line)| head + &line + "\n").collect()
}

/// A report with what follows from it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Diagnosis")]
pub struct Explained<'a> {
    version: u32,
    #[serde(flatten)]
    report: &'a Diagnosis,
    /// Findings that follow from others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    consequences: Vec<Consequence>,
}

/// Places among the findings, counted from 0.
#[derive(Debug, Serialize, JsonSchema)]
struct Consequence {
    finding: usize,
    follows_from: usize,
}

/// The same as JSON.
pub fn diagnosis_json(report: &Diagnosis) -> String {
    json_pretty(&Explained::of(report))
}

impl<'a> Explained<'a> {
    pub(crate) fn of(report: &'a Diagnosis) -> Self {
        let follows = |finding| {
            let follows_from = report.explanation(finding)?;
            Some(Consequence { finding, follows_from })
        };
        let consequences = (0..report.findings.len()).filter_map(follows).collect();
        Self { version: VERSION, report, consequences }
    }
}

#[cfg(test)]
mod tests {
    use findings::{Remedy, Severity};

    use super::*;

    fn report() -> Diagnosis {
        let finding = Finding {
            kind: "tcp.syn_cookies",
            severity: Severity::Problem,
            reach: 2,
            what: "2 of 8 connections have no\u{1b}[31m window scale".to_owned(),
            evidence: vec!["without: a, b".to_owned(), "backlog of the listener: 5".to_owned()],
            cause: "The listener's backlog of 5 was full when these connections came.".to_owned(),
            remedies: vec![
                Remedy::by_hand("a larger backlog"),
                Remedy {
                    what: "timestamps".to_owned(),
                    now: vec!["sysctl -w net.ipv4.tcp_timestamps=1".to_owned()],
                    for_good: Vec::new(),
                },
            ],
        };
        Diagnosis {
            looked_at: vec!["8 TCP sockets".to_owned()],
            shares: Vec::new(),
            findings: vec![finding.into()],
            unseen: vec![Unseen { what: "3 processes".to_owned(), needs: "root".to_owned() }],
        }
    }

    #[test]
    fn findings_are_numbered_wrapped_and_harmless() {
        let text = diagnosis(&report(), Some(60));
        assert_eq!(
            text,
            "8 TCP sockets\n\
             \n\
             1. problem: 2 of 8 connections have no\\u{1b}[31m window\n   \
                scale\n   \
                evidence   without: a, b\n              \
                           backlog of the listener: 5\n   \
                cause      The listener's backlog of 5 was full when\n              \
                           these connections came.\n   \
                remedy     a larger backlog\n   \
                or         timestamps\n              \
                           now       sysctl -w net.ipv4.tcp_timestamps=1\n\
             \n\
             not seen:\n  \
               3 processes (it takes root)\n"
        );
        assert!(diagnosis(&Diagnosis::default(), None).contains("nothing found"));
    }

    #[test]
    fn json_has_its_names_and_their_order() {
        assert_eq!(diagnosis_json(&report()), include_str!("frozen.json"));
    }
}
