//! The first two steps: which interfaces, and which disks or folders.

use std::path::PathBuf;

use page::safe;
use page::text::size;
use units::ByteSize;

use crate::answers::Answers;
use crate::asking::{Question, answer, yes_or_no};
use crate::ending::Ending;
use crate::machine::{Disk, Machine, Operator, Rights, Volume};
use crate::storage::{
    Choice, Target, choice, described, file_bytes, member_in, proposed_bytes, table,
    table_of_folders,
};
use crate::traffic::{self, Seen};

/// The interfaces that are to be recorded, and what was seen on all.
pub(crate) struct Chosen {
    pub(crate) interfaces: Vec<String>,
    pub(crate) seen: Vec<Seen>,
}

/// Watches the interfaces, and asks which of them.
pub(crate) fn interfaces(
    answers: &Answers,
    (machine, operator): (&dyn Machine, &mut dyn Operator),
    rights: &Rights,
) -> Result<Chosen, Ending> {
    let links = machine.links().map_err(Ending::Refused)?;
    for name in answers.interfaces.iter().filter(|name| *name != "any") {
        if !links.iter().any(|link| link.name == *name) {
            let all: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
            let why = format!("--interface {name}: there is none; there are {}", all.join(", "));
            return Err(Ending::Refused(why));
        }
    }
    let given = answers.interfaces.join(", ");
    if !given.is_empty() && !rights.may_capture && !answers.is_dry {
        let why = "needs root, or the capability CAP_NET_RAW";
        return Err(Ending::Refused(format!("--interface {given}: recording from it {why}")));
    }
    let before = machine.counters();
    let look = page::text::took(answers.look);
    operator.say(&format!("Watching the interfaces for {look} ..."));
    operator.rest(answers.look);
    let ns = u64::try_from(answers.look.as_nanos()).unwrap_or(u64::MAX);
    let seen = traffic::seen(links, (&before, &machine.counters()), ns);
    operator.say(&traffic::table(&seen));
    if !rights.may_capture && !answers.is_dry {
        operator.say("None is recorded: this user may not capture.");
        return Ok(Chosen { interfaces: Vec::new(), seen });
    }
    if !answers.interfaces.is_empty() {
        let interfaces = answers.interfaces.clone();
        operator.say(&format!("Recorded will be {}.", interfaces.join(", ")));
        return Ok(Chosen { interfaces, seen });
    }
    let proposed = traffic::proposal(&seen);
    let names: Vec<&str> = seen.iter().map(|one| one.link.name.as_str()).collect();
    let question = Question {
        what: "which interfaces are recorded",
        flag: "--interface",
        text: "Which interfaces are to be recorded (several with commas)?",
        proposal: (!proposed.is_empty()).then(|| proposed.join(",")),
    };
    let interfaces = answer((answers, operator), &question, |text| listed(text, &names))?;
    operator.say(&format!("Recorded will be {}.", interfaces.join(", ")));
    Ok(Chosen { interfaces, seen })
}

/// Names with commas between them, each of which there is.
fn listed(text: &str, names: &[&str]) -> Result<Vec<String>, String> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let chosen: Vec<String> = words.map(str::to_owned).collect();
    match chosen.iter().find(|name| !names.contains(&name.as_str())) {
        Some(absent) => Err(format!("{absent}: there is none; there are {}", names.join(", "))),
        None if chosen.is_empty() => Err("name at least one".to_owned()),
        None => Ok(chosen),
    }
}

/// What the volume is to lie on.
pub(crate) struct Storage {
    pub(crate) targets: Vec<Target>,
    /// A volume that has exactly these members.
    pub(crate) existing: Option<Volume>,
}

impl Storage {
    pub(crate) fn members(&self) -> Vec<PathBuf> {
        self.targets.iter().map(|target| target.member.clone()).collect()
    }
}

