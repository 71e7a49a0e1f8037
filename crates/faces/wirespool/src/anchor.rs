//! `wirespool anchor`, and what `verify` and `verify-extract` do with anchors.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use ::evidence::{
    ANCHOR_VERSION, AnchorForm, CheckedAnchor, LIST_SUFFIX, Listed, PreviousForm, SIGNATURE_SUFFIX,
    STAMP_SUFFIX, Trust, WitnessForm, Witnessed, witness_lines,
};
use ::extract::{ReadManifest, coverage};
use anyhow::Context;
use clap::Args;
use host::{Ledger, StopFlag, SystemClock};
use session_view::CheckedAgainst;
use units::{Clock as _, hex};
use upkeep::{AnchorFindings, AnchorOptions, AnchorToCheck, AnchorVerdict, Anchored};

use crate::failure::{Outcome, Usage, Verdict};
use crate::members::VolumeFlags;
use crate::progress::Progress;
use crate::statement::{Statement, Wanted, maker, with_suffix};
use crate::trust::{TrustFlags, beside, read_bytes, signing_key};
use crate::{output_file, stdout};

/// An anchor is a page of text.
const ANCHOR_BYTES_MAX: u64 = 1 << 20;
/// Its list has 80 bytes for each piece.
const LIST_BYTES_MAX: u64 = 1 << 32;
const WITNESS_BYTES_MAX: u64 = 1 << 28;
/// Lines of a witness file that the volume is compared with: the newest.
const WITNESSED_MAX: usize = 4096;

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
  wirespool anchor /data/spool -w tuesday.anchor --witness /mnt/elsewhere/witness.jsonl
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
    let wanted = Wanted { key: key.as_ref(), has_request: flags.timestamp_request };
    let previous =
        flags.previous.as_deref().map(|path| load(path, &Trust::default())).transpose()?;
    let mut witness = flags.witness.as_deref().map(Ledger::open).transpose()?;
    let list_path = with_suffix(&flags.write, LIST_SUFFIX);
    let mut list = output_file::create(&list_path, flags.force)?;
    let statement = Statement::begin(&flags.write, &wanted, flags.force)?;
    let options = AnchorOptions {
        contents: !flags.heads_only,
        previous: previous.as_ref().map(|previous| (previous.newest, newest_cid(previous))),
    };
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("anchor");
    let anchored = upkeep::anchor(
        (&flags.volume, &flags.members),
        options,
        &mut |bytes| list.write_all(bytes),
        &mut |done, total| {
            progress.bytes(done, total);
            stop.flow()
        },
    );
    progress.finish();
    let anchored = anchored?;
    let form = form_of(&anchored, options.contents, previous.as_ref());
    list.finish()?;
    let text = statement.finish(&wanted, &|key| session_view::anchor_json(&form, key))?;
    if let Some(witness) = &mut witness {
        let line = session_view::witness_line(&witness_of(&form, &text));
        witness.append(line.as_bytes()).map_err(|error| error.source).with_context(|| {
            let path = flags.witness.as_deref().unwrap_or(Path::new(""));
            format!("cannot append to {}", page::safe::path(path))
        })?;
    }
    stdout::print(&said(flags, &anchored))?;
    Ok(Verdict::clean_if(anchored.unreadable == 0))
}

fn said(flags: &Flags, anchored: &Anchored) -> String {
    let Anchored { first, newest, records, unreadable, .. } = anchored;
    let pieces = page::text::plural(*records, "piece");
    let what = if flags.heads_only { "heads alone" } else { "heads and bodies" };
    let name = page::safe::path(&flags.write);
    let mut text = format!(
        "{name}: {pieces} of the stripes {first} to {newest}, {what}; the list is in \
         {name}{LIST_SUFFIX}\n"
    );
    if *unreadable > 0 {
        let pieces = page::text::plural(*unreadable, "piece");
        text.push_str(&format!("{pieces} could not be read, and are not anchored\n"));
    }
    text
}

fn newest_cid(anchor: &CheckedAnchor) -> [u8; 32] {
    anchor.list.cid_of(anchor.newest).copied().unwrap_or_default()
}

fn form_of(anchored: &Anchored, contents: bool, previous: Option<&CheckedAnchor>) -> AnchorForm {
    AnchorForm {
        anchor_version: ANCHOR_VERSION,
        made_ns: SystemClock.realtime().0,
        made_by: maker().clone(),
        volume_id: anchored.volume.to_string(),
        epoch: anchored.epoch,
        newest: anchored.newest.to_string(),
        newest_cid: hex(&anchored.newest_cid),
        newest_sealed_ns: anchored.newest_sealed.0,
        first: anchored.first.to_string(),
        records: anchored.records,
        unreadable: anchored.unreadable,
        contents,
        list_blake3: hex(&anchored.list_blake3),
        previous: previous.map(|previous| PreviousForm {
            blake3: hex(&previous.blake3),
            newest: previous.newest.to_string(),
        }),
    }
}

fn witness_of(form: &AnchorForm, text: &str) -> WitnessForm {
    WitnessForm {
        made_ns: form.made_ns,
        volume_id: form.volume_id.clone(),
        newest: form.newest.clone(),
        newest_cid: form.newest_cid.clone(),
        anchor_sha256: hex(&::evidence::sha256(text.as_bytes())),
    }
}

