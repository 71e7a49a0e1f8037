//! What becomes of the results: text, files, and the verdict against another day.

use std::path::{Path, PathBuf};

use ::runs::{Contest, Former, Subject, Verdict as Became};
use host::{Output, read_input};
use machine_view::{Held, Ran};
use units::Random;

use super::flags::Outputs;
use crate::failure::{Outcome, Usage, Verdict};
use crate::output_file;
use crate::progress::say;
use crate::stdout;

/// Columns where there is no terminal.
const WIDTH: usize = 100;

/// Where results go.
pub(super) struct Results<'a> {
    outputs: &'a Outputs,
    baseline: Option<(&'a Path, Vec<Former>)>,
    json: Option<Output>,
    csv: Option<Output>,
}

impl<'a> Results<'a> {
    /// Refused before anything is measured, and not behind.
    pub(super) fn new(outputs: &'a Outputs) -> anyhow::Result<Self> {
        let baseline = outputs.baseline.as_deref();
        let baseline =
            baseline.map(|path| -> anyhow::Result<_> { Ok((path, read(path)?)) }).transpose()?;
        let begin =
            |path: &Option<PathBuf>| output_file::create_named(path.as_ref(), outputs.force);
        let (json, csv) = (begin(&outputs.export_json)?, begin(&outputs.csv)?);
        Ok(Self { outputs, baseline, json, csv })
    }

    /// Whether the baseline has something of what is going to be run.
    pub(super) fn check(&self, subjects: &[Subject]) -> Result<(), Usage> {
        let Some((path, formers)) = &self.baseline else { return Ok(()) };
        let has = |subject: &&Subject| formers.iter().any(|former| former.is_of(subject));
        let (known, unknown): (Vec<_>, Vec<_>) = subjects.iter().partition(has);
        let name = |subject: &Subject| format!("{:?}", page::safe::printable(&subject.name));
        let names = |of: &[&Subject]| of.iter().map(|it| name(it)).collect::<Vec<_>>().join(", ");
        let path = page::safe::path(path);
        if known.is_empty() {
            let theirs: Vec<String> = formers
                .iter()
                .map(|former| format!("{:?}", page::safe::printable(&former.name)))
                .collect();
            return Err(Usage(format!(
                "{path} has no runs of {}, but of {}; -n gives a command the name of those",
                names(&unknown),
                theirs.join(", ")
            )));
        }
        if !unknown.is_empty() {
            say(&format!("bench: {path} has no runs of {}", names(&unknown)));
        }
        Ok(())
    }

    /// Shows and writes everything.
    pub(super) fn tell(self, found: &Contest, ran: Ran, random: &mut Random) -> Outcome {
        let held = self.held(found, random);
        let json = machine_view::runs_json(found, &held);
        if self.outputs.json {
            stdout::print(&json)?;
        } else {
            let width = stdout::width();
            let style = page::PlotStyle {
                width: width.unwrap_or(WIDTH),
                is_terminal: stdout::is_terminal(),
            };
            let mut text = machine_view::runs(found, ran, style);
            if let Some((path, _)) = &self.baseline {
                text.push_str(&machine_view::held(&held, &page::safe::path_value(path), width));
            }
            stdout::print_plot(&text)?;
        }
        if let Some(output) = self.json {
            output.finish_with(json.as_bytes())?;
        }
        if let Some(output) = self.csv {
            output.finish_with(machine_view::runs_csv(found).as_bytes())?;
        }
        Ok(verdict(&held, found.is_interrupted))
    }

    fn held<'f>(&self, found: &'f Contest, random: &mut Random) -> Vec<Held<'f>> {
        let Some((_, formers)) = &self.baseline else { return Vec::new() };
        Held::all(found, formers, self.outputs.tolerance / 100.0, random)
    }
}

fn verdict(held: &[Held<'_>], is_interrupted: bool) -> Verdict {
    let has = |became| held.iter().any(|held| held.against.verdict == became);
    if has(Became::Worse) {
        Verdict::Negative
    } else if has(Became::Unclear) || is_interrupted {
        Verdict::Unknown
    } else {
        Verdict::Clean
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<Former>> {
    let found = ::runs::parse_former(&read_input(path)?);
    found.map_err(|error| Usage(format!("{}: {error}", page::safe::path(path))).into())
}
