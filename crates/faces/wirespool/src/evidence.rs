//! `wirespool verify-extract` and `wirespool keygen`.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ::extract::{ExpectedOutput, ExtractReport, PublicKey, SigningKey};
use anyhow::Context;
use clap::Args;
use host::Output;
use session_view::Maker;

use crate::failure::{Outcome, Usage, Verdict};
use crate::stdout;

/// Manifests of large extracts list many pieces, but not gigabytes of them.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// Compare an extract with its manifest.
///
/// Length, SHA-256 and BLAKE3 of the file have to be those that were written, and the manifest has
/// to be as it was written: its seal is a hash, and a signature where there was a key. Needs
/// neither the volume nor a recorder. What was missing from the extract is in its manifest.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool verify-extract https.pcapng.json https.pcapng
  wirespool verify-extract sessions.json sessions/
  wirespool verify-extract evidence.pcapng.json evidence.pcapng --public-key signing.key.pub

Exit code 1 when the file is not the extract, or the manifest not the one that was written.")]
pub(crate) struct VerifyFlags {
    /// The manifest that extract wrote
    manifest: PathBuf,
    /// The extract, or the folder of one with --split
    file: PathBuf,
    /// The manifest has to be signed with the other half of this key
    #[arg(long, value_name = "FILE")]
    public_key: Option<PathBuf>,
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

/// What manifests say of who makes an extract. Asked once: a recorder asks before it gives up its
/// rights, for users are looked up in files.
pub(crate) fn maker() -> &'static Maker {
    static MAKER: OnceLock<Maker> = OnceLock::new();
    MAKER.get_or_init(|| {
        let (user, called_by) = host::this_user();
        let program = concat!("wirespool ", env!("CARGO_PKG_VERSION")).to_owned();
        Maker { program, host: host::host_name(), user, called_by }
    })
}

/// Makes manifests, signed where there is a key.
pub(crate) fn manifest_with(
    key: Option<&SigningKey>,
) -> impl Fn(&ExtractReport, &[String]) -> String {
    move |report, files| session_view::manifest_json(&report.manifest, maker(), files, key)
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

/// Reads a key that signs.
pub(crate) fn signing_key(path: &Path) -> anyhow::Result<SigningKey> {
    let text = host::read_key(path)?;
    SigningKey::from_pem(&text).map_err(|error| not_a_key(path, error))
}

fn not_a_key(path: &Path, error: ::extract::KeyError) -> anyhow::Error {
    Usage(format!("{}: {error}", page::safe::path(path))).into()
}

pub(crate) fn verify(flags: &VerifyFlags) -> Outcome {
    let trusted = flags.public_key.as_deref().map(|path| {
        let text = host::read_text(path)?;
        PublicKey::from_pem(&text).map_err(|error| not_a_key(path, error))
    });
    let trusted = trusted.transpose()?;
    let mut text = String::new();
    let of_manifest = || format!("cannot read the manifest {}", page::safe::path(&flags.manifest));
    let manifest = host::open_input(&flags.manifest)?.take(MANIFEST_BYTES_MAX);
    { manifest }.read_to_string(&mut text).with_context(of_manifest)?;
    let manifest = ::extract::parse_manifest(&text).with_context(of_manifest)?;

    let (mut report, mut is_right) = (Vec::new(), true);
    let seal = session_view::signed_by(&manifest, trusted.as_ref());
    is_right &= seal.is_ok();
    let name = page::safe::path(&flags.manifest);
    match seal {
        Ok(Some(by)) => report.push(format!("{name} is signed with {by}\n")),
        Ok(None) => {}
        Err(error) => report.push(format!("{name}: {error}\n")),
    }
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
        report.push(format!("{file} is the extract of its manifest, {state}\n"));
    }
    report.extend(findings.iter().map(|finding| format!("{finding}\n")));
    stdout::print(&report.concat())?;
    Ok(Verdict::clean_if(is_right))
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
