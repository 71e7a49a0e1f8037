//! What a recorder may still do once everything is open, and the test of that.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ::record::{Held, Options};
use clap::{Args, ValueEnum};
use sandbox::attempts::{Confined, Tried, play, self_test};
use sandbox::{Launcher, Program, RecorderRights};

use crate::failure::{Outcome, Verdict};
use crate::{stdout, workers};

/// The hidden verb that is a launcher.
const LAUNCH: &str = "launch";
/// The hidden verb of a process that tries something.
pub(crate) const ATTEMPT: &str = "attempt";

/// Test the confinement of this machine: try, from inside, what must not be possible.
///
/// Each attempt is made by a process of its own, confined as the real one is. Nothing of the
/// machine is changed, also where confinement fails.
#[derive(Debug, Args)]
pub(crate) struct SelfTestFlags {
    /// Which process: recorder, indexer, launcher, or `nobody` for a process that is not confined
    #[arg(long, value_name = "PROCESS")]
    of: Of,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Of {
    Recorder,
    Indexer,
    Launcher,
    Nobody,
}

#[derive(Debug, Args)]
pub(crate) struct AttemptFlags {
    words: Vec<OsString>,
}

/// Starts what starts the children of a recording, before anything is opened.
pub(crate) fn launcher(options: &Options) -> Result<Launcher, sandbox::Error> {
    let command = options.on_member_change.clone().map(|command| Program::Shell(command.into()));
    Launcher::start(LAUNCH, command.into_iter().chain([workers::program()]).collect())
}

/// What a recording may open from now on.
pub(crate) fn rights(held: &Held, further: &[PathBuf], socket: Option<&Path>) -> RecorderRights {
    let folder = |path: &Path| {
        let folder = path.parent().unwrap_or(Path::new(""));
        if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_path_buf() }
    };
    // Others are found beside the members, and read to see whether they are some.
    let beside: Vec<PathBuf> = held.members.iter().map(|path| folder(path)).collect();
    let mut rights = RecorderRights { read: held.inputs.clone(), ..RecorderRights::default() };
    // Who gives a right to a path looks it up: where that hangs, the folder has to do.
    let real = held.members.iter().filter_map(|path| {
        let own = path.clone();
        Some((path, device::patiently(path, move || own.canonicalize().ok()).ok()?))
    });
    let (answering, real): (Vec<_>, Vec<_>) = real.unzip();
    rights.write.extend(answering.into_iter().cloned());
    if held.may_return {
        // A member that comes back is another file, or another device of the same name.
        rights.write.extend(real.into_iter().flatten().map(|path| folder(&path)));
        rights.write.extend(beside);
    } else {
        rights.read.extend(beside);
    }
    rights.create.extend(held.index_dir.clone());
    rights.create.extend(further.iter().cloned());
    rights.create.extend(socket.map(folder));
    rights
}

pub(crate) fn run(flags: &SelfTestFlags) -> Outcome {
    let who = match flags.of {
        Of::Recorder => Confined::Recorder,
        Of::Indexer => Confined::Indexer,
        Of::Launcher => Confined::Launcher,
        Of::Nobody => Confined::Nobody,
    };
    let (tried, notes) = self_test(who, ATTEMPT)?;
    stdout::print(&table(&tried, &notes))?;
    Ok(Verdict::clean_if(tried.iter().all(|tried| tried.is_right)))
}

pub(crate) fn attempt(flags: &AttemptFlags) -> Outcome {
    play(&flags.words)?;
    Ok(Verdict::Clean)
}

fn table(tried: &[Tried], notes: &[String]) -> String {
    let width = tried.iter().map(|tried| tried.name.len()).max().unwrap_or(0);
    let line = |tried: &Tried| {
        let right = if tried.is_right { "right" } else { "WRONG" };
        let must = if tried.is_forbidden { "must not" } else { "must" };
        format!("{right}  {must:8}  {:width$}  {}\n", tried.name, tried.outcome)
    };
    let lines = tried.iter().map(line).chain(notes.iter().map(|note| format!("note: {note}\n")));
    let (right, all) = (tried.iter().filter(|tried| tried.is_right).count(), tried.len());
    lines.chain([format!("{right} of {all} are as they must be\n")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(may_return: bool) -> Held {
        Held {
            members: vec!["/data/a/member".into(), "spool".into()],
            may_return,
            index_dir: Some("/cache/1".into()),
            inputs: Vec::new(),
        }
    }

    #[test]
    fn folders_of_members_are_writable_only_where_one_may_come_back() {
        let without = rights(&held(false), &[], None);
        assert_eq!(without.write, held(false).members);
        assert_eq!(without.read, [PathBuf::from("/data/a"), PathBuf::from(".")]);
        let with = rights(&held(true), &["/holds".into()], Some(Path::new("/run/w/id")));
        assert!(with.write.contains(&"/data/a".into()) && with.write.contains(&".".into()));
        assert_eq!(with.create, ["/cache/1", "/holds", "/run/w"].map(PathBuf::from));
    }
}
