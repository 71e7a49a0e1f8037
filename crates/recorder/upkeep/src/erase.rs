//! Erasing what is older than the maximum age, on a volume without a running recorder.

use std::path::{Path, PathBuf};

use core::time::Duration;

use index::Catalog;
use indexer::Poison;
use units::{Clock, Sequence, Sleep};
use volume::{Reader, Retention};
use writer::{Erased, Writer};

use crate::turnover::Opened;
use crate::{Error, Progress, Target, segments};

/// What is to be erased.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Erasing {
    /// Paths of the volume.
    pub target: Target,
    /// Packets older than this; `None` goes by the volume's own maximum age.
    pub max_age: Option<Duration>,
    /// The user states that the clock is right, whatever the volume explains.
    pub clock_is_right: bool,
    /// Only destroy keys, which takes seconds; nothing is overwritten.
    pub keys_alone: bool,
    /// Where index files are cached; `None` is the user's cache.
    pub index_dir: Option<PathBuf>,
}

/// Erases packets that are too old, and their index, also in the index directory. What is left
/// where it is broken off is given out no more, and erased the next time.
///
/// # Errors
/// [`Error::NoMaximumAge`] when nothing says what is too old; [`Error::ClockDoubt`] when nothing
/// explains what the clock says; [`Error::NotEncrypted`] when there are no keys to destroy.
pub fn erase(
    erasing: &Erasing,
    clock: &dyn Sleep,
    progress: Progress<'_>,
) -> Result<Erased, Error> {
    let Erasing { target, max_age, clock_is_right, keys_alone, index_dir } = erasing;
    let reader = crate::open(&target.volume, &target.members)?;
    check(&target.volume, &reader, *max_age)?;
    if *keys_alone && !reader.superblock().is_encrypted {
        return Err(Error::NotEncrypted { path: target.volume.clone() });
    }
    drop(reader);
    let mut opened = Opened::new(target, clock)?;
    let age = max_age.map(units::nanos);
    let erased = expired(&mut opened, (age, *clock_is_right, *keys_alone), clock, progress);
    if let Err(Error::ClockDoubt { .. }) = erased {
        opened.close(clock)?;
        return erased;
    }
    let erased = erased?;
    opened.close(clock)?;
    drop_index(&crate::open(&target.volume, &target.members)?, index_dir.as_deref(), clock)?;
    Ok(erased)
}

/// Declares expired what is older than `age_ns`, or than the volume's own maximum age, and erases
/// it, with what an older lap left. Without either age that alone.
///
/// # Errors
/// [`Error::ClockDoubt`] before anything is changed.
pub(crate) fn expired(
    opened: &mut Opened,
    (age_ns, clock_is_right, keys_alone): (Option<i64>, bool, bool),
    clock: &dyn Sleep,
    progress: Progress<'_>,
) -> Result<Erased, Error> {
    let retention = Retention::of(opened.writer.superblock());
    let age_ns = age_ns.unwrap_or(retention.max_age_ns);
    let doubt = opened.writer.clock_doubt(age_ns, clock).filter(|_| !clock_is_right);
    if let Some(doubt) = doubt {
        return Err(Error::ClockDoubt { path: opened.path(), doubt });
    }
    let set = if clock_is_right {
        opened.writer.expire_by_clock(retention, age_ns, clock)
    } else {
        opened.writer.expire(retention, age_ns, clock)
    };
    set.map_err(|error| opened.named(error))?;
    let members = opened.members.clone();
    let open = |_: &Writer| Reader::of_members(volume::open_members(&members)?);
    let erased = writer::erase(&mut opened.writer, (age_ns, keys_alone), &open, clock, progress);
    erased.map_err(|error| opened.named(error))
}

fn check(path: &Path, reader: &Reader, max_age: Option<Duration>) -> Result<(), Error> {
    let is_known = max_age.is_some() || reader.superblock().max_age_ns > 0;
    if is_known { Ok(()) } else { Err(Error::NoMaximumAge { path: path.to_owned() }) }
}

/// Removes the files of segments that the ring gives out no more, and copies of packets from there.
fn drop_index(reader: &Reader, folder: Option<&Path>, clock: &dyn Clock) -> Result<(), Error> {
    let volume = reader.superblock().volume_id;
    let folder = host::index_folder(folder, &volume.to_string())?;
    if !host::is_there(&folder) {
        return Ok(());
    }
    let files = host::Directory::open(&folder)?;
    let tail = reader.span().map_or(Sequence(0), |span| span.tail);
    let mut catalog = Catalog::new(volume, tail, None);
    catalog.add(&segments::read(reader).entries);
    // Of the others only those count that lie before the tail.
    let nothing = |lasts: &[_]| vec![None; lasts.len()];
    let dropped = catalog.add_files(&files, &nothing);
    let retired = dropped.and_then(|()| catalog.retire(tail, clock.realtime(), &files));
    retired.and_then(|()| catalog.drop_groups(&files))?;
    let copies = Poison::of_earlier(&files).retire(tail, &files);
    copies.map_err(|source| Error::Copies { path: folder, source })?;
    Ok(files.remove_drafts()?)
}
