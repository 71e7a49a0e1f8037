//! `wirespool hold` and `wirespool archive`: what is kept beyond the ring.

mod archive;

use core::ops::ControlFlow;
use std::path::PathBuf;

use ::extract::Request;
use ::hold::{Aside, Room, put_aside};
use ::manifest::CaseInfo;
use anyhow::bail;
use clap::{Args, Subcommand};
use host::StopFlag;
use units::ByteSize;

use crate::custody::pseudonyms::Pseudonyms;
use crate::failure::{Outcome, Usage, Verdict, of_hold};
use crate::progress::{Progress, say, say_lines};
use crate::reading::ReadingFlags;
use crate::remote::first_given;
use crate::selection::{CaseFlags, SelectionFlags, Throttle};
use crate::{evidence, stdout};

/// What is kept beyond the ring.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Hold(Box<Flags>),
    Archive(Box<archive::Flags>),
}

pub(crate) fn run(verb: &Verb) -> Outcome {
    match verb {
        Verb::Hold(flags) => hold(flags),
        Verb::Archive(flags) => archive::run(flags),
    }
}

/// Put packets aside, beyond the reach of the ring.
///
/// A hold is an extract with its manifest in a directory of holds. The holds of a directory may
/// have --size-max bytes in all: a hold that does not fit is refused, and nothing of it is left.
/// Holds stay until you remove their files. --list says which files are gone or have another
/// length; `verify-extract` compares their bytes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool hold /data/spool 'host 10.0.0.1' --hold-dir /data/holds
  wirespool hold /data/spool 'sni *.example.com' --hold-dir /data/holds --size-max 100G
  wirespool hold /spool 'host 10.0.0.1' --hold-dir /holds --case 2026/17 --requester 'B. Jones'
  wirespool hold --list --hold-dir /data/holds

Exit code 1 when something is missing from the hold; its manifest says what. With --list when a
hold is not what was put aside.")]
pub(crate) struct Flags {
    /// The volume: a file or a block device
    #[arg(required_unless_present = "list")]
    volume: Option<PathBuf>,
    /// The query; its words may be one argument or several
    query: Vec<String>,
    /// Where holds are kept, best on another disk
    #[arg(long, value_name = "DIR")]
    hold_dir: PathBuf,
    /// Most bytes of all holds there
    #[arg(long, value_name = "SIZE", default_value = "10G", value_parser = crate::arguments::size)]
    size_max: u64,
    /// List the holds there
    #[arg(long, conflicts_with = "volume")]
    list: bool,
    /// Sign the manifest with this key, which keygen or ssh-keygen -t ed25519 has made
    #[arg(long, value_name = "KEYFILE")]
    sign: Option<PathBuf>,
    #[command(flatten)]
    case: CaseFlags,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    selection: SelectionFlags,
    #[command(flatten)]
    reading: ReadingFlags,
}

fn hold(flags: &Flags) -> Outcome {
    let Some(volume) = &flags.volume else { return list(flags) };
    let selection = flags.selection.selection(&flags.query)?;
    if selection.pseudonyms().is_some_and(Pseudonyms::has_escrow) {
        let text = "--escrow is for extract: a hold keeps addresses as they are, or for good";
        return Err(Usage(text.to_owned()).into());
    }
    let mut options = flags.reading.options(volume.clone())?;
    flags.reading.catch_up(&mut options);
    let request = Request { case: flags.case.info(), ..selection.request() };
    let stop = StopFlag::install()?;
    let mut throttle = Throttle::new(&options, &request);
    let mut progress = Progress::new("hold");
    let key = flags.sign.as_deref().map(evidence::signing_key).transpose()?;
    let (folder, size_max) = (&*flags.hold_dir, flags.size_max);
    let manifest = evidence::manifest_with(key.as_ref());
    let signature = |text: &str| key.as_ref().and_then(|key| key.ssh_signature(text));
    let signature = &signature;
    let room = Room { folder, size_max, also_empty: true, manifest: &manifest, signature };
    let aside = put_aside(&room, &options, &request, &mut |state| {
        progress.text(&|| page::text::plural(state.packets, "packet"));
        if stop.is_set() { ControlFlow::Break(()) } else { throttle.rest() }
    });
    progress.finish();
    match aside.map_err(|error| of_hold(volume, error))? {
        Aside::Full { used } => {
            let (folder, most) = (page::safe::path(&flags.hold_dir), ByteSize(flags.size_max));
            let used = ByteSize(used);
            bail!(
                "{folder} has no space for it: its holds have {used} of {most}; remove some, or \
                 raise --size-max"
            );
        }
        Aside::Nothing | Aside::Stopped => Ok(Verdict::Clean),
        Aside::Held { path, packets, completeness, .. } => {
            let packets = page::text::plural(packets, "packet");
            say_lines(&format!("{packets} in {}, {completeness}", page::safe::path(&path)));
            Ok(Verdict::of(completeness.state()))
        }
    }
}

fn list(flags: &Flags) -> Outcome {
    let has_case = flags.case.info() != CaseInfo::default();
    let of_one = [(flags.sign.is_some(), "--sign"), (has_case, "--case, --purpose or --requester")];
    let given = first_given(&of_one).or_else(|| flags.selection.given_besides_query());
    if let Some(flag) = given.or_else(|| flags.reading.given()) {
        return Err(Usage(format!("{flag} is about a hold that is made: --list makes none")).into());
    }
    if host::target(&flags.hold_dir)? == host::Target::Absent {
        say(&format!("{} does not exist: no holds are there", page::safe::path(&flags.hold_dir)));
    }
    let (holds, unreadable) = ::hold::list(&flags.hold_dir)?;
    let is_right = unreadable.is_empty() && holds.iter().all(|hold| hold.altered.is_none());
    for (path, why) in unreadable {
        say(&format!("{}: {why}", page::safe::path(path)));
    }
    let text = if flags.json {
        session_view::holds_json(&holds)
    } else {
        session_view::holds(&holds, stdout::width())
    };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(is_right))
}
