//! Volumes scrubbed.

use page::safe::{self, printable};
use page::text::{grouped, plural};
use serde::Serialize;
use units::ByteSize;
use units::number::to_u64;
use upkeep::{BadCopy, BadStripe, Fate, GivenUp, Scrubbed};

use crate::verification::{DAMAGE_SHOWN, NOT_CHECKED, bad_stripe, overwritten};

/// A scrub, in words: the verdict first, then each damaged place and what became of it.
pub fn scrubbed(report: &Scrubbed) -> String {
    let ring = &report.ring;
    let mut lines = vec![verdict(report)];
    lines.push(format!(
        "read {} in {} of {}: {} data, {} index and {} other stripes",
        ByteSize(ring.bytes),
        plural(ring.slots, "slot"),
        plural(to_u64(report.members.len()), "member"),
        grouped(ring.data_stripes),
        grouped(ring.index_stripes),
        grouped(ring.other_stripes),
    ));
    if !report.absent.is_empty() {
        let absent: Vec<String> = report.absent.iter().map(u8::to_string).collect();
        lines.push(format!("not here, and so not checked: member {}", absent.join(", ")));
    }
    lines.extend(ring.given_up.iter().map(|member| format!("not checked any more: {member}")));
    if ring.degraded > 0 {
        let count = plural(ring.degraded, "stripe");
        lines.push(format!("{count} with pieces that a member never had; resilver writes them"));
    }
    lines.extend(overwritten(ring));
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
        lost: count(&is_lost) + to_u64(report.ring.parity_wrong.len()),
    };
    let is_untouched = counts.repaired + counts.repairable + counts.passing + counts.lost == 0;
    let whole = if is_untouched && !report.ring.given_up.is_empty() {
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
    let wrong = report.ring.parity_wrong.iter().map(|stripe| {
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

#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
struct ScrubbedJson<'a> {
    path: String,
    volume_id: String,
    dry_run: bool,
    clean: bool,
    sound: bool,
    complete: bool,
    members: Vec<MemberJson>,
    absent: &'a [u8],
    slots: u64,
    bytes: u64,
    data_stripes: u64,
    index_stripes: u64,
    other_stripes: u64,
    degraded: u64,
    overwritten: u64,
    superblocks: Vec<CopyJson>,
    damage: Vec<PlaceJson<'a>>,
    parity_wrong: Vec<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    given_up: &'a [GivenUp],
}

#[derive(Serialize)]
struct MemberJson {
    member: u8,
    path: String,
}

#[derive(Serialize)]
struct CopyJson {
    member: u8,
    copy: u8,
    old: bool,
    fate: &'static str,
}

#[derive(Serialize)]
struct PlaceJson<'a> {
    stripe: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<u8>,
    slot_offset: u64,
    row_offsets: &'a [u64],
    fate: &'static str,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    lost_row_offsets: &'a [u64],
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
}

/// A scrub as a JSON object.
pub fn scrubbed_json(report: &Scrubbed) -> String {
    let ring = &report.ring;
    let members = report.members.iter();
    let members = members
        .map(|found| MemberJson { member: found.member, path: safe::path_value(&found.path) });
    let copies = report.copies.iter();
    let copies = copies.map(|bad| CopyJson {
        member: bad.member,
        copy: bad.copy,
        old: bad.is_old,
        fate: name(&bad.fate),
    });
    safe::json_pretty(&ScrubbedJson {
        path: safe::path_value(&report.path),
        volume_id: report.volume_id.to_string(),
        dry_run: report.dry_run,
        clean: report.is_clean(),
        sound: report.is_sound,
        complete: report.is_complete,
        members: members.collect(),
        absent: &report.absent,
        slots: ring.slots,
        bytes: ring.bytes,
        data_stripes: ring.data_stripes,
        index_stripes: ring.index_stripes,
        other_stripes: ring.other_stripes,
        degraded: ring.degraded,
        overwritten: ring.overwritten,
        superblocks: copies.collect(),
        damage: report.damage.iter().map(place).collect(),
        parity_wrong: ring.parity_wrong.iter().map(ToString::to_string).collect(),
        given_up: &ring.given_up,
    })
}

fn place((bad, fate): &(BadStripe, Fate)) -> PlaceJson<'_> {
    PlaceJson {
        stripe: bad.stripe.to_string(),
        member: bad.member,
        slot_offset: bad.slot_offset,
        row_offsets: &bad.row_offsets,
        fate: name(fate),
        lost_row_offsets: if let Fate::Partly(lost) = fate { lost } else { &[] },
        cause: if let Fate::Failed(cause) = fate { Some(cause) } else { None },
    }
}

fn name(fate: &Fate) -> &'static str {
    match fate {
        Fate::Repaired => "repaired",
        Fate::Repairable => "repairable",
        Fate::Partly(_) => "partly lost",
        Fate::Passing => "passing",
        Fate::Failed(_) => "failed",
        _ => "lost",
    }
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
