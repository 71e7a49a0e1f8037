//! Where an extract goes, and the manifest beside it.

use std::path::{Path, PathBuf};

use ::evidence::SigningKey;
use attest::{Statement, Wanted, with_suffix};
use clap::Args;

use crate::evidence::signing_key;
use crate::failure::{Usage, of_attest};
use crate::output_file;
use crate::progress::say_lines;

/// What is written besides packets.
#[derive(Debug, Args)]
pub(crate) struct SavingFlags {
    /// Write the manifest to this file instead of FILE.json
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Sign the manifest with this key, which keygen or ssh-keygen -t ed25519 has made; with one of
    /// OpenSSH the signature also goes into MANIFEST.sig, for ssh-keygen -Y verify
    #[arg(long, value_name = "KEYFILE")]
    sign: Option<PathBuf>,
    /// Write MANIFEST.tsq, the question for an authority of time stamps (RFC 3161)
    #[arg(long)]
    timestamp_request: bool,
    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
}

/// Where an extract and its manifest go.
pub(crate) struct Places<'a> {
    /// `None` is standard output.
    pub(crate) file: Option<&'a Path>,
    pub(crate) manifest: Option<PathBuf>,
    key: Option<SigningKey>,
    has_request: bool,
    pub(crate) force: bool,
}

impl<'a> Places<'a> {
    /// Refuses what could not be written in the end.
    pub(crate) fn new(
        flags: &SavingFlags,
        file: Option<&'a Path>,
        is_folder: bool,
    ) -> anyhow::Result<Self> {
        let manifest = flags.manifest.clone();
        let manifest = manifest.or_else(|| file.and_then(manifest_beside));
        let key = flags.sign.as_deref().map(signing_key).transpose()?;
        let (has_request, force) = (flags.timestamp_request, flags.force);
        if manifest.is_none() && (key.is_some() || has_request) {
            let text =
                "--sign and --timestamp-request are about a manifest; name one with --manifest";
            return Err(Usage(text.to_owned()).into());
        }
        if let Some(file) = file.filter(|_| !is_folder) {
            output_file::check(file, force)?;
        }
        Ok(Self { file, manifest, key, has_request, force })
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted { key: self.key.as_ref(), has_request: self.has_request }
    }

    /// The manifest's files, if there are to be any.
    pub(crate) fn begin(&self) -> anyhow::Result<Option<Statement>> {
        let begin = |path| Statement::begin(path, &self.wanted(), self.force).map_err(of_attest);
        self.manifest.as_deref().map(begin).transpose()
    }

    /// Writes them; says what there is to say.
    pub(crate) fn finish(
        &self,
        statement: Statement,
        make: &dyn Fn(Option<&SigningKey>) -> String,
    ) -> anyhow::Result<()> {
        if let (_, Some(note)) = statement.finish(&self.wanted(), make).map_err(of_attest)? {
            say_lines(&note);
        }
        Ok(())
    }

    /// Names of the files, as a manifest has them.
    pub(crate) fn names(&self) -> Vec<String> {
        self.file.map(name_of).into_iter().collect()
    }
}

/// Where a manifest goes that no flag names: nowhere beside a device.
fn manifest_beside(file: &Path) -> Option<PathBuf> {
    if host::is_device(file) {
        let file = page::safe::path(file);
        say_lines(&format!("no manifest is written: {file} is a device; --manifest names a place"));
        return None;
    }
    Some(with_suffix(file, ".json"))
}

pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
