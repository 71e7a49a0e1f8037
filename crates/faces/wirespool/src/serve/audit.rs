//! `wirespool audit`: the audit of a service, checked and shown.

use std::io::Write as _;
use std::path::PathBuf;

use ::audit::Filter;
use clap::{Args, Subcommand};
use units::Timestamp;

use crate::failure::{Outcome, Verdict};
use crate::progress::say;
use crate::{arguments, stdout};

/// What is done with an audit.
#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    Verify(VerifyFlags),
    Show(ShowFlags),
}

/// Compare each line with the one before.
#[derive(Debug, Args)]
pub(super) struct VerifyFlags {
    /// The files of one chain, in any order
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A line with this hash, which was noted elsewhere, has to be there
    #[arg(long, value_name = "HASH", value_parser = hash)]
    head: Option<[u8; 32]>,
}

/// Show requests and how they ended, one a line.
#[derive(Debug, Args)]
pub(super) struct ShowFlags {
    /// The files of one chain, in any order
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only the hash of the last line
    #[arg(long, conflicts_with_all = ["credential", "path", "since", "until", "json"])]
    head: bool,
    /// Requests of this credential
    #[arg(long, value_name = "NAME")]
    credential: Option<String>,
    /// Requests whose path begins so
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// From this time on: RFC 3339, or such as '3h ago'
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Timestamp>,
    /// Before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Timestamp>,
    /// Lines as they stand in the files
    #[arg(long)]
    json: bool,
}

fn hash(text: &str) -> Result<[u8; 32], String> {
    units::unhex(text.trim()).ok_or_else(|| "64 hex digits, as show --head prints them".to_owned())
}

pub(super) fn run(command: &AuditCommand) -> Outcome {
    match command {
        AuditCommand::Verify(flags) => verify(flags),
        AuditCommand::Show(flags) if flags.head => {
            stdout::print(&format!("{}\n", ::audit::head(&flags.files)?))?;
            Ok(Verdict::Clean)
        }
        AuditCommand::Show(flags) => show(flags),
    }
}

fn verify(flags: &VerifyFlags) -> Outcome {
    let verified = ::audit::verify(&flags.files, flags.head)?;
    stdout::print(&::audit::verified_text(&verified, &flags.files))?;
    Ok(Verdict::clean_if(verified.is_whole()))
}

fn show(flags: &ShowFlags) -> Outcome {
    let filter = Filter {
        credential: flags.credential.clone(),
        path: flags.path.clone(),
        since: flags.since,
        until: flags.until,
    };
    let (mut out, mut written) = (stdout::buffered(), Ok(()));
    let verified = ::audit::show(&flags.files, &filter, &mut |shown| {
        let text = if flags.json { shown.to_json() } else { ::audit::shown_line(shown) };
        if written.is_ok() {
            written = out.write_all(text.as_bytes());
        }
    })?;
    written.and_then(|()| out.flush())?;
    if !verified.is_whole() {
        say("the chain is broken: audit verify says where");
    }
    Ok(Verdict::clean_if(verified.is_whole()))
}

/// A moment, in the words of the query language.
fn time(text: &str) -> Result<Timestamp, String> {
    let time = arguments::query(&format!("since {text}")).map(|query| query.time_range().0);
    time.map_err(|_| "write a time of RFC 3339, or such as 3h ago".to_owned())
}
