//! Volumes scrubbed.

use page::safe::{self, printable};
use page::text::{grouped, plural};
use units::number::to_u64;
use units::{ByteSize, MemberId};
use upkeep::{BadCopy, Fate, Scrubbed};

use crate::verification::{DAMAGE_SHOWN, NOT_CHECKED, bad_stripe, overwritten};

/// A scrub, in words: the verdict first, then each damaged place and what became of it.
pub fn scrubbed(report: &Scrubbed) -> String {
    let read = &report.read;
    let mut lines = vec![verdict(report)];
    lines.push(format!(
        "read {} in {} of {}: {} data, {} index and {} other stripes",
        ByteSize(read.bytes),
        plural(read.slots, "slot"),
        plural(to_u64(report.members.len()), "member"),
        grouped(read.data_stripes),
        grouped(read.index_stripes),
        grouped(read.other_stripes),
    ));
    if !report.absent.is_empty() {
        let absent: Vec<String> = report.absent.iter().map(MemberId::to_string).collect();
        lines.push(format!("not here, and so not checked: member {}", absent.join(", ")));
    }
    lines.extend(report.given_up.iter().map(|member| format!("not checked any more: {member}")));
    if report.degraded > 0 {
        let count = plural(report.degraded, "stripe");
        lines.push(format!("{count} with pieces that a member never had; resilver writes them"));
    }
    lines.extend(overwritten(report.overwritten));
    let found: Vec<String> = lines_of(report).collect();
    let more = to_u64(found.len().saturating_sub(DAMAGE_SHOWN));
    lines.extend(found.into_iter().take(DAMAGE_SHOWN));
    if more > 0 {
        lines.push(format!("and {} more; --json lists them all", grouped(more)));
    }
    lines.join("\n") + "\n"
}

/// Places by what became of them.
#[derive(Clone, Copy)]
struct Counts {
    repaired: u64,
    repairable: u64,
    /// The other members have it, and the ring is about to overwrite it.
    passing: u64,
    lost: u64,
}

impl Counts {
    fn in_words(self) -> String {
        let Self { repaired, repairable, passing, lost } = self;
        let soon = format!("{} that the ring is about to overwrite", plural(passing, "place"));
        let and_soon = if passing > 0 { format!("; not repaired: {soon}") } else { String::new() };
        match (repaired, repairable, lost) {
            (0, 0, 0) if passing > 0 => format!("damaged: only {soon}"),
            (0, 0, 0) => "clean: every acknowledged byte is as it was written".to_owned(),
            (_, 0, 0) if passing == 0 => {
                format!("repaired: {}; nothing is damaged any more", plural(repaired, "place"))
            }
            (_, 0, 0) => format!("repaired: {}{and_soon}", plural(repaired, "place")),
            (0, _, 0) => {
                format!("damaged: {}, all repairable{and_soon}", plural(repairable, "place"))
            }
            _ => format!(
                "damaged: {} beyond repair, {} repairable, {} repaired{and_soon}",
                plural(lost, "place"),
                grouped(repairable),
                grouped(repaired)
            ),
        }
    }
}

fn verdict(report: &Scrubbed) -> String {
    let fates = report.damage.iter().map(|(_, fate)| fate);
    let is_news = |copy: &&BadCopy| !copy.is_old || matches!(copy.fate, Fate::Failed(_));
    let fates = fates.chain(report.copies.iter().filter(is_news).map(|copy| &copy.fate));
    let count =
        |wanted: &dyn Fn(&Fate) -> bool| to_u64(fates.clone().filter(|it| wanted(it)).count());
    let is_lost = |fate: &Fate| !matches!(fate, Fate::Repaired | Fate::Repairable | Fate::Passing);
    let counts = Counts {
        repaired: count(&|fate| *fate == Fate::Repaired),
        repairable: count(&|fate| *fate == Fate::Repairable),
        passing: count(&|fate| *fate == Fate::Passing),
        lost: count(&is_lost) + to_u64(report.parity_wrong.len()),
    };
    let is_untouched = counts.repaired + counts.repairable + counts.passing + counts.lost == 0;
    let whole = if is_untouched && !report.given_up.is_empty() {
        NOT_CHECKED.to_owned()
    } else {
        counts.in_words()
    };
    if report.is_complete { whole } else { format!("stopped early; so far {whole}") }
}

fn lines_of(report: &Scrubbed) -> impl Iterator<Item = String> {
    let copies = report.copies.iter().map(|bad| {
        let (member, number) = (bad.member, bad.copy + 1);
        let of_old = match bad.fate {
            Fate::Repaired => "brought up to date",
            _ => "a scrub without --dry-run, or the next record, brings it up to date",
        };
        if bad.is_old && !matches!(bad.fate, Fate::Failed(_)) {
            format!(
                "member {member}: superblock copy {number} of 4 is of an earlier state, for a \
                 change was cut short: {of_old}"
            )
        } else {
            format!("member {member}: superblock copy {number} of 4: {}", words(&bad.fate))
        }
    });
    let stripes = report.damage.iter().map(|(bad, fate)| {
        let place = bad_stripe(bad);
        format!("{place}: {}", words(fate))
    });
    let wrong = report.parity_wrong.iter().map(|stripe| {
        format!(
            "stripe {stripe}: parity was computed wrongly when it was written; the data is good"
        )
    });
    copies.chain(stripes).chain(wrong)
}

fn words(fate: &Fate) -> String {
    match fate {
        Fate::Repaired => "repaired".to_owned(),
        Fate::Repairable => "repairable".to_owned(),
        Fate::Partly(lost) => {
            let rows = plural(to_u64(lost.len()), "row");
            let first = lost.first().copied().unwrap_or_default();
            format!("{rows} lost, first at byte {first}; the rest can be had")
        }
        Fate::Passing => "not repaired, because the ring is about to overwrite it".to_owned(),
        Fate::Failed(cause) => format!("not repaired: {}", printable(cause)),
        _ => "lost: too few members have it".to_owned(),
    }
}

/// A scrub as a JSON object.
pub fn scrubbed_json(report: &Scrubbed) -> String {
    safe::json_pretty(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_ring_is_about_to_overwrite_is_not_called_beyond_repair() {
        let words = |repaired, repairable, passing, lost| {
            Counts { repaired, repairable, passing, lost }.in_words()
        };
        assert_eq!(words(0, 0, 0, 0), "clean: every acknowledged byte is as it was written");
        let soon = "1 place that the ring is about to overwrite";
        assert_eq!(words(0, 0, 1, 0), format!("damaged: only {soon}"));
        assert_eq!(words(2, 0, 0, 0), "repaired: 2 places; nothing is damaged any more");
        assert_eq!(words(2, 0, 1, 0), format!("repaired: 2 places; not repaired: {soon}"));
        assert_eq!(
            words(0, 3, 1, 0),
            format!("damaged: 3 places, all repairable; not repaired: {soon}")
        );
        assert_eq!(
            words(1, 2, 1, 4),
            format!(
                "damaged: 4 places beyond repair, 2 repairable, 1 repaired; not repaired: {soon}"
            )
        );
    }
}
