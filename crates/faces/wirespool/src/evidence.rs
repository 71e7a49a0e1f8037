//! `wirespool verify-extract` and `wirespool keygen`.

use std::io::Write;
use std::path::{Path, PathBuf};

use ::evidence::{Attested, SIGNATURE_SUFFIX, STAMP_SUFFIX, SigningKey, Trust, Vouched};
use ::extract::{ExpectedOutput, ReadManifest};
use anyhow::Context;
use clap::Args;
use host::{Output, SystemClock};
use session_view::CheckedExtract;
use units::Clock as _;

use crate::failure::{Outcome, Usage, Verdict};
use crate::statement::maker;
use crate::trust::{TrustFlags, beside, read_bytes};
use crate::{anchor, output_file, stdout};

/// Manifests of large extracts list many pieces, but not gigabytes of them.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// Compare an extract with its manifest.
///
/// Length, SHA-256 and BLAKE3 of the file have to be those that were written, and the manifest has
/// to be as it was written: its seal is a hash, and a signature where there was a key. A signature
/// of OpenSSH beside it (MANIFEST.sig) and a time stamp (MANIFEST.tsr) have to be right, too, where
/// they are. Needs neither the volume nor a recorder. What was missing from the extract is in its
/// manifest.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool verify-extract https.pcapng.json https.pcapng
  wirespool verify-extract sessions.json sessions/
  wirespool verify-extract evidence.pcapng.json evidence.pcapng --public-key signing.key.pub
  wirespool verify-extract evidence.pcapng.json evidence.pcapng --anchor monday.anchor
  wirespool verify-extract evidence.pcapng.json evidence.pcapng --html report.html

Exit code 1 when the file is not the extract, or the manifest not the one that was written.")]
pub(crate) struct VerifyFlags {
    /// The manifest that extract wrote
    manifest: PathBuf,
    /// The extract, or the folder of one with --split
    file: PathBuf,
    /// An anchor that has to list the stripes which the extract was made from; may be given several
    /// times
    #[arg(long = "anchor", value_name = "FILE")]
    anchors: Vec<PathBuf>,
    /// Write a report for people to this file: what was asked for, what came out, each check with
    /// its result, and what it proves
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Replace an existing report
    #[arg(long, requires = "html")]
    force: bool,
    #[command(flatten)]
    trust: TrustFlags,
}

/// Make a pair of keys for signing manifests.
///
/// Writes an Ed25519 private key to FILE, which only its owner may read, and the public key to
/// FILE.pub. Both are PEM files as openssl has them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool keygen signing.key
  wirespool extract /data/spool 'host 10.0.0.1' --sign signing.key -w evidence.pcapng
  wirespool verify-extract evidence.pcapng.json evidence.pcapng --public-key signing.key.pub")]
pub(crate) struct KeygenFlags {
    /// File for the private key; an existing file is not replaced
    file: PathBuf,
}

pub(crate) fn keygen(flags: &KeygenFlags) -> Outcome {
    let key = SigningKey::new(host::random_bytes()?);
    let mut public = flags.file.clone().into_os_string();
    public.push(".pub");
    let mut private = Output::create(&flags.file, false)?;
    let public = Output::create(Path::new(&public), false)?;
    private.write_all(key.to_pem().as_bytes())?;
    private.finish()?;
    // It is there to be given away: the umask decides who may read it.
    public.finish_public(key.public().to_pem().as_bytes())?;
    stdout::print(&format!("public key {}\n", units::hex(&key.public().0)))?;
    Ok(Verdict::Clean)
}

pub(crate) fn verify(flags: &VerifyFlags) -> Outcome {
    let trust = flags.trust.read()?;
    let html = output_file::create_named(flags.html.as_ref(), flags.force)?;
    let of_manifest = || format!("cannot read the manifest {}", page::safe::path(&flags.manifest));
    let text = read_bytes(&flags.manifest, MANIFEST_BYTES_MAX)?;
    let text = String::from_utf8(text).with_context(of_manifest)?;
    let manifest = ::extract::parse_manifest(&text).with_context(of_manifest)?;

    let name = page::safe::path(&flags.manifest);
    let attested = attest(&flags.manifest, (&text, &manifest), &trust)?;
    let mut is_right = attested.is_right();
    let mut report = session_view::attested(&name, &attested);
    let case = manifest.case.lines();
    report.extend(case.map(|(name, text)| format!("{name}: {}", page::safe::printable(text))));
    let findings = if flags.file.is_dir() {
        session_view::unlike_folder(&manifest.outputs, &flags.file)?
    } else {
        let output = choose(&manifest.outputs, flags)?;
        Vec::from_iter(session_view::unlike_file(output, &flags.file)?)
    };
    is_right &= findings.is_empty();
    if findings.is_empty() {
        let state = manifest.state;
        let file = page::safe::path(&flags.file);
        report.push(format!("{file} is the extract of its manifest, {state}"));
    }
    report.extend(findings.iter().cloned());
    let mut anchors = Vec::new();
    for path in &flags.anchors {
        let found = anchor::cover(path, &manifest, &trust)?;
        is_right &= found.is_right;
        report.extend(found.attested.iter().cloned());
        report.push(session_view::covered(&found.name, found.coverage.as_ref()));
        anchors.push(found);
    }
    if let Some(output) = html {
        let checked = CheckedExtract {
            name: &name_of(&flags.manifest),
            text: &text,
            attested: &attested,
            findings: &findings,
            anchors: &anchors,
            is_right,
            checked: SystemClock.realtime(),
            program: &maker().program,
        };
        let page = session_view::extract_report(&checked).unwrap_or_default();
        output.finish_with(page.as_bytes())?;
    }
    stdout::print(&(report.join("\n") + "\n"))?;
    Ok(Verdict::clean_if(is_right))
}

/// Who vouches for a manifest.
fn attest(
    path: &Path,
    (text, manifest): (&str, &ReadManifest<'_>),
    trust: &Trust,
) -> anyhow::Result<Attested> {
    let signature = beside(path, SIGNATURE_SUFFIX)?;
    let signature = signature.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let stamp = beside(path, STAMP_SUFFIX)?;
    let of = Vouched {
        text,
        sealed: manifest.sealed.as_ref().map(|(text, seal)| (*text, seal)),
        made: manifest.made,
        signature: signature.as_deref(),
        stamp: stamp.as_deref(),
    };
    Ok(Attested::check(&of, trust))
}

/// The name of a file without its folders, as commands name it.
fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The only output, or the one with the name of the file.
fn choose<'a>(
    outputs: &'a [ExpectedOutput],
    flags: &VerifyFlags,
) -> Result<&'a ExpectedOutput, Usage> {
    if let [only] = outputs {
        return Ok(only);
    }
    let name = flags.file.file_name().unwrap_or_default().to_string_lossy();
    let named = outputs.iter().find(|output| output.file.as_deref() == Some(&*name));
    named.ok_or_else(|| Usage(format!("the manifest has no output named {name}")))
}
