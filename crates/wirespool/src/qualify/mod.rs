//! `wirespool qualify`.

mod flags;
mod volume;

use core::ops::ControlFlow;
use std::io::Write as _;
use std::path::Path;

use ::qualify::{
    Answer, Ask, Bench, Diff, Error, Part, Plan, Proposal, Qualification, TargetKind, modelled,
    open, proposals, run as measure,
};
use host::{Output, OutputFolder, StopFlag, SystemClock, random_bytes, read_text};

use units::Clock as _;

use crate::failure::{Outcome, Verdict};
use crate::progress::{Progress, say};
use crate::stdout;

pub(crate) use flags::Flags;
use flags::{Command, Outputs, PlanAsk, Subject};

/// Columns where there is no terminal.
const WIDTH: usize = 100;

pub(crate) fn run(flags: &Flags) -> Outcome {
    match &flags.command {
        Some(Command::Show { file, outputs }) => {
            let drafts = Drafts::create(None, outputs)?;
            let found = read(file)?;
            drafts.write(&found)?;
            tell(&found, outputs.json)
        }
        Some(Command::Diff { old, new, tolerance, json }) => {
            diff(&Diff::of(&read(old)?, &read(new)?, tolerance * 10), *json)
        }
        Some(Command::Plan(flags)) => plan(&flags.ask(read)?, flags.json),
        None => measured(flags),
    }
}

fn diff(diff: &Diff, json: bool) -> Outcome {
    stdout::print(&if json {
        view::qualification_diff_json(diff)
    } else {
        view::qualification_diff(diff, stdout::width())
    })?;
    Ok(diff.has_fallen().map_or(Verdict::Unknown, |has_fallen| Verdict::clean_if(!has_fallen)))
}

fn plan(ask: &PlanAsk, json: bool) -> Outcome {
    let PlanAsk { need, disks, parities, members } = ask;
    let found = proposals(need, disks, parities, *members);
    stdout::print(&if json {
        view::qualify_plan_json(need, disks, &found)
    } else {
        view::qualify_plan(need, disks, &found, stdout::width())
    })?;
    let is_proven =
        |proposal: &Proposal| disks.get(proposal.disk).is_some_and(|disk| !disk.is_by_reading);
    let fitting: Vec<&Proposal> = found.iter().filter(|proposal| proposal.fits()).collect();
    Ok(if fitting.is_empty() {
        Verdict::Negative
    } else if fitting.into_iter().any(is_proven) {
        Verdict::Clean
    } else {
        Verdict::Unknown
    })
}

fn measured(flags: &Flags) -> Outcome {
    let (subject, ask) = (flags.subject()?, flags.ask()?);
    if let Subject::Path { path, consent, .. } = &subject
        && consent.destroy.is_none()
        && let Some(volume) = volume::at(path)
    {
        return volume::run(volume, flags, &ask);
    }
    // Refused now, and not after hours.
    let drafts = Drafts::create(flags.output.as_deref(), &flags.outputs)?;
    let stop = StopFlag::install()?;
    let found = match subject {
        Subject::Model { path, size_bytes, disks } => {
            let csv = read_text(&path)?;
            let (disk, timeline, target) =
                modelled(&path, &csv, (size_bytes, disks), SystemClock.realtime())?;
            let plan = flags.plan(target.size_bytes);
            let mut writer = disk.clone();
            let mut shown = Shown::new(&stop);
            let mut hear = |part, done, total| shown.hear(part, done, total);
            let bench = Bench::new((&disk, Some(&mut writer)), &timeline, 0, &mut hear);
            let found = measure(bench, target, &plan, &ask);
            shown.finish();
            found?
        }
        Subject::Path { path, size_bytes, consent } => {
            let mut progress = Progress::new("qualify");
            let opened = open(&path, size_bytes, &consent, seed()?, &mut |done, total| {
                progress.bytes(done, total);
                stop.flow()
            });
            progress.finish();
            on_disk(opened?, flags, &ask, &stop)?
        }
    };
    drafts.write(&found)?;
    tell(&found, flags.outputs.json)
}

fn read(file: &Path) -> anyhow::Result<Qualification> {
    let found = view::parse_qualification(&read_text(file)?);
    found.map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))
}

/// Files that were asked for, begun before anything is measured.
struct Drafts {
    report: Option<Output>,
    page: Option<Output>,
    tables: Option<OutputFolder>,
    plots: Option<OutputFolder>,
}

impl Drafts {
    fn create(report: Option<&Path>, outputs: &Outputs) -> Result<Self, host::Error> {
        let file = |path: Option<&Path>| path.map(|path| Output::create(path, true)).transpose();
        let (report, page) = (file(report)?, file(outputs.html.as_deref())?);
        let folder = |path: Option<&Path>| path.map(OutputFolder::create).transpose();
        let (tables, plots) = (folder(outputs.csv.as_deref())?, folder(outputs.svg.as_deref())?);
        Ok(Self { report, page, tables, plots })
    }

