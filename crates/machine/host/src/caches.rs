//! The caches of volumes: a folder for each below the default cache directory, and a note in it
//! that says where its volume was.
//!
//! A cache outlives a volume that is deleted or made anew. A program that opens a volume at a place
//! where its cache does not know it notes the place, and drops some of the caches that belong to no
//! volume any more. A cache can be made again, but what is no cache of ours cannot: nothing is
//! removed but folders that are called like a volume's id, belong to this user, cannot be written
//! to by others, and hold nothing but files that caches have. Links are never followed.

use core::time::Duration;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread;

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat, unlinkat,
};
use rustix::process::geteuid;
use units::{NANOS_PER_SECOND, Timestamp};

use crate::Error;
use crate::directory::{Directory, default_cache_directory};
use crate::draft::draft_file;
use crate::spared::keep_folder;

/// Its name begins with a dot: it is no file of the cache itself.
const NOTE: &str = ".volume";
const HEADING: &[u8] = b"wirespool cache 1\n";
/// Behind the heading: rows of sessions whose packets are gone lie nowhere else.
const KEPT: &[u8] = b"keep\n";
/// More than all paths that are noted can have.
const NOTE_BYTES_MAX: u64 = 64 << 10;
/// Places that are noted of a volume: the last ones.
const PATHS_MAX: usize = 8;

/// Caches that are dropped at an opening.
const DROPPED_MAX: usize = 16;
/// Caches that are looked at for it.
const FOLDERS_MAX: usize = 4096;
/// A cache of more files is left alone.
const FILES_MAX: usize = 1 << 20;
/// A cache of a volume that is gone is kept so long: the volume may only be away.
const UNUSED_NS: i64 = 30 * 24 * 3600 * NANOS_PER_SECOND;
/// An opening waits so long for the caches of others to be looked at: where their volumes were may
/// be a file system that hangs.
const PATIENCE: Duration = Duration::from_secs(1);

/// A volume that is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CachedVolume<'a> {
    /// Its id, as its cache is called.
    pub id: &'a str,
    /// Where it was opened.
    pub path: &'a Path,
    /// Its cache keeps rows of sessions whose packets are overwritten.
    pub keeps_sessions: bool,
}

/// Where the index files of a volume lie: in the folder that was given, or in its cache, which is
/// called like its id.
pub fn index_folder(given: Option<&Path>, id: &str) -> Result<PathBuf, Error> {
    let Some(given) = given else { return Ok(default_cache_directory()?.join(id)) };
    keep_folder(given);
    Ok(given.to_owned())
}

/// Opens that folder, which is made if need be. Of a cache it notes where its volume is, and looks
/// after the others there.
pub fn open_index(
    given: Option<&Path>,
    volume: &CachedVolume<'_>,
    now: Timestamp,
) -> Result<Directory, Error> {
    let folder = index_folder(given, volume.id)?;
    let opened = Directory::open(&folder)?;
    if let (None, Some(root)) = (given, folder.parent()) {
        note_volume(root, volume, now);
    }
    Ok(opened)
}

/// Notes in the cache of a volume, which lies in `root`, where the volume is. If that is news, it
/// drops some of the other caches there: those of volumes that were at the same place before, and
/// those unchanged for 30 days whose volumes are gone. What cannot be done waits, and nobody waits
/// for a disk that does not answer.
fn note_volume(root: &Path, volume: &CachedVolume<'_>, now: Timestamp) {
    let (root, id, path) = (root.to_owned(), volume.id.to_owned(), volume.path.to_owned());
    let keeps_sessions = volume.keeps_sessions;
    let (done, end) = sync_channel(1);
    let noting = thread::Builder::new().name("caches".to_owned()).spawn(move || {
        note(&root, &CachedVolume { id: &id, path: &path, keeps_sessions }, now);
        // No caller waits any more where it took too long.
        done.send(()).unwrap_or_default();
    });
    if noting.is_ok() {
        end.recv_timeout(PATIENCE).unwrap_or_default();
    }
}

fn note(root: &Path, volume: &CachedVolume<'_>, now: Timestamp) {
    let Ok(path) = fs::canonicalize(volume.path) else { return };
    let Some(parent) = open_own(CWD, root) else { return };
    let Some(folder) = open_own(&parent, Path::new(volume.id)) else { return };
    let known = Note::read(&folder);
    let note = known.clone().unwrap_or_default().with(path.clone(), volume.keeps_sessions);
    if known.as_ref() != Some(&note) && note.write(&root.join(volume.id)).is_ok() {
        sweep(&parent, (volume.id, &path), now);
    }
}

/// Drops caches that belong to no volume; the volume of this id is now at this path. Gives their
/// number.
fn sweep(parent: &OwnedFd, (id, path): (&str, &Path), now: Timestamp) -> usize {
    let mut names = names(parent, FOLDERS_MAX).unwrap_or_default();
    names.retain(|name| is_id(name) && name != id);
    let mut dropped = 0;
    for name in names {
        let Some(folder) = open_own(parent, Path::new(&name)) else { continue };
        if is_abandoned(&folder, path, now) && drop_cache(parent, &name, &folder).is_some() {
            dropped += 1;
        }
        if dropped == DROPPED_MAX {
            break;
        }
    }
    dropped
}

