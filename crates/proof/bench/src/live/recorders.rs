//! The recorders: how each is started, and how its packets are counted.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capture::{FileOptions, FileSource, Next, Source};
use host::Ended;
use serde_json::Value;

use crate::recorder::Recorder;

/// How packets are counted of a recorder that has ended, in the folder where it wrote.
type Count = fn(&Ended, &Path) -> Result<u64>;

/// A recorder that is about to run.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) command: Vec<OsString>,
    pub(crate) count: Count,
}

/// Another recorder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Peer {
    Tcpdump,
    Dumpcap,
    NetsniffNg,
    Stenotype,
}

/// Those that are installed.
pub(crate) fn installed() -> Vec<Peer> {
    let all = [Peer::Tcpdump, Peer::Dumpcap, Peer::NetsniffNg, Peer::Stenotype];
    all.into_iter().filter(|peer| is_installed(peer.name())).collect()
}

fn is_installed(name: &str) -> bool {
    let mut command = Command::new("which");
    command.arg(name).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Peer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tcpdump => "tcpdump",
            Self::Dumpcap => "dumpcap",
            Self::NetsniffNg => "netsniff-ng",
            Self::Stenotype => "stenotype",
        }
    }

    /// It with a ring of 64 MiB, as ours has, and whole packets.
    pub(crate) fn recording(self, folder: &Path) -> Recording {
        let file = folder.join("out");
        let file = file.to_string_lossy();
        let (line, count): (String, Count) = match self {
            Self::Tcpdump => (format!("-Z root -i right -s 0 -B 65536 -w {file}"), count_file),
            Self::Dumpcap => (format!("-q -i right -B 64 -w {file}"), count_file),
            Self::NetsniffNg => {
                (format!("-i right -o {file}.pcap -s -J --ring-size 64MiB"), count_file)
            }
            Self::Stenotype => (
                format!(
                    "--iface=right --dir={} --threads=1 --blocks=64 --filesize_mb=1024 \
                     --preallocate_file_mb=1024 --aiops=64 --seccomp=none --no_watchdogs \
                     --blockage_sec=1 --stats_blocks=1 -v",
                    folder.display()
                ),
                count_said,
            ),
        };
        let words = line.split(' ').map(OsString::from);
        Recording {
            command: [OsString::from(self.name())].into_iter().chain(words).collect(),
            count,
        }
    }
}

/// Ours, with checksums and an index.
pub(crate) fn ours(recorder: &Recorder, options: &str) -> Recording {
    let mut command = recorder.recording();
    command.extend(options.split_whitespace().map(OsString::from));
    Recording { command, count: count_ours }
}

/// A folder that a recorder which gives up its rights may write to.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    // stenotype wants these two.
    for folder in [path.to_path_buf(), path.join("PKT0"), path.join("IDX0")] {
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777))?;
    }
    Ok(())
}

fn count_ours(ended: &Ended, _: &Path) -> Result<u64> {
    let report: Value = serde_json::from_str(&ended.output)
        .with_context(|| format!("wirespool said: {}", ended.errors.trim()))?;
    report.get("stored").and_then(Value::as_u64).context("the report has no stored")
}

/// Packets of the one file that was written.
fn count_file(ended: &Ended, folder: &Path) -> Result<u64> {
    let files: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let file = files.iter().find(|path| path.is_file());
    let file = file.with_context(|| format!("nothing was written: {}", ended.errors.trim()))?;
    let mut source = FileSource::open(file, FileOptions::default())?;
    let mut count = 0;
    loop {
        match source.next_batch(Duration::ZERO) {
            Ok(Next::Packets(batch)) => count += u64::try_from(batch.len())?,
            Ok(Next::Block(_) | Next::Idle) => {}
            Ok(Next::End) => return Ok(count),
            // What was cut by the end of the recorder.
            Err(_) if count > 0 => {}
            Err(error) => bail!(error),
        }
    }
}

/// The last `packets=N` of what stenotype said.
fn count_said(ended: &Ended, _: &Path) -> Result<u64> {
    last_count(&ended.errors).with_context(|| {
        format!("stenotype counts no packets: {}", ended.errors.lines().last().unwrap_or_default())
    })
}

fn last_count(said: &str) -> Option<u64> {
    let (_, behind) = said.rsplit_once(" packets=")?;
    behind.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_count_that_was_told_counts() {
        let said = "x Thread 0 stats: MB=1 packets=77 blocks=2\nThread 0 packets=1500000 blocks=9";
        assert_eq!(last_count(said), Some(1_500_000));
        assert_eq!(last_count("nothing"), None);
    }

    #[test]
    fn packets_are_counted_in_the_file_that_was_written() {
        let folder = tempfile::tempdir().unwrap();
        make_folder(&folder.path().join("peer")).unwrap();
        let ended = Ended {
            code: Some(0),
            output: String::new(),
            errors: String::new(),
            cpu: <_>::default(),
        };
        assert!(count_file(&ended, &folder.path().join("peer")).is_err());
        let file = folder.path().join("peer/out");
        fs::write(file, crate::replay::capture(64, 500)).unwrap();
        assert_eq!(count_file(&ended, &folder.path().join("peer")).unwrap(), 500);
    }
}
