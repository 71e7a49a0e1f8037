//! A diagnosis as a page of HTML, to be shown to others: what was found first, then what was seen.

use calls::CallWatch;
use connections::Series;
use diagnose::io::IoWatch;
use findings::{Diagnosis, Finding, Remedy, Severity, Share, Unseen};
use page::Document;
use page::safe::printable;
use page::text::{plural, time};
use units::Timestamp;

use super::{follows_from, share_of, sockets};
use crate::calls::add_calls;
use crate::io::add_disks;

/// Where a page comes from.
const FOOT: &str = "Made by wirespool diagnose. Rates in powers of 1000, sizes of requests in \
                    powers of 1024.";

/// What a page is of.
#[derive(Clone, Copy, Debug)]
pub struct DiagnosisPage<'a> {
    /// When the watch ended.
    pub at: Timestamp,
    /// The findings.
    pub report: &'a Diagnosis,
    /// Connections that were followed; `None` where they were not looked at.
    pub sockets: Option<&'a [Series]>,
    /// Disks; `None` where they were not looked at.
    pub disks: Option<&'a IoWatch>,
    /// System calls; `None` where they were not looked at.
    pub calls: Option<&'a CallWatch>,
}

/// The diagnosis as an HTML page.
pub fn diagnosis_html(of: &DiagnosisPage<'_>) -> String {
    let title = match (of.sockets, of.disks) {
        (Some(_), None) => "Diagnosis of connections",
        (None, Some(_)) => "Diagnosis of disks",
        (None, None) if of.calls.is_some() => "Diagnosis of system calls",
        _ => "Diagnosis of a machine",
    };
    let mut page = Document::new(title);
    page.heading(title);
    page.remark(&format!("{} UTC", time(of.at)));
    found(&mut page, of.report);
    if !of.report.unseen.is_empty() {
        page.section("Not seen");
        let unseen =
            |Unseen { what, needs }: &Unseen| printable(&format!("{what} (it takes {needs})"));
        page.list(&of.report.unseen.iter().map(unseen).collect::<Vec<_>>());
    }
    if let Some(series) = of.sockets {
        sockets::add(&mut page, series);
    }
    if let Some(watch) = of.disks {
        add_disks(&mut page, watch);
    }
    if let Some(watch) = of.calls {
        add_calls(&mut page, watch);
    }
    page.finish(FOOT)
}

fn tone(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "",
        Severity::Warning => "open",
        Severity::Problem => "bad",
    }
}

fn found(page: &mut Document, report: &Diagnosis) {
    let counts = [Severity::Problem, Severity::Warning, Severity::Note].map(|severity| {
        let count = report.findings.iter().filter(|it| it.severity == severity).count();
        (severity, u64::try_from(count).unwrap_or(u64::MAX))
    });
    let named: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(severity, count)| plural(*count, severity.name()))
        .collect();
    let words = if named.is_empty() { "Nothing found".to_owned() } else { named.join(", ") };
    let worst = report.findings.iter().map(|finding| finding.severity).max();
    let looked_at: Vec<String> = report.looked_at.iter().map(|line| printable(line)).collect();
    page.verdict(worst.map_or("good", tone), &words, &looked_at);
    if !report.shares.is_empty() {
        page.section("Under load");
        let share = |share: &Share| printable(&share_of(report, share));
        page.list(&report.shares.iter().map(share).collect::<Vec<_>>());
    }
    if report.findings.is_empty() {
        return;
    }
    page.section("Findings");
    for (at, finding) in report.findings.iter().enumerate() {
        one(page, at + 1, finding, report.explanation(at));
    }
}

fn one(page: &mut Document, number: usize, finding: &Finding, follows: Option<usize>) {
    let Finding { severity, what, evidence, cause, remedies, .. } = finding;
    let words = format!("{number}. {}: {}", severity.name(), printable(what));
    page.panel(tone(*severity), &words, |page| {
        if !evidence.is_empty() {
            page.label("Evidence");
            page.list(&evidence.iter().map(|line| printable(line)).collect::<Vec<_>>());
        }
        page.label("Cause");
        page.paragraph(&printable(cause));
        if let Some(cause) = follows {
            page.label("Follows");
            page.paragraph(&follows_from(cause));
        }
        for (label, remedy) in
            core::iter::once("Remedy").chain(core::iter::repeat("Or")).zip(remedies)
        {
            page.label(label);
            self::remedy(page, remedy);
        }
    });
}

fn remedy(page: &mut Document, Remedy { what, now, for_good }: &Remedy) {
    page.paragraph(&printable(what));
    for (until, commands) in [("until the next start:", now), ("for good:", for_good)] {
        if !commands.is_empty() {
            page.remark(until);
            page.commands(&commands.iter().map(|line| printable(line)).collect::<Vec<_>>());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_finding_and_no_markup_of_others() {
        let finding = Finding {
            kind: "tcp.unread",
            severity: Severity::Problem,
            reach: 1,
            what: "<script>x</script>\u{1b}[2J does not read".to_owned(),
            evidence: vec!["7 of a & b".to_owned()],
            cause: "It is busy.".to_owned(),
            remedies: vec![Remedy {
                what: "more memory".to_owned(),
                now: vec!["sysctl -w \"a\"=<1>".to_owned()],
                for_good: Vec::new(),
            }],
        };
        let unseen = Unseen { what: "3 <b>".to_owned(), needs: "root".to_owned() };
        let looked_at = vec!["2 sockets".to_owned()];
        let report = Diagnosis {
            looked_at,
            findings: vec![finding.into()],
            unseen: vec![unseen],
            ..Diagnosis::default()
        };
        let (at, report) = (Timestamp(0), &report);
        let of = DiagnosisPage { at, report, sockets: None, disks: None, calls: None };
        let html = diagnosis_html(&of);
        for part in [
            "<strong>1 problem</strong>",
            "<h3>1. problem: &lt;script&gt;x&lt;/script&gt;\\u{1b}[2J does not read</h3>",
            "<li>7 of a &amp; b</li>",
            "<pre>sysctl -w &quot;a&quot;=&lt;1&gt;</pre>",
            "<li>3 &lt;b&gt; (it takes root)</li>",
            "1970-01-01 00:00:00.000 UTC",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
        assert!(!html.contains("<script") && !html.contains('\u{1b}'));
        let nothing = Diagnosis::default();
        let html = diagnosis_html(&DiagnosisPage { report: &nothing, ..of });
        assert!(html.contains("verdict good\"><strong>Nothing found<"), "{html}");
        assert!(!html.contains("<h2>"), "{html}");
    }
}
