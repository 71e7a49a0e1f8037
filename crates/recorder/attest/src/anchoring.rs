//! Anchors: made, and compared with volumes and extracts.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use evidence::{
    ANCHOR_VERSION, AnchorForm, CheckedAnchor, LIST_SUFFIX, Listed, Maker, PreviousForm,
    SIGNATURE_SUFFIX, STAMP_SUFFIX, Trust, WitnessForm, Witnessed, coverage, sha256, witness_lines,
};
use host::{Ledger, Output, SystemClock};
use manifest::ReadManifest;
use session_view::CheckedAgainst;
use units::{Clock as _, hex};
use upkeep::{AnchorFindings, AnchorOptions, AnchorToCheck, Anchored, Progress};

use crate::Error;
use crate::files::{beside, check_absent, text_beside, with_suffix};
use crate::statement::{Statement, Wanted};

/// An anchor is a page of text.
const ANCHOR_BYTES_MAX: u64 = 1 << 20;
/// Its list has 80 bytes for each piece.
const LIST_BYTES_MAX: u64 = 1 << 32;
const WITNESS_BYTES_MAX: u64 = 1 << 28;
/// Lines of a witness file that the volume is compared with: the newest.
const WITNESSED_MAX: usize = 4096;

/// An anchor to be made.
#[derive(Clone, Copy, Debug)]
pub struct Anchoring<'a> {
    /// Of this volume ...
    pub volume: &'a Path,
    /// ... whose other members may be there.
    pub members: &'a [PathBuf],
    /// Its file.
    pub file: &'a Path,
    /// The anchor before.
    pub previous: Option<&'a Path>,
    /// Bodies are not read.
    pub heads_only: bool,
    /// What is wanted besides.
    pub wanted: Wanted<'a>,
    /// A file that gets a line.
    pub witness: Option<&'a Path>,
    /// Existing files are replaced.
    pub force: bool,
    /// Who makes it.
    pub maker: &'a Maker,
}

/// An anchor that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Made {
    /// What it says.
    pub anchored: Anchored,
    /// What is to be done with the question for an authority of time stamps.
    pub note: Option<String>,
}

/// Makes an anchor. Its files appear when they are whole.
///
/// # Errors
/// When the volume cannot be read, or is not as the previous anchor saw it, or a file not written.
pub fn make_anchor(of: &Anchoring<'_>, progress: Progress<'_>) -> Result<Made, Error> {
    let previous = of.previous.map(|path| load(path, &Trust::default())).transpose()?;
    let list_path = with_suffix(of.file, LIST_SUFFIX);
    check_absent(&list_path, of.force)?;
    for path in of.witness.into_iter().chain([&*list_path]) {
        host::claim_output(path)?;
    }
    let mut witness = of.witness.map(open_witness).transpose()?;
    let made = make(of, previous.as_ref(), &list_path, witness.as_mut(), progress);
    if let (Err(_), Some(witness)) = (&made, witness) {
        witness.abandon();
    }
    made
}

/// A file of witness lines, or a new one; not among files that the program manages.
fn open_witness(path: &Path) -> Result<Ledger, Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    host::check_folder(folder.unwrap_or(Path::new(".")))?;
    Ok(Ledger::open(path)?)
}

fn make(
    of: &Anchoring<'_>,
    previous: Option<&CheckedAnchor>,
    list_path: &Path,
    witness: Option<&mut Ledger>,
    progress: Progress<'_>,
) -> Result<Made, Error> {
    let mut list = Output::create(list_path, of.force)?;
    let statement = Statement::begin(of.file, &of.wanted, of.force)?;
    witness.iter().try_for_each(|witness| witness.check_begins(evidence::WITNESS_BEGINS))?;
    let options = AnchorOptions {
        contents: !of.heads_only,
        previous: previous.map(|previous| &*previous.list.records),
    };
    let write = &mut |bytes: &[u8]| list.write_all(bytes);
    let anchored = upkeep::anchor((of.volume, of.members), options, write, progress)?;
    let form = form_of(of, &anchored, previous);
    // Neither file appears without the other where there is no space.
    statement.reserve(ANCHOR_BYTES_MAX / 16)?;
    list.finish()?;
    let (text, note) =
        statement.finish(&of.wanted, &|key| session_view::anchor_json(&form, key))?;
    if let Some((witness, path)) = witness.zip(of.witness) {
        let mut line = session_view::witness_line(&witness_of(&form, &text));
        if witness.is_torn()? {
            line.insert(0, '\n');
        }
        let fail = |source| Error::Append { path: path.to_path_buf(), source };
        witness.append(line.as_bytes()).map_err(|error| fail(error.source))?;
    }
    Ok(Made { anchored, note })
}

fn form_of(
    of: &Anchoring<'_>,
    anchored: &Anchored,
    previous: Option<&CheckedAnchor>,
) -> AnchorForm {
    AnchorForm {
        anchor_version: ANCHOR_VERSION,
        made_ns: SystemClock.realtime().0,
        made_by: of.maker.clone(),
        volume_id: anchored.volume.to_string(),
        epoch: anchored.epoch,
        newest: anchored.newest.to_string(),
        newest_cid: hex(&anchored.newest_cid),
        newest_sealed_ns: anchored.newest_sealed.0,
        first: anchored.first.to_string(),
        records: anchored.records,
        unreadable: anchored.unreadable,
        contents: !of.heads_only,
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
        anchor_sha256: hex(&sha256(text.as_bytes())),
    }
}