/// Shows disks and a folder, and asks which of them.
pub(crate) fn storage(
    answers: &Answers,
    (machine, operator): (&dyn Machine, &mut dyn Operator),
) -> Result<Storage, Ending> {
    let disks = machine.disks(!answers.is_dry);
    if disks.is_empty() {
        operator.say("This machine shows no disks.");
    } else {
        operator.say(&table(&disks, !answers.is_dry));
    }
    let filesystems = machine.filesystems();
    if !filesystems.is_empty() {
        operator.say(&table_of_folders(&filesystems));
    }
    let data = machine.places().data;
    let usual = machine.folder(&data).map_err(Ending::Refused)?;
    let place = safe::path(&usual.path);
    let (free, below) = (ByteSize(usual.free_bytes), &usual.filesystem);
    operator.say(&format!(
        "Instead of disks: a file in a folder, such as {place} ({free} free, {below})."
    ));
    let chosen = match (answers.members.is_empty(), answers.folders.is_empty()) {
        (false, false) => {
            return Err(Ending::Wrong(
                "--member and --folder: disks or files, not both".to_owned(),
            ));
        }
        (false, true) => Choice::Disks(answers.members.clone()),
        (true, false) => Choice::Folders(answers.folders.clone()),
        (true, true) => {
            let question = Question {
                what: "where the volume lies",
                flag: "--member DISK, or --folder and --size",
                text: "Which disks (several with commas), or which folder?",
                proposal: Some(data.to_string_lossy().into_owned()),
            };
            let read = |text: &str| match choice(text)? {
                Choice::Disks(paths) => {
                    usable(answers, machine, &paths).map(|_| Choice::Disks(paths))
                }
                folders @ Choice::Folders(_) => Ok(folders),
            };
            answer((answers, operator), &question, read)?
        }
    };
    match chosen {
        Choice::Disks(paths) => on_disks(answers, (machine, operator), &paths),
        Choice::Folders(paths) => in_folders(answers, (machine, operator), &paths),
    }
}

/// The disks, where the guard lets each of them through, or they are a volume already.
fn usable(
    answers: &Answers,
    machine: &dyn Machine,
    paths: &[PathBuf],
) -> Result<Vec<Disk>, String> {
    let is_volume = machine.volume(paths).is_some();
    let allowed = |path: &PathBuf| {
        let disk = machine.disk(path, !answers.is_dry)?;
        let Some(why) = disk.refusal.as_ref().filter(|_| !is_volume) else { return Ok(disk) };
        let (path, why) = (safe::path(path), safe::printable(why));
        let way = "choose another disk, or clear this one yourself";
        Err(format!("{path} may not be used: {why}; {way}"))
    };
    paths.iter().map(allowed).collect()
}

fn on_disks(
    answers: &Answers,
    (machine, operator): (&dyn Machine, &mut dyn Operator),
    paths: &[PathBuf],
) -> Result<Storage, Ending> {
    if answers.size_bytes.is_some() {
        return Err(Ending::Wrong("--size is for files; a disk is used whole".to_owned()));
    }
    let disks = usable(answers, machine, paths).map_err(Ending::Refused)?;
    for disk in &disks {
        operator.say(&described(disk));
    }
    let targets = disks.iter().map(Target::of_disk).collect();
    let existing = machine.volume(paths);
    if existing.is_none() && !answers.is_dry {
        let count = if paths.len() == 1 { "this disk" } else { "these disks" };
        let question = Question {
            what: "whether these disks may be overwritten",
            flag: "--yes",
            text: &format!("Nothing was found on {count}. Use {count} whole (yes or no)?"),
            proposal: None,
        };
        let is_agreed = answers.takes_proposals;
        if !is_agreed && !answer((answers, operator), &question, yes_or_no)? {
            return Err(Ending::Refused("nothing was changed".to_owned()));
        }
    }
    Ok(Storage { targets, existing })
}

fn in_folders(
    answers: &Answers,
    (machine, operator): (&dyn Machine, &mut dyn Operator),
    paths: &[PathBuf],
) -> Result<Storage, Ending> {
    let folders = paths.iter().map(|path| machine.folder(path));
    let folders = folders.collect::<Result<Vec<_>, _>>().map_err(Ending::Refused)?;
    let members: Vec<PathBuf> = folders.iter().map(|folder| member_in(&folder.path)).collect();
    let existing = machine.volume(&members);
    let free_bytes = folders.iter().map(|folder| folder.free_bytes).min().unwrap_or(0);
    let bytes = match (&existing, answers.size_bytes) {
        (Some(_), _) => 0,
        (None, Some(bytes)) => file_bytes(&bytes.to_string(), free_bytes)
            .map_err(|why| Ending::Refused(format!("--size {why}")))?,
        (None, None) => {
            let question = Question {
                what: "how large the volume's file is",
                flag: "--size",
                text: &format!("How large, of {} that are free?", ByteSize(free_bytes)),
                proposal: proposed_bytes(free_bytes).map(|bytes| ByteSize(bytes).to_string()),
            };
            answer((answers, operator), &question, |text| {
                file_bytes(&text.replace(' ', ""), free_bytes)
            })?
        }
    };
    if existing.is_none() {
        for member in &members {
            operator.say(&format!("A file {} of {}.", safe::path(member), size(bytes)));
        }
    }
    let targets = folders.iter().map(|folder| Target::of_folder(folder, bytes)).collect();
    Ok(Storage { targets, existing })
}
