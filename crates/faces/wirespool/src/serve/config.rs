//! `wirespool config`, and the service of a configuration file.
//!
//! The keys of the file are flags of `record` and `serve`, as clap knows them: names, meanings and
//! defaults are declared there alone, and their values are checked by the verbs that take them.

use core::cell::RefCell;
use core::time::Duration;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches as _, Subcommand};
use page::safe::{path as shown, printable};
use page::text::plural;
use supervise::{Fault, Job, Key, Plan, Shape, Table, absent, given_twice, read};

use super::flag_words::{in_keys, why_of, why_of_value};
use super::flags::ServingFlags;
use crate::failure::{self, Faults, Outcome, Usage, Verdict};
use crate::progress::{say, try_say};
use crate::{any, record, recorder, stdout};

const RECORDER: &str = "recorder";
const API: &str = "api";
const RECORD: &str = "record";
const SERVE: &str = "serve";
/// What a recorder does once, at somebody's word, and not at each start; what it says at the end.
const NOT_OF_RECORDERS: [&str; 5] = ["read", "clock_is_right", "without", "take_over", "json"];
const NOT_OF_API: [&str; 2] = ["config", "parent"];
/// The manager of services says how long it waits for a sign of life (`sd_watchdog_enabled(3)`).
const WATCHDOG: &str = "WATCHDOG_USEC";

/// What is done with a configuration.
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Say whether a file can be used.
    ///
    /// Prints one line for each fault, with its place, and a note for each volume, file and
    /// interface that this machine does not have. Nothing is started.
    #[command(after_help = "\
Examples:
  wirespool config check /etc/wirespool/wirespool.toml

Exit code 2 when the file has a fault.")]
    Check(FileFlags),
    /// Show what a file stands for.
    ///
    /// Prints its keys with their values, the others that have a default behind a #, and the
    /// command line of each part. A file with a fault is refused, as by `config check`. Nothing is
    /// started.
    #[command(after_help = "\
Examples:
  wirespool config show /etc/wirespool/wirespool.toml

Exit code 2 when the file has a fault.")]
    Show(FileFlags),
    Explain(ExplainFlags),
}

#[derive(Debug, Args)]
pub(super) struct FileFlags {
    /// The configuration, in TOML
    file: PathBuf,
}

/// Say what a key means.
///
/// Without a key all of them are listed: name, default, meaning.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool config explain
  wirespool config explain recorder.max_age")]
pub(super) struct ExplainFlags {
    /// The key, such as `recorder.max_age`
    key: Option<String>,
}

pub(super) fn run(command: &ConfigCommand) -> Outcome {
    match command {
        ConfigCommand::Check(flags) => check(&flags.file),
        ConfigCommand::Show(flags) => show(&flags.file),
        ConfigCommand::Explain(flags) => explain(flags),
    }
}

/// The tables of a configuration.
fn tables() -> [Table; 2] {
    let of = |verb: &'static str, left_out: &[&str]| {
        let command = command(verb);
        let keys = command.get_arguments().filter_map(key);
        keys.filter(|key| !left_out.contains(&&*key.name)).collect()
    };
    let recorder = Table {
        name: RECORDER,
        is_named: true,
        verb: RECORD,
        takes_name: Some("name"),
        keys: of(RECORD, &NOT_OF_RECORDERS),
    };
    let api = Table {
        name: API,
        is_named: false,
        verb: SERVE,
        takes_name: None,
        keys: of(SERVE, &NOT_OF_API),
    };
    [recorder, api]
}

/// The flags of a verb.
fn command(verb: &'static str) -> Command {
    let named = Command::default().name(verb);
    if verb == RECORD {
        record::Flags::augment_args(named)
    } else {
        ServingFlags::augment_args(named)
    }
}

/// A flag as a key.
fn key(flag: &Arg) -> Option<Key> {
    let shape = match flag.get_action() {
        ArgAction::SetTrue => Shape::Switch,
        ArgAction::Set => Shape::One,
        ArgAction::Append => Shape::Many,
        _ => return None,
    };
    let name = flag.get_long().unwrap_or_else(|| flag.get_id().as_str());
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let values = flag.get_value_names().unwrap_or_default().iter();
    let values: Vec<String> = values.map(ToString::to_string).collect();
    let defaults = flag.get_default_values().iter();
    let defaults: Vec<String> = defaults.map(|it| it.to_string_lossy().into_owned()).collect();
    Some(Key {
        name: name.replace('-', "_"),
        shape,
        is_positional: flag.is_positional(),
        is_required: flag.is_required_set(),
        value: values.join(" "),
        default: (shape != Shape::Switch && !defaults.is_empty()).then(|| defaults.join(",")),
        meaning: words(&flag.get_help().map(ToString::to_string).unwrap_or_default()),
    })
}

