//! A statement that is written beside what it is of, with its signature file and the question for
//! an authority of time stamps: the manifest of an extract, an anchor.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ::evidence::{
    Maker, SIGNATURE_SUFFIX, STAMP_REQUEST_SUFFIX, STAMP_SUFFIX, SigningKey, stamp_request,
};
use ::extract::ExtractReport;
use host::Output;

use crate::output_file;
use crate::progress::say_lines;

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

/// What is wanted besides the statement.
pub(crate) struct Wanted<'a> {
    pub(crate) key: Option<&'a SigningKey>,
    pub(crate) has_request: bool,
}

/// The files, begun: they appear when they are whole.
pub(crate) struct Statement {
    path: PathBuf,
    file: Output,
    signature: Option<Output>,
    request: Option<Output>,
}

impl Statement {
    /// Begins the files. What lies beside them from an earlier statement of this name, and would
    /// not fit this one, is refused like the file itself.
    pub(crate) fn begin(path: &Path, wanted: &Wanted<'_>, force: bool) -> anyhow::Result<Self> {
        let is_ssh = wanted.key.is_some_and(|key| key.ssh_signature("").is_some());
        let signature = is_ssh.then(|| with_suffix(path, SIGNATURE_SUFFIX));
        let request = wanted.has_request.then(|| with_suffix(path, STAMP_REQUEST_SUFFIX));
        let beside = [SIGNATURE_SUFFIX, STAMP_REQUEST_SUFFIX, STAMP_SUFFIX];
        for path in beside.map(|suffix| with_suffix(path, suffix)).iter().chain([&path.into()]) {
            output_file::check(path, force)?;
        }
        Ok(Self {
            path: path.to_path_buf(),
            file: Output::create(path, force)?,
            signature: output_file::create_named(signature, force)?,
            request: output_file::create_named(request, force)?,
        })
    }

    /// Writes them; gives the text of the statement.
    pub(crate) fn finish(
        self,
        wanted: &Wanted<'_>,
        make: &dyn Fn(Option<&SigningKey>) -> String,
    ) -> anyhow::Result<String> {
        let text = make(wanted.key);
        let signed = wanted.key.and_then(|key| key.ssh_signature(&text));
        if let Some((output, signed)) = self.signature.zip(signed) {
            output.finish_with(signed.as_bytes())?;
        }
        if let Some(request) = self.request {
            request.finish_with(&stamp_request(text.as_bytes()))?;
            let name = page::safe::path(&self.path);
            say_lines(&format!(
                "{name}{STAMP_REQUEST_SUFFIX} is for an authority of time stamps; keep its answer \
                 as {name}{STAMP_SUFFIX}:\n  curl -H 'Content-Type: application/timestamp-query' \
                 --data-binary @{name}{STAMP_REQUEST_SUFFIX} URL > {name}{STAMP_SUFFIX}"
            ));
        }
        // Files of before that belong to another text.
        for suffix in [SIGNATURE_SUFFIX, STAMP_REQUEST_SUFFIX, STAMP_SUFFIX] {
            let is_new = match suffix {
                SIGNATURE_SUFFIX => wanted.key.is_some_and(|key| key.ssh_signature("").is_some()),
                STAMP_REQUEST_SUFFIX => wanted.has_request,
                _ => false,
            };
            let path = with_suffix(&self.path, suffix);
            if !is_new && host::target(&path)? != host::Target::Absent {
                host::remove_file(&path)?;
            }
        }
        self.file.finish_with(text.as_bytes())?;
        Ok(text)
    }
}

/// A path with something behind its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    // A folder may be named with a slash at its end.
    let mut name = OsString::from(path.components().as_path());
    name.push(suffix);
    name.into()
}
