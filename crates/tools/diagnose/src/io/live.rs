//! The machine that we run on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blockdev::owners::Owner;
use blockdev::placement::{Disk, FileExtent, Filesystem};
use host::DeviceNumber;
use observe::cgroups::{self, GroupLook, Limited};
use observe::facts::Facts;
use observe::io::{DiskCounters, OpenFile, Process, ProcessCounters};
use observe::tracepoints::{TraceEvent, Tracer};

use super::held::Groups;
use super::watch::{Machine, Tracing};

/// What is looked at.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// Below this folder, or this file; none is everything.
    pub below: Option<PathBuf>,
    /// The part of a disk; none is all disks.
    pub scope: Option<Disk>,
    /// The disks below, where it is built on others.
    pub disks: Vec<DeviceNumber>,
}

impl Target {
    /// A folder, a file or a device.
    ///
    /// # Errors
    ///
    /// It is not there, or on no block device.
    pub fn of(path: &Path) -> Result<Self, blockdev::Error> {
        let place = blockdev::placement::place_of(path)?;
        let below = (!place.is_device).then(|| place.path.clone());
        let scope = place.disk.filter(|disk| place.disks == [disk.device]);
        Ok(Self { below, scope, disks: place.disks })
    }
}

/// The kernel's tracepoints, where we may listen to them, and `/proc`.
#[derive(Debug)]
pub struct Live {
    target: Target,
    tracer: Result<Tracer, String>,
}

/// Extents of one file, and files below a folder, that are looked at.
const EXTENTS_MAX: usize = 65_536;
const FILES_MAX: usize = 20_000;

impl Live {
    /// Begins to listen to the tracepoints.
    pub fn new(target: Target) -> Self {
        let tracer = Tracer::open(&target.disks, true).map_err(|refused| refused.to_string());
        Self { target, tracer }
    }
}

impl Machine for Live {
    fn events(&mut self, is_last: bool, into: &mut Vec<TraceEvent>) {
        match &mut self.tracer {
            Ok(tracer) if is_last => tracer.finish(into),
            Ok(tracer) => tracer.read(into),
            Err(_) => {}
        }
    }

    fn tracing(&self) -> Tracing {
        match &self.tracer {
            Ok(tracer) => Tracing::Seen {
                lost_requests: tracer.lost_requests(),
                lost_pages: tracer.lost_pages(),
            },
            Err(needs) => Tracing::Refused(needs.clone()),
        }
    }

    fn disks(&mut self) -> BTreeMap<DeviceNumber, (String, DiskCounters)> {
        observe::io::disks()
    }

    fn processes(&mut self) -> (BTreeMap<u32, ProcessCounters>, usize) {
        observe::io::processes()
    }

    fn process(&mut self, number: u32) -> Option<Process> {
        observe::io::process(number)
    }

    fn opened(&mut self, process: u32, descriptor: u32) -> Option<(PathBuf, DeviceNumber)> {
        observe::io::opened(process, descriptor)
    }

    fn files_of(&mut self, process: u32) -> Vec<OpenFile> {
        observe::io::open_files(process)
    }

    fn files_wanted(&mut self) -> Vec<OpenFile> {
        let below = self.target.below.as_deref();
        let mut files = observe::io::backing_files();
        files
            .extend(below.into_iter().flat_map(|below| observe::io::files_below(below, FILES_MAX)));
        files
    }

    fn extents_of(&mut self, file: &OpenFile) -> Option<Vec<FileExtent>> {
        // A descriptor may be another file's by now, and so may a path.
        let is_it = |path: &&PathBuf| {
            let found = observe::io::files_below(path, 1);
            found.first().is_some_and(|it| (it.device, it.inode) == (file.device, file.inode))
        };
        let path = [&file.through, &file.path].into_iter().find(is_it)?;
        blockdev::placement::extents_of(path, EXTENTS_MAX).ok()
    }

    fn disk_of(&mut self, device: DeviceNumber) -> Option<Disk> {
        blockdev::placement::disk_of(device)
    }

    fn filesystems(&mut self) -> BTreeMap<DeviceNumber, Filesystem> {
        blockdev::placement::filesystems()
    }

    fn owner_of(&mut self, filesystem: &Filesystem, place: u64) -> Option<Owner> {
        blockdev::owners::owner_of(&filesystem.mount_point, place)
    }

    fn facts(&mut self) -> Facts {
        observe::facts::disk_facts()
    }

    fn scope(&self) -> Option<Disk> {
        self.target.scope
    }

    fn own(&self) -> Option<u32> {
        Some(host::own_process())
    }
}

impl Groups for Live {
    fn limited(&mut self) -> Vec<Limited> {
        cgroups::limited()
    }

    fn group(&mut self, group: &Limited) -> GroupLook {
        cgroups::look(group)
    }
}