/// Reads an anchor with what lies beside it.
pub(crate) fn load(path: &Path, trust: &Trust) -> anyhow::Result<CheckedAnchor> {
    let name = || format!("cannot use the anchor {}", page::safe::path(path));
    let text = String::from_utf8(read_bytes(path, ANCHOR_BYTES_MAX)?).with_context(name)?;
    let list = read_bytes(&with_suffix(path, LIST_SUFFIX), LIST_BYTES_MAX)?;
    let signature = beside(path, SIGNATURE_SUFFIX)?;
    let signature = signature.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let stamp = beside(path, STAMP_SUFFIX)?;
    let beside = (signature.as_deref(), stamp.as_deref());
    CheckedAnchor::read(&text, &list, beside, trust).with_context(name)
}

/// Compares an extract with an anchor of its volume.
pub(crate) fn cover(
    path: &Path,
    manifest: &ReadManifest<'_>,
    trust: &Trust,
) -> anyhow::Result<CheckedAgainst> {
    let anchor = load(path, trust)?;
    let name = page::safe::path(path);
    let attested = session_view::attested(&name, &anchor.attested);
    let coverage = coverage(manifest, &anchor);
    let is_covered = coverage.is_some_and(|found| found.other == 0 && found.covered > 0);
    let is_right = is_covered && anchor.attested.is_right();
    Ok(CheckedAgainst { name, coverage, attested, is_right })
}

/// A thing that a volume is compared with.
struct Against {
    name: String,
    lines: Vec<String>,
    is_right: bool,
    anchor: AnchorToCheck,
}

/// `wirespool verify` with anchors or a witness file.
pub(crate) fn verify(of: &VolumeFlags, against: &AgainstFlags) -> Outcome {
    let trust = against.trust.read()?;
    let mut all = Vec::new();
    let mut known = Vec::new();
    for path in &against.anchors {
        let anchor = load(path, &trust)?;
        known.push(anchor.sha256);
        let name = page::safe::path(path);
        all.push(Against {
            lines: session_view::attested(&name, &anchor.attested),
            is_right: anchor.attested.is_right(),
            name,
            anchor: AnchorToCheck {
                volume: anchor.volume,
                newest: anchor.newest,
                records: anchor.list.records,
            },
        });
    }
    if let Some(path) = &against.witness {
        all.push(witnessed(path, &of.volume, &of.members, &known)?);
    }
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("verify");
    let anchors: Vec<AnchorToCheck> = all.iter().map(|it| it.anchor.clone()).collect();
    let found = upkeep::check_anchors((&of.volume, &of.members), &anchors, &mut |done, total| {
        progress.bytes(done, total);
        stop.flow()
    });
    progress.finish();
    report(of.json, &all, &found?)
}

fn report(is_json: bool, all: &[Against], found: &[AnchorFindings]) -> Outcome {
    let pairs = all.iter().zip(found);
    let text = if is_json {
        let rows = pairs
            .clone()
            .map(|(it, found)| (it.name.clone(), found, it.lines.clone(), it.is_right));
        volume_view::anchors_json(&Vec::from_iter(rows))
    } else {
        let one = |(it, found): (&Against, &AnchorFindings)| {
            let lines = it.lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            lines + &volume_view::anchor_findings(&it.name, found)
        };
        pairs.clone().map(one).collect()
    };
    stdout::print(&text)?;
    let is_wrong = |(it, found): (&Against, &AnchorFindings)| {
        let is_other = matches!(
            found.verdict,
            AnchorVerdict::RolledBack | AnchorVerdict::Rewritten | AnchorVerdict::OtherVolume
        );
        is_other || !it.is_right
    };
    if pairs.clone().any(is_wrong) {
        return Ok(Verdict::Negative);
    }
    let is_same = found.iter().all(|found| found.verdict == AnchorVerdict::Same);
    Ok(if is_same { Verdict::Clean } else { Verdict::Unknown })
}

/// The lines of a witness file about this volume, as one anchor; `known` are hashes of anchors that
/// it should have.
fn witnessed(
    path: &Path,
    volume: &Path,
    members: &[PathBuf],
    known: &[[u8; 32]],
) -> anyhow::Result<Against> {
    let name = page::safe::path(path);
    let text = read_bytes(path, WITNESS_BYTES_MAX)?;
    let lines = witness_lines(&String::from_utf8_lossy(&text))
        .with_context(|| format!("cannot use the witness file {name}"))?;
    let id = upkeep::status(volume, members)?.volume_id;
    let mut lines: Vec<Witnessed> = lines.into_iter().filter(|line| line.volume == id).collect();
    let Some(newest) = lines.iter().map(|line| line.newest).max() else {
        return Err(Usage(format!("{name} has no line of this volume")).into());
    };
    let is_known = |sha256: &[u8; 32]| lines.iter().any(|line| line.anchor_sha256 == *sha256);
    let unknown = known.iter().filter(|sha256| !is_known(sha256)).count();
    let mut said = Vec::new();
    if unknown > 0 {
        let anchors = page::text::plural(units::number::to_u64(unknown), "anchor");
        said.push(format!("{name} has no line of {anchors} of those given"));
    }
    lines.sort_by_key(|line| line.newest);
    let behind = lines.len().saturating_sub(WITNESSED_MAX);
    let mut records: Vec<Listed> =
        lines.get(behind..).unwrap_or_default().iter().map(listed).collect();
    records.dedup();
    Ok(Against {
        name,
        lines: said,
        is_right: unknown == 0,
        anchor: AnchorToCheck { volume: id, newest, records },
    })
}

fn listed(line: &Witnessed) -> Listed {
    let body = ::evidence::Body::None;
    Listed { stripe: line.newest, column: 0, cid: line.newest_cid, body }
}