/// The jobs of a file.
///
/// # Errors
/// It cannot be read; or [`Faults`], a line for each.
fn jobs(path: &Path) -> anyhow::Result<Vec<Job>> {
    let jobs = of_text(&host::read_input(path)?).map_err(|faults| {
        let lines = faults.iter().map(|fault| format!("{}: {fault}", shown(path)));
        Faults(lines.collect::<Vec<_>>().join("\n"))
    })?;
    if jobs.is_empty() {
        let why = format!("{}: neither [recorder.NAME] nor [api] is there", shown(path));
        return Err(Usage(why).into());
    }
    Ok(jobs)
}

fn of_text(text: &str) -> Result<Vec<Job>, Vec<Fault>> {
    let tables = tables();
    let mut jobs = read(text, &tables)?;
    let recorded: Vec<String> = jobs
        .iter()
        .filter(|job| job.table == RECORDER)
        .flat_map(|job| job.values("volume").to_vec())
        .collect();
    let volumes = tables.iter().flat_map(|table| &table.keys).find(|key| key.name == "volumes");
    for job in &mut jobs {
        if let (API, Some(key)) = (job.table, volumes) {
            job.give(key, recorded.clone());
        }
    }
    let mut faults: Vec<Fault> = jobs.iter().flat_map(faults_of).collect();
    // The second recorder of a volume would be started, refused, and started again.
    faults.extend(given_twice(&jobs, (RECORDER, "volume"), &is_one));
    faults.sort_by_key(|fault| fault.line);
    if faults.is_empty() { Ok(jobs) } else { Err(faults) }
}

/// What the verb itself finds wrong: values that are none, and all that it can say before it opens
/// anything.
fn faults_of(job: &Job) -> Vec<Fault> {
    let fault_of = |(key, _): &(Key, Vec<String>)| {
        let words = job.words_of_key(&key.name);
        let error = command(verb_of(job)).try_get_matches_from(words).err()?;
        let why = format!("{}: {}", key.name, why_of_value(&error)?);
        Some((key.name.clone(), Fault { line: job.line_of(&key.name), why }))
    };
    let (wrong, mut faults): (Vec<String>, Vec<Fault>) =
        job.keys.iter().filter_map(fault_of).unzip();
    let rest = wrong.iter().fold(job.clone(), |job, name| job.without(name));
    faults.extend(faults_of_whole(rest, wrong.is_empty()));
    faults
}

fn verb_of(job: &Job) -> &'static str {
    if job.table == RECORDER { RECORD } else { SERVE }
}

/// Why a verb does not take its words.
#[derive(PartialEq, Eq)]
enum Refusal {
    /// They do not go together.
    Words(String),
    /// What they stand for is wrong.
    Sense(String),
}

/// What is wrong with keys whose values are right, each at the key without which it is gone.
fn faults_of_whole(mut job: Job, is_whole: bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    while let Err(refusal) = refused(&job) {
        let (Refusal::Words(why) | Refusal::Sense(why)) = &refusal;
        // What is lacking may be what was wrong.
        if matches!(refusal, Refusal::Words(_)) && !is_whole {
            break;
        }
        let why = format!("[{}] {}", job.name, in_keys(why, &keys_of(&job)));
        let Some(name) = key_of(&job, &refusal) else {
            faults.push(Fault { line: job.line, why });
            break;
        };
        faults.push(Fault { line: job.line_of(&name), why });
        job = job.without(&name);
    }
    faults
}

fn refused(job: &Job) -> Result<(), Refusal> {
    let given = command(verb_of(job)).try_get_matches_from(job.words());
    let given = given.map_err(|error| Refusal::Words(why_of(&error, &keys_of(job))))?;
    let checked = if job.table == RECORDER { record::check(&given) } else { check_api(&given) };
    // Behind its first line a query is shown.
    let first = |error| failure::line(&error).lines().next().unwrap_or_default().to_owned();
    checked.map_err(|error| Refusal::Sense(first(error)))
}

fn keys_of(job: &Job) -> Vec<Key> {
    let table = tables().into_iter().find(|table| table.name == job.table);
    table.map(|table| table.keys).unwrap_or_default()
}

