//! The moment when a recording has opened everything, and what it may open later.

use core::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use format::superblock::Superblock;

use crate::job::{Input, Options};

/// For members that come back, or spares: more are not opened at once.
const RINGS: usize = 4;

/// What a recording opens again while it goes on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// The members of the volume and its spares, where they are or were.
    pub members: Vec<PathBuf>,
    /// One that is away may come back, or a spare be taken: then a member is opened anew.
    pub may_return: bool,
    /// Where index files are stored; `None` where they cannot be.
    pub index_dir: Option<PathBuf>,
    /// Files that packets are still read from.
    pub inputs: Vec<PathBuf>,
}

/// Is called once, when everything is open and no packet was taken; what it says is shown to the
/// user.
#[derive(Clone, Default)]
pub struct Settled(Option<Arc<Call>>);

type Call = dyn Fn(&Held) -> Vec<String> + Send + Sync;

impl Settled {
    /// Calls `call` once everything is open.
    pub fn new(call: impl Fn(&Held) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(call)))
    }

    pub(crate) fn call(&self, options: &Options, superblock: &Superblock) -> Vec<String> {
        let Some(call) = &self.0 else { return Vec::new() };
        let held = held(options, superblock);
        if held.may_return {
            device::reserve_rings(RINGS);
        }
        call(&held)
    }
}

impl fmt::Debug for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Settled").field(&self.0.is_some()).finish()
    }
}

fn held(options: &Options, superblock: &Superblock) -> Held {
    let beside = options.volume.parent().unwrap_or(Path::new(""));
    let recorded = superblock.members.iter().map(|entry| &entry.path);
    let recorded = recorded.chain(superblock.spares.iter().map(|spare| &spare.path));
    let recorded: Vec<&Path> = recorded.filter(|path| !path.is_empty()).map(Path::new).collect();
    // A volume that was moved is found beside its first member.
    let moved = recorded.iter().filter_map(|path| Some(beside.join(path.file_name()?)));
    let given = [&options.volume].into_iter().chain(&options.members).cloned();
    let members = given.chain(moved).chain(recorded.iter().map(|path| path.to_path_buf()));
    // It must be there to be named.
    let opened = |folder: &PathBuf| host::Directory::open(folder).is_ok();
    let id = superblock.volume_id.to_string();
    let index_dir = host::index_folder(options.index_dir.as_deref(), &id).ok().filter(opened);
    let inputs = match &options.input {
        Input::Interfaces(_) => Vec::new(),
        Input::Files(paths) => paths.clone(),
    };
    let may_return = superblock.geometry.parity_columns > 0 || !superblock.spares.is_empty();
    Held { members: members.collect(), may_return, index_dir, inputs }
}
