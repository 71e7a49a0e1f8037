//! Commands as users type them: programs that are started, timed, and looked at from outside.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use host::{Taken, Timed, allowed_cpus, can_start, node_of_processor};
use statistics::Cell;
use units::number::real;

use crate::beside::{Beside, number};
use crate::error::Error;
use crate::run::{Fact, Parameter, Ran, Runner, Setting, Subject, Unit};

/// The variable that makes the environment of each run as long as it likes.
const PADDING: &str = "WIRESPOOL_BENCH_PADDING";
/// Runs lines that are given around the commands, as `system(3)` does.
const SHELL: &str = "sh";

/// A command that is measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// What it is called.
    pub name: String,
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// A line for the shell before each run, which is not measured.
    pub prepare: Option<String>,
    /// What was filled in to make it.
    pub parameters: Vec<Parameter>,
}

impl Command {
    /// What its runs are shown as.
    pub fn subject(&self) -> Subject {
        let (name, parameters) = (self.name.clone(), self.parameters.clone());
        Subject { name, unit: Unit::Nanoseconds, parameters }
    }
}

/// What is around all commands.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Surroundings {
    /// What a command reads; nothing without.
    pub input: Option<PathBuf>,
    /// What commands say goes to standard error.
    pub is_heard: bool,
    /// A command that fails is measured all the same.
    pub ignores_failure: bool,
    /// Files that commands use: their cached share and their extents are recorded.
    pub files: Vec<PathBuf>,
    /// Files whose first lines are recorded.
    pub facts: Vec<PathBuf>,
}

/// Runs commands.
pub struct Commands<'a> {
    measured: Vec<Command>,
    around: Surroundings,
    is_stopped: &'a dyn Fn() -> bool,
}

impl core::fmt::Debug for Commands<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Commands").field("measured", &self.measured).finish_non_exhaustive()
    }
}

impl<'a> Commands<'a> {
    /// These commands. When `is_stopped` says so, the one that runs ends, too.
    pub fn new(
        measured: Vec<Command>,
        around: Surroundings,
        is_stopped: &'a dyn Fn() -> bool,
    ) -> Self {
        Self { measured, around, is_stopped }
    }

    /// Refuses what can be refused before anything is measured: programs that are not there, files
    /// that cannot be read, processors of others.
    pub fn check(&self, cpus: &[usize]) -> Result<(), Error> {
        let programs = self.measured.iter().filter_map(|command| command.words.first());
        programs.map(OsString::as_os_str).try_for_each(check)?;
        self.around.files.iter().try_for_each(|path| blockdev::extents(path).map(drop))?;
        self.around.facts.iter().try_for_each(|path| host::read_input(path).map(drop))?;
        // No result takes the place of what the commands read.
        let mut read = self.around.files.iter().chain(&self.around.input);
        read.try_for_each(|path| host::open_input(path).map(drop))?;
        let allowed = allowed_cpus()?;
        match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            Some(&cpu) => Err(Error::NoProcessor { cpu }),
            None => Ok(()),
        }
    }

    /// Runs a line that is not measured: `what` it is called in messages. False where it was asked
    /// to stop meanwhile.
    pub fn run_line(&self, what: &'static str, line: &str) -> Result<bool, Error> {
        match self.line(line, self.is_stopped)? {
            Some(0) => Ok(true),
            _ if (self.is_stopped)() => Ok(false),
            code => Err(Error::Around { what, line: line.to_owned(), code }),
        }
    }

    /// Runs the line behind everything, to its end also after a stop.
    pub fn clean_up(&self, what: &'static str, line: &str) -> Result<(), Error> {
        match self.line(line, &|| false)? {
            Some(0) => Ok(()),
            code => Err(Error::Around { what, line: line.to_owned(), code }),
        }
    }

    /// Its exit code.
    fn line(&self, line: &str, is_stopped: &dyn Fn() -> bool) -> Result<Option<i32>, Error> {
        let arguments = [OsString::from("-c"), OsString::from(line)];
        let timed = Timed {
            program: OsStr::new(SHELL),
            arguments: &arguments,
            environment: &[],
            input: None,
            is_heard: self.around.is_heard,
            cpu: None,
        };
        Ok(timed.run(is_stopped)?.code)
    }

    fn time(&self, command: &Command, setting: Setting) -> Result<Taken, Error> {
        let (program, arguments) = command.words.split_first().expect("a command has a program");
        let padding = OsString::from("x".repeat(setting.padding_bytes));
        let timed = Timed {
            program,
            arguments,
            environment: &[(PADDING, padding)],
            input: self.around.input.as_deref(),
            is_heard: self.around.is_heard,
            cpu: setting.cpu,
        };
        Ok(timed.run(self.is_stopped)?)
    }

    /// What is known of its files and its setting before a run.
    fn facts_before(&self, setting: Setting) -> Vec<Fact> {
        let mut facts = Vec::new();
        for path in &self.around.files {
            // One that went away meanwhile has nothing cached, and no extents.
            let cached = host::cached_share(path).ok().flatten();
            let percent = cached.map(|share| (share * 1000.0).round() / 10.0);
            facts.push(number(&format!("% cached of {}", path.display()), percent));
            let extents = blockdev::extents(path).ok().flatten().map(real);
            facts.push(number(&format!("extents of {}", path.display()), extents));
        }
        facts.extend(self.around.facts.iter().map(|path| first_line(path)));
        let padding = u32::try_from(setting.padding_bytes).map(f64::from).ok();
        facts.push(number("bytes added to its environment", padding));
        facts
    }
}

