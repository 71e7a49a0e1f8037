//! A volume's members as they read now, beside what the volume keeps.

use ::qualify::{Beside, Lost, Together, VolumeQualification, beside};
use format::superblock::Qualified;
use page::forms::qualified;
use page::text::{bits, day, disk_rate, nanos, permille, plural, wrapped};
use page::{PlotStyle, add, safe};
use serde::Serialize;
use serde_json::Value;
use units::MemberId;

use super::text::Lines;
use super::{qualification, qualification_json};

/// Each member, and a line that compares it.
pub fn volume_qualification(report: &VolumeQualification, style: PlotStyle) -> String {
    let mut lines = Lines::new(style);
    lines.add("volume", &safe::path(&report.path));
    match &report.kept {
        Some(kept) => lines.add("qualified", &qualified(kept)),
        None => lines.add("qualified", "no: it was made without a qualification"),
    }
    for number in &report.absent {
        lines.add("absent", &format!("member {number}"));
    }
    if let Some(together) = report.together() {
        lines.add("together", &sum(report, &together));
        for lost in &together.lost {
            lines.add("", &gone(report, lost));
        }
    }
    let mut text = lines.text;
    for (number, found) in &report.members {
        let beside = beside(found, report.kept.as_ref());
        let beside = beside.map_or_else(|| "nothing to compare".to_owned(), |it| line(report, it));
        let of_member = wrapped(&format!("member {number}: {beside}"), style.width, 2);
        add(&mut text, format_args!("\n{}\n", of_member.join("\n")));
        text.push_str(&qualification(found, style));
    }
    text
}

fn sum(report: &VolumeQualification, together: &Together) -> String {
    format!(
        "{} of {} guarantee {}, {} of traffic, if they write as they read",
        report.data_columns,
        plural(u64::try_from(report.members.len()).unwrap_or(u64::MAX), "member"),
        disk_rate(together.guaranteed_bytes_per_s),
        bits(together.guaranteed_traffic_bit_per_s),
    )
}

fn gone(report: &VolumeQualification, lost: &Lost) -> String {
    let members = plural(u64::from(lost.members), "member");
    let Some(guaranteed) = lost.guaranteed_bytes_per_s else {
        let held = match report.parity_columns {
            0 => "it has no parity".to_owned(),
            parity => format!("it has parity for {parity}"),
        };
        return format!("{members} lost: what it holds is lost as well, for {held}");
    };
    let rebuilt = lost.rebuild_ns.map(|ns| format!("; rebuilt in {}", nanos(ns)));
    let rebuilt = rebuilt.unwrap_or_default();
    format!("{members} lost and replaced: guaranteed {}{rebuilt}", disk_rate(guaranteed))
}

fn line(report: &VolumeQualification, beside: Beside) -> String {
    let now = format!(
        "reads {} in the mean, {} in its slowest place",
        disk_rate(beside.mean_bytes_per_s),
        disk_rate(beside.minimum_bytes_per_s)
    );
    let Some((kept, permille)) = report.kept.as_ref().zip(beside.permille) else { return now };
    let share = self::permille(permille);
    let verdict = if beside.is_slower { "; SLOWER THAN IT WAS GUARANTEED TO WRITE" } else { "" };
    format!("{now}: {share} of the mean of {}{verdict}", day(kept.at))
}

#[derive(Serialize)]
struct Volume<'a> {
    path: String,
    data_columns: u8,
    parity_columns: u8,
    qualified: Option<&'a Qualified>,
    guaranteed_bytes_per_s: Option<u64>,
    guaranteed_traffic_bit_per_s: Option<u64>,
    lost: Vec<Lost>,
    absent: Vec<MemberId>,
    members: Vec<OfMember>,
}

#[derive(Serialize)]
struct OfMember {
    member: MemberId,
    read_mean_bytes_per_s: Option<u64>,
    mean_to_qualified_permille: Option<u64>,
    is_slower: bool,
    qualification: Value,
}

/// The same as JSON; each member's qualification as it stands alone.
pub fn volume_qualification_json(report: &VolumeQualification) -> String {
    let members = report.members.iter().map(|(number, found)| {
        let beside = beside(found, report.kept.as_ref());
        let text = qualification_json(found);
        OfMember {
            member: *number,
            read_mean_bytes_per_s: beside.map(|beside| beside.mean_bytes_per_s),
            mean_to_qualified_permille: beside.and_then(|beside| beside.permille),
            is_slower: beside.is_some_and(|beside| beside.is_slower),
            qualification: serde_json::from_str(&text).expect("what was just written"),
        }
    });
    let together = report.together();
    safe::json_pretty(&Volume {
        path: safe::path_value(&report.path),
        data_columns: report.data_columns,
        parity_columns: report.parity_columns,
        guaranteed_bytes_per_s: together.as_ref().map(|it| it.guaranteed_bytes_per_s),
        guaranteed_traffic_bit_per_s: together.as_ref().map(|it| it.guaranteed_traffic_bit_per_s),
        lost: together.map(|together| together.lost).unwrap_or_default(),
        qualified: report.kept.as_ref(),
        absent: report.absent.clone(),
        members: members.collect(),
    })
}
