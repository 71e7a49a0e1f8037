//! What it costs to archive sessions, and to merge what was archived: bytes, and processor time.

use core::ops::ControlFlow;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use archive::{
    FolderStore, Manners, Memory, Options, Sensor, Uploader, VolumeSource, archive, compact,
};
use format::head::VolumeId;
use host::SystemClock;
use serde_json::{Map, Value, json};

use super::figures::{folder_bytes, note};
use crate::program;

/// The one process of `costs` that archives.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Archived {
    volume: PathBuf,
    index_dir: PathBuf,
    to: PathBuf,
}

struct Forgetting;

impl Memory for Forgetting {
    fn newest(&self, _: VolumeId) -> Option<String> {
        None
    }

    fn remember(&self, _: VolumeId, _: &str) {}
}

/// Archives a volume and merges, in this process, and prints what that came to.
pub(crate) fn run(archived: &Archived) -> Result<()> {
    let Archived { volume, index_dir, to } = archived;
    let store = FolderStore::new(to);
    let sensor: Sensor = "bench".parse().ok().context("a plain name")?;
    let go_on = || ControlFlow::Continue(());
    let mut tell = |_: &archive::Event| {};
    let mut uploader = Uploader::new(&store, &SystemClock, &go_on, &mut tell, Manners::default());
    let reading = extract::Options {
        volume: volume.clone(),
        index_dir: Some(index_dir.clone()),
        ..extract::Options::default()
    };
    let begun = cpu_seconds()?;
    let mut source = VolumeSource::open(reading, &SystemClock)?;
    let options = Options { sensor: sensor.clone(), follow: false };
    let report = archive(&options, &mut source, &mut uploader, &Forgetting)?;
    let archived = cpu_seconds()?;
    // Before parts of the same packets are merged, which compress each other.
    let bytes = folder_bytes(&to.join("sessions"))?;
    let merged = compact(&mut uploader, &sensor, "bench", &mut |_| {})?;
    let said = json!({
        "sessions": report.sessions,
        "bytes": bytes,
        "archive_s": archived - begun,
        "merged": merged.sessions,
        "merge_s": cpu_seconds()? - archived,
    });
    std::io::stdout().write_all(said.to_string().as_bytes())?;
    Ok(())
}

fn cpu_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    program::own_cpu_seconds(&stat).context("odd /proc/self/stat")
}

/// Archives the volume, and notes what a session cost.
pub(super) fn measure(
    figures: &mut Map<String, Value>,
    (volume, index): (&Path, &Path),
    to: &Path,
) -> Result<()> {
    std::fs::create_dir(to)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("archived").args([volume, index, to]);
    let said = program::run(&mut command)?.json()?;
    let number = |key: &str| {
        let number = said.get(key).and_then(Value::as_f64);
        number.with_context(|| format!("no {key}"))
    };
    let (sessions, merged) = (number("sessions")?, number("merged")?);
    ensure!(sessions > 0.0 && merged > 0.0, "several parts were archived and merged: {said}");
    note(figures, "archive_bytes_per_session", number("bytes")? / sessions);
    note(figures, "archive_ns_per_session", number("archive_s")? * 1e9 / sessions);
    note(figures, "merge_ns_per_session", number("merge_s")? * 1e9 / merged);
    Ok(())
}
