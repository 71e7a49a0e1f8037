//! `wirespool qualify`.

mod compare;
mod fio;
mod flags;
mod keep;
mod volume;

use core::ops::ControlFlow;
use std::path::Path;

use ::qualify::{
    Answer, Ask, Bench, Diff, Error, Part, Plan, Proposal, Provided, Qualification,
    QualificationError, QualifyReport, Target, TargetKind, WrittenBytes, go_on as measure,
    modelled, open, proposals,
};
use host::{Output, OutputFolder, StopFlag, SystemClock, random_bytes, read_text};
use units::Clock as _;

use crate::failure::{Outcome, Verdict};
use crate::progress::{Progress, say};
use crate::stdout;

use crate::output_file;
pub(crate) use flags::Flags;
use flags::{Command, Outputs, PlanAsk, Subject};
use keep::Kept;

/// Columns where there is no terminal.
const WIDTH: usize = 100;

pub(crate) fn run(flags: &Flags) -> Outcome {
    match &flags.command {
        Some(Command::Show { file, outputs }) => {
            let report = parse(file, &read_text(file)?, ::qualify::parse_qualify_report)?;
            if let QualifyReport::Comparison(_) = report {
                compare::check(outputs)?;
            }
            Drafts::create(outputs)?.write(&report)?;
            match report {
                QualifyReport::Qualification(found) => tell(&found, outputs.json),
                QualifyReport::Comparison(found) => compare::tell(&found, outputs.json),
            }
        }
        Some(Command::Diff { old, new, tolerance, json }) => {
            diff(&Diff::of(&read(old)?, &read(new)?, tolerance * 10), *json)
        }
        Some(Command::Plan(flags)) => plan(&flags.ask(read)?, flags.json),
        None if !flags.compare.is_empty() => compare::run(flags),
        None => measured(flags),
    }
}

fn diff(diff: &Diff, json: bool) -> Outcome {
    stdout::print(&if json {
        qualify_view::qualification_diff_json(diff)
    } else {
        qualify_view::qualification_diff(diff, stdout::width())
    })?;
    Ok(diff.has_fallen().map_or(Verdict::Unknown, |has_fallen| Verdict::clean_if(!has_fallen)))
}

