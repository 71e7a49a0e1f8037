//! Forgetting on request: slots anywhere in the ring are overwritten on every member.

use core::ops::ControlFlow;
use std::io;
use std::path::Path;

use format::directory::SegmentEntry;
use format::head::VolumeId;
use index::Files;
use units::Sleep;
use volume::Reader;
use writer::Forgotten;

use crate::turnover::Opened;
use crate::{Error, Target, erase, segments};

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

/// Opens a volume that no recorder has open and whose last one did not stop in order, as the next
/// one would, and closes it: then a query finds all that it has, and every slot has an end.
///
/// # Errors
/// When it cannot be opened for writing.
pub fn settle(target: &Target, clock: &dyn Sleep) -> Result<(), Error> {
    let reader = crate::open(&target.volume, &target.members)?;
    if reader.has_stopped_in_order() {
        return Ok(());
    }
    drop(reader);
    Opened::new(target, clock)?.close(clock)
}

/// Overwrites slots of a volume that no recorder has open, and removes its files in the index
/// directory, except those that stay. What no query can find goes, too, whoever it is of: what is
/// beyond the maximum age, and what the slots in front of the head hold of an older lap.
///
/// # Errors
/// [`Error::Absent`] when a member is away or lacks something, for it would keep what it has;
/// [`Error::WentOn`] when the ring has passed a slot since they were chosen;
/// [`Error::ClockDoubt`] when nothing explains what the clock says of the maximum age.
pub fn forget(
    target: &Target,
    slots: &[Forgotten],
    index: &IndexFiles<'_>,
    clock: &dyn Sleep,
) -> Result<(), Error> {
    let status = crate::status(&target.volume, &target.members)?;
    if !status.is_whole {
        return Err(Error::Absent { path: target.volume.clone() });
    }
    let mut opened = Opened::new(target, clock)?;
    let prepared = prepare(&mut opened, (slots, index), clock);
    if prepared.is_err() {
        return prepared.and(opened.close(clock));
    }
    if !slots.is_empty() {
        let forgotten = opened.writer.forget(slots, clock);
        forgotten.map_err(|error| opened.named(error))?;
        // A query that had read an index before may have stored its file meanwhile.
        clear(index, opened.writer.superblock().volume_id)?;
    }
    let hidden = if opened.writer.superblock().max_age_ns > 0 {
        let mut on = |_, _| ControlFlow::Continue(());
        erase::expired(&mut opened, (None, false, false), clock, &mut on).map(drop)
    } else {
        opened.writer.erase_older_lap(clock).map_err(|error| opened.named(error))
    };
    opened.close(clock)?;
    hidden
}

/// Leaves the slot at the head, checks that the ring holds the slots, and removes the files of the
/// index directory: they go first, so that by what the ring holds who breaks it off finds what is
/// left again.
fn prepare(
    opened: &mut Opened,
    (slots, index): (&[Forgotten], &IndexFiles<'_>),
    clock: &dyn Sleep,
) -> Result<(), Error> {
    opened.writer.leave_slot(clock).map_err(|error| opened.named(error))?;
    // Leaving a slot may take a slot.
    let held = opened.writer.erasable();
    if slots.iter().any(|slot| !held.contains(&slot.sequence)) {
        return Err(Error::WentOn { path: opened.path() });
    }
    clear(index, opened.writer.superblock().volume_id)
}

fn clear(index: &IndexFiles<'_>, volume: VolumeId) -> Result<(), Error> {
    let folder = host::index_folder(index.folder, &volume.to_string())?;
    if index.made.is_empty() && !host::is_there(&folder) {
        return Ok(());
    }
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
    // What a process that was killed had begun to write has names as well.
    files.remove_drafts().map_err(Error::from)
}
