//! `wirespool qualify --compare`.

use std::path::{Path, PathBuf};

use ::qualify::{
    Comparison, Contest, Contestant, Fact, Field, Lent, Members, Opened, Qualification,
    QualifyReport, compare as compete, compare_reports, open,
};
use host::{StopFlag, SystemClock, read_input};
use units::ByteSize;

use super::flags::{Flags, Outputs};
use super::reports::{self, Drafts};
use crate::failure::{Outcome, Usage, Verdict};
use crate::output_file;
use crate::progress::{Progress, say};
use crate::stdout;

/// Of a report, at most.
const REPORT_BYTES_MAX: u64 = 256 << 20;

pub(super) fn run(flags: &Flags) -> Outcome {
    check(&flags.outputs)?;
    let reports: Vec<Option<Qualification>> =
        flags.compare.iter().map(|path| report(path)).collect::<anyhow::Result<_>>()?;
    let drafts = Drafts::create(&flags.outputs)?;
    let output = output_file::create_named(flags.output.as_ref(), flags.outputs.force)?;
    let are_reports = reports.iter().filter(|report| report.is_some()).count();
    let found = if are_reports == reports.len() {
        let names = flags.compare.iter().map(page::safe::path_value);
        compare_reports(&names.zip(reports.into_iter().flatten()).collect::<Vec<_>>())
    } else if are_reports > 0 {
        return Err(Usage("--compare: reports with reports, targets with targets".into()).into());
    } else {
        targets(flags)?
    };
    if let Some(output) = output {
        output.finish_with(qualify_view::comparison_json(&found).as_bytes())?;
    }
    let outcome = tell(&found, flags.outputs.json);
    drafts.write(&QualifyReport::Comparison(found))?;
    outcome
}

/// Before anything is measured.
pub(super) fn check(outputs: &Outputs) -> Result<(), Usage> {
    match outputs.csv {
        Some(_) => Err(Usage("--csv: a comparison has no tables; --json has its runs".into())),
        None => Ok(()),
    }
}

pub(super) fn tell(found: &Comparison, json: bool) -> Outcome {
    let style = reports::style();
    let text = if json {
        qualify_view::comparison_json(found)
    } else {
        qualify_view::comparison(found, style)
    };
    stdout::print(&text)?;
    Ok(if found.is_interrupted { Verdict::Unknown } else { Verdict::Clean })
}

/// `None` of what is no report: a file of any other content is a target to be read.
fn report(path: &Path) -> anyhow::Result<Option<Qualification>> {
    let is_small =
        path.metadata().is_ok_and(|file| file.is_file() && file.len() < REPORT_BYTES_MAX);
    let text = if is_small { read_input(path).ok() } else { None };
    let Some(text) = text.filter(|text| text.trim_start().starts_with('{')) else {
        return Ok(None);
    };
    reports::parse(path, &text, ::qualify::parse_qualification).map(Some)
}

fn targets(flags: &Flags) -> anyhow::Result<Comparison> {
    let (contest, size_bytes) = flags.contest()?;
    let named = flags.compare.iter().map(|path| (page::safe::path_value(path), path.clone()));
    let words: Vec<_> = named.collect();
    let field = Field::plan(&words, (&contest, size_bytes), flags.names())?;
    let contest = field.fitted(contest)?;
    let stop = StopFlag::install()?;
    let mut opened = Vec::new();
    let mut devices = 0;
    for site in &field.sites {
        let consent =
            if site.is_device { flags.consent(devices) } else { ::qualify::Consent::default() };
        devices += usize::from(site.is_device);
        let mut progress = Progress::new("qualify");
        let one =
            open(&site.path, site.size_bytes, &consent, reports::seed()?, &mut |done, total| {
                progress.bytes(done, total);
                stop.flow()
            });
        progress.finish();
        opened.push(one?);
    }
    let runs = u64::from(contest.rounds) * u64::try_from(field.entries.len())?;
    let estimate = estimate(&field, &opened, &contest)?;
    say(&format!("qualify: {runs} runs of {}, {estimate}", ByteSize(contest.run_bytes)));
    let found = in_turn(flags, (&field, &contest), (&mut opened, &stop));
    // After an error the targets are cleared up as well, and the error is what counts.
    match found {
        Ok(found) => {
            for one in opened {
                one.close(found.is_write)?;
            }
            Ok(found)
        }
        Err(error) => {
            drop(opened);
            Err(error)
        }
    }
}

/// By a first look at each, and the slowest member of each contestant.
fn estimate(field: &Field, opened: &[Opened], contest: &Contest) -> anyhow::Result<String> {
    let mut looked = Vec::new();
    for one in opened {
        looked.push(one.first_look(&SystemClock)?);
    }
    let (mut bytes, mut ns) = (0_u64, 0_u128);
    for entry in &field.entries {
        let slowest = entry.members.iter().filter_map(|at| looked.get(*at)).min();
        let columns = u64::try_from(entry.columns)?;
        let rate = slowest.map_or(1, |rate| rate.saturating_mul(columns).max(1));
        let of_all = contest.run_bytes.saturating_mul(u64::from(contest.rounds));
        bytes = bytes.saturating_add(of_all);
        ns += u128::from(of_all) * 1_000_000_000 / u128::from(rate);
    }
    let rate = u128::from(bytes) * 1_000_000_000 / ns.max(1);
    Ok(qualify_view::qualify_estimate(bytes, u64::try_from(rate).unwrap_or(u64::MAX), 0))
}

fn in_turn(
    flags: &Flags,
    (field, contest): (&Field, &Contest),
    (opened, stop): (&mut [Opened], &StopFlag),
) -> anyhow::Result<Comparison> {
    let lent: Vec<Lent<'_>> = opened.iter_mut().map(Opened::lend).collect();
    let mut members = Vec::new();
    for entry in &field.entries {
        let of_entry: Vec<&Lent<'_>> =
            entry.members.iter().filter_map(|at| lent.get(*at)).collect();
        members.push(Members::new(&of_entry, entry.protection, contest.block_bytes)?);
    }
    let hear = |_, _, _| stop.flow();
    let mut hears: Vec<_> = members.iter().map(|_| hear).collect();
    let seed = reports::seed()?;
    let mut contestants = Vec::new();
    for ((one, entry), hear) in members.iter_mut().zip(&field.entries).zip(&mut hears) {
        let (name, columns) = (entry.name.clone(), one.data_columns());
        contestants.push(Contestant { name, bench: one.bench(&SystemClock, seed, hear), columns });
    }
    let mut progress = Progress::new("qualify");
    let runs = u64::from(contest.rounds) * u64::try_from(contestants.len())?;
    let mut begun = 0;
    let mut facts = || {
        progress.share(begun, runs, &|_| format!("run {} of {runs}", begun + 1));
        begun += 1;
        flags.fact.iter().map(PathBuf::as_path).map(fact).collect()
    };
    let found = compete(&mut contestants, contest, &mut facts, seed);
    progress.finish();
    Ok(found?)
}

/// A file that cannot be read at the moment says so: that may be what explains.
fn fact(path: &Path) -> Fact {
    let text = read_input(path).unwrap_or_else(|_| "unreadable".to_owned());
    let value = text.lines().next().unwrap_or("").trim().to_owned();
    Fact { name: page::safe::path_value(path), value }
}