/// The key that a refusal is of: without it there is none, or another one.
fn key_of(job: &Job, refusal: &Refusal) -> Option<String> {
    let names = || job.keys.iter().map(|(key, _)| key).filter(|key| !key.is_required);
    let without = |key: &&Key| refused(&job.without(&key.name));
    let is_other =
        |key: &&Key| matches!(&without(key), Err(it @ Refusal::Sense(_)) if it != refusal);
    let found = names().find(|key| without(key).is_ok()).or_else(|| names().find(is_other));
    found.map(|key| key.name.clone())
}

fn check_api(given: &ArgMatches) -> anyhow::Result<()> {
    Ok(ServingFlags::from_arg_matches(given)?.config_of(None).check()?)
}

/// Whether two names stand for one volume.
fn is_one(one: &str, other: &str) -> bool {
    let storage = device::refuse_same_storage([one, other].map(Path::new));
    one == other || matches!(storage, Err(device::Error::SameStorage { .. }))
}

fn check(path: &Path) -> Outcome {
    let jobs = jobs(path)?;
    let interfaces = network::interfaces().unwrap_or_default();
    let is_interface = |name: &str| {
        let name = name.to_owned();
        any::is_asked(core::slice::from_ref(&name)) || interfaces.contains(&name)
    };
    for note in absent(&jobs, &is_interface) {
        try_say(&format!("note: {}: {note}", shown(path)));
    }
    let recorders = jobs.iter().filter(|job| job.table == RECORDER).count();
    let api = if recorders < jobs.len() { "and the API" } else { "and no API" };
    let recorders = plural(u64::try_from(recorders).unwrap_or(u64::MAX), "recorder");
    stdout::print(&format!("{}: {recorders} {api}, no fault\n", shown(path)))?;
    Ok(Verdict::Clean)
}

fn show(path: &Path) -> Outcome {
    let jobs = jobs(path)?;
    stdout::print(&supervise::show(&jobs, &tables()))?;
    Ok(Verdict::Clean)
}

fn explain(flags: &ExplainFlags) -> Outcome {
    let tables = tables();
    let wanted = flags.key.as_deref();
    let text = supervise::explain(&tables, wanted).ok_or_else(|| {
        let wanted = wanted.unwrap_or_default();
        let meant = supervise::meant_by(&tables, wanted);
        let meant = query::did_you_mean(meant.as_deref());
        let list = "`wirespool config explain` lists the keys";
        Usage(format!("{} is no key{meant} ({list})", printable(wanted)))
    })?;
    stdout::print(&text)?;
    Ok(Verdict::Clean)
}

/// The keys as a part of the documentation.
pub(crate) fn reference() -> String {
    supervise::reference(&tables())
}

/// Who records to the volume of a job.
fn recorder_of(job: &Job) -> Option<u32> {
    let members: Vec<PathBuf> = job.values("member").iter().map(PathBuf::from).collect();
    recorder::process(Path::new(job.values("volume").first()?), &members)
}

/// Of two services of one file each would wait for volumes, addresses and the audit of the other
/// one, and get them when a part of it is started again. A lock keeps the second one away.
fn alone(path: &Path) -> anyhow::Result<host::Locked> {
    host::Locked::take_at_once(path)?.with_context(|| {
        let path = shown(path);
        format!("{path}: another service runs with this file; SIGHUP has it read the file again")
    })
}

/// Runs what a configuration lists, until a signal; SIGHUP has it read again.
pub(super) fn serve_all(path: &Path) -> Outcome {
    let listener = host::handed_listener()?;
    let (stop, reload) = host::StopFlag::install_with_reload()?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let watchdog = std::env::var(WATCHDOG).ok().and_then(|text| text.parse().ok());
    let parent = server::Parent::own();
    let plan = Plan {
        program,
        // What records is not stopped for other words.
        may_stop: |job| job.table == API,
        doing: recorder_of,
        // Of another volume the new recorder would take nothing over.
        may_hand_over: |keys| !keys.iter().any(|key| key == "volume"),
        takes_over: "--take-over",
        listener,
        // The next parent could not start one of its own beside it.
        stoppable_words: parent.map(|it| format!("--parent={it}").into()).into_iter().collect(),
        write_line: try_say,
        watchdog: watchdog.map(Duration::from_micros),
    };
    let alone = RefCell::new(Some(alone(path)?));
    let again = || {
        // An editor may have put another file in its place.
        drop(alone.take());
        alone.replace(self::alone(path).ok());
        jobs(path).map_err(|error| error.to_string())
    };
    let ended = supervise::supervise(&plan, jobs(path)?, &again, (&stop, &reload));
    say("ended in order");
    Ok(Verdict::clean_if(ended.failed == 0))
}