    fn write(self, found: &Qualification) -> anyhow::Result<()> {
        if let Some(mut report) = self.report {
            report.write_all(view::qualification_json(found).as_bytes())?;
            report.finish()?;
        }
        if let Some(mut page) = self.page {
            page.write_all(view::qualification_html(found).as_bytes())?;
            page.finish()?;
        }
        if let Some(tables) = self.tables {
            for (name, text) in view::qualification_csv(found) {
                tables.file(name).write_all(text.as_bytes())?;
            }
            tables.finish()?;
        }
        if let Some(plots) = self.plots {
            for (name, text) in view::qualification_svg(found) {
                plots.file(&name).write_all(text.as_bytes())?;
            }
            plots.finish()?;
        }
        Ok(())
    }
}

/// Says how long it takes, measures, and leaves the target as promised.
fn on_disk(
    mut opened: ::qualify::Opened,
    flags: &Flags,
    ask: &Ask,
    stop: &StopFlag,
) -> anyhow::Result<Qualification> {
    let target = opened.target.clone();
    let plan = flags.plan(target.size_bytes);
    let may_write = opened.writer.is_some();
    if let Some(part) = flags.named().iter().find(|part| !may_write && !part.runs_read_only()) {
        let is_device = target.kind == TargetKind::Device;
        return Err(Error::ReadOnly { part: *part, path: target.path.into(), is_device }.into());
    }
    for path in &opened.left_over {
        say(&format!("removed {}, which a killed run had left", path.display()));
    }
    announce(&opened, &plan, may_write)?;
    let mut shown = Shown::new(stop);
    let mut hear = |part, done, total| shown.hear(part, done, total);
    let bench = opened.bench(&SystemClock, seed()?, &mut hear);
    let found = measure(bench, target, &plan, ask);
    shown.finish();
    // After an error the target is cleared up as well, and the error is what counts.
    match found {
        Ok(found) => {
            opened.close(!found.written.is_empty())?;
            Ok(found)
        }
        Err(error) => {
            drop(opened);
            Err(error.into())
        }
    }
}

fn announce(opened: &::qualify::Opened, plan: &Plan, may_write: bool) -> anyhow::Result<()> {
    let size = opened.target.size_bytes;
    let bytes_per_s = opened.first_look(&SystemClock)?;
    let fixed_ns = i64::try_from(plan.fixed_time(may_write).as_nanos()).unwrap_or(i64::MAX);
    let parts = plan.parts.iter().filter(|part| may_write || part.runs_read_only());
    let parts: Vec<&str> = parts.map(|part| part.name()).collect();
    let estimate = view::qualify_estimate(plan.bytes(size, may_write), bytes_per_s, fixed_ns);
    say(&format!("qualify: {}: {estimate}", parts.join(", ")));
    Ok(())
}

fn seed() -> Result<u64, host::Error> {
    random_bytes().map(u64::from_le_bytes)
}

fn style() -> view::PlotStyle {
    view::PlotStyle { width: stdout::width().unwrap_or(WIDTH), is_terminal: stdout::is_terminal() }
}

fn verdict(answer: Answer) -> Verdict {
    match answer {
        Answer::Fits => Verdict::Clean,
        Answer::TooSlow => Verdict::Negative,
        Answer::CannotJudge => Verdict::Unknown,
    }
}

fn tell(found: &Qualification, json: bool) -> Outcome {
    let text =
        if json { view::qualification_json(found) } else { view::qualification(found, style()) };
    stdout::print(&text)?;
    Ok(verdict(found.answer()))
}

/// Progress of one part after another.
struct Shown<'a> {
    stop: &'a StopFlag,
    part: Option<(Part, Progress)>,
}

impl<'a> Shown<'a> {
    fn new(stop: &'a StopFlag) -> Self {
        Self { stop, part: None }
    }

    fn hear(&mut self, part: Part, done: u64, total: u64) -> ControlFlow<()> {
        if self.part.as_ref().is_none_or(|(shown, _)| *shown != part) {
            self.finish_part();
        }
        let (_, progress) = self.part.get_or_insert_with(|| (part, Progress::new("qualify")));
        progress.share(done, total, &|_| {
            let percent = u128::from(done) * 100 / u128::from(total.max(1));
            format!("{part} {percent} %")
        });
        self.stop.flow()
    }

    fn finish_part(&mut self) {
        if let Some((_, progress)) = self.part.take() {
            progress.finish();
        }
    }

    fn finish(mut self) {
        self.finish_part();
    }
}
