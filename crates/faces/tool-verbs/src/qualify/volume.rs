//! A volume as the target: each of its members is read, and set beside what the volume keeps.

use std::path::{Path, PathBuf};

use ::qualify::{Ask, Consent, VolumeQualification, open};
use host::StopFlag;
use units::MemberId;

use super::disk::on_disk;
use super::flags::{Flags, Outputs};
use super::keep::Kept;
use super::reports::{style, verdict};
use crate::failure::{Outcome, Usage};
use crate::output_file;
use crate::stdout;

/// A volume that may be looked at.
#[derive(Debug)]
pub(super) struct Volume {
    members: Vec<(MemberId, PathBuf)>,
    found: VolumeQualification,
}

/// The volume that `path` is a member of, if it is one.
pub(super) fn at(path: &Path) -> Option<Volume> {
    if path.is_dir() {
        return None;
    }
    let members = volume::find_members(path, &[]).ok()?;
    let reader = volume::open_superblocks(path, &[]).ok()?;
    let superblock = reader.superblock();
    let found = VolumeQualification {
        path: path.to_path_buf(),
        data_columns: superblock.geometry.data_columns,
        parity_columns: superblock.geometry.parity_columns,
        kept: superblock.qualified,
        members: Vec::new(),
        absent: reader.membership().absent().collect(),
    };
    let members = members.into_iter().map(|found| (found.member, found.path)).collect();
    Some(Volume { members, found })
}

/// Qualifies all members, and prints the report.
pub(super) fn run(volume: Volume, flags: &Flags, ask: &Ask) -> Outcome {
    let Outputs { html, csv, svg, force, json } = &flags.outputs;
    if flags.resume.is_some() {
        return Err(Usage("--resume takes the report of one disk, not of a volume".into()).into());
    }
    if html.is_some() || csv.is_some() || svg.is_some() {
        let text = "a volume has several disks: of all together there are --json and --output";
        return Err(Usage(text.to_owned()).into());
    }
    let output = output_file::create_named(flags.output.as_ref(), *force)?;
    let found = measure(volume, flags, ask, &StopFlag::install()?)?;
    let report = qualify_view::volume_qualification_json(&found);
    if let Some(output) = output {
        output.finish_with(report.as_bytes())?;
    }
    let text = if *json { report } else { qualify_view::volume_qualification(&found, style()) };
    stdout::print(&text)?;
    Ok(verdict(found.answer()))
}

/// Reads one member after another; a recorder that runs goes on, and both are slower for it.
fn measure(
    volume: Volume,
    flags: &Flags,
    ask: &Ask,
    stop: &StopFlag,
) -> anyhow::Result<VolumeQualification> {
    let Volume { members, mut found } = volume;
    let ask = &ask.of_member(found.data_columns, found.parity_columns);
    for (number, path) in members {
        if stop.is_set() {
            break;
        }
        let opened = open(&path, 0, &Consent::default(), 0, &mut |_, _| {
            core::ops::ControlFlow::Continue(())
        })?;
        found.members.push((number, on_disk(opened, flags, (ask, &mut Kept::none()), stop)?));
    }
    Ok(found)
}
