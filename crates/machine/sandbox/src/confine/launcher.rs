//! The process that starts the indexers.
//!
//! What it gives up its children give up with it, before their first instruction and for good: so
//! it keeps what they need, also until they have confined themselves, and what it takes to start
//! them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::CapabilitySet;

use super::capabilities::Capability;
use super::files::{self, Left};
use super::filter::{self, Who};
use super::indexer::{ENDED_FIRST, OOM_SCORE};
use super::threads::give_up;
use super::{Notes, recorder};

const MYSELF: &str = "/proc/self/exe";
const NOTHING: &str = "/dev/null";
/// Where the loader finds libraries: `ld.so(8)`.
const LOADER: [&str; 2] = ["/etc/ld.so.cache", "/etc/ld.so.preload"];

/// Confines a launcher of nothing but our own programs to starting these and ending them.
///
/// What is left: the executable that runs and the folders of its libraries, to be read and
/// executed; of root's capabilities those that an indexer needs to become `nobody`, and the
/// launcher to end it then; the system calls of both. To be called once, on the only thread.
pub(crate) fn confine_launcher() -> Notes {
    let mut notes = Notes::new();
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if setrlimit(Resource::Core, none).is_err() {
        notes.push("an indexer that crashes early may leave a core file".to_owned());
    }
    hide_launcher();
    let executable: Vec<PathBuf> =
        library_folders().into_iter().chain([PathBuf::from(MYSELF)]).collect();
    let read: Vec<PathBuf> = recorder::READ.iter().chain(&LOADER).map(PathBuf::from).collect();
    let write = [PathBuf::from(NOTHING)];
    let left = Left { read: &read, write: &write, execute: &executable, ..Left::default() };
    let ruleset = files::ruleset(&left).ok().flatten();
    let kept = [Capability::Kill, Capability::ChangeUser, Capability::GiveUp];
    let kept = kept.into_iter().fold(CapabilitySet::empty(), |all, one| all | one.set());
    let given_up = give_up(kept, ruleset.as_ref());
    given_up.note(ruleset.is_some(), "launcher", &mut notes);
    if let Err(error) = filter::install(Who::Launcher) {
        notes.push(format!("the launcher may make every system call: {error}"));
    }
    notes
}

/// Only root looks into this process, and it leaves no core file. A program that it starts
/// does not inherit that, so that a launcher of a command can do it, too.
pub(crate) fn hide_launcher() {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).unwrap_or_default();
}

/// Folders of the libraries that this process has, as its children will. Folders, because an
/// update of the system replaces the files.
fn library_folders() -> Vec<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let own = fs::read_link(MYSELF).unwrap_or_default();
    // Range, rights, offset, device, inode, and the path behind spaces: `proc_pid_maps(5)`.
    let code =
        maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|it| it.contains('x')));
    let paths = code.filter_map(|line| line.find('/').and_then(|at| line.get(at..)));
    let libraries = paths.map(Path::new).filter(|path| *path != own);
    let mut folders: Vec<PathBuf> =
        libraries.filter_map(|path| path.parent().map(Path::to_path_buf)).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Has children begin as those that end first when memory is short. They inherit it: a launcher
/// that is confined opens no file of theirs, and they none that they could write.
#[derive(Debug)]
pub(crate) struct EndedFirst {
    score: File,
    own: String,
}

impl EndedFirst {
    /// Opens what says so, before this process is confined.
    pub(crate) fn new() -> io::Result<Self> {
        let own = fs::read_to_string(OOM_SCORE)?;
        let score = open(OOM_SCORE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { score: score.into(), own })
    }

    /// What is started meanwhile is such a child.
    pub(crate) fn during<T>(&self, start: impl FnOnce() -> T) -> T {
        // Where that is refused the child says so.
        (&self.score).write_all(ENDED_FIRST.as_bytes()).unwrap_or_default();
        let started = start();
        (&self.score).write_all(self.own.trim().as_bytes()).unwrap_or_default();
        started
    }
}
