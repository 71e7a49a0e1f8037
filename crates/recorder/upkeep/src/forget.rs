//! Forgetting on request: slots anywhere in the ring are overwritten on every member.

use std::path::{Path, PathBuf};

use format::directory::SegmentEntry;
use units::Sleep;
use volume::Reader;
use writer::Forgotten;

use crate::turnover::Opened;
use crate::{Error, Target, segments};

/// Segments that the directories in the ring name, oldest first.
pub fn segments_of(reader: &Reader) -> Vec<SegmentEntry> {
    segments::read(reader).entries
}

/// Overwrites slots of a volume that no recorder has open, and removes all of its files in the
/// index directory, for they hold copies of names and addresses.
///
/// # Errors
/// [`Error::Absent`] when a member is away or lacks something, for it would keep what it has;
/// [`Error::WentOn`] when the ring has passed a slot since they were chosen.
pub fn forget(
    (target, index_dir): (&Target, Option<&Path>),
    slots: &[Forgotten],
    clock: &dyn Sleep,
) -> Result<(), Error> {
    let path = || PathBuf::from(&target.volume);
    let status = crate::status(&target.volume, &target.members)?;
    if !status.is_whole() {
        return Err(Error::Absent { path: path() });
    }
    let mut opened = Opened::new(target, clock)?;
    let left = opened.writer.leave_slot(clock);
    left.map_err(|error| opened.named(error))?;
    // Leaving a slot may take a slot.
    let held = opened.writer.erasable();
    if slots.iter().any(|slot| !held.contains(&slot.sequence)) {
        opened.close(clock)?;
        return Err(Error::WentOn { path: path() });
    }
    let forgotten = opened.writer.forget(slots, clock);
    forgotten.map_err(|error| opened.named(error))?;
    let volume = opened.writer.superblock().volume_id;
    opened.close(clock)?;
    let folder = host::index_folder(index_dir, &volume.to_string())?;
    let files = host::Directory::open(&folder)?;
    let failed = |source| Error::IndexFiles { path: folder.clone(), source };
    for name in index::Files::list(&files).map_err(failed)? {
        index::Files::remove(&files, &name).map_err(failed)?;
    }
    Ok(())
}
