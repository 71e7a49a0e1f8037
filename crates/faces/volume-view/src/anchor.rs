//! Volumes after anchors, as text and as JSON.

use page::safe;
use page::text::{grouped, plural};
use serde::Serialize;
use upkeep::{AnchorFindings, AnchorVerdict, StripeRange};

/// Ranges that a text lists.
const SHOWN: usize = 8;

/// What an anchor shows of a volume. `name` is that of its file, and safe.
pub fn anchor_findings(name: &str, found: &AnchorFindings) -> String {
    let mut lines = vec![format!("{name}: {}", verdict(found))];
    lines.extend(found.same.map(|range| {
        let contents = match found.same_contents {
            0 => "by their heads; bodies are not in the anchor".to_owned(),
            1 => "and the body that they have".to_owned(),
            count => format!("and the {} bodies that they have", grouped(count)),
        };
        format!("  as they were: {}, {contents}", in_words(&range))
    }));
    let changed = found.changed.iter().take(SHOWN);
    lines.extend(changed.map(|range| format!("  not as they were: {}", in_words(range))));
    let more = found.changed.len().saturating_sub(SHOWN);
    lines.extend((more > 0).then(|| format!("  and {more} more ranges; --json lists them")));
    if found.changed_bodies > 0 {
        let pieces = plural(found.changed_bodies, "piece");
        lines.push(format!(
            "  the bodies of {pieces} were exchanged, and their checksums made to fit"
        ));
    }
    let unreadable = found.unreadable.iter().take(SHOWN);
    lines.extend(unreadable.map(|range| format!("  cannot be read: {}", in_words(range))));
    lines.extend(found.missing.map(|range| format!("  not there: {}", in_words(&range))));
    lines.extend(found.passed.map(|range| {
        let why = if found.is_given_up { "given up for their age" } else { "overwritten since" };
        format!("  {why}, and not compared: {}", in_words(&range))
    }));
    lines.join("\n") + "\n"
}

fn in_words(range: &StripeRange) -> String {
    let StripeRange { first, last, pieces } = range;
    format!("{} of the stripes {first} to {last}", plural(*pieces, "piece"))
}

fn verdict(found: &AnchorFindings) -> String {
    match found.verdict {
        AnchorVerdict::Same => "the volume is the one that it saw".to_owned(),
        AnchorVerdict::RolledBack => match found.held {
            Some((_, end)) => format!("rolled back or cut off: the volume ends with {end}"),
            None => "rolled back or cut off: the volume holds nothing".to_owned(),
        },
        AnchorVerdict::Rewritten => "rewritten: stripes are others than it saw".to_owned(),
        AnchorVerdict::Unreadable => "nothing is another, but some cannot be read".to_owned(),
        AnchorVerdict::NothingLeft => "nothing of what it saw is left to compare".to_owned(),
        AnchorVerdict::OtherVolume => "it is of another volume".to_owned(),
    }
}

fn verdict_name(verdict: AnchorVerdict) -> &'static str {
    match verdict {
        AnchorVerdict::Same => "same",
        AnchorVerdict::RolledBack => "rolled_back",
        AnchorVerdict::Rewritten => "rewritten",
        AnchorVerdict::Unreadable => "unreadable",
        AnchorVerdict::NothingLeft => "nothing_left",
        AnchorVerdict::OtherVolume => "other_volume",
    }
}

#[derive(Serialize)]
struct FindingsJson<'a> {
    anchor: &'a str,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume_tail: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume_end: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    same: Option<RangeJson>,
    same_contents: u64,
    changed: Vec<RangeJson>,
    changed_bodies: u64,
    unreadable: Vec<RangeJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<RangeJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<RangeJson>,
    passed_by_age: bool,
    /// What is wrong with the anchor itself, or was found of it.
    attested: &'a [String],
    trusted: bool,
}

#[derive(Serialize)]
struct RangeJson {
    first: String,
    last: String,
    pieces: u64,
}

impl RangeJson {
    fn new(range: &StripeRange) -> Self {
        let StripeRange { first, last, pieces } = *range;
        Self { first: first.to_string(), last: last.to_string(), pieces }
    }
}

/// The same of several anchors as a JSON array: for each its name, what was found of the volume,
/// the lines on who vouches for it, and whether all of those are right.
pub fn anchors_json(found: &[(String, AnchorFindings, Vec<String>, bool)]) -> String {
    fn one(
        (name, found, attested, is_right): &(String, AnchorFindings, Vec<String>, bool),
    ) -> FindingsJson<'_> {
        let ranges = |ranges: &[StripeRange]| ranges.iter().map(RangeJson::new).collect();
        FindingsJson {
            anchor: name,
            verdict: verdict_name(found.verdict),
            volume_tail: found.held.map(|(tail, _)| tail),
            volume_end: found.held.map(|(_, end)| end.to_string()),
            same: found.same.as_ref().map(RangeJson::new),
            same_contents: found.same_contents,
            changed: ranges(&found.changed),
            changed_bodies: found.changed_bodies,
            unreadable: ranges(&found.unreadable),
            missing: found.missing.as_ref().map(RangeJson::new),
            passed: found.passed.as_ref().map(RangeJson::new),
            passed_by_age: found.is_given_up,
            attested,
            trusted: *is_right,
        }
    }
    safe::json_pretty(&found.iter().map(one).collect::<Vec<_>>())
}
