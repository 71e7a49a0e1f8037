//! The binary: flags to configuration to job to exit code.
//!
//! Each command has a module, here or in `tool-verbs`: its flags, their validation into the job's
//! options, and its run. Flags are read from the command line and nowhere else, but for the token
//! of `--remote`, which may be in the environment. Results go to standard output, progress and
//! remarks to standard error; a reader that goes away ends the program quietly.

mod asking;
mod care;
mod confinement;
mod create;
mod custody;
mod demo;
mod evidence;
mod extract;
mod families;
mod find;
mod fleet;
mod generate;
mod hold;
mod inspect;
mod members;
mod record;
mod salvage;
mod scrub;
mod selection;
mod serve;
#[cfg(feature = "sql")]
mod sql;
mod tag;

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use flags::{answered, arguments, atlas, reading, remote};
use tool_verbs::{bench, diagnose, extcap, prove, qualify, replay, steno, top, trace};
use verbs::{any, failure, output_file, progress, recorder, stdout, workers};

use failure::{Outcome, Verdict, warn};

/// At the end of the help text and the manual page.
const AFTER_HELP: &str = "\
Examples:
  wirespool demo                                         see it all work, as any user
  wirespool create /data/spool --size 8G                 a volume in a file
  wirespool record /data/spool --interface eth0          record until Ctrl-C
  wirespool find /data/spool 'sni *.example.com'         which sessions were there?
  wirespool extract /data/spool 'port 53' -w dns.pcapng  give me their packets
  wirespool --remote https://sensor find 'port 53'       ask a service instead: wirespool serve

Exit codes:
  0  done and clean
  1  done, with a negative verdict: packets lost, an answer incomplete, damage found
  2  wrong usage
  3  refused for safety, or the machine did not allow it
  4  the volume is too damaged
  5  done, but no verdict is possible";

/// What begins the name of each flag about a service.
const REMOTE: &str = "--remote";

/// Records every packet of a link onto disks, finds any session and writes its packets as pcapng.
///
/// A volume is a file or a disk that is written round and round, the newest packets over the
/// oldest. What was acknowledged survives a crash; what was lost is named.
#[derive(Debug, Parser)]
#[command(name = "wirespool", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    #[command(flatten)]
    Care(care::Verb),
    Record(Box<record::Flags>),
    #[command(flatten)]
    Asking(asking::Verb),
    #[command(flatten)]
    Custody(custody::Verb),
    #[command(flatten)]
    Kept(hold::Verb),
    Replay(Box<replay::Flags>),
    Prove(Box<prove::Flags>),
    Qualify(Box<qualify::Flags>),
    Diagnose(diagnose::Flags),
    Top(Box<top::Flags>),
    Trace(trace::Flags),
    Bench(Box<bench::Flags>),
    Extcap(Box<extcap::Flags>),
    #[command(flatten)]
    Serving(serve::Verb),
    Stenoread(steno::ReadFlags),
    Stenocurl(steno::CurlFlags),
    Demo(demo::Flags),
    Completions(generate::CompletionsFlags),
    #[command(hide = true)]
    Generate(generate::Flags),
    /// Start children for the process that started this one
    #[command(hide = true)]
    Launch,
    /// Make sessions of packets for the process that started this one
    #[command(hide = true)]
    Indexer,
    /// Answer one request for the service that started this process
    #[command(hide = true)]
    Answer,
    #[command(hide = true)]
    SelfTestSandbox(confinement::SelfTestFlags),
    /// Try one thing, for a self-test
    #[command(hide = true)]
    Attempt(confinement::AttemptFlags),
}

fn run(verb: Verb) -> Outcome {
    match verb {
        Verb::Care(verb) => care::run(verb),
        Verb::Record(flags) => record::run(*flags),
        Verb::Asking(verb) => asking::run(&verb),
        Verb::Custody(verb) => custody::run(&verb),
        Verb::Kept(verb) => hold::run(&verb),
        Verb::Replay(flags) => replay::run(&flags),
        Verb::Diagnose(flags) => diagnose::run(&flags),
        Verb::Top(flags) => top::run(&flags),
        Verb::Trace(flags) => trace::run(&flags),
        Verb::Bench(flags) => bench::run(&flags),
        Verb::Prove(flags) => prove::run(*flags),
        Verb::Qualify(flags) => qualify::run(&flags),
        Verb::Extcap(flags) => extcap::run(&flags),
        Verb::Serving(verb) => serve::run(&verb, &|words| {
            let program = ["wirespool".to_owned()];
            run(Cli::try_parse_from(program.iter().chain(words))?.verb)
        }),
        Verb::Stenoread(flags) => steno::read(&flags),
        Verb::Stenocurl(flags) => steno::curl(&flags),
        Verb::Demo(flags) => demo::run(&flags),
        Verb::Completions(flags) => generate::completions(flags.shell, Cli::command()),
        Verb::Generate(flags) => generate::run(&flags, Cli::command()),
        Verb::SelfTestSandbox(flags) => confinement::run(&flags),
        Verb::Attempt(flags) => confinement::attempt(&flags),
        Verb::Launch => {
            sandbox::serve()?;
            Ok(Verdict::Clean)
        }
        Verb::Indexer => workers::serve(),
        Verb::Answer => serve::work(),
    }
}