/// Reads an anchor with what lies beside it.
fn load(path: &Path, trust: &Trust) -> Result<CheckedAnchor, Error> {
    let text = host::read_input_text(path, ANCHOR_BYTES_MAX)?;
    let list = host::read_input_bytes(&with_suffix(path, LIST_SUFFIX), LIST_BYTES_MAX)?;
    let signature = text_beside(path, SIGNATURE_SUFFIX)?;
    let stamp = beside(path, STAMP_SUFFIX)?;
    let beside = (signature.as_deref(), stamp.as_deref());
    let refused = |source| Error::Anchor { path: path.to_path_buf(), source };
    CheckedAnchor::read(&text, &list, beside, trust).map_err(refused)
}

/// Compares an extract with an anchor of its volume.
pub(crate) fn cover(
    path: &Path,
    manifest: &ReadManifest<'_>,
    trust: &Trust,
) -> Result<CheckedAgainst, Error> {
    let anchor = load(path, trust)?;
    let name = page::safe::path(path);
    let attested = session_view::attested(&name, &anchor.attested);
    let coverage = coverage(manifest.volume, &manifest.pieces, &anchor);
    // Without packets there is nothing to be listed.
    let is_empty = manifest.pieces.is_empty() && manifest.packets() == 0;
    let is_covered = coverage.is_some_and(|it| it.is_same() && (it.covered > 0 || is_empty));
    let is_right = is_covered && anchor.attested.is_right();
    Ok(CheckedAgainst { name, coverage, attested, is_right })
}

/// What a volume is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Against<'a> {
    /// Files of anchors.
    pub anchors: &'a [PathBuf],
    /// A witness file.
    pub witness: Option<&'a Path>,
    /// Whom to trust.
    pub trust: &'a Trust,
}

/// A volume after an anchor, or after a witness file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compared {
    /// Name of the file, safe to be shown.
    pub name: String,
    /// Who vouches for it, and what is wrong with it, a line each.
    pub lines: Vec<String>,
    /// All of that is right.
    pub is_right: bool,
    /// What it shows of the volume.
    pub findings: AnchorFindings,
}

/// One of them, before the volume is read.
struct Thing {
    name: String,
    lines: Vec<String>,
    is_right: bool,
    anchor: AnchorToCheck,
}

/// Compares a volume with anchors and a witness file.
///
/// # Errors
/// When the volume or a file cannot be read, or is none.
pub fn compare(
    (volume, members): (&Path, &[PathBuf]),
    against: &Against<'_>,
    progress: Progress<'_>,
) -> Result<Vec<Compared>, Error> {
    let (mut all, mut anchors, mut known) = (Vec::new(), Vec::new(), Vec::new());
    for path in against.anchors {
        let anchor = load(path, against.trust)?;
        known.push(anchor.sha256);
        let name = page::safe::path(path);
        let lines = session_view::attested(&name, &anchor.attested);
        all.push((name, lines, anchor.attested.is_right()));
        let (volume, newest, records) = (anchor.volume, anchor.newest, anchor.list.records);
        let contents = anchor.form.contents;
        anchors.push(AnchorToCheck { volume, newest, records, contents });
    }
    if let Some(path) = against.witness {
        let Thing { name, lines, is_right, anchor } = witnessed(path, volume, members, &known)?;
        all.push((name, lines, is_right));
        anchors.push(anchor);
    }
    let found = upkeep::check_anchors((volume, members), &anchors, progress)?;
    let one = |((name, lines, is_right), findings)| Compared { name, lines, is_right, findings };
    Ok(all.into_iter().zip(found).map(one).collect())
}

/// The lines of a witness file about this volume, as one anchor; `known` are hashes of anchors that
/// it should have.
fn witnessed(
    path: &Path,
    volume: &Path,
    members: &[PathBuf],
    known: &[[u8; 32]],
) -> Result<Thing, Error> {
    let name = page::safe::path(path);
    let text = host::read_input_bytes(path, WITNESS_BYTES_MAX)?;
    let refused = |source| Error::Witness { path: path.to_path_buf(), source };
    let lines = witness_lines(&String::from_utf8_lossy(&text)).map_err(refused)?;
    let id = upkeep::status(volume, members)?.volume_id;
    let mut lines: Vec<Witnessed> = lines.into_iter().filter(|line| line.volume == id).collect();
    let Some(newest) = lines.iter().map(|line| line.newest).max() else {
        return Err(Error::NoLine { path: path.to_path_buf() });
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
    Ok(Thing {
        name,
        lines: said,
        is_right: unknown == 0,
        anchor: AnchorToCheck { volume: id, newest, records, contents: false },
    })
}

fn listed(line: &Witnessed) -> Listed {
    let body = evidence::Body::None;
    Listed { stripe: line.newest, column: 0, cid: line.newest_cid, body }
}
