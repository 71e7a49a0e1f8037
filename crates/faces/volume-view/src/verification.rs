//! Volumes verified.

use page::safe::{self, printable};
use page::text::{grouped, plural};
use units::ByteSize;
use units::number::to_u64;
use upkeep::{BadStripe, Verification};

/// Lines of damage that are shown; the JSON has them all.
pub(crate) const DAMAGE_SHOWN: usize = 20;

/// Where the only thing that is wrong is that a member was given up.
pub(crate) const NOT_CHECKED: &str = "not checked to the end; nothing is damaged in what was read";

/// A verification, in words: the verdict first, then each damaged place.
pub fn verification(report: &Verification) -> String {
    let read = &report.read;
    let mut lines = vec![verdict(report)];
    lines.push(format!(
        "read {} in {}: {} data, {} index and {} other stripes, {}, {}",
        ByteSize(read.bytes),
        plural(read.slots, "slot"),
        grouped(read.data_stripes),
        grouped(read.index_stripes),
        grouped(read.other_stripes),
        plural(report.packets, "packet"),
        plural(report.sessions, "session row"),
    ));
    lines.extend(overwritten(report.overwritten));
    let damage: Vec<String> = damage_lines(report).collect();
    let more = damage.len().saturating_sub(DAMAGE_SHOWN);
    lines.extend(damage.into_iter().take(DAMAGE_SHOWN));
    if more > 0 {
        lines.push(format!("and {more} more; --json lists them all"));
    }
    lines.join("\n") + "\n"
}

/// The slots that a recorder took back while they were read.
pub(crate) fn overwritten(slots: u64) -> Option<String> {
    let passed = plural(slots, "slot");
    (slots > 0).then(|| format!("{passed} overwritten by the recorder meanwhile"))
}

fn verdict(report: &Verification) -> String {
    match (report.is_clean, report.is_complete) {
        (true, true) => "clean: every acknowledged byte is as it was written".to_owned(),
        (true, false) => "stopped early; nothing is damaged in what was read".to_owned(),
        (false, _) => {
            let stripes = report.damage.len() + report.parity_wrong.len();
            let others = report.index_damage.len() + report.bad_copies.len();
            if stripes + others == 0 {
                return NOT_CHECKED.to_owned();
            }
            let stripes = plural(to_u64(stripes), "stripe");
            let indexes = plural(to_u64(report.index_damage.len()), "index part");
            let copies = match report.bad_copies.len() {
                0 => String::new(),
                count => format!(", {}", copies(to_u64(count))),
            };
            format!("damaged: {stripes}, {indexes}{copies}")
        }
    }
}

/// `2 superblock copies`.
fn copies(count: u64) -> String {
    if count == 1 { "1 superblock copy".to_owned() } else { format!("{count} superblock copies") }
}

fn damage_lines(report: &Verification) -> impl Iterator<Item = String> {
    let copies = report.bad_copies.iter().map(|(member, copy)| {
        format!("member {member}: superblock copy {} of 4 is not the newest", copy + 1)
    });
    let stripes = report.damage.iter().map(|bad| {
        let remedy = if bad.repairable { "; the other members have it" } else { "" };
        bad_stripe(bad) + remedy
    });
    let wrong = report
        .parity_wrong
        .iter()
        .map(|stripe| format!("stripe {stripe}: parity was computed wrongly when it was written"));
    let indexes = report.index_damage.iter().map(|damage| {
        let (at, offset) = (damage.index, damage.slot_offset);
        let reason = printable(&damage.reason);
        format!("index at stripe {at}, slot at byte {offset}: {reason}")
    });
    let given_up = report.given_up.iter().map(|member| format!("not checked any more: {member}"));
    given_up.chain(copies).chain(stripes).chain(wrong).chain(indexes)
}

/// Where a stripe is damaged, and how.
pub(crate) fn bad_stripe(bad: &BadStripe) -> String {
    let BadStripe { stripe, member, slot_offset, row_offsets, .. } = bad;
    let place = member.map_or_else(String::new, |member| format!(" on member {member}"));
    match row_offsets.first() {
        None => {
            let body = match bad.is_body_whole {
                Some(true) => "; its body is as it was sealed",
                Some(false) => "; its body is not as it was sealed",
                None => "",
            };
            format!("stripe {stripe}{place}: no valid head in the slot at byte {slot_offset}{body}")
        }
        Some(first) => {
            let rows = plural(to_u64(row_offsets.len()), "row");
            format!("stripe {stripe}{place}: {rows} of 4096 bytes damaged, first at byte {first}")
        }
    }
}

/// A verification as a JSON object.
pub fn verification_json(report: &Verification) -> String {
    safe::json_pretty(report)
}
