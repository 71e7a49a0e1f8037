//! Who can read an encrypted volume, and which keys it has.

use page::safe::{self, printable};
use page::text::{Facts, plural, time};
use units::Timestamp;
use upkeep::{Keys, Rekeyed};

/// Recipients and keys, in words.
pub fn keys(report: &Keys) -> String {
    let mut facts = Facts::default();
    if report.recipients.is_empty() {
        facts.add("encrypted to", "nobody: packets are not encrypted");
    }
    for recipient in &report.recipients {
        facts.add("encrypted to", printable(recipient));
    }
    let when = report.made.map(|(oldest, newest)| format!(", {}", made(oldest, newest)));
    if !report.recipients.is_empty() {
        let count = plural(u64::try_from(report.keys).unwrap_or(u64::MAX), "data key");
        facts.add("keys", format!("{count}{}", when.unwrap_or_default()));
    }
    if let Some(newest) = report.destroyed_made {
        let count = plural(u64::try_from(report.destroyed).unwrap_or(u64::MAX), "data key");
        facts.add("destroyed", format!("{count}, the newest made at {} UTC", time(newest)));
    }
    facts.finish()
}

/// When keys were made.
pub(crate) fn made(oldest: Timestamp, newest: Timestamp) -> String {
    if oldest == newest {
        return format!("made at {} UTC", time(oldest));
    }
    format!("made from {} to {} UTC", time(oldest), time(newest))
}

/// What became of the keys, in words.
pub fn rekeyed(report: &Rekeyed) -> String {
    let mut text = keys(&report.keys);
    let mut say = |line: &str| text.push_str(line);
    let count = |keys: usize| plural(u64::try_from(keys).unwrap_or(u64::MAX), "data key");
    if report.has_begun {
        say("what is recorded from now on is encrypted; what is there stays as it is\n");
    }
    if report.rewrapped > 0 {
        say(&format!("{} wrapped anew\n", count(report.rewrapped)));
    }
    if report.left > 0 {
        say(&format!(
            "{} could not be opened, and did not change: what was encrypted by then is closed to \
             who was added and open to who was removed; --identity of a recipient who can read it \
             wraps its keys anew\n",
            count(report.left)
        ));
    }
    if !report.absent.is_empty() {
        let absent: Vec<String> = report.absent.iter().map(ToString::to_string).collect();
        say(&format!(
            "member {} is away and has the keys as they were, until it is there again\n",
            absent.join(", ")
        ));
    }
    text
}

/// The same as a JSON object.
pub fn keys_json(report: &Keys) -> String {
    safe::json_pretty(report)
}

/// What became of the keys, as a JSON object.
pub fn rekeyed_json(report: &Rekeyed) -> String {
    safe::json_pretty(report)
}
