//! `wirespool bench`.

mod flags;
mod machine;
mod outcome;
mod parameters;
mod runs;

use ::runs::{Command, Commands, Contest, Going, Subject, contest};
use host::{StopFlag, SystemClock};

use crate::failure::Outcome;
use crate::progress::Progress;

pub use self::flags::Flags;
use self::runs::{random, show};
use flags::{CommandFlags, What};
use outcome::Results;

/// Compares runs of commands, or measures this machine.
pub fn run(flags: &Flags) -> Outcome {
    match &flags.what {
        Some(What::Host(flags)) => machine::run(flags),
        None => commands(&flags.commands),
    }
}

fn commands(flags: &CommandFlags) -> Outcome {
    let (given, plan) = (flags.commands()?, flags.plan()?);
    let results = Results::new(&flags.outputs)?;
    let subjects: Vec<Subject> = given.iter().map(Command::subject).collect();
    results.check(&subjects)?;
    let stop = StopFlag::install()?;
    let is_stopped = || stop.is_set();
    let mut commands = Commands::new(given, flags.surroundings(), &is_stopped);
    let found = around(flags, &mut commands, |commands| {
        commands.check(&plan.cpus)?;
        let mut progress = Progress::new("bench");
        let mut hear = |going: Going<'_>| {
            show(&mut progress, going);
            stop.flow()
        };
        let mut random = random()?;
        let found = contest(&subjects, &plan, commands, (&SystemClock, &mut random), &mut hear);
        progress.finish();
        Ok(found?)
    })?;
    results.tell(&found, machine_view::Ran::Commands, &mut random()?)
}

/// With what comes before everything, and behind: the latter after a failure, too.
fn around(
    flags: &CommandFlags,
    commands: &mut Commands<'_>,
    work: impl FnOnce(&mut Commands<'_>) -> anyhow::Result<Contest>,
) -> anyhow::Result<Contest> {
    let is_set_up =
        flags.setup.as_deref().map_or(Ok(true), |line| commands.run_line("--setup", line));
    // A stop meanwhile is heard before the first run.
    let found = is_set_up.map_err(anyhow::Error::from).and_then(|_| work(commands));
    if let Some(line) = &flags.cleanup {
        let cleaned = commands.clean_up("--cleanup", line);
        return found.and_then(|found| Ok(cleaned.map(|()| found)?));
    }
    found
}
