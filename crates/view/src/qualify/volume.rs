//! A volume's members as they read now, beside what the volume keeps.

use core::fmt::Write as _;

use ::qualify::{Beside, VolumeQualification, beside};
use serde::Serialize;
use serde_json::Value;

use super::{disk_rate, qualification, qualification_json};
use crate::plot::PlotStyle;
use crate::text::day;
use crate::volume::{QualifiedJson, qualified};

/// Each member, and a line that compares it.
pub fn volume_qualification(report: &VolumeQualification, style: PlotStyle) -> String {
    let mut text = String::new();
    let mut add = |name: &str, value: &str| {
        writeln!(text, "{:<14} {value}", format!("{name}:")).expect("a string takes all text");
    };
    add("volume", &report.path.display().to_string());
    match &report.kept {
        Some(kept) => add("qualified", &qualified(kept)),
        None => add("qualified", "no: it was made without a qualification"),
    }
    for number in &report.absent {
        add("absent", &format!("member {number}"));
    }
    for (number, found) in &report.members {
        let beside = beside(found, report.kept.as_ref());
        let beside = beside.map_or_else(|| "nothing to compare".to_owned(), |it| line(report, it));
        writeln!(text, "\nmember {number}: {beside}").expect("a string takes all text");
        text.push_str(&qualification(found, style));
    }
    text
}

fn line(report: &VolumeQualification, beside: Beside) -> String {
    let now = format!(
        "reads {} in the mean, {} in its slowest place",
        disk_rate(beside.mean_bytes_per_s),
        disk_rate(beside.minimum_bytes_per_s)
    );
    let Some((kept, permille)) = report.kept.as_ref().zip(beside.permille) else { return now };
    let share = format!("{}.{} %", permille / 10, permille % 10);
    let verdict = if beside.is_slower { "; SLOWER THAN IT WAS GUARANTEED TO WRITE" } else { "" };
    format!("{now}: {share} of the mean of {}{verdict}", day(kept.at))
}

#[derive(Serialize)]
struct VolumeJson {
    path: String,
    data_columns: u8,
    qualified: Option<QualifiedJson>,
    absent: Vec<u8>,
    members: Vec<MemberJson>,
}

#[derive(Serialize)]
struct MemberJson {
    member: u8,
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
        MemberJson {
            member: *number,
            read_mean_bytes_per_s: beside.map(|beside| beside.mean_bytes_per_s),
            mean_to_qualified_permille: beside.and_then(|beside| beside.permille),
            is_slower: beside.is_some_and(|beside| beside.is_slower),
            qualification: serde_json::from_str(&text).expect("what was just written"),
        }
    });
    crate::pretty(&VolumeJson {
        path: report.path.display().to_string(),
        data_columns: report.data_columns,
        qualified: report.kept.as_ref().map(QualifiedJson::new),
        absent: report.absent.clone(),
        members: members.collect(),
    })
}
