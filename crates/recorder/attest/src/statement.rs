//! A statement that is written beside what it is of, with its signature file and the question for
//! an authority of time stamps: the manifest of an extract, an anchor.

use std::path::{Path, PathBuf};

use evidence::{SIGNATURE_SUFFIX, STAMP_REQUEST_SUFFIX, STAMP_SUFFIX, SigningKey, stamp_request};
use host::Output;

use crate::Error;
use crate::files::{check_absent, with_suffix};

/// What is wanted besides the statement.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// A key that signs.
    pub key: Option<&'a SigningKey>,
    /// The question for an authority of time stamps.
    pub has_request: bool,
}

/// The files, begun: they appear when they are whole.
#[derive(Debug)]
pub struct Statement {
    path: PathBuf,
    file: Output,
    signature: Option<Output>,
    request: Option<Output>,
}

impl Statement {
    /// Begins the files. What lies beside them from an earlier statement of this name, and would
    /// not fit this one, is refused like the file itself.
    ///
    /// # Errors
    /// When a file exists and `force` is not given, or one cannot be made.
    pub fn begin(path: &Path, wanted: &Wanted<'_>, force: bool) -> Result<Self, Error> {
        let is_ssh = wanted.key.is_some_and(|key| key.ssh_signature("").is_some());
        let signature = is_ssh.then(|| with_suffix(path, SIGNATURE_SUFFIX));
        let request = wanted.has_request.then(|| with_suffix(path, STAMP_REQUEST_SUFFIX));
        let beside = [SIGNATURE_SUFFIX, STAMP_REQUEST_SUFFIX, STAMP_SUFFIX];
        for path in beside.map(|suffix| with_suffix(path, suffix)).iter().chain([&path.into()]) {
            check_absent(path, force)?;
        }
        for path in [Some(path), signature.as_deref(), request.as_deref()].into_iter().flatten() {
            host::claim_output(path)?;
        }
        Ok(Self {
            path: path.to_path_buf(),
            file: Output::create(path, force)?,
            signature: signature.map(|path| Output::create(&path, force)).transpose()?,
            request: request.map(|path| Output::create(&path, force)).transpose()?,
        })
    }

    /// The same of what nobody may replace.
    ///
    /// # Errors
    /// As of [`Self::begin`].
    pub fn begin_kept(path: &Path, wanted: &Wanted<'_>) -> Result<Self, Error> {
        Self::begin(path, wanted, false).map_err(|error| match error {
            Error::Exists { path } => Error::Kept { path },
            other => other,
        })
    }

    /// Takes space for so long a text, for what must not be lost once it has happened.
    ///
    /// # Errors
    /// When there is not so much.
    pub fn reserve(&self, bytes: u64) -> Result<(), Error> {
        let files = [Some(&self.file), self.signature.as_ref(), self.request.as_ref()];
        files.into_iter().flatten().try_for_each(|file| Ok(file.reserve(bytes)?))
    }

    /// Writes them; gives the text of the statement, and what is to be done with the question for
    /// an authority of time stamps.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn finish(
        self,
        wanted: &Wanted<'_>,
        make: &dyn Fn(Option<&SigningKey>) -> String,
    ) -> Result<(String, Option<String>), Error> {
        let text = make(wanted.key);
        let signed = wanted.key.and_then(|key| key.ssh_signature(&text));
        let is_signed = signed.is_some();
        if let Some((output, signed)) = self.signature.zip(signed) {
            output.finish_with(signed.as_bytes())?;
        }
        let mut note = None;
        if let Some(request) = self.request {
            request.finish_with(&stamp_request(text.as_bytes()))?;
            let name = page::safe::path(&self.path);
            note = Some(format!(
                "{name}{STAMP_REQUEST_SUFFIX} is for an authority of time stamps; keep its answer \
                 as {name}{STAMP_SUFFIX}:\n  curl -H 'Content-Type: application/timestamp-query' \
                 --data-binary @{name}{STAMP_REQUEST_SUFFIX} URL > {name}{STAMP_SUFFIX}"
            ));
        }
        // Files of before belong to another text.
        for (suffix, is_new) in [
            (SIGNATURE_SUFFIX, is_signed),
            (STAMP_REQUEST_SUFFIX, wanted.has_request),
            (STAMP_SUFFIX, false),
        ] {
            let path = with_suffix(&self.path, suffix);
            if !is_new && host::target(&path)? != host::Target::Absent {
                host::remove_file(&path)?;
            }
        }
        self.file.finish_with(text.as_bytes())?;
        Ok((text, note))
    }
}
