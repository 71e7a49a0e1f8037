//! What a recording opens again while it goes on.

use std::path::{Path, PathBuf};

use format::superblock::Superblock;

use crate::options::{Input, Options};
use crate::settled::Held;

/// As the options and the volume name it.
pub(crate) fn held(options: &Options, superblock: &Superblock) -> Held {
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
