//! A case: a script for the guest, whose first lines say which machine it wants.
//!
//! ```text
//! # One sentence: what happens, and what must come of it.
//! #: short                     part of the short form
//! #: disks 6 x 64M [scsi] [log]
//! #: fault disk2 write 20M     writes that touch this place fail; or `read`
//! #: modules dm-flakey         of the kernel, besides those that every case has
//! #: needs mdadm               programs of the host that go into the guest
//! #: seconds 600               after which it has failed
//! #: replay 6 x 16M            the host then replays the log of the first disk, which holds as
//!                              many members, and behind them the marks
//! ```

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use units::{ByteSize, NANOS_PER_SECOND};

use crate::tools;

/// Ten times what a case takes on an idle machine.
const SECONDS: u64 = 300;

/// How a disk shows up in the guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bus {
    /// /dev/vda and so on, in their order.
    Virtio,
    /// By its address, because letters go to SCSI disks in the order they are found.
    Scsi,
}

/// A place of a disk that cannot be read, or written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) disk: String,
    /// `read` or `write`.
    pub(crate) operation: String,
    pub(crate) offset_bytes: u64,
}

/// Equal parts of a disk, from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slices {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
}

/// What a case asks for.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) is_short: bool,
    pub(crate) disks: usize,
    pub(crate) disk_bytes: u64,
    pub(crate) bus: Bus,
    /// Writes and flushes of the disks are logged in their order.
    pub(crate) is_logged: bool,
    pub(crate) faults: Vec<Fault>,
    pub(crate) modules: Vec<String>,
    pub(crate) needs: Vec<String>,
    pub(crate) seconds: u64,
    pub(crate) replay: Option<Slices>,
    pub(crate) script: String,
}

impl Case {
    /// The time it may take, in the unit of the clock.
    pub(crate) fn seconds_ns(&self) -> i64 {
        i64::try_from(self.seconds).map_or(i64::MAX, |seconds| seconds * NANOS_PER_SECOND)
    }
}

/// All cases of a folder, by name.
pub(crate) fn all(folder: &Path) -> Result<Vec<Case>> {
    let scripts = tools::files(folder)?;
    scripts
        .iter()
        .filter_map(|path| Some((path, path.file_name()?.to_str()?.strip_suffix(".sh")?)))
        .map(|(path, name)| {
            let script = fs::read_to_string(path)?;
            parse(name, script).with_context(|| format!("{} is no case", path.display()))
        })
        .collect()
}

fn parse(name: &str, script: String) -> Result<Case> {
    let title = script.lines().next().and_then(|line| line.strip_prefix("# "));
    let title = title.context("the first line is no sentence behind \"# \"")?.to_owned();
    let mut case = Case {
        name: name.to_owned(),
        title,
        is_short: false,
        disks: 0,
        disk_bytes: 0,
        bus: Bus::Virtio,
        is_logged: false,
        faults: Vec::new(),
        modules: Vec::new(),
        needs: Vec::new(),
        seconds: SECONDS,
        replay: None,
        script: String::new(),
    };
    for line in script.lines().filter_map(|line| line.strip_prefix("#: ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        wish(&mut case, &words).with_context(|| format!("cannot read \"#: {line}\""))?;
    }
    ensure!(case.disks <= 24, "a machine has at most 24 disks");
    case.script = script;
    Ok(case)
}

fn wish(case: &mut Case, words: &[&str]) -> Result<()> {
    match *words {
        ["short"] => case.is_short = true,
        ["replay", count, "x", size] => {
            let slices = Slices { count: count.parse()?, bytes: usize::try_from(bytes(size)?)? };
            case.replay = Some(slices);
        }
        ["disks", count, "x", size, ref kinds @ ..] => {
            case.disks = count.parse()?;
            case.disk_bytes = bytes(size)?;
            for kind in kinds {
                match *kind {
                    "scsi" => case.bus = Bus::Scsi,
                    "log" => case.is_logged = true,
                    _ => bail!("a disk is not {kind}"),
                }
            }
        }
        ["fault", disk, operation @ ("read" | "write"), offset] => case.faults.push(Fault {
            disk: disk.to_owned(),
            operation: operation.to_owned(),
            offset_bytes: bytes(offset)?,
        }),
        ["modules", ref names @ ..] => case.modules.extend(names.iter().map(ToString::to_string)),
        ["needs", ref names @ ..] => case.needs.extend(names.iter().map(ToString::to_string)),
        ["seconds", seconds] => case.seconds = seconds.parse()?,
        _ => bail!("no such wish"),
    }
    Ok(())
}

fn bytes(text: &str) -> Result<u64> {
    let size: ByteSize = text.parse().map_err(|_| anyhow::anyhow!("{text} is no size"))?;
    Ok(size.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_say_which_machine_a_case_wants() {
        let text = "# A title.\n#: short\n#: disks 6 x 64M scsi log\n#: fault disk2 write 20M\n\
                    #: modules a b\n#: needs mdadm\n#: seconds 9\n#: replay 2 x 1M\necho\n";
        let case = parse("x", text.to_owned()).unwrap();
        assert_eq!((case.title.as_str(), case.disks, case.disk_bytes), ("A title.", 6, 64 << 20));
        assert!(case.is_short && case.is_logged && case.bus == Bus::Scsi);
        assert_eq!(case.replay, Some(Slices { count: 2, bytes: 1 << 20 }));
        let fault =
            Fault { disk: "disk2".into(), operation: "write".into(), offset_bytes: 20 << 20 };
        assert_eq!((case.faults, case.seconds), (vec![fault], 9));
        assert_eq!(
            (case.modules, case.needs),
            (vec!["a".into(), "b".into()], vec!["mdadm".into()])
        );
    }

    #[test]
    fn a_wish_that_is_not_understood_is_refused() {
        for line in ["disk 6", "disks 6 x", "disks 6 x 64M tape", "fault disk2 flush 1M", ""] {
            assert!(parse("x", format!("# A title.\n#: {line}\n")).is_err(), "{line}");
        }
        assert!(parse("x", "echo\n".to_owned()).is_err());
    }
}
