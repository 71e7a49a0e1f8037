//! Volumes verified.

use page::safe::{self, printable};
use page::text::{grouped, plural};
use serde::Serialize;
use units::ByteSize;
use units::number::to_u64;
use upkeep::{BadStripe, GivenUp, Verification, VerifyReport};

/// Lines of damage that are shown; the JSON has them all.
pub(crate) const DAMAGE_SHOWN: usize = 20;

/// Where the only thing that is wrong is that a member was given up.
pub(crate) const NOT_CHECKED: &str = "not checked to the end; nothing is damaged in what was read";

/// A verification, in words: the verdict first, then each damaged place.
pub fn verification(report: &Verification) -> String {
    let ring = &report.ring;
    let mut lines = vec![verdict(report)];
    lines.push(format!(
        "read {} in {}: {} data, {} index and {} other stripes, {}, {}",
        ByteSize(ring.bytes),
        plural(ring.slots, "slot"),
        grouped(ring.data_stripes),
        grouped(ring.index_stripes),
        grouped(ring.other_stripes),
        plural(ring.packets, "packet"),
        plural(report.sessions, "session row"),
    ));
    lines.extend(overwritten(ring));
    let damage: Vec<String> = damage_lines(report).collect();
    let more = damage.len().saturating_sub(DAMAGE_SHOWN);
    lines.extend(damage.into_iter().take(DAMAGE_SHOWN));
    if more > 0 {
        lines.push(format!("and {more} more; --json lists them all"));
    }
    lines.join("\n") + "\n"
}

/// The slots that a recorder took back while they were read.
pub(crate) fn overwritten(ring: &VerifyReport) -> Option<String> {
    let passed = plural(ring.overwritten, "slot");
    (ring.overwritten > 0).then(|| format!("{passed} overwritten by the recorder meanwhile"))
}

fn verdict(report: &Verification) -> String {
    match (report.is_clean(), report.is_complete) {
        (true, true) => "clean: every acknowledged byte is as it was written".to_owned(),
        (true, false) => "stopped early; nothing is damaged in what was read".to_owned(),
        (false, _) => {
            let stripes = report.damage.len() + report.ring.parity_wrong.len();
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
    let wrong =
        report.ring.parity_wrong.iter().map(|stripe| {
            format!("stripe {stripe}: parity was computed wrongly when it was written")
        });
    let indexes = report.index_damage.iter().map(|damage| {
        let (at, offset) = (damage.index, damage.slot_offset);
        let reason = printable(&damage.reason);
        format!("index at stripe {at}, slot at byte {offset}: {reason}")
    });
    let given_up =
        report.ring.given_up.iter().map(|member| format!("not checked any more: {member}"));
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

#[derive(Serialize)]
struct VerificationJson<'a> {
    path: String,
    volume_id: String,
    clean: bool,
    complete: bool,
    slots: u64,
    bytes: u64,
    data_stripes: u64,
    index_stripes: u64,
    other_stripes: u64,
    packets: u64,
    indexes: u64,
    sessions: u64,
    overwritten: u64,
    superblocks: Vec<[u8; 2]>,
    damage: Vec<DamageJson<'a>>,
    parity_wrong: Vec<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    given_up: &'a [GivenUp],
    index_damage: Vec<IndexDamageJson<'a>>,
}

#[derive(Serialize)]
struct DamageJson<'a> {
    stripe: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<u8>,
    repairable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_whole: Option<bool>,
    slot_offset: u64,
    row_offsets: &'a [u64],
}

#[derive(Serialize)]
struct IndexDamageJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    segment: Option<String>,
    stripe: String,
    slot_offset: u64,
    reason: &'a str,
}

/// A verification as a JSON object.
pub fn verification_json(report: &Verification) -> String {
    let ring = &report.ring;
    let damage = report.damage.iter().map(|bad| DamageJson {
        stripe: bad.stripe.to_string(),
        member: bad.member,
        repairable: bad.repairable,
        body_whole: bad.is_body_whole,
        slot_offset: bad.slot_offset,
        row_offsets: &bad.row_offsets,
    });
    let index_damage = report.index_damage.iter().map(|bad| IndexDamageJson {
        segment: bad.segment.map(|segment| segment.to_string()),
        stripe: bad.index.to_string(),
        slot_offset: bad.slot_offset,
        reason: &bad.reason,
    });
    safe::json_pretty(&VerificationJson {
        path: safe::path_value(&report.path),
        volume_id: report.volume_id.to_string(),
        clean: report.is_clean(),
        complete: report.is_complete,
        slots: ring.slots,
        bytes: ring.bytes,
        data_stripes: ring.data_stripes,
        index_stripes: ring.index_stripes,
        other_stripes: ring.other_stripes,
        packets: ring.packets,
        indexes: report.indexes,
        sessions: report.sessions,
        overwritten: ring.overwritten,
        superblocks: report.bad_copies.iter().map(|&(member, copy)| [member, copy]).collect(),
        damage: damage.collect(),
        parity_wrong: ring.parity_wrong.iter().map(ToString::to_string).collect(),
        given_up: &ring.given_up,
        index_damage: index_damage.collect(),
    })
}
