//! `wirespool qualify`.

mod compare;
mod disk;
mod fio;
mod flags;
mod keep;
mod reports;
mod volume;

use ::qualify::{
    Bench, Diff, Proposal, Provided, Qualification, QualifyReport, go_on as measure, modelled,
    open, proposals,
};
use host::{StopFlag, SystemClock, read_input};
use units::Clock as _;

use crate::failure::{Outcome, Verdict};
use crate::progress::Progress;
use crate::{arguments, stdout};

pub use self::flags::Flags;
use disk::{Shown, on_disk, refuse_what_cannot_run};
use flags::{Command, PlanAsk, Subject};
use keep::Kept;
use reports::{Drafts, style, verdict};
pub(crate) use reports::{parse, read};

/// Measures a disk, or shows what was measured.
pub fn run(flags: &Flags) -> Outcome {
    match &flags.command {
        Some(Command::Show { file, outputs }) => {
            let report = parse(file, &read_input(file)?, ::qualify::parse_qualify_report)?;
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
    let fitting: Vec<&Proposal> = found.iter().filter(|proposal| proposal.fits).collect();
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
    if let Subject::Path { path, .. } = &subject {
        arguments::must_answer(path)?;
    }
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
            let csv = read_input(&path)?;
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
            let opened = open(&path, size_bytes, &consent, reports::seed()?, &mut |done, total| {
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

fn tell(found: &Qualification, json: bool) -> Outcome {
    let text = if json {
        qualify_view::qualification_json(found)
    } else {
        qualify_view::qualification(found, style())
    };
    stdout::print_plot(&text)?;
    Ok(verdict(found.answer()))
}
