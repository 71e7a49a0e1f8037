//! Holds: an extract and its manifest in a folder, which together may take so many bytes.
//!
//! A hold is two files, `hold-TIME-PROCESS.pcapng` and the same with `.json`, and `.json.sig` where
//! a key of OpenSSH signed it. It is whole or not
//! there: what does not fit is refused, and nothing of it is left.
//!
//! Called by the binary, for one hold and for a standing one, and by the server. Not here: which
//! packets are taken (`extract`), and the text of a manifest, which the caller makes.

mod rest;
mod standing;

use core::fmt;
use core::ops::ControlFlow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use completeness::Completeness;
use evidence::SIGNATURE_SUFFIX;
use extract::{ExtractReport, Options, Progress, Request};
use host::{Output, SystemClock};
use manifest::HoldSummary;
use packet_output::Target;
use units::Clock as _;
use units::number::to_u64;

pub use rest::Rest;
pub use standing::{Done, MakeManifestAside, Order, Standing};

/// Ends of the names of a hold's two files.
const PACKETS: &str = ".pcapng";
const MANIFEST: &str = ".pcapng.json";

/// What keeps packets from being put aside, or holds from being listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading the volume, or writing what was read.
    #[error(transparent)]
    Extract(#[from] extract::Error),
    /// The folder or a file in it.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// The manifest.
    #[error("cannot write the manifest")]
    Write(#[source] io::Error),
    /// The query of a standing hold.
    #[error("{0}")]
    Query(String),
    /// The thread of a standing hold.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

/// What became of packets that were to be put aside.
#[derive(Debug)]
pub enum Aside {
    /// They are held.
    Held {
        /// Where.
        path: PathBuf,
        /// How many.
        packets: u64,
        /// What is missing.
        completeness: Box<Completeness>,
        /// The text of the manifest beside them.
        manifest: String,
    },
    /// No packet matches, and an empty hold is not wanted.
    Nothing,
    /// Broken off; nothing is left.
    Stopped,
    /// They do not fit beside the other holds; nothing of them is left.
    Full {
        /// Bytes that the others take.
        used: u64,
    },
}

/// Makes the text of a manifest, with the names of its files.
pub type MakeManifest<'a> = dyn Fn(&ExtractReport, &[String]) -> String + 'a;

/// Where holds go, and how.
pub struct Room<'a> {
    /// The folder, which has to be there.
    pub folder: &'a Path,
    /// Bytes that all holds may take.
    pub size_max: u64,
    /// One without packets is kept, too.
    pub also_empty: bool,
    /// The text of its manifest.
    pub manifest: &'a MakeManifest<'a>,
    /// Makes the signature file beside it, where there is one.
    pub signature: &'a MakeSignature<'a>,
}

/// Makes the text of a signature file of a manifest; `None` for none.
pub type MakeSignature<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// No signature file.
pub fn no_signature(_: &str) -> Option<String> {
    None
}

impl fmt::Debug for Room<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, size_max, also_empty, .. } = self;
        write!(f, "Room {{ {folder:?}, size_max: {size_max}, also_empty: {also_empty} }}")
    }
}

/// An extract with its manifest into a folder of holds that may take so many bytes in all.
///
/// # Errors
/// When the volume cannot be read, or the folder not be written.
pub fn put_aside(
    room: &Room<'_>,
    options: &Options,
    request: &Request<'_>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Aside, Error> {
    let &Room { folder, size_max, also_empty, manifest, signature } = room;
    host::check_folder(folder)?;
    host::Directory::open(folder)?;
    let used = used_bytes(folder)?;
    let name = free_name(folder)?;
    let path = folder.join(format!("{name}{PACKETS}"));
    let mut output = Bounded {
        output: Output::create(&path, false)?,
        left: size_max.saturating_sub(used),
        is_full: false,
    };
    let target = Target::Pcapng(&mut output);
    let taken = extract::extract(options, request, target, &SystemClock, progress);
    let is_over = |report: &ExtractReport| !report.manifest.completeness.stopped;
    if taken.as_ref().is_ok_and(|report| report.packets == 0 && !also_empty && is_over(report)) {
        return Ok(Aside::Nothing);
    }
    let files = [format!("{name}{PACKETS}")];
    let text = taken.as_ref().ok().map(|report| manifest(report, &files));
    let signed = text.as_deref().and_then(signature);
    // The manifest counts, too, and its signature.
    let beside = [&text, &signed].into_iter().flatten().map(String::len).sum::<usize>();
    if output.is_full || to_u64(beside) > output.left {
        return Ok(Aside::Full { used });
    }
    let report = taken?;
    // Others may have been put aside meanwhile.
    let _alone = host::Locked::take(folder)?;
    let others = finished_bytes(folder)?;
    let own = size_max.saturating_sub(used) - output.left + to_u64(beside);
    if others.saturating_add(own) > size_max {
        return Ok(Aside::Full { used: others });
    }
    let completeness = report.manifest.completeness;
    if completeness.stopped && !also_empty {
        return Ok(Aside::Stopped);
    }
    let manifest = text.unwrap_or_default();
    let mut written = Output::create(&folder.join(format!("{name}{MANIFEST}")), false)?;
    written.write_all(manifest.as_bytes()).map_err(Error::Write)?;
    if let Some(signed) = signed {
        let path = folder.join(format!("{name}{MANIFEST}{SIGNATURE_SUFFIX}"));
        Output::create(&path, false)?.finish_with(signed.as_bytes())?;
    }
    output.output.finish()?;
    written.finish()?;
    let completeness = Box::new(completeness);
    Ok(Aside::Held { path, packets: report.packets, completeness, manifest })
}

