//! Forgetting on request: slots anywhere in the ring are overwritten on every member.

use std::io;
use std::path::{Path, PathBuf};

use format::directory::SegmentEntry;
use format::head::VolumeId;
use index::Files;
use units::Sleep;
use volume::Reader;
use writer::Forgotten;

use crate::turnover::Opened;
use crate::{Error, Target, segments};

/// Segments that the directories in the ring name, oldest first.
pub fn segments_of(reader: &Reader) -> Vec<SegmentEntry> {
    segments::read(reader).entries
}

/// What becomes of the files in the index directory: they hold copies of names and addresses.
#[expect(missing_debug_implementations, reason = "a closure")]
pub struct IndexFiles<'a> {
    /// The directory; `None` is the cache of the volume.
    pub folder: Option<&'a Path>,
    /// Whether the file of this name stays.
    pub stays: &'a dyn Fn(&str) -> bool,
    /// Names of empty files that are made, before any other is removed.
    pub made: &'a [String],
}

/// Overwrites slots of a volume that no recorder has open, and removes its files in the index
/// directory, except those that stay.
///
/// # Errors
/// [`Error::Absent`] when a member is away or lacks something, for it would keep what it has;
/// [`Error::WentOn`] when the ring has passed a slot since they were chosen.
pub fn forget(
    target: &Target,
    slots: &[Forgotten],
    index: &IndexFiles<'_>,
    clock: &dyn Sleep,
) -> Result<(), Error> {
    let path = || PathBuf::from(&target.volume);
    let status = crate::status(&target.volume, &target.members)?;
    if !status.is_whole {
        return Err(Error::Absent { path: path() });
    }
    let mut opened = Opened::new(target, clock)?;
    if slots.is_empty() {
        // While the volume is open, no recorder writes such files.
        let cleared = clear(index, opened.writer.superblock().volume_id);
        opened.close(clock)?;
        return cleared;
    }
    let left = opened.writer.leave_slot(clock);
    left.map_err(|error| opened.named(error))?;
    // Leaving a slot may take a slot.
    let held = opened.writer.erasable();
    if slots.iter().any(|slot| !held.contains(&slot.sequence)) {
        opened.close(clock)?;
        return Err(Error::WentOn { path: path() });
    }
    // First: by what the ring holds, who breaks it off finds what is left again.
    if let Err(error) = clear(index, opened.writer.superblock().volume_id) {
        opened.close(clock)?;
        return Err(error);
    }
    let forgotten = opened.writer.forget(slots, clock);
    forgotten.map_err(|error| opened.named(error))?;
    opened.close(clock)
}

fn clear(index: &IndexFiles<'_>, volume: VolumeId) -> Result<(), Error> {
    let folder = host::index_folder(index.folder, &volume.to_string())?;
    let files = host::Directory::open(&folder)?;
    let failed = |source| Error::IndexFiles { path: folder.clone(), source };
    for name in index.made {
        let made = files.write_atomic(name, b"");
        made.and_then(|()| files.sync(name)).map_err(io::Error::other).map_err(failed)?;
    }
    for name in Files::list(&files).map_err(failed)? {
        if !(index.stays)(&name) {
            Files::remove(&files, &name).map_err(failed)?;
        }
    }
    Ok(())
}
