//! `wirespool setup`: flags, the operator's terminal, and verbs that it runs.

use core::net::SocketAddr;
use core::time::Duration;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use ::extract::Options;
use ::found::Event;
use ::setup::{Answers, Ending, Here, Measure, Operator, Typed, Words, walk};
use anyhow::anyhow;
use clap::Args;
use host::{StopFlag, SystemClock, Timed};
use page::text::Zone;
use query::Query;
use session_view::SessionTable;
use units::{Clock, Sleep};

use crate::failure::{Outcome, Usage, Verdict, line};
use crate::progress::Progress;
use crate::{arguments, recorder, stdout};

/// Between two looks whether a signal has come.
const NAP: Duration = Duration::from_millis(50);

/// The answers to its questions.
#[derive(Debug, Args)]
pub(super) struct Questions {
    /// Record this interface; may be given several times
    #[arg(long = "interface", value_name = "NAME")]
    interfaces: Vec<String>,
    /// Make this disk a member; may be given several times
    #[arg(long = "member", value_name = "DISK")]
    members: Vec<PathBuf>,
    /// Make a file in this folder a member instead; may be given several times
    #[arg(long = "folder", value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Size of each file, such as 100G
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    size: Option<u64>,
    /// Measure the disks: quick takes minutes, full several times as long as writing them
    #[arg(long, value_name = "quick|full|none", value_parser = measure)]
    qualify: Option<Measure>,
    /// How many members may be lost
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=2))]
    parity: Option<u8>,
    /// How many of the members wait until another one fails
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=8))]
    spares: Option<u8>,
    /// Name of the recorder
    #[arg(long, value_name = "NAME", default_value = "main")]
    name: String,
    /// The configuration file; reports and tokens lie beside it [default:
    /// /etc/wirespool/wirespool.toml, of an ordinary user ~/.config/wirespool/wirespool.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the API and the page listen, on this machine [default: 127.0.0.1:8420]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address)]
    listen: Option<SocketAddr>,
    /// Start the service; without systemd: wait until somebody has
    #[arg(long, value_name = "yes|no", value_parser = yes_or_no)]
    start: Option<bool>,
    /// Take what is proposed instead of asking. Disks and mirror ports must be clear all the same
    #[arg(long)]
    yes: bool,
    /// Replace a configuration that is there and differs
    #[arg(long)]
    force: bool,
    /// Say what would be done: nothing is written, and nothing is sent to a disk
    #[arg(long)]
    dry_run: bool,
    /// How long to wait for the recorder, and then for a session
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = arguments::duration)]
    wait: Duration,
}

fn measure(word: &str) -> Result<Measure, &'static str> {
    Measure::of(word).ok_or("quick, full or none")
}

/// Runs a verb of this program by its words.
type Verbs<'a> = &'a dyn Fn(&Words) -> Outcome;

pub(super) fn run(flags: &Questions, verbs: Verbs<'_>) -> Outcome {
    let answers = Answers {
        interfaces: flags.interfaces.clone(),
        members: flags.members.clone(),
        folders: flags.folders.clone(),
        size_bytes: flags.size,
        measure: flags.qualify,
        parity: flags.parity,
        spares: flags.spares,
        name: flags.name.clone(),
        config: flags.config.clone(),
        listen: flags.listen,
        start: flags.start,
        takes_proposals: flags.yes,
        replaces: flags.force,
        is_dry: flags.dry_run,
        patience: flags.wait,
        ..Answers::default()
    };
    let stop = StopFlag::install()?;
    let here = Here { seed: u64::from_le_bytes(host::random_bytes()?) };
    let mut terminal = Terminal { stop, verbs, typed: Typed::default(), shown: None, failed: None };
    let walked = walk(&answers, &here, &mut terminal);
    terminal.clear();
    match terminal.failed.map_or(Ok(walked), Err)? {
        Ok(is_recording) => Ok(Verdict::clean_if(is_recording)),
        Err(ending @ (Ending::Unanswered { .. } | Ending::Wrong(_))) => {
            Err(Usage(ending.to_string()).into())
        }
        Err(ending) => Err(anyhow!(ending)),
    }
}

/// The operator, at standard input and output.
struct Terminal<'a> {
    stop: StopFlag,
    verbs: Verbs<'a>,
    typed: Typed,
    shown: Option<Progress>,
    /// Standard output is gone.
    failed: Option<anyhow::Error>,
}

impl Terminal<'_> {
    fn clear(&mut self) {
        if let Some(shown) = self.shown.take() {
            shown.finish();
        }
    }

    fn print(&mut self, text: &str) {
        self.clear();
        if let Err(error) = stdout::print(text) {
            self.stop.set();
            self.failed.get_or_insert(error.into());
        }
    }
}

impl Operator for Terminal<'_> {
    fn can_be_asked(&self) -> bool {
        io::stdin().is_terminal()
    }

    fn say(&mut self, text: &str) {
        self.print(&format!("{}\n", text.trim_end()));
    }

    fn ask(&mut self, question: &str) -> Option<String> {
        self.print(question);
        let said = self.typed.next_line(NAP, &|| self.stop.is_set());
        if said.is_none() {
            self.print("\n");
        }
        said
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    fn rest(&mut self, time: Duration) {
        let (mut now_ns, nap_ns) = (SystemClock.boottime_ns(), units::nanos(NAP));
        let until_ns = now_ns.saturating_add(units::nanos(time));
        while now_ns < until_ns && !self.stop.is_set() {
            now_ns = now_ns.saturating_add(nap_ns).min(until_ns);
            SystemClock.sleep_until(now_ns);
        }
    }

    fn progress(&mut self, text: &str) {
        self.shown.get_or_insert_with(|| Progress::new("setup")).text(&|| text.to_owned());
    }

    fn run(&mut self, words: &Words) -> Result<(), String> {
        self.clear();
        (self.verbs)(words).map(drop).map_err(|error| line(&error))
    }

    fn run_program(&mut self, words: &[&str]) -> Result<(), String> {
        let (program, arguments) = words.split_first().ok_or("no program")?;
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let timed = Timed {
            program: OsStr::new(program),
            arguments: &arguments,
            environment: &[],
            input: None,
            cpu: None,
            is_heard: true,
        };
        match timed.run(&|| self.stop.is_set()).map_err(|error| line(&error.into()))?.code {
            Some(0) => Ok(()),
            Some(code) => Err(format!("{} ended with {code}", words.join(" "))),
            None => Err(format!("{} ended by a signal", words.join(" "))),
        }
    }

    fn is_recording(&self, volume: &Path) -> bool {
        recorder::state(volume, &[]).is_some()
    }

    fn first_session(&self, volume: &Path) -> Option<String> {
        recorder::catch_up_telling(volume, &[], &mut |_| {});
        let reading = Options { volume: volume.to_path_buf(), ..Options::default() };
        let mut table = SessionTable::new(stdout::width(), Zone::Utc);
        let mut text = String::new();
        let found = ::extract::find(&reading, &Query::all(), Some(1), &SystemClock, &mut |event| {
            if let Event::Found(found) = event {
                text += &table.push(found);
            }
            self.stop.flow()
        });
        text += &table.finish();
        let is_found = found.is_ok_and(|found| found.sessions > 0);
        is_found.then(|| text.lines().last().map(str::to_owned)).flatten()
    }
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes or no".to_owned()),
    }
}
