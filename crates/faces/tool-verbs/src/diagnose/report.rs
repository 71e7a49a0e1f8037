//! What is made of a diagnosis: text, JSON, a page.

use core::time::Duration;
use std::path::PathBuf;

use ::calls::CallWatch;
use ::connections::Series;
use ::diagnose::io::IoWatch;
use ::findings::Diagnosis;
use clap::{ArgGroup, Args};
use host::{Output, SystemClock};
use machine_view::DiagnosisPage;
use units::Clock as _;

use crate::failure::{Outcome, Usage, Verdict};
use crate::{output_file, stdout};

/// Pages that are written besides the report.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("written").multiple(true))]
pub(super) struct PageFlags {
    /// Write a page of HTML with the findings and plots of what was seen to this file
    #[arg(long, value_name = "FILE", group = "written")]
    html: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "written")]
    pub(super) force: bool,
}

impl PageFlags {
    /// Begins the file: the command reports what cannot be written before the user waits.
    pub(super) fn begin(&self) -> anyhow::Result<Option<Output>> {
        output_file::create_named(self.html.as_ref(), self.force)
    }
}

pub(super) fn show(report: &Diagnosis, as_json: bool) -> Outcome {
    let text = if as_json {
        machine_view::diagnosis_json(report)
    } else {
        machine_view::diagnosis(report, stdout::width())
    };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(report.is_clean()))
}

pub(super) fn write_page(
    page: Output,
    report: &Diagnosis,
    (sockets, disks, calls): (Option<&[Series]>, Option<&IoWatch>, Option<&CallWatch>),
) -> Result<(), host::Error> {
    let of = DiagnosisPage { at: SystemClock.realtime(), report, sockets, disks, calls };
    page.finish_with(machine_view::diagnosis_html(&of).as_bytes())
}

pub(super) fn nanos(time: Duration) -> Result<i64, Usage> {
    i64::try_from(time.as_nanos()).map_err(|_| Usage("no time is as long as that".to_owned()))
}
