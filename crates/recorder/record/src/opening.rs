//! Opens the volume of a recording, and finds the memory between capture and disk.

use std::path::Path;
use std::sync::Arc;

use device::{Ahead, Pool};
use encryption::Keyring;
use events::Watches;
use format::directory::SegmentEntry;
use format::superblock::Superblock;
use units::number::to_u64;
use units::{ByteSize, MemberId, Sleep};
use volume::{MemberAt, Membership, NewPlace, Reader};
use writer::{Candidate, Recovery, Writer};

use crate::discards;
use crate::error::Error;
use crate::memory::{self, Budget};
use crate::options::{Input, Options};
use crate::storage::{OpenedDevice, Storage};

/// Fewest columns of a pool: one being filled, one being written, one with an index, and some
/// slack.
const COLUMNS_MIN: u64 = 8;
/// Of each further queue: one being filled, one being written.
const COLUMNS_PER_QUEUE: u64 = 2;

/// A volume opened for this recording.
pub(crate) struct Opened {
    pub(crate) writer: Writer,
    pub(crate) recovery: Recovery,
    pub(crate) pool: Pool,
    /// Finds memory for the pool until the recording has ended.
    pub(crate) _ahead: Ahead,
    /// The volume as it was when it was opened, for the index.
    pub(crate) reader: Reader,
    pub(crate) directory: Vec<SegmentEntry>,
    /// All its devices, those that come later too.
    pub(crate) watches: Watches,
    /// What this recording encrypts with: it can read nothing that was recorded before.
    pub(crate) keyring: Option<Arc<Keyring>>,
    /// What was decided, one line each.
    pub(crate) setup: Vec<String>,
}

pub(crate) fn open(
    (options, storage): (&Options, &dyn Storage),
    queues: usize,
    clock: &dyn Sleep,
) -> Result<Opened, Error> {
    // The pool's shape is in the superblock.
    let (mut members, reader) = storage.find()?;
    members.retain(|found| !options.without.contains(&found.member));
    let piece_bytes = u64::from(reader.geometry().piece_bytes);
    let further_queues = to_u64(queues - 1);
    let needed_bytes = (COLUMNS_MIN + COLUMNS_PER_QUEUE * further_queues) * piece_bytes;
    let (pool_bytes, pool_line) = pool_bytes(options, reader.superblock());
    if pool_bytes < needed_bytes {
        return Err(Error::Pool { pool_bytes, needed_bytes });
    }
    memory::check("pool", pool_bytes)?;
    // A stripe holds a column of every further data column while it fills, and while it is cut.
    let further = 2 * (u64::from(reader.geometry().data_columns) - 1);
    let columns = pool_bytes / piece_bytes + further;
    let columns = usize::try_from(columns).unwrap_or(usize::MAX);
    let reserve = reserve(columns, reader.superblock());
    let pool = Pool::shared_with_reserve(columns, reserve, reader.piece_bytes())?;
    // From now on, and so with the memory policy of this thread.
    let ahead = pool.touch_ahead().map_err(Error::Thread)?;
    let watches = Watches::new(options.slow, reader.superblock().qualified.as_ref());
    let candidates = members.iter().zip(storage.open_all(&members));
    let over = |(found, opened): (&MemberAt, OpenedDevice)| match opened {
        // One that is in use, say, is not lost: the user would want to know.
        Err(error) if !error.is_failure() => Err(error),
        opened => {
            let device = opened.map(|it| watches.over(it, Some(found.member), &found.path));
            Ok((found.member, device.map_err(volume::Error::from)))
        }
    };
    let mut devices = candidates.map(over).collect::<Result<Vec<_>, _>>()?;
    devices.extend(dead(storage, &reader, &options.without));
    let opener = storage.opener(&members, clock)?;
    let (mut writer, recovery) = writer::mount_members(devices, &options.without, &opener)?;
    let keyring = Arc::new(Keyring::new(writer.superblock().volume_id.0, None));
    writer.seal_with(storage.random_key(), Arc::clone(&keyring))?;
    let keyring = writer.superblock().is_encrypted.then_some(keyring);
    members.retain(|found| recovery.failed.iter().all(|failed| failed.member != found.member));
    let moved = moved(storage, (&members, writer.membership()), options);
    writer.remember(&moved, clock)?;
    let reader = writer.reader(storage.open_members(&members)?)?;
    let directory = reader.newest_index().and_then(|at| reader.directory(at)).unwrap_or_default();
    let mut setup = discards::begin(&mut writer, (&members, storage), options.discard);
    setup.extend(moved.iter().filter_map(|new| told(new, writer.superblock())));
    setup.extend(pool_line);
    let held = u64::try_from(columns + reserve).unwrap_or(u64::MAX).saturating_mul(piece_bytes);
    let budget = Budget::new(options, reader.geometry(), (queues, held, writer.sealing_bytes()));
    setup.push(budget.to_string());
    if pool.is_in_huge_pages() {
        setup.push("the pool lies in huge pages".to_owned());
    }
    let reader = reader.unlocked(keyring.as_ref());
    Ok(Opened { writer, recovery, pool, _ahead: ahead, reader, directory, watches, keyring, setup })
}

