//! What reports of qualifications advise for the members of a volume.

use std::path::{Path, PathBuf};

use ::qualify::{Choice, Given, Qualification, choose, other, parse_qualification, report_id};
use host::read_input;

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum AdviceError {
    #[error(transparent)]
    Host(#[from] host::Error),
    #[error(transparent)]
    Qualify(#[from] ::qualify::Error),
    #[error("{0}")]
    Report(String),
}

/// A report that was read.
struct Report {
    path: PathBuf,
    found: Qualification,
    id: [u8; 16],
}

/// Reads the reports and takes the one that guarantees least: the ring is as fast as its slowest
/// member. Each member must have one, unless those of other disks will do.
///
/// # Errors
/// A report cannot be read, judges no rate, or is of a disk that lost what was written to it; a
/// member has none.
pub fn advice(
    files: &[PathBuf],
    members: &[PathBuf],
    given: Given,
    may_be_other: bool,
) -> Result<Choice, AdviceError> {
    let reports = files.iter().map(|path| report(path)).collect::<Result<Vec<_>, _>>()?;
    if !may_be_other {
        members.iter().try_for_each(|member| check(member, &reports))?;
    }
    let mut choices = Vec::new();
    for report in &reports {
        let choice = choose(&report.found, given, report.id);
        choices.push(choice.ok_or_else(|| {
            wrong(&report.path, "judges no rate: qualify with the parts sweep, fill or ring", " ")
        })?);
    }
    let slowest = choices.into_iter().min_by_key(|it| it.qualified.guaranteed_bytes_per_s);
    slowest.ok_or_else(|| AdviceError::Report("no report was given".to_owned()))
}

fn wrong(path: &Path, why: impl core::fmt::Display, gap: &str) -> AdviceError {
    AdviceError::Report(format!("{}{gap}{why}", page::safe::path(path)))
}

fn report(path: &Path) -> Result<Report, AdviceError> {
    let text = read_input(path)?;
    let found = parse_qualification(&text).map_err(|error| wrong(path, error, ": "))?;
    if found.wrong_rows() > 0 {
        let why = "the disk did not hold what was written to it; nothing is made";
        return Err(wrong(path, why, ": "));
    }
    Ok(Report { path: path.to_path_buf(), found, id: report_id(&text) })
}

/// Some report is of this member.
fn check(member: &Path, reports: &[Report]) -> Result<(), AdviceError> {
    let mut why = Vec::new();
    for report in reports {
        match other(&report.found, member)? {
            None => return Ok(()),
            Some(other) => {
                why.push(format!("{} is not of it: {other}", page::safe::path(&report.path)));
            }
        }
    }
    let why = format!(
        "was not qualified: {}; nothing was written (--of-other-disks takes it all the same)",
        why.join("; ")
    );
    Err(wrong(member, why, " "))
}