/// The command line; a second name of the binary stands for a verb.
fn words(mut given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let name = given.next().unwrap_or_default();
    let called = Path::new(&name).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let verb = match called {
        extcap::PROGRAM => Some("extcap"),
        steno::READ => Some(steno::READ),
        steno::CURL => Some(steno::CURL),
        _ => None,
    };
    // Usage messages then show a command line that can be typed.
    let name = if verb.is_some() { OsString::from("wirespool") } else { name };
    let verb = verb.map(OsString::from);
    let words = [name].into_iter().chain(verb).chain(given).collect();
    behind_verb(words)
}

/// The flags of a service may stand in front of the verb: they go behind it, where the verbs that
/// can ask a service know them.
fn behind_verb(words: Vec<OsString>) -> Vec<OsString> {
    let mut words = words.into_iter();
    let name = words.next();
    let (mut flags, mut verb) = (Vec::new(), None);
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        let is_flag =
            text.strip_prefix(REMOTE).is_some_and(|it| it.is_empty() || it.starts_with(['-', '=']));
        if !is_flag {
            verb = Some(word);
            break;
        }
        flags.push(word);
        if !text.contains('=') {
            flags.extend(words.next());
        }
    }
    name.into_iter().chain(verb).chain(flags).chain(words).collect()
}

/// What clap has to say; help and version are no errors.
fn usage(error: &clap::Error) -> ExitCode {
    // The message repeats arguments, which may be file names that the shell has put there: it is
    // made again from their printable form.
    let shown = |word: OsString| OsString::from(page::safe::printable(&word.to_string_lossy()));
    let shown = words(env::args_os().map(shown));
    match families::grouped(Cli::command()).try_get_matches_from(shown) {
        Err(error) => match error.print() {
            Err(unwritten) if !error.use_stderr() => {
                return failure::report(&stdout::named(&unwritten).into());
            }
            // When that fails, too, there is no way left to report it.
            Ok(()) | Err(_) => {}
        },
        Ok(_) => progress::say_lines(&error.render().to_string()),
    }
    ExitCode::from(if error.use_stderr() { failure::USAGE } else { 0 })
}

/// Warns of disks that hung: the command went on without them. Whether some hang still.
fn name_silent_disks() -> bool {
    let silent = device::silent_paths();
    let hangs = silent.iter().any(|(_, is_still)| *is_still);
    for (path, is_still) in silent {
        let (path, seconds) = (page::safe::path(&path), device::PATIENCE.as_secs());
        // A hung call cannot be cancelled, so it may keep this process.
        let still = if is_still { ", and does not now: it may keep this process" } else { "" };
        warn(&format!("{path} did not answer within {seconds} s{still}; it was left out"));
    }
    hangs
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(words(env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    workers::be_processes();
    device::hear_stop(host::is_signalled);
    let outcome = run(cli.verb);
    let hangs = name_silent_disks();
    let code = code_of(outcome);
    if hangs {
        // Whoever reads them would wait as long as the kernel keeps this process.
        host::give_back_outputs();
    }
    code
}

fn code_of(outcome: Outcome) -> ExitCode {
    match outcome.map(Verdict::with_warnings) {
        Ok(Verdict::Clean) => ExitCode::SUCCESS,
        Ok(Verdict::Negative) => ExitCode::from(failure::NEGATIVE),
        Ok(Verdict::Unknown) => ExitCode::from(failure::UNKNOWN),
        Ok(Verdict::Program(code)) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        Err(error) => failure::report(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_of_a_service_go_behind_the_verb() {
        for (given, expected) in [
            ("w find v q", "w find v q"),
            ("w --remote u find v q", "w find --remote u v q"),
            ("w --remote=u --remote-ca c find v", "w find --remote=u --remote-ca c v"),
            ("w find v --remote u", "w find v --remote u"),
            ("w --remote", "w --remote"),
            ("w --remotely find", "w --remotely find"),
            ("w --remote u", "w --remote u"),
            ("w", "w"),
        ] {
            let words = given.split(' ').map(OsString::from).collect();
            let expected: Vec<OsString> = expected.split(' ').map(OsString::from).collect();
            assert_eq!(behind_verb(words), expected, "{given}");
        }
    }
}