/// Whether the volume of a cache is replaced by that at this path, or gone for long.
fn is_abandoned(folder: &OwnedFd, path: &Path, now: Timestamp) -> bool {
    let Some(note) = Note::read(folder).filter(|note| !note.is_kept) else { return false };
    if note.paths.is_empty() {
        return false;
    }
    let was_here = note.paths.iter().any(|noted| noted == path);
    let is_old = || fstat(folder).is_ok_and(|found| now.since(changed(&found)) > UNUSED_NS);
    let is_elsewhere = || note.paths.iter().any(|noted| noted != path && !is_gone(noted));
    (was_here || is_old()) && !is_elsewhere()
}

fn changed(found: &Stat) -> Timestamp {
    Timestamp(found.st_mtime.saturating_mul(NANOS_PER_SECOND))
}

/// Nothing is there; where that is not known, something may be.
fn is_gone(path: &Path) -> bool {
    let found = fs::symlink_metadata(path);
    found.is_err_and(|it| matches!(it.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// Removes a cache, its note last; `None` where that fails, or it holds what is none of ours.
fn drop_cache(parent: &OwnedFd, name: &str, folder: &OwnedFd) -> Option<()> {
    let files = names(folder, FILES_MAX)?;
    if files.iter().any(|file| !is_of_cache(file) || !is_own_file(folder, file)) {
        return None;
    }
    for file in files.iter().filter(|file| *file != NOTE) {
        unlinkat(folder, file.as_str(), AtFlags::empty()).ok()?;
    }
    unlinkat(folder, NOTE, AtFlags::empty()).ok()?;
    unlinkat(parent, name, AtFlags::REMOVEDIR).ok()
}

/// A name that files of caches have: an index, a filter over some, times that were
/// forgotten, the note, a draft of one.
fn is_of_cache(name: &str) -> bool {
    let stem = [".parquet", ".groups", ".forgotten"];
    let stem = stem.iter().find_map(|ending| name.strip_suffix(ending));
    let is_number =
        |byte: u8| byte == b'-' || byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name == NOTE
        || name.strip_prefix('.').is_some_and(|name| name.strip_suffix(".draft").is_some())
        || stem.is_some_and(|stem| !stem.is_empty() && stem.bytes().all(is_number))
}

fn is_own_file(folder: &OwnedFd, name: &str) -> bool {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| is_own(&found, FileType::RegularFile))
}

/// Of this kind, and of this user.
fn is_own(found: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(found.st_mode) == kind && found.st_uid == geteuid().as_raw()
}

/// A volume's id: 32 hex digits.
fn is_id(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Names of what is in a folder, sorted; `None` where some are no text, or it cannot be listed, or
/// has more than `count_max`.
fn names(folder: &OwnedFd, count_max: usize) -> Option<Vec<String>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let entries = openat(folder, ".", flags, Mode::empty()).and_then(Dir::new).ok()?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.ok()?.file_name().to_str().ok()?.to_owned();
        if matches!(name.as_str(), "." | "..") {
            continue;
        }
        if names.len() == count_max {
            return None;
        }
        names.push(name);
    }
    names.sort_unstable();
    Some(names)
}

/// A folder of this user that others cannot write to, and no link to one.
fn open_own(parent: impl rustix::fd::AsFd, name: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(parent, name, flags, Mode::empty()).ok()?;
    let found = fstat(&folder).ok()?;
    (is_own(&found, FileType::Directory) && found.st_mode & 0o022 == 0).then_some(folder)
}

/// What a cache says of its volume.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Note {
    is_kept: bool,
    /// Where the volume was, last the last.
    paths: Vec<PathBuf>,
}

impl Note {
    /// The same, seen at this place.
    fn with(mut self, path: PathBuf, is_kept: bool) -> Self {
        self.is_kept |= is_kept;
        self.paths.retain(|known| *known != path);
        self.paths.push(path);
        let first = self.paths.len().saturating_sub(PATHS_MAX);
        self.paths.drain(..first);
        self
    }

    /// Of a folder; `None` where there is none that we have written.
    fn read(folder: &OwnedFd) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(folder, NOTE, flags, Mode::empty()).ok()?;
        let found = fstat(&file).ok()?;
        if !is_own(&found, FileType::RegularFile) {
            return None;
        }
        let mut bytes = Vec::new();
        fs::File::from(file).take(NOTE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Self::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(HEADING)?;
        let (is_kept, paths) = rest.strip_prefix(KEPT).map_or((false, rest), |rest| (true, rest));
        // No path has a zero in it; each ends with one.
        let paths = paths.strip_suffix(&[0]).map_or_else(Vec::new, |paths| {
            paths.split(|byte| *byte == 0).map(|path| OsStr::from_bytes(path).into()).collect()
        });
        Some(Self { is_kept, paths })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [HEADING, if self.is_kept { KEPT } else { &[] }].concat();
        for path in &self.paths {
            bytes.extend([path.as_os_str().as_bytes(), &[0]].concat());
        }
        bytes
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        let path = folder.join(NOTE);
        let (draft, mut file) = draft_file(&path)?;
        let written = file.write_all(&self.to_bytes()).and_then(|()| fs::rename(&draft, &path));
        written.inspect_err(|_| fs::remove_file(&draft).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
