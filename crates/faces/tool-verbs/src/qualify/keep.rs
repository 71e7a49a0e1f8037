//! The file of a report: written after each part, so that a run can go on where it was stopped,
//! whatever stopped it.

use std::path::PathBuf;

use ::qualify::{Ask, Error, Qualification, Target, resumable};
use host::Output;

use super::flags::Flags;
use super::reports;
use crate::output_file;

/// Where the report goes, and what was there of it.
#[derive(Debug)]
pub(super) struct Kept {
    path: Option<PathBuf>,
    earlier: Option<Qualification>,
}

impl Kept {
    /// No file, and nothing was there.
    pub(super) fn none() -> Self {
        Self { path: None, earlier: None }
    }

    /// A file that cannot be written is refused now, and not after hours.
    pub(super) fn new(flags: &Flags) -> anyhow::Result<Self> {
        let path = flags.output.as_ref().or(flags.resume.as_ref()).cloned();
        // Its report may go to the same place, in whole or not at all.
        let read =
            |path| reports::parse(path, &host::read_text(path)?, ::qualify::parse_qualification);
        let earlier = flags.resume.as_deref().map(read).transpose()?;
        if let Some(path) = &path {
            // What is gone on with is written anew.
            let is_own = flags.output.is_none() || flags.output == flags.resume;
            drop(output_file::create(path, is_own || flags.outputs.force)?);
        }
        Ok(Self { path, earlier })
    }

    /// Refused before anything is measured: an earlier run of another target.
    pub(super) fn check(&self, target: &Target, ask: &Ask) -> Result<(), Error> {
        self.earlier.as_ref().map_or(Ok(()), |earlier| resumable(earlier, target, ask))
    }

    /// What an earlier run found, once.
    pub(super) fn take_earlier(&mut self) -> Option<Qualification> {
        self.earlier.take()
    }

    /// After each part; a pipe gets the whole report only.
    pub(super) fn keep(&self, found: &Qualification) -> Result<(), Error> {
        let is_file = |path: &&PathBuf| !path.exists() || path.is_file();
        match self.path.as_ref().filter(is_file) {
            Some(_) => self.write(found).map_err(Error::Keep),
            None => Ok(()),
        }
    }

    /// The whole report, under its name at once or not at all.
    pub(super) fn write(&self, found: &Qualification) -> Result<(), host::Error> {
        let Some(path) = &self.path else { return Ok(()) };
        Output::create(path, true)?.finish_with(qualify_view::qualification_json(found).as_bytes())
    }
}
