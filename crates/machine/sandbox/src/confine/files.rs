//! What a process may still open, by Landlock.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

/// The rights that were tried out; what later kernels add stays as it is.
const TRIED: ABI = ABI::V7;

/// What is left, a list for each kind of use. A folder stands for all that is below it.
#[derive(Clone, Debug, Default)]
pub(super) struct Left<'a> {
    pub(super) read: &'a [PathBuf],
    pub(super) write: &'a [PathBuf],
    pub(super) create: &'a [PathBuf],
    pub(super) execute: &'a [PathBuf],
}

/// A ruleset that leaves this and nothing else: no other file, no TCP, no abstract socket and no
/// process outside. `None` where the kernel has no Landlock.
pub(super) fn ruleset(left: &Left<'_>) -> Result<Option<OwnedFd>, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(TRIED))?
        .handle_access(AccessNet::from_all(TRIED))?
        .scope(Scope::from_all(TRIED))?
        .create()?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    // Questions to a block device, and discards, are `ioctl`s.
    let write = read | AccessFs::WriteFile | AccessFs::IoctlDev;
    let create = read
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::MakeSock
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer;
    let execute = read | AccessFs::Execute;
    let lists =
        [(left.read, read), (left.write, write), (left.create, create), (left.execute, execute)];
    for (paths, access) in lists {
        for path in paths {
            ruleset = allow(ruleset, path, access)?;
        }
    }
    Ok(ruleset.into())
}

/// A path that is not there needs no rule: nothing is there to be opened.
fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(opened) = PathFd::new(path) else { return Ok(ruleset) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(TRIED) };
    ruleset.add_rule(PathBeneath::new(opened, access))
}