/// Members that are not where the volume knows them, and spares. Of these only a place that the
/// user names is news: disks that nobody needs yet are not asked.
fn moved(
    storage: &dyn Storage,
    (members, membership): (&[MemberAt], &Membership),
    options: &Options,
) -> Vec<NewPlace> {
    let of = |path: &Path, uuid, recorded: &str| storage.new_place(path, uuid, recorded);
    let moved = NewPlace::of_members(membership, members, of);
    let spares = membership.superblock().spares.iter().filter(|_| !options.members.is_empty());
    let spares = spares.filter_map(|spare| of(&storage.place_of(spare)?, spare.uuid, &spare.path));
    moved.into_iter().chain(spares).collect()
}

/// Where one lies from now on, if the volume took it.
fn told(new: &NewPlace, volume: &Superblock) -> Option<String> {
    let member = volume.members.iter().position(|it| (it.uuid, &it.path) == (new.uuid, &new.path));
    let spare = || volume.spares.iter().any(|it| (it.uuid, &it.path) == (new.uuid, &new.path));
    let who = match member {
        Some(number) => format!("member {number}"),
        None => spare().then(|| "a spare".to_owned())?,
    };
    Some(format!("{who} is at {} now: the volume remembers it", new.path))
}

/// Columns beyond the pool, for those that disks which hang keep: as many as a window of writes
/// has, for each member that may be lost and each spare that may take its place.
fn reserve(columns: usize, volume: &Superblock) -> usize {
    let may_hang = usize::from(volume.geometry.parity_columns) + volume.spares.len();
    let window = usize::from(volume.window);
    may_hang * window.min(columns)
}

/// The size of the pool where the user chose none. A file can wait for the disk: more memory in
/// between than keeps all threads busy would only cool their caches.
const POOL_BYTES_OF_FILES: u64 = 16 << 20;
const POOL_BYTES: u64 = 256 << 20;

/// The memory between capture and disk, and why, where that is worth a line.
fn pool_bytes(options: &Options, superblock: &Superblock) -> (u64, Option<String>) {
    let default = match &options.input {
        Input::Interfaces(_) => POOL_BYTES,
        Input::Files(_) => POOL_BYTES_OF_FILES,
    };
    let qualified = match (options.pool_bytes, &superblock.qualified, &options.input) {
        (Some(bytes), ..) => return (bytes, None),
        (None, Some(qualified), Input::Interfaces(_)) => qualified,
        _ => return (default, None),
    };
    // Each member guarantees its rate with its pool, and data columns share what arrives.
    let wanted = qualified.pool_bytes.saturating_mul(u64::from(superblock.geometry.data_columns));
    let bytes = wanted.max(default);
    let most = host::memory_available_bytes().map_or(u64::MAX, |bytes| bytes / 2).max(default);
    let line = if bytes <= most {
        format!("a pool of {}, as the volume was qualified", ByteSize(bytes))
    } else {
        format!(
            "a pool of {}, half of the free memory: the volume was qualified with {}, and \
             guarantees less with this",
            ByteSize(most),
            ByteSize(bytes)
        )
    };
    (bytes.min(most), Some(line))
}

/// Members that are not there although something is in their place that cannot be read.
fn dead(storage: &dyn Storage, reader: &Reader, without: &[MemberId]) -> Vec<Candidate> {
    let (membership, volume) = (reader.membership(), reader.superblock());
    let absent = membership.absent().filter(|member| !without.contains(member));
    let dead = absent.filter_map(|member| match storage.why_absent(volume, member)? {
        error @ volume::Error::Device(_) => Some((member, Err(error))),
        _ => None,
    });
    dead.collect()
}