/// Bytes that holds take, manifests included.
///
/// # Errors
/// When the folder cannot be listed.
pub fn used_bytes(folder: &Path) -> Result<u64, Error> {
    Ok(host::files_in(folder)?.iter().map(|(_, bytes)| bytes).sum())
}

/// The same without what is under way, which has hidden names where it has any.
fn finished_bytes(folder: &Path) -> Result<u64, Error> {
    let is_hidden = |path: &Path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    let files = host::files_in(folder)?;
    Ok(files.iter().filter(|(path, _)| !is_hidden(path)).map(|(_, bytes)| bytes).sum())
}

/// A manifest that cannot be read, and why.
pub type Unreadable = (PathBuf, String);

/// The holds of a folder, and what cannot be read of it, in words. Of packets only the length is
/// looked at.
///
/// # Errors
/// When the folder or a file cannot be read.
pub fn list(folder: &Path) -> Result<(Vec<HoldSummary>, Vec<Unreadable>), Error> {
    let (mut holds, mut unreadable) = (Vec::new(), Vec::new());
    let files: BTreeMap<PathBuf, u64> = host::files_in(folder)?.into_iter().collect();
    for path in files.keys() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".json") else { continue };
        let len = files.get(&path.with_file_name(stem)).copied();
        match manifest::parse_hold(stem, len, &host::read_text(path)?) {
            Ok(hold) => holds.push(hold),
            Err(error) => unreadable.push((path.clone(), error.to_string())),
        }
    }
    Ok((holds, unreadable))
}

/// Removes a hold by the name that [`list`] gives; false where there is none.
///
/// # Errors
/// When a file of it cannot be removed.
pub fn remove(folder: &Path, name: &str) -> Result<bool, Error> {
    let (holds, _) = list(folder)?;
    if !holds.iter().any(|hold| hold.file == name) {
        return Ok(false);
    }
    // While its manifest is there it is listed: packets that nobody knows of would not be found.
    let packets = folder.join(name);
    if host::target(&packets)? != host::Target::Absent {
        host::remove_file(&packets)?;
    }
    let manifest = folder.join(format!("{name}.json"));
    let signature = folder.join(format!("{name}.json{SIGNATURE_SUFFIX}"));
    if host::target(&signature)? != host::Target::Absent {
        host::remove_file(&signature)?;
    }
    host::remove_file(&manifest)?;
    Ok(true)
}

/// A name that no hold has: by the second, by this process, as others may end holds of the same
/// second, and by a number where that is not enough.
fn free_name(folder: &Path) -> Result<String, Error> {
    let now = SystemClock.realtime().to_string();
    let second: String = now.chars().take(19).filter(|letter| !"-:".contains(*letter)).collect();
    let files = host::files_in(folder)?;
    let is_free = |name: &String| {
        let path = folder.join(format!("{name}{PACKETS}"));
        files.iter().all(|(file, _)| *file != path)
    };
    let process = host::own_process();
    let names = (1_u64..).map(|number| match number {
        1 => format!("hold-{second}-{process}"),
        number => format!("hold-{second}-{process}-{number}"),
    });
    Ok(names.into_iter().find(is_free).expect("there are more numbers than files"))
}

/// A file that may take so many bytes and no more.
struct Bounded {
    output: Output,
    left: u64,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if len > self.left {
            self.is_full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let count = self.output.write(bytes)?;
        self.left -= u64::try_from(count).unwrap_or(len);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_removed_by_its_name_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let manifest =
            "{\"query\":\"port 53\",\"volume_id\":\"v\",\"complete\":true,\"outputs\":[]}";
        for name in ["a.pcapng", "b.pcapng", "other"] {
            std::fs::write(path(name), "x").unwrap();
        }
        std::fs::write(path("a.pcapng.json"), manifest).unwrap();
        std::fs::write(path("broken.pcapng.json"), "{").unwrap();
        let (holds, unreadable) = list(folder.path()).unwrap();
        assert_eq!((holds.len(), unreadable.len()), (1, 1));
        assert_eq!(holds[0].altered, Some(manifest::Altered::Length));
        for wrong in ["b.pcapng", "other", "../a.pcapng", "", "broken.pcapng", "a.pcapng.json"] {
            assert!(!remove(folder.path(), wrong).unwrap(), "{wrong}");
        }
        assert!(remove(folder.path(), "a.pcapng").unwrap());
        assert!(!path("a.pcapng").exists() && !path("a.pcapng.json").exists());
        assert!(path("b.pcapng").exists() && path("other").exists());
        assert!(!remove(folder.path(), "a.pcapng").unwrap());
    }
}
