//! What a number depends on: processor, kernel, load, file system; and the state of the caches.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::program;

/// The machine, in words.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    kernel: String,
    load: String,
    memory: String,
}

impl Machine {
    pub(crate) fn look() -> Result<Self> {
        let field = |file: &str, name: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.split_once(':'));
            line.map_or_else(|| "unknown".to_owned(), |(_, value)| value.trim().to_owned())
        };
        let load = fs::read_to_string("/proc/loadavg")?;
        Ok(Self {
            processor: field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism()?.get(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            load: load.split_whitespace().next().unwrap_or("unknown").to_owned(),
            memory: field("/proc/meminfo", "MemTotal"),
        })
    }

    pub(crate) fn line(&self) -> String {
        let Self { processor, cores, kernel, load, memory } = self;
        format!("{processor}, {cores} cores, {memory}; Linux {kernel}; load average {load}")
    }

    pub(crate) fn load(&self) -> &str {
        &self.load
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "processor": self.processor,
            "cores": self.cores,
            "kernel": self.kernel,
            "load_average": self.load,
            "memory": self.memory,
        })
    }
}

/// The file system that a path lies on: its type and its device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileSystem {
    pub(crate) kind: String,
    pub(crate) device: String,
}

impl FileSystem {
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let path = path.canonicalize().with_context(|| format!("no {}", path.display()))?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        Self::find(&mounts, &path).with_context(|| format!("{} is on no mount", path.display()))
    }

    /// The longest mount point above `path`; of several there, the last one mounted (proc(5)).
    fn find(mountinfo: &str, path: &Path) -> Option<Self> {
        let mounts = mountinfo.lines().filter_map(|line| {
            let (before, behind) = line.split_once(" - ")?;
            let mut behind = behind.split(' ');
            let (kind, device) = (behind.next()?.to_owned(), behind.next()?.to_owned());
            let point = PathBuf::from(before.split(' ').nth(4)?);
            path.starts_with(&point).then_some((point, Self { kind, device }))
        });
        let deepest = mounts.max_by_key(|(point, _)| point.components().count());
        deepest.map(|(_, found)| found)
    }

    pub(crate) fn is_memory(&self) -> bool {
        matches!(self.kind.as_str(), "tmpfs" | "ramfs" | "devtmpfs")
    }
}

/// A folder of our own in `directory`, which must lie on a disk; removed with all that is in it.
#[derive(Debug)]
pub(crate) struct Workplace {
    path: PathBuf,
    pub(crate) file_system: FileSystem,
}

impl Workplace {
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        let file_system = FileSystem::of(directory)?;
        let shown = directory.display();
        ensure!(!file_system.is_memory(), "{shown} is memory, not a disk; name one (--directory)");
        let path = directory.join(format!("wirespool-bench-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path, file_system })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // The next measurement sees a folder that could not be removed.
        drop(fs::remove_dir_all(&self.path));
    }
}

/// Writes everything back, so that no earlier writes are measured.
pub(crate) fn settle() -> Result<()> {
    program::run(&mut Command::new("sync"))?;
    std::thread::park_timeout(core::time::Duration::from_millis(300));
    Ok(())
}

/// Empties the page cache, for which root is needed.
pub(crate) fn drop_page_cache() -> Result<()> {
    program::run(&mut Command::new("sync"))?;
    fs::write("/proc/sys/vm/drop_caches", "3")
        .context("cannot empty the page cache: run as root, or with --warm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_above_a_path_is_its_file_system() {
        let mounts = "21 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                      35 21 0:30 / /data rw - tmpfs tmpfs rw\n\
                      36 35 8:1 /x /data/disk rw,relatime - xfs /dev/sdb1 rw\n";
        let check = |path: &str, kind: &str| {
            assert_eq!(FileSystem::find(mounts, Path::new(path)).unwrap().kind, kind, "{path}");
        };
        check("/home", "ext4");
        check("/data/disk", "xfs");
        check("/data/disks", "tmpfs");
        assert!(FileSystem::find(mounts, Path::new("/data")).unwrap().is_memory());
    }

    #[test]
    fn a_workplace_goes_away() {
        let directory = tempfile::tempdir().unwrap();
        if FileSystem::of(directory.path()).unwrap().is_memory() {
            assert!(Workplace::new(directory.path()).is_err());
            return;
        }
        let place = Workplace::new(directory.path()).unwrap();
        fs::write(place.path("file"), b"x").unwrap();
        drop(place);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
