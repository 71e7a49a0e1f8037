//! What the reports of qualifications advise for a new volume.

use std::path::{Path, PathBuf};

use ::qualify::{Choice, Given, Qualification, choose, other, report_id};
use anyhow::{anyhow, bail};
use host::read_text;

use crate::qualify;

/// A report that was read.
struct Report {
    path: PathBuf,
    found: Qualification,
    id: [u8; 16],
}

/// Reads the reports and takes the one that guarantees least: the ring is as fast as its slowest
/// member. Each member must have one, unless those of other disks will do.
pub(crate) fn read(
    files: &[PathBuf],
    members: &[PathBuf],
    given: Given,
    may_be_other: bool,
) -> anyhow::Result<Choice> {
    let reports = files.iter().map(|path| report(path)).collect::<Result<Vec<_>, _>>()?;
    if !may_be_other {
        members.iter().try_for_each(|member| check(member, &reports))?;
    }
    let mut choices = Vec::new();
    for report in &reports {
        let choice = choose(&report.found, given, report.id);
        let path = page::safe::path(&report.path);
        choices.push(choice.ok_or_else(|| {
            anyhow!("{path} judges no rate: qualify with the parts sweep, fill or ring")
        })?);
    }
    let slowest = choices.into_iter().min_by_key(|it| it.qualified.guaranteed_bytes_per_s);
    Ok(slowest.expect("at least one report was given"))
}

fn report(path: &Path) -> anyhow::Result<Report> {
    let text = read_text(path)?;
    let found = qualify::parse(path, &text, ::qualify::parse_qualification)?;
    if found.wrong_rows() > 0 {
        bail!(
            "{}: the disk did not hold what was written to it; nothing is made",
            page::safe::path(path)
        );
    }
    Ok(Report { path: path.to_path_buf(), found, id: report_id(&text) })
}

/// Some report is of this member.
fn check(member: &Path, reports: &[Report]) -> anyhow::Result<()> {
    let mut why = Vec::new();
    for report in reports {
        match other(&report.found, member)? {
            None => return Ok(()),
            Some(other) => {
                why.push(format!("{} is not of it: {other}", page::safe::path(&report.path)));
            }
        }
    }
    bail!(
        "{} was not qualified: {}; nothing was written (--of-other-disks takes it all the same)",
        page::safe::path(member),
        why.join("; "),
    )
}
