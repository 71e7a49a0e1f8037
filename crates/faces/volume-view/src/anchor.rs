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
            0 if found.contents => "which have no bodies".to_owned(),
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

/// A volume after an anchor of this name.
#[derive(Serialize)]
struct AfterAnchor<'a> {
    anchor: &'a str,
    #[serde(flatten)]
    found: &'a AnchorFindings,
    /// What is wrong with the anchor itself, or was found of it.
    attested: &'a [String],
    trusted: bool,
}

/// The same of several anchors as a JSON array: for each its name, what was found of the volume,
/// the lines on who vouches for it, and whether all of those are right.
pub fn anchors_json(found: &[(String, AnchorFindings, Vec<String>, bool)]) -> String {
    let after = found.iter().map(|(anchor, found, attested, trusted)| AfterAnchor {
        anchor,
        found,
        attested,
        trusted: *trusted,
    });
    safe::json_pretty(&after.collect::<Vec<_>>())
}
