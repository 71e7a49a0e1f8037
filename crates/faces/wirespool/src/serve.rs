//! `wirespool serve`: the recorder over the network, and its tokens.

mod audit;
mod config;
mod flag_words;
mod flags;
mod person;
mod setup;

use core::time::Duration;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use host::SystemClock;
use server::Scope;
use units::{Clock as _, Timestamp};
use worker::Recorders;

use crate::failure::{Outcome, Usage, Verdict};
use crate::{arguments, evidence, recorder, stdout};

use self::audit::AuditCommand;
use self::config::ConfigCommand;
use self::flags::ServingFlags;
use self::person::{PersonFlags, refused};
use self::setup::Questions;
pub(crate) use config::reference;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Serve(Box<Flags>),
    Audit(AuditFlags),
    Config(ConfigFlags),
    Setup(Box<SetupFlags>),
}

/// Answer queries over the network.
///
/// An HTTP interface to volumes on this machine: sessions as JSON, packets as pcapng, metrics for
/// Prometheus. Each request is answered by a process of its own, behind every recorder. Nothing
/// listens without a credential, and beyond the loopback nothing without TLS. docs/service.md has
/// every endpoint.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  wirespool serve /data/spool --token-file /data/tokens
  wirespool serve token create anna --scope sessions,extract --token-file /data/tokens
  wirespool serve person add bert --role analyst --people-file /data/people
  wirespool serve --config /etc/wirespool/wirespool.toml
  curl -H \"Authorization: Bearer $TOKEN\" 'http://127.0.0.1:8420/api/v1/sessions?query=port+53'

SIGTERM ends it in order: answers on their way have ten seconds.")]
pub(crate) struct Flags {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serving: ServingFlags,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(subcommand)]
    Token(TokenCommand),
    Person(PersonFlags),
}

/// Credentials
#[derive(Debug, Subcommand)]
enum TokenCommand {
    Create(CreateFlags),
}

/// Make a token.
///
/// Prints the token, once: it is stored nowhere. The file gets a line with its hash, and may be
/// new. Who takes the line out revokes the token.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool serve token create anna --scope sessions,extract --token-file /data/tokens
  wirespool serve token create prometheus --token-file /data/tokens
  wirespool serve token create audit --scope sessions --expires 90d --token-file /data/tokens
  wirespool serve token create lab --filter 'net 10.7.0.0/16' --token-file /data/tokens")]
struct CreateFlags {
    /// Name of the credential, for the log
    name: String,
    /// What it permits; without it health, volumes and metrics
    #[arg(long, value_parser = scope_parser(), value_delimiter = ',', value_name = "SCOPE,...")]
    scope: Vec<Scope>,
    /// How long it counts; without it until its line is taken out
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    expires: Option<Duration>,
    /// A query that is asked besides whatever its owner asks: other sessions are not there for this
    /// token, and of packets only those in the query's times. With since it bounds the range
    #[arg(long, value_name = "QUERY")]
    filter: Option<String>,
    /// The file of credentials
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
}

/// Takes the words of scopes.
fn scope_parser() -> impl TypedValueParser<Value = Scope> {
    PossibleValuesParser::new(Scope::ALL.map(Scope::word))
        .map(|word| Scope::of_word(&word).expect("one of the words of scopes"))
}

/// Check and explain a configuration file.
///
/// The file lists recorders and the API over them, for `serve --config`. docs/config.md has its
/// keys, which are the flags of `record` and `serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool config check /etc/wirespool/wirespool.toml
  wirespool config show /etc/wirespool/wirespool.toml
  wirespool config explain recorder.max_age")]
pub(crate) struct ConfigFlags {
    #[command(subcommand)]
    command: ConfigCommand,
}

/// Check and show who asked a service for what.
///
/// The files that `serve --audit` writes: lines of JSON, each with the SHA-256 of the one before.
/// A line that was changed, removed, moved or put in is found. Lines that were cut off at the end
/// are found by the hash of one of them (`show --head`), noted where nobody changes it: the service
/// says it in its log when it starts and ends.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool audit verify /var/lib/wirespool/audit.jsonl*
  wirespool audit show /var/lib/wirespool/audit.jsonl --credential anna --since '7d ago'
  wirespool audit show --head /var/lib/wirespool/audit.jsonl

Exit code 1 when the chain is broken.")]
pub(crate) struct AuditFlags {
    #[command(subcommand)]
    command: AuditCommand,
}

/// From a bare machine to a recording service.
///
/// Shows the interfaces with their traffic and the disks with what uses them; measures, makes the
/// volume, writes the configuration and the first token, has the service started and waits for the
/// first session. It asks at a terminal and nowhere else; each question has a flag. A disk that
/// holds or carries anything is refused, whatever the flags. Run again it goes on where it was
/// stopped: what is there is taken.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool setup                                      look, propose and ask
  wirespool setup --dry-run                            what would be done; nothing is
  wirespool setup --interface eth1 --folder /data/office --size 100G --yes
  wirespool setup --interface eth1 --member /dev/sdb --member /dev/sdc --parity 1 --qualify full

Exit code 1 when no recorder or no session came in time.")]
pub(crate) struct SetupFlags {
    #[command(flatten)]
    questions: Questions,
}

/// `verbs` runs those that `setup` asks for.
pub(crate) fn run(verb: &Verb, verbs: &dyn Fn(&::setup::Words) -> Outcome) -> Outcome {
    match verb {
        Verb::Serve(flags) => serve_or_token(flags),
        Verb::Audit(flags) => audit::run(&flags.command),
        Verb::Config(flags) => config::run(&flags.command),
        Verb::Setup(flags) => setup::run(&flags.questions, verbs),
    }
}

fn serve_or_token(flags: &Flags) -> Outcome {
    match &flags.command {
        Some(Command::Token(TokenCommand::Create(flags))) => create_token(flags),
        Some(Command::Person(flags)) => person::run(flags),
        None => match &flags.serving.config {
            Some(path) => config::serve_all(path),
            None => serve(&flags.serving),
        },
    }
}

fn serve(flags: &ServingFlags) -> Outcome {
    flags.index_dir.iter().for_each(|folder| host::keep_folder(folder));
    flags.hold_dir.iter().try_for_each(|folder| host::check_folder(folder))?;
    match server::serve(&flags.config_of(host::handed_listener()?)) {
        Ok(()) => Ok(Verdict::Clean),
        Err(error) if error.is_usage() => Err(Usage(error.to_string()).into()),
        Err(error) => Err(error.into()),
    }
}

/// Answers one request for the service that started this process.
pub(crate) fn work() -> Outcome {
    host::keep_freed_memory();
    worker::work(&Recorders {
        catch_up: recorder::catch_up_telling,
        beginning: recorder::beginning,
        state: recorder::state,
        maker: evidence::maker,
        #[cfg(feature = "sql")]
        sql: Some(crate::sql::ask),
        #[cfg(not(feature = "sql"))]
        sql: None,
    })?;
    Ok(Verdict::Clean)
}

fn create_token(flags: &CreateFlags) -> Outcome {
    let after = |time| Timestamp(SystemClock.realtime().0).plus_nanos(units::nanos(time));
    let bounds = (flags.expires.map(after), flags.filter.as_deref());
    let token = server::add_token(&flags.token_file, &flags.name, &flags.scope, bounds);
    let token = token.map_err(|error| refused(error, &flags.name))?;
    stdout::print(&format!("{token}\n"))?;
    Ok(Verdict::Clean)
}
