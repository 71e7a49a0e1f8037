//! The process that takes packets and writes them, once everything is open.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, geteuid, set_dumpable_behavior, setrlimit,
};
use rustix::thread::CapabilitySet;

use super::Notes;
use super::capabilities::Capability;
use super::files::{self, Left};
use super::filter::{self, Who};
use super::threads::give_up;

/// What a recorder reads of the system whatever it records: counters of interfaces and disks, its
/// own threads, the memory that is free.
pub(super) const READ: [&str; 2] = ["/proc", "/sys"];

/// What a recorder may still open.
#[derive(Clone, Debug, Default)]
pub struct RecorderRights {
    /// Files and folders that it reads.
    pub read: Vec<PathBuf>,
    /// Files and devices that it writes, and folders in which such may turn up.
    pub write: Vec<PathBuf>,
    /// Folders in which it makes, replaces and removes files.
    pub create: Vec<PathBuf>,
}

/// Confines this process, with all of its threads, to recording. To be called once, when everything
/// is open.
///
/// What is left: the system calls of recording, the paths that are named, and of root's
/// capabilities those to lock memory and, where files belong to others, to open them.
pub fn confine_recorder(rights: &RecorderRights) -> Notes {
    let mut notes = Notes::new();
    prevent_dumps(&mut notes);
    let read: Vec<_> = READ.iter().map(PathBuf::from).chain(rights.read.iter().cloned()).collect();
    let left =
        Left { read: &read, write: &rights.write, create: &rights.create, ..Left::default() };
    let ruleset = files::ruleset(&left).ok().flatten();
    let given_up = give_up(kept(rights), ruleset.as_ref());
    given_up.note(ruleset.is_some(), "recorder", &mut notes);
    if let Err(error) = filter::install(Who::Recorder) {
        notes.push(format!("the recorder may make every system call: {error}"));
    }
    notes
}

/// No core file has packets in it, only root looks into this process, and what it makes is
/// its user's alone. Before anything is opened.
pub fn prevent_dumps(notes: &mut Notes) {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let is_limited = setrlimit(Resource::Core, none).is_ok();
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() && !is_limited {
        notes.push("a crash of the recorder may leave a core file with packets".to_owned());
    }
}

/// Memory for columns is locked also when it comes later; and files of others, which only a
/// capability opened, have to be opened again when a member returns or a reader looks.
fn kept(rights: &RecorderRights) -> CapabilitySet {
    let paths = rights.read.iter().chain(&rights.write).chain(&rights.create);
    let is_foreign = paths.into_iter().any(|path| !belongs_to_us(path));
    let files = if is_foreign { Capability::OpenAnyFile.set() } else { CapabilitySet::empty() };
    Capability::LockMemory.set() | files
}

/// What is not there is judged by the folder that it would be in.
fn belongs_to_us(path: &Path) -> bool {
    let found = path.ancestors().find_map(|path| fs::metadata(path).ok());
    found.is_none_or(|found| found.uid() == geteuid().as_raw())
}
