//! Qualification, geometry and volume.

use std::path::{Path, PathBuf};

use ::qualify::{Choice, Given, Plan, Provided, parse_qualification};
use blockdev::DiskKind;
use page::safe;
use page::text::duration;
use units::ByteSize;

use crate::advice::advice;
use crate::answers::{Answers, Measure};
use crate::asking::{Question, answer};
use crate::choose::Storage;
use crate::ending::Ending;
use crate::geometry::{Members, Shape, proposed_parity, proposed_spares, shape};
use crate::machine::{Machine, Operator, Volume, Words};
use crate::storage::Target;

/// A quick look at a folder makes a file of at most so many bytes.
const QUICK_BYTES: u64 = 8 << 30;

/// A line of words for a shell, and for the operator to see.
pub(crate) fn shown(words: &Words) -> String {
    let word = |word: &String| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,%+".contains(&byte);
        let is_safe = !word.is_empty() && word.bytes().all(is_plain);
        if is_safe { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    format!("wirespool {}", words.iter().map(word).collect::<Vec<_>>().join(" "))
}

/// Runs a verb, or says what would be run.
pub(crate) fn run(
    answers: &Answers,
    operator: &mut dyn Operator,
    words: &Words,
) -> Result<(), Ending> {
    if answers.is_dry {
        operator.say(&format!("would run: {}", shown(words)));
        return Ok(());
    }
    operator.say(&format!("running: {}", shown(words)));
    let ran = operator.run(words);
    if operator.is_stopped() {
        return Err(Ending::Interrupted);
    }
    ran.map_err(Ending::Refused)
}

/// Measures each target, and says where the reports are.
pub(crate) fn qualification(
    answers: &Answers,
    (machine, operator): (&dyn Machine, &mut dyn Operator),
    (storage, folder): (&Storage, &Path),
) -> Result<Vec<PathBuf>, Ending> {
    let measure = if let Some(measure) = answers.measure {
        measure
    } else {
        operator.say(&choices(&storage.targets));
        let question = Question {
            what: "how much is measured",
            flag: "--qualify quick|full|none",
            text: "Measure how much (quick, full or none)?",
            proposal: Some(Measure::Quick.word().to_owned()),
        };
        let read =
            |text: &str| Measure::of(text).ok_or_else(|| "write quick, full or none".to_owned());
        answer((answers, operator), &question, read)?
    };
    if measure == Measure::None {
        operator
            .say("Nothing is measured: the volume will not know what rate its disks guarantee.");
        return Ok(Vec::new());
    }
    let mut reports = Vec::new();
    for target in &storage.targets {
        let report = folder.join(report_name(&target.measured));
        match machine.read(&report) {
            Some(text) if is_whole(&text) => {
                operator.say(&format!("It was measured before: {}.", safe::path(&report)));
            }
            earlier => {
                make_folders(answers, machine, &[folder, &target.measured], target)?;
                let words = measuring(target, measure, (&report, earlier.is_some()));
                run(answers, operator, &words)?;
            }
        }
        reports.push(report);
    }
    Ok(reports)
}

fn make_folders(
    answers: &Answers,
    machine: &dyn Machine,
    folders: &[&Path],
    target: &Target,
) -> Result<(), Ending> {
    let count = if target.is_file() { folders.len() } else { 1 };
    for folder in folders.iter().take(count).filter(|_| !answers.is_dry) {
        machine.make_folder(folder).map_err(Ending::Refused)?;
    }
    Ok(())
}

/// What can be measured, and how long that takes.
fn choices(targets: &[Target]) -> String {
    let times: Vec<i64> = targets.iter().map(full_ns).collect();
    let full = duration(times.iter().fold(0, |sum, ns| sum.saturating_add(*ns)));
    format!(
        "  quick  minutes: what rate is guaranteed, with less certainty\n  full   about {full}, by \
         what disks of the kind usually write: the whole surface, several times\n  none   no \
         guarantee is known, and no warning comes before disks are too slow"
    )
}

/// How long everything takes, by a usual rate of the kind.
fn full_ns(target: &Target) -> i64 {
    let bytes_per_s: i128 = match target.kind {
        Some(DiskKind::Rotating) => 150_000_000,
        Some(DiskKind::Nvme) => 1_500_000_000,
        Some(DiskKind::Flash) | None => 400_000_000,
    };
    let provided = Provided { writer: true, folder: target.is_file(), processor: true };
    let plan = Plan::full(target.size_bytes);
    let bytes = i128::from(plan.bytes(target.size_bytes, provided));
    let ns = i64::try_from(bytes * 1_000_000_000 / bytes_per_s).unwrap_or(i64::MAX);
    ns.saturating_add(units::nanos(plan.fixed_time(provided)))
}

fn report_name(measured: &Path) -> String {
    let text = measured.to_string_lossy();
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = text.trim_matches('/').chars().map(plain).collect();
    format!("qualification-{name}.json")
}

/// It was not broken off, and judges a rate.
fn is_whole(text: &str) -> bool {
    parse_qualification(text).is_ok_and(|found| !found.is_interrupted && found.verdict.is_some())
}

fn measuring(target: &Target, measure: Measure, (report, has_begun): (&Path, bool)) -> Words {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let mut words: Words = vec!["qualify".to_owned(), path(&target.measured)];
    words.push(format!("--{}", measure.word()));
    match &target.destroy_name {
        Some(name) => words.extend(["--destroy".to_owned(), name.clone()]),
        None if measure == Measure::Quick => {
            let bytes = target.size_bytes.min(QUICK_BYTES);
            words.extend(["--size".to_owned(), bytes.to_string()]);
        }
        None => words.extend(["--size".to_owned(), target.size_bytes.to_string()]),
    }
    let flag = if has_begun { "--resume" } else { "--output" };
    words.extend([flag.to_owned(), path(report)]);
    words
}

/// Proposes a shape, and asks for it.
pub(crate) fn geometry(
    answers: &Answers,
    operator: &mut dyn Operator,
    (storage, reports): (&Storage, &[PathBuf]),
    stored_bytes_per_s: u64,
) -> Result<Shape, Ending> {
    let count = storage.targets.len();
    let spares = answers.spares.unwrap_or_else(|| proposed_spares(count));
    let proposed = proposed_parity(count.saturating_sub(usize::from(spares)));
    let advised = advised(answers, operator, (storage, reports));
    let is_rotating =
        |target: &Target| !target.is_file() && target.kind == Some(DiskKind::Rotating);
    let members = Members {
        count,
        size_bytes: storage.targets.iter().map(|target| target.size_bytes).min().unwrap_or(0),
        is_rotating: storage.targets.iter().any(is_rotating),
        advice: advised.as_ref(),
    };
    let wrong = |why: String| Ending::Wrong(format!("--parity: {why}"));
    if let Some(parity) = answers.parity {
        let found = shape(&members, parity, spares).map_err(wrong)?;
        operator.say(&found.told(stored_bytes_per_s));
        return Ok(found);
    }
    let found = shape(&members, proposed, spares).map_err(wrong)?;
    operator.say(&format!("Proposed:\n{}", found.told(stored_bytes_per_s)));
    if count == 1 {
        return Ok(found);
    }
    let question = Question {
        what: "how many members may be lost",
        flag: "--parity",
        text: "How many members may fail without loss (0, 1 or 2)?",
        proposal: Some(proposed.to_string()),
    };
    let read = |text: &str| {
        let parity = text.parse::<u8>().map_err(|_| "write 0, 1 or 2".to_owned())?;
        shape(&members, parity, spares)
    };
    let chosen = answer((answers, operator), &question, read)?;
    if chosen != found {
        operator.say(&chosen.told(stored_bytes_per_s));
    }
    Ok(chosen)
}

/// What the reports advise; where they advise nothing, why is said, and `create` says it again.
fn advised(
    answers: &Answers,
    operator: &mut dyn Operator,
    (storage, reports): (&Storage, &[PathBuf]),
) -> Option<Choice> {
    if reports.is_empty() || answers.is_dry {
        return None;
    }
    let given = Given {
        zones: None,
        extent_bytes: None,
        has_usable: false,
        data_members: 1,
        member_bytes: None,
    };
    match advice(reports, &storage.members(), given, false) {
        Ok(choice) => Some(choice),
        Err(error) => {
            operator.say(&format!("The reports advise nothing: {error}."));
            None
        }
    }
}

/// Makes the volume.
pub(crate) fn volume(
    answers: &Answers,
    (machine, operator): (&dyn Machine, &mut dyn Operator),
    (storage, reports): (&Storage, &[PathBuf]),
    shape: &Shape,
) -> Result<(), Ending> {
    for target in storage.targets.iter().filter(|target| target.is_file()) {
        make_folders(answers, machine, &[&target.measured], target)?;
    }
    run(answers, operator, &creating(storage, reports, shape))?;
    if answers.is_dry {
        return Ok(());
    }
    for target in storage.targets.iter().filter(|target| target.is_file()) {
        machine.give_to_service(&target.member).map_err(Ending::Refused)?;
    }
    Ok(())
}

fn creating(storage: &Storage, reports: &[PathBuf], shape: &Shape) -> Words {
    let members = storage.members();
    let ring = members.len().saturating_sub(usize::from(shape.spares));
    let mut words: Words = vec!["create".to_owned()];
    for (at, member) in members.iter().enumerate() {
        match at {
            0 => {}
            at if at < ring => words.push("--member".to_owned()),
            _ => words.push("--spare".to_owned()),
        }
        words.push(member.to_string_lossy().into_owned());
    }
    words.extend(["--parity".to_owned(), shape.parity.to_string()]);
    if let Some(file) = storage.targets.iter().find(|target| target.is_file()) {
        words.extend(["--size".to_owned(), file.size_bytes.to_string()]);
    }
    for report in reports {
        words.extend(["--qualification".to_owned(), report.to_string_lossy().into_owned()]);
    }
    words
}

/// A volume that is taken as it is, in words.
pub(crate) fn taken(existing: &Volume) -> String {
    let Volume { path, id, columns: (data, parity), size_bytes } = existing;
    let (path, size) = (safe::path(path), ByteSize(*size_bytes));
    format!(
        "The volume {path} ({id}, {data}+{parity}, {size}) has these members: it is taken as it is."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(path: &str) -> Target {
        Target {
            member: path.into(),
            measured: path.into(),
            destroy_name: Some("ZA 1".to_owned()),
            size_bytes: 8 << 40,
            kind: Some(DiskKind::Rotating),
        }
    }

    fn file() -> Target {
        let (member, measured) = ("/data/volume".into(), "/data".into());
        Target { member, measured, destroy_name: None, size_bytes: 100 << 30, kind: None }
    }

    #[test]
    fn a_disk_is_measured_by_name_and_a_folder_by_size() {
        let words = measuring(&disk("/dev/sdb"), Measure::Full, (Path::new("/c/q.json"), false));
        let line = "wirespool qualify /dev/sdb --full --destroy 'ZA 1' --output /c/q.json";
        assert_eq!(shown(&words), line);
        let words = measuring(&file(), Measure::Quick, (Path::new("q"), true));
        assert_eq!(shown(&words), "wirespool qualify /data --quick --size 8589934592 --resume q");
        assert_eq!(report_name(Path::new("/dev/sdb")), "qualification-dev-sdb.json");
        assert!(!is_whole("{}"));
    }

    #[test]
    fn the_last_members_are_the_spares() {
        let targets = ["/dev/sdb", "/dev/sdc", "/dev/sdd", "/dev/sde"].map(disk).to_vec();
        let members = Members { count: 4, size_bytes: 8 << 40, is_rotating: true, advice: None };
        let shape = shape(&members, 1, 1).unwrap();
        let storage = Storage { targets, existing: None };
        let words = creating(&storage, &[PathBuf::from("q.json")], &shape);
        let line = "wirespool create /dev/sdb --member /dev/sdc --member /dev/sdd --spare \
                    /dev/sde --parity 1 --qualification q.json";
        assert_eq!(shown(&words), line);
    }

    #[test]
    fn everything_of_a_large_disk_takes_days() {
        let told = choices(&[disk("/dev/sdb")]);
        assert!(told.contains("days, by what disks"), "{told}");
    }
}