impl Runner for Commands<'_> {
    type Error = Error;

    fn run(&mut self, setting: Setting) -> Result<Option<Ran>, Error> {
        let command = self.measured.get(setting.subject).expect("each subject is a command");
        if let Some(line) = &command.prepare
            && !self.run_line("--prepare", line)?
        {
            return Ok(None);
        }
        let mut facts = self.facts_before(setting);
        let (beside, before) = Beside::begin(setting.cpu);
        facts.extend(before);
        let taken = self.time(command, setting)?;
        let beside = beside.end(taken.wall_ns, taken.cpu.total().as_secs_f64() * 1e9);
        if (self.is_stopped)() {
            return Ok(None);
        }
        if taken.code != Some(0) && !self.around.ignores_failure {
            let (name, code) = (command.name.clone(), taken.code);
            return Err(Error::Failed { name, code });
        }
        facts.extend(beside);
        facts.extend(places(&taken));
        Ok(Some(Ran { value: real(taken.wall_ns), taken: Some(taken), facts }))
    }
}

fn check(program: &OsStr) -> Result<(), Error> {
    if can_start(program) {
        return Ok(());
    }
    let name = program.to_string_lossy().into_owned();
    let is_line = name.contains(char::is_whitespace);
    Err(if is_line { Error::Line { name } } else { Error::NoProgram { name } })
}

/// Where a run was, and how long it could not be there.
fn places(taken: &Taken) -> [Fact; 3] {
    let word = |value: Option<u32>| value.map(|value| Cell::Word(value.to_string()));
    let queued_ms = taken.queued_ns.map(|ns| (real(ns) / 1e4).round() / 100.0);
    let node = taken.processor.and_then(|cpu| node_of_processor(usize::try_from(cpu).ok()?));
    [
        Fact { name: "processor".to_owned(), value: word(taken.processor) },
        Fact { name: "memory node".to_owned(), value: word(node) },
        number("ms in which others had its processor", queued_ms),
    ]
}

/// A file that cannot be read at the moment says so: that may be what explains.
fn first_line(path: &Path) -> Fact {
    let text = host::read_input(path).unwrap_or_else(|_| "unreadable".to_owned());
    let value = Cell::read(text.lines().next().unwrap_or("").trim());
    Fact { name: path.display().to_string(), value: Some(value) }
}
