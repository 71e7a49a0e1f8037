//! `wirespool verify-extract`, `wirespool keygen` and `wirespool anchor`.

mod anchor;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ::evidence::{Maker, SigningKey, Trust};
use ::extract::ExtractReport;
use attest::{ExtractToCheck, check_extract, check_receipt, read_trust};
use clap::Args;
use host::Output;

use crate::failure::{Outcome, Verdict, of_attest};
use crate::{output_file, stdout};

pub(crate) use self::anchor::{
    AgainstFlags, Flags as AnchorFlags, run as anchor, verify as verify_against,
};

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

/// Compare an extract with its manifest, or check a receipt.
///
/// Length, SHA-256 and BLAKE3 of the file have to be those that were written, and the manifest has
/// to be as it was written: its seal is a hash, and a signature where there was a key. A signature
/// of OpenSSH beside it (MANIFEST.sig) and a time stamp (MANIFEST.tsr) have to be right, too, where
/// they are. Needs neither the volume nor a recorder. What was missing from the extract is in its
/// manifest. A receipt is checked in the same way, and shown. With --anchor the packets of a raw
/// extract are compared, too; this needs as much space for temporary files (TMPDIR) as the extract
/// has.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool verify-extract https.pcapng.json https.pcapng
  wirespool verify-extract sessions.json sessions/
  wirespool verify-extract evidence.pcapng.json evidence.pcapng --public-key signing.key.pub
  wirespool verify-extract evidence.pcapng.json evidence.pcapng --anchor monday.anchor
  wirespool verify-extract evidence.pcapng.json evidence.pcapng --html report.html
  wirespool verify-extract erased.json --public-key signing.key.pub

Exit code 1 when the file is not the extract, or the manifest or receipt not the one that was
written.")]
pub(crate) struct VerifyFlags {
    /// The manifest that extract wrote, or the receipt of forget or erase
    manifest: PathBuf,
    /// The extract, or the folder of one with --split; a receipt is checked alone
    file: Option<PathBuf>,
    /// An anchor that has to list the stripes which the extract was made from; may be given several
    /// times
    #[arg(long = "anchor", value_name = "FILE", requires = "file")]
    anchors: Vec<PathBuf>,
    /// Write a report for people to this file: what was asked for, what came out, each check with
    /// its result, and what it proves
    #[arg(long, value_name = "FILE", requires = "file")]
    html: Option<PathBuf>,
    /// Replace an existing report
    #[arg(long, requires = "html")]
    force: bool,
    #[command(flatten)]
    trust: TrustFlags,
}

/// Whom to trust.
#[derive(Debug, Args)]
pub(crate) struct TrustFlags {
    /// It has to be signed with the other half of a key in this file: PEM, KEY.pub of OpenSSH, or
    /// its list of allowed signers
    #[arg(long, value_name = "FILE")]
    public_key: Option<PathBuf>,
    /// Time stamps have to be of an authority whose certificate leads to one in this file (PEM)
    #[arg(long, value_name = "FILE")]
    tsa_ca: Option<PathBuf>,
}

impl TrustFlags {
    pub(crate) fn is_given(&self) -> bool {
        self.public_key.is_some() || self.tsa_ca.is_some()
    }

    fn read(&self) -> anyhow::Result<Trust> {
        let (keys, authorities) = (self.public_key.as_deref(), self.tsa_ca.as_deref());
        read_trust(keys, authorities).map_err(of_attest)
    }
}

/// Reads a key that signs; the terminal is asked for a passphrase.
pub(crate) fn signing_key(path: &Path) -> anyhow::Result<SigningKey> {
    let name = page::safe::path(path);
    let mut ask = || host::ask_passphrase(&format!("Passphrase of {name}: "));
    attest::signing_key(path, &mut ask).map_err(of_attest)
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
    let public = Path::new(&public);
    for path in [&flags.file, public] {
        if host::target(path)? != host::Target::Absent {
            let path = page::safe::path(path);
            anyhow::bail!("{path} exists already, and no key is replaced: name another file");
        }
    }
    let mut private = Output::create(&flags.file, false)?;
    let public = Output::create(public, false)?;
    private.write_all(key.to_pem().as_bytes())?;
    private.finish()?;
    // It is there to be given away: the umask decides who may read it.
    public.finish_public(key.public().to_pem().as_bytes())?;
    stdout::print(&format!("public key {}\n", units::hex(&key.public().0)))?;
    Ok(Verdict::Clean)
}

pub(crate) fn verify(flags: &VerifyFlags) -> Outcome {
    let trust = flags.trust.read()?;
    let Some(file) = &flags.file else {
        let (lines, is_right) = check_receipt(&flags.manifest, &trust).map_err(of_attest)?;
        stdout::print(&(lines.join("\n") + "\n"))?;
        return Ok(Verdict::clean_if(is_right));
    };
    let html = output_file::create_named(flags.html.as_ref(), flags.force)?;
    let checked = check_extract(&ExtractToCheck {
        manifest: &flags.manifest,
        file,
        anchors: &flags.anchors,
        trust: &trust,
        program: &maker().program,
    });
    let checked = checked.map_err(of_attest)?;
    if let Some((output, report)) = html.zip(checked.report) {
        output.finish_with(report.as_bytes())?;
    }
    stdout::print(&(checked.lines.join("\n") + "\n"))?;
    Ok(Verdict::clean_if(checked.is_right))
}
