//! The packets of one program.

use std::path::PathBuf;

use ::trace::{Report, Share};
use page::safe::{self, printable};
use page::text::plural;
use units::ByteSize;

/// Processes that are named.
const SHOWN: usize = 10;

/// What was captured, in words; `into` where it is a file.
pub fn traced(report: &Report, into: Option<&PathBuf>) -> String {
    let mut lines = vec![format!(
        "{}{}{}",
        plural(report.packets, "packet"),
        into.map_or_else(String::new, |path| format!(" in {}", safe::path(path))),
        if report.is_broken_off { ", until the reader closed" } else { "" },
    )];
    lines.extend(report.shares.iter().take(SHOWN).map(share));
    let others = report.shares.iter().skip(SHOWN).count();
    if others > 0 {
        let others = u64::try_from(others).unwrap_or(u64::MAX);
        lines.push(format!("  and {others} more"));
    }
    if report.left_out > 0 {
        let others = report.left_out.saturating_sub(report.of_nobody_known);
        lines.push(format!(
            "left out: {} of other processes, {} of no known process",
            plural(others, "packet"),
            plural(report.of_nobody_known, "packet"),
        ));
    }
    if report.kernel_drops > 0 {
        lines.push(format!("LOST: the kernel dropped {}", plural(report.kernel_drops, "packet")));
    }
    lines.extend(report.notes.iter().map(|note| format!("note: {}", printable(note))));
    lines.join("\n") + "\n"
}

fn share(share: &Share) -> String {
    let owner = share.owner.as_ref();
    let unknown = || "of no known process".to_owned();
    let owner = owner.map_or_else(unknown, |it| printable(&it.to_string()));
    format!("  {owner}: {}, {}", plural(share.packets, "packet"), ByteSize(share.bytes))
}

/// The same as JSON.
pub fn traced_json(report: &Report) -> String {
    safe::json_pretty(report)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::trace::Owner;

    use super::*;

    #[test]
    fn a_report_names_who_had_the_packets_and_what_was_lost() {
        let name = "sh\u{1b}[2J".to_owned();
        let owner = Some(Arc::new(Owner { process: 7, name }));
        let shares = vec![
            Share { owner, packets: 3, bytes: 2048 },
            Share { owner: None, packets: 1, bytes: 60 },
        ];
        let report = Report {
            packets: 4,
            left_out: 9,
            of_nobody_known: 1,
            kernel_drops: 2,
            shares,
            ..Report::default()
        };
        let text = traced(&report, Some(&PathBuf::from("a.pcapng")));
        let expected = "4 packets in a.pcapng\n  sh\\u{1b}[2J (process 7): 3 packets, 2.00 KiB\n  \
            of no known process: 1 packet, 60 B\nleft out: 8 packets of other processes, 1 packet \
            of no known process\nLOST: the kernel dropped 2 packets\n";
        assert_eq!(text, expected);
        let told = Report { notes: vec!["a note".to_owned()], ..report };
        assert_eq!(traced_json(&told), include_str!("traced_frozen.json"));
    }
}
