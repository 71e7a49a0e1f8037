//! The real fio with the same job, behind the part that writes files.

use core::time::Duration;
use std::path::Path;

use ::qualify::{Opened, Part, PartResult, Plan, Qualification, fio_arguments};
use anyhow::Context as _;
use host::{Program, StopFlag, SystemClock, TemporaryDirectory};
use units::{Clock as _, Sleep as _};

use crate::failure::Usage;
use crate::progress::say;

/// Between two looks whether it has ended, or the user wants it to.
const LOOK_NS: i64 = 100_000_000;
/// After it was asked to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// An fio that can be started.
#[derive(Debug)]
pub(super) struct Fio {
    program: &'static Path,
}

/// Known before hours of measuring: whether it is asked for, has something to do, and is there.
pub(super) fn find(is_asked: bool, plan: &Plan, opened: &Opened) -> anyhow::Result<Option<Fio>> {
    if !is_asked {
        return Ok(None);
    }
    if !plan.parts_with(opened.provided()).any(|part| part == Part::Files) {
        return Err(
            Usage("--fio compares with the part files, which does not run here".into()).into()
        );
    }
    let folder = TemporaryDirectory::new("wirespool-qualify-")?;
    let program = Path::new("fio");
    let version = Program::start(program, &["--version".into()], folder.path());
    let version = version.and_then(|program| program.wait(PATIENCE));
    version.context("--fio runs the program fio, which is not installed (Debian: fio)")?;
    Ok(Some(Fio { program }))
}

impl Fio {
    /// Runs it in the directory that is empty again, and keeps what it says.
    pub(super) fn run(
        &self,
        found: &mut Qualification,
        plan: &Plan,
        (opened, stop): (&Opened, &StopFlag),
    ) -> anyhow::Result<()> {
        let files = found.parts.iter_mut().find_map(|part| match part {
            PartResult::Files(files) => Some(files),
            _ => None,
        });
        let Some((files, folder)) = files.zip(opened.folder()) else { return Ok(()) };
        if found.is_interrupted {
            return Ok(());
        }
        say("qualify: fio, the same job");
        let said = TemporaryDirectory::new("wirespool-qualify-")?;
        let arguments = fio_arguments(plan, folder);
        let mut fio = Program::start(self.program, &arguments, said.path())?;
        while !stop.is_set() && !fio.has_ended()? {
            SystemClock.sleep_until(SystemClock.boottime_ns() + LOOK_NS);
        }
        if stop.is_set() {
            fio.interrupt();
        }
        let ended = fio.wait(PATIENCE)?;
        if stop.is_set() {
            found.is_interrupted = true;
            return Ok(());
        }
        anyhow::ensure!(ended.code == Some(0), "fio failed: {}", ended.errors.trim());
        files.fio =
            Some(::qualify::parse_fio(&ended.output).context("what fio said is no JSON of its")?);
        Ok(())
    }
}
