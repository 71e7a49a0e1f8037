//! `wirespool verify` and `wirespool verify-extract`.

use core::ops::ControlFlow;
use std::io::Read;
use std::path::PathBuf;

use ::extract::VerifyExtractError;
use anyhow::Context;
use clap::Args;
use host::StopFlag;
use view::ExpectedOutput;

use crate::failure::{Outcome, Usage, Verdict};
use crate::progress::Progress;
use crate::stdout;

/// Manifests of large extracts list many pieces, but not gigabytes of them.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// Read a whole volume and check every byte.
///
/// Every acknowledged stripe is read and compared with its checksums, and every index is joined and
/// decoded. Damage is listed by stripe and byte offset; nothing is repaired or written.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool verify /data/spool
  wirespool verify /dev/sdb1 --json

Exit code 1 when damage was found.")]
pub(crate) struct Flags {
    /// The volume: a file or a block device
    volume: PathBuf,
    /// Another member, where it is not found by itself; may be given several times
    #[arg(long = "member", value_name = "PATH")]
    members: Vec<PathBuf>,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("verify");
    let report = upkeep::verify(&flags.volume, &flags.members, &mut |done, total| {
        progress.bytes(done, total);
        if stop.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    progress.finish();
    let report = report?;
    let text =
        if flags.json { view::verification_json(&report) } else { view::verification(&report) };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(report.is_clean() && report.is_complete))
}

/// Compare an extract with its manifest.
///
/// Length, SHA-256 and BLAKE3 of the file have to be those that were written. This shows that the
/// file is what was extracted; what was missing then is in the manifest.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool verify-extract https.pcapng.json https.pcapng

Exit code 1 when the file is not the extract.")]
pub(crate) struct ExtractFlags {
    /// The manifest that extract wrote
    manifest: PathBuf,
    /// The extract
    file: PathBuf,
}

pub(crate) fn run_extract(flags: &ExtractFlags) -> Outcome {
    let mut text = String::new();
    let of_manifest = || format!("cannot read the manifest {}", flags.manifest.display());
    let manifest = host::open_input(&flags.manifest)?.take(MANIFEST_BYTES_MAX);
    { manifest }.read_to_string(&mut text).with_context(of_manifest)?;
    let outputs = view::parse_manifest(&text).with_context(of_manifest)?;
    let output = choose(&outputs, flags)?;
    let mut file = host::open_input(&flags.file)?;
    let verdict = match ::extract::verify_extract(&output.summary, &mut file) {
        Err(VerifyExtractError::Read(error)) => {
            return Err(error).with_context(|| format!("cannot read {}", flags.file.display()));
        }
        verdict => verdict,
    };
    let name = flags.file.display();
    stdout::print(&match &verdict {
        Ok(()) => format!("{name} is the extract of its manifest\n"),
        Err(error) => format!("{name}: {error}\n"),
    })?;
    Ok(Verdict::clean_if(verdict.is_ok()))
}

/// The only output, or the one with the name of the file.
fn choose<'a>(
    outputs: &'a [ExpectedOutput],
    flags: &ExtractFlags,
) -> Result<&'a ExpectedOutput, Usage> {
    if let [only] = outputs {
        return Ok(only);
    }
    let name = flags.file.file_name().unwrap_or_default().to_string_lossy();
    let named = outputs.iter().find(|output| output.file.as_deref() == Some(&*name));
    named.ok_or_else(|| Usage(format!("the manifest has no output named {name}")))
}
