//! `wirespool anchor`, and `wirespool verify` with anchors or a witness file.

use std::path::PathBuf;

use attest::{Against, Anchoring, Compared, Wanted, compare, make_anchor};
use clap::Args;
use host::StopFlag;
use upkeep::{AnchorVerdict, Anchored};

use super::{TrustFlags, maker, signing_key};
use crate::failure::{Outcome, Verdict, of_attest};
use crate::members::VolumeFlags;
use crate::progress::{Progress, say_lines};
use crate::stdout;

/// Write down what a volume holds, so that later changes show.
///
/// An anchor lists the identity of every acknowledged stripe, which is a hash chained to the one
/// before, and a hash of every body. Keep it where nobody who can write to the volume can change
/// it: on another machine, with a time stamp, or in a witness file there. `verify --anchor` then
/// says whether the volume was rolled back, cut off or rewritten. Reads the whole volume, or what
/// came since a previous anchor; needs no key of an encrypted volume. May run beside a recorder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool anchor /data/spool -w monday.anchor --sign signing.key
  wirespool anchor /data/spool -w tuesday.anchor --previous monday.anchor --timestamp-request
  wirespool anchor /data/spool -w wednesday.anchor --witness /mnt/witness.jsonl
  wirespool verify /data/spool --anchor monday.anchor --anchor tuesday.anchor

Exit code 1 when something could not be read, and is not in the anchor.")]
pub(crate) struct Flags {
    /// The volume: any of its members
    volume: PathBuf,
    /// Another member, or a folder of such, where it is not found by itself; may be given several
    /// times
    #[arg(long = "member", value_name = "PATH")]
    members: Vec<PathBuf>,
    /// Write the anchor to this file, and its list of stripes to FILE.stripes
    #[arg(long, short, value_name = "FILE")]
    write: PathBuf,
    /// List only what came since this anchor, which is named by its hash
    #[arg(long, value_name = "FILE")]
    previous: Option<PathBuf>,
    /// Read heads alone: quick, and blind to a body that was exchanged with its checksums made to
    /// fit
    #[arg(long)]
    heads_only: bool,
    /// Sign it with this key, as extract does
    #[arg(long, value_name = "KEYFILE")]
    sign: Option<PathBuf>,
    /// Write FILE.tsq, the question for an authority of time stamps (RFC 3161)
    #[arg(long)]
    timestamp_request: bool,
    /// Append a line to this file, best on another machine
    #[arg(long, value_name = "FILE")]
    witness: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

/// What was written down of a volume.
#[derive(Debug, Args)]
pub(crate) struct AgainstFlags {
    /// An anchor that the volume is compared with; may be given several times
    #[arg(long = "anchor", value_name = "FILE")]
    pub(crate) anchors: Vec<PathBuf>,
    /// A witness file whose lines the volume is compared with
    #[arg(long, value_name = "FILE")]
    pub(crate) witness: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let key = flags.sign.as_deref().map(signing_key).transpose()?;
    let of = Anchoring {
        volume: &flags.volume,
        members: &flags.members,
        file: &flags.write,
        previous: flags.previous.as_deref(),
        heads_only: flags.heads_only,
        wanted: Wanted { key: key.as_ref(), has_request: flags.timestamp_request },
        witness: flags.witness.as_deref(),
        force: flags.force,
        maker: maker(),
    };
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("anchor");
    let made = make_anchor(&of, &mut |done, total| {
        progress.bytes(done, total);
        stop.flow()
    });
    progress.finish();
    let made = made.map_err(of_attest)?;
    if let Some(note) = &made.note {
        say_lines(note);
    }
    stdout::print(&said(flags, &made.anchored))?;
    Ok(Verdict::clean_if(made.anchored.unreadable == 0))
}

fn said(flags: &Flags, anchored: &Anchored) -> String {
    let Anchored { first, newest, records, unreadable, .. } = anchored;
    let pieces = page::text::plural(*records, "piece");
    let what = if flags.heads_only { "heads alone" } else { "heads and bodies" };
    let name = page::safe::path(&flags.write);
    let list = page::safe::path(attest::with_suffix(&flags.write, ::evidence::LIST_SUFFIX));
    let listed = format!(
        "{name}: {pieces} of the stripes {first} to {newest}, {what}; the list is in {list}\n"
    );
    let missing = (*unreadable > 0).then(|| {
        let pieces = page::text::plural(*unreadable, "piece");
        format!("{pieces} could not be read, and are not anchored\n")
    });
    [Some(listed), missing].into_iter().flatten().collect()
}

/// `wirespool verify` with anchors or a witness file.
pub(crate) fn verify(of: &VolumeFlags, against: &AgainstFlags) -> Outcome {
    let trust = against.trust.read()?;
    let witness = against.witness.as_deref();
    let against = Against { anchors: &against.anchors, witness, trust: &trust };
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("verify");
    let found = compare((&of.volume, &of.members), &against, &mut |done, total| {
        progress.bytes(done, total);
        stop.flow()
    });
    progress.finish();
    let found = found.map_err(of_attest)?;
    let text = if of.json {
        let row =
            |it: &Compared| (it.name.clone(), it.findings.clone(), it.lines.clone(), it.is_right);
        volume_view::anchors_json(&found.iter().map(row).collect::<Vec<_>>())
    } else {
        let one = |it: &Compared| {
            let findings = volume_view::anchor_findings(&it.name, &it.findings);
            let lines = it.lines.iter().flat_map(|line| [line.as_str(), "\n"]);
            lines.chain([findings.as_str()]).collect::<String>()
        };
        found.iter().map(one).collect()
    };
    stdout::print(&text)?;
    Ok(verdict(&found))
}

fn verdict(found: &[Compared]) -> Verdict {
    let is_wrong = |it: &Compared| {
        let is_other = matches!(
            it.findings.verdict,
            AnchorVerdict::RolledBack | AnchorVerdict::Rewritten | AnchorVerdict::OtherVolume
        );
        is_other || !it.is_right
    };
    if found.iter().any(is_wrong) {
        return Verdict::Negative;
    }
    let is_same = found.iter().all(|it| it.findings.verdict == AnchorVerdict::Same);
    if is_same { Verdict::Clean } else { Verdict::Unknown }
}
