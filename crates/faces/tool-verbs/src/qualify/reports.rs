//! Reports as files and on the terminal: read again, and written beside what is printed.

use std::path::Path;

use ::qualify::{Answer, Qualification, QualificationError, QualifyReport};
use host::{Output, OutputFolder, random_bytes, read_input};

use super::flags::Outputs;
use crate::failure::Verdict;
use crate::{output_file, stdout};

/// Columns where there is no terminal.
const WIDTH: usize = 100;

/// The report of one target.
pub(crate) fn read(file: &Path) -> anyhow::Result<Qualification> {
    parse(file, &read_input(file)?, ::qualify::parse_qualification)
}

/// Reads the text of `file`, and says of which file it is wrong.
pub(crate) fn parse<T>(
    file: &Path,
    text: &str,
    how: impl Fn(&str) -> Result<T, QualificationError>,
) -> anyhow::Result<T> {
    how(text).map_err(|error| anyhow::anyhow!("{}: {error}", page::safe::path(file)))
}

/// Files beside the report that were asked for, begun before anything is measured.
pub(super) struct Drafts {
    page: Option<Output>,
    tables: Option<OutputFolder>,
    plots: Option<OutputFolder>,
}

impl Drafts {
    pub(super) fn create(outputs: &Outputs) -> anyhow::Result<Self> {
        let page = output_file::create_named(outputs.html.as_ref(), outputs.force)?;
        let folder = |path: Option<&Path>| path.map(output_file::create_folder).transpose();
        let (tables, plots) = (folder(outputs.csv.as_deref())?, folder(outputs.svg.as_deref())?);
        Ok(Self { page, tables, plots })
    }

    pub(super) fn write(self, report: &QualifyReport) -> anyhow::Result<()> {
        if let Some(page) = self.page {
            let text = match report {
                QualifyReport::Qualification(found) => qualify_view::qualification_html(found),
                QualifyReport::Comparison(found) => qualify_view::comparison_html(found),
            };
            page.finish_with(text.as_bytes())?;
        }
        if let (Some(tables), QualifyReport::Qualification(found)) = (self.tables, report) {
            tables.finish_with(qualify_view::qualification_csv(found))?;
        }
        if let Some(plots) = self.plots {
            plots.finish_with(match report {
                QualifyReport::Qualification(found) => qualify_view::qualification_svg(found),
                QualifyReport::Comparison(found) => qualify_view::comparison_svg(found),
            })?;
        }
        Ok(())
    }
}

/// Of what is drawn by chance.
pub(super) fn seed() -> Result<u64, host::Error> {
    random_bytes().map(u64::from_le_bytes)
}

pub(super) fn style() -> page::PlotStyle {
    page::PlotStyle { width: stdout::width().unwrap_or(WIDTH), is_terminal: stdout::is_drawn_on() }
}

pub(super) fn verdict(answer: Answer) -> Verdict {
    match answer {
        Answer::Fits => Verdict::Clean,
        Answer::TooSlow => Verdict::Negative,
        Answer::CannotJudge => Verdict::Unknown,
    }
}