fn plan(ask: &PlanAsk, json: bool) -> Outcome {
    let PlanAsk { need, disks, parities, members } = ask;
    let found = proposals(need, disks, parities, *members);
    stdout::print(&if json {
        qualify_view::qualify_plan_json(need, disks, &found)
    } else {
        qualify_view::qualify_plan(need, disks, &found, stdout::width())
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
    let drafts = Drafts::create(&flags.outputs)?;
    let mut kept = Kept::new(flags)?;
    let stop = StopFlag::install()?;
    let found = match subject {
        Subject::Model { path, size_bytes, disks } => {
            let csv = read_text(&path)?;
            let (disk, timeline, target) =
                modelled(&path, &csv, (size_bytes, disks), SystemClock.realtime())?;
            let plan = flags.plan(target.size_bytes);
            let provided = Provided { writer: true, ..Provided::default() };
            refuse_what_cannot_run(flags.named(), &target, provided)?;
            let mut writer = disk.clone();
            let mut shown = Shown::new(&stop);
            let mut hear = |part, done, total| shown.hear(part, done, total);
            let bench = Bench::new((&disk, Some(&mut writer)), &timeline, 0, &mut hear);
            let earlier = kept.take_earlier();
            let mut keep = |found: &Qualification| kept.keep(found);
            let found = measure(bench, target, (&plan, &ask), earlier, &mut keep);
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
            on_disk(opened?, flags, (&ask, &mut kept), &stop)?
        }
    };
    kept.write(&found)?;
    let outcome = tell(&found, flags.outputs.json);
    drafts.write(&QualifyReport::Qualification(Box::new(found)))?;
    outcome
}

/// The report of one target.
pub(crate) fn read(file: &Path) -> anyhow::Result<Qualification> {
    parse(file, &read_text(file)?, ::qualify::parse_qualification)
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
struct Drafts {
    page: Option<Output>,
    tables: Option<OutputFolder>,
    plots: Option<OutputFolder>,
}

impl Drafts {
    fn create(outputs: &Outputs) -> anyhow::Result<Self> {
        let page = output_file::create_named(outputs.html.as_ref(), outputs.force)?;
        let folder = |path: Option<&Path>| path.map(OutputFolder::create).transpose();
        let (tables, plots) = (folder(outputs.csv.as_deref())?, folder(outputs.svg.as_deref())?);
        Ok(Self { page, tables, plots })
    }

    fn write(self, report: &QualifyReport) -> anyhow::Result<()> {
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

/// Says how long it takes, measures, and leaves the target as promised.
fn on_disk(
    mut opened: ::qualify::Opened,
    flags: &Flags,
    (ask, kept): (&Ask, &mut Kept),
    stop: &StopFlag,
) -> anyhow::Result<Qualification> {
    let target = opened.target.clone();
    let plan = opened.fitted(flags.plan(target.size_bytes), flags.named())?;
    refuse_what_cannot_run(flags.named(), &target, opened.provided())?;
    kept.check(&target, ask)?;
    let fio = fio::find(flags.fio, &plan, &opened)?;
    for path in &opened.left_over {
        say(&format!("removed {}, which a killed run had left", page::safe::path(path)));
    }
    announce(&opened, &plan)?;
    let mut shown = Shown::new(stop);
    let mut hear = |part, done, total| shown.hear(part, done, total);
    let bench = opened.bench(&SystemClock, seed()?, &mut hear);
    let earlier = kept.take_earlier();
    let mut keep = |found: &Qualification| kept.keep(found);
    let found = measure(bench, target, (&plan, ask), earlier, &mut keep);
    shown.finish();
    let found = found.map_err(anyhow::Error::from).and_then(|mut found| {
        if let Some(fio) = &fio {
            fio.run(&mut found, &plan, (&opened, stop))?;
        }
        let before = found.written_bytes.map_or(0, |written| written.own);
        found.written_bytes = opened
            .written_bytes()
            .map(|written| WrittenBytes { own: written.own.saturating_add(before), ..written });
        Ok(found)
    });
    // After an error the target is cleared up as well, and the error is what counts.
    match found {
        Ok(found) => {
            opened.close(!found.written.is_empty())?;
            Ok(found)
        }
        Err(error) => {
            drop(opened);
            Err(error)
        }
    }
}

/// A part that was asked for by name runs, or it is said why not.
fn refuse_what_cannot_run(
    named: &[Part],
    target: &Target,
    provided: Provided,
) -> Result<(), Error> {
    match named.iter().find(|part| !part.runs_with(provided)) {
        None => Ok(()),
        Some(Part::Files) => Err(Error::NoFolder),
        Some(Part::Cpu) => Err(Error::NoProcessor),
        Some(&part) => {
            let is_device = target.kind == TargetKind::Device;
            Err(Error::ReadOnly { part, path: target.path.clone().into(), is_device })
        }
    }
}

fn announce(opened: &::qualify::Opened, plan: &Plan) -> anyhow::Result<()> {
    let (size, provided) = (opened.target.size_bytes, opened.provided());
    let bytes_per_s = opened.first_look(&SystemClock)?;
    let fixed_ns = units::nanos(plan.fixed_time(provided));
    let parts: Vec<&str> = plan.parts_with(provided).map(Part::name).collect();
    let estimate =
        qualify_view::qualify_estimate(plan.bytes(size, provided), bytes_per_s, fixed_ns);
    say(&format!("qualify: {}: {estimate}", parts.join(", ")));
    Ok(())
}

fn seed() -> Result<u64, host::Error> {
    random_bytes().map(u64::from_le_bytes)
}

fn style() -> page::PlotStyle {
    page::PlotStyle { width: stdout::width().unwrap_or(WIDTH), is_terminal: stdout::is_terminal() }
}

fn verdict(answer: Answer) -> Verdict {
    match answer {
        Answer::Fits => Verdict::Clean,
        Answer::TooSlow => Verdict::Negative,
        Answer::CannotJudge => Verdict::Unknown,
    }
}

fn tell(found: &Qualification, json: bool) -> Outcome {
    let text = if json {
        qualify_view::qualification_json(found)
    } else {
        qualify_view::qualification(found, style())
    };
    stdout::print_plot(&text)?;
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
