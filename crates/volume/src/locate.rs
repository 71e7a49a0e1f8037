//! Finding the members of a volume from any one of them.
//!
//! The others are looked for where the superblock says they were, beside the one given (there first
//! when that one is not where it was), where any other member or spare was, and where the user
//! says. A member is known by its superblock, never by its name.

use std::path::{Path, PathBuf};

use device::ReadAt;
use format::superblock::{Spare, Superblock, SuperblockError};

use crate::{Error, Reader, superblocks};

/// A member that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberAt {
    /// Its number.
    pub member: u8,
    /// Where it is.
    pub path: PathBuf,
}

/// A member that was found, its device, and what that says.
type Found = (MemberAt, Box<dyn ReadAt>, Superblock);

/// The members at hand of the volume that `path` is a member of, by number. `named` are further
/// places to look at; each must hold a member of the volume.
///
/// # Errors
/// Those of the one at `path`, and, as [`Error::At`], of those named; [`Error::ReplacedMember`] and
/// [`Error::GivenUp`] are of either. Others that are not found, and those named that cannot be
/// read, are absent.
pub fn find_members(path: &Path, named: &[PathBuf]) -> Result<Vec<MemberAt>, Error> {
    Ok(find(path, named)?.into_iter().map(|(found, ..)| found).collect())
}

/// The same, opened.
fn find(path: &Path, named: &[PathBuf]) -> Result<Vec<Found>, Error> {
    let unreadable = |error: Error| match error {
        Error::Device(cause) if cause.is_failure() => Error::Unreadable { cause },
        other => other,
    };
    let device = device::open_read(path).map_err(|error| unreadable(error.into()))?;
    let first = superblocks::load_from(device.as_ref()).map_err(unreadable)?;
    // A spare knows the members, and is none.
    let is_member = usize::from(first.member) < first.members.len();
    let own = (MemberAt { member: first.member, path: path.to_path_buf() }, device, first.clone());
    let mut found: Vec<Found> = is_member.then_some(own).into_iter().collect();
    for path in named {
        let at = |source: Error| Error::At { path: path.clone(), source: Box::new(source) };
        let opened = device::open_read(path).map_err(Error::from).and_then(|device| {
            let superblock = superblocks::load_from(device.as_ref())?;
            Ok((device, superblock))
        });
        let (device, superblock) = match opened {
            // A disk that died is absent, also for who has always named it.
            Err(Error::Device(error)) if error.is_failure() => continue,
            opened => opened.map_err(at)?,
        };
        if superblock.volume_id != first.volume_id {
            let volume_id = superblock.volume_id;
            return Err(at(Error::ForeignMember { place: found.len(), volume_id }));
        }
        let at = MemberAt { member: superblock.member, path: path.clone() };
        found.push((at, device, superblock));
    }
    let given = found.len();
    let places = Places::new(path, &first);
    // Names of devices move when a machine starts: a member may lie where another one was.
    let entries = first.members.iter().map(|entry| &entry.path);
    let spares = first.spares.iter().map(|spare| &spare.path);
    let all: Vec<PathBuf> = entries.chain(spares).flat_map(|path| places.of(path)).collect();
    for (member, entry) in (0..).zip(&first.members) {
        if found.iter().any(|(other, ..)| other.member == member) {
            continue;
        }
        let own = places.of(&entry.path);
        let opened = own.iter().chain(&all).find_map(|path| {
            let path = path.clone();
            let device = device::open_read(&path).ok()?;
            let superblock = superblocks::load_from(device.as_ref()).ok()?;
            let is_it = superblock.volume_id == first.volume_id && superblock.member == member;
            is_it.then_some((MemberAt { member, path }, device, superblock))
        });
        found.extend(opened);
    }
    leave_strangers(&mut found, given)?;
    found.sort_by_key(|(found, ..)| found.member);
    Ok(found)
}

/// Refuses those `given` by the user that are members no more: replaced, or called gone for good.
/// The others lie where the member named first knew them, and are left alone.
fn leave_strangers(found: &mut Vec<Found>, given: usize) -> Result<(), Error> {
    let all = found.iter().map(|(.., superblock)| superblock);
    let newest = all.max_by_key(|superblock| superblock.newness());
    let Some(newest) = newest.cloned() else { return Ok(()) };
    let seat_of = |own: &Superblock| newest.members.get(usize::from(own.member));
    let is_known = |own: &Superblock| seat_of(own).is_none_or(|seat| seat.uuid == own.own_uuid());
    if let Some((at, _, own)) = found.iter().take(given).find(|(.., own)| !is_known(own)) {
        let source = Box::new(Error::of_stranger(0, own.member, seat_of(own)));
        return Err(Error::At { path: at.path.clone(), source });
    }
    found.retain(|(.., own)| is_known(own));
    Ok(())
}

/// Where the other members are looked for.
struct Places<'a> {
    beside: &'a Path,
    /// The given member lies where it was when the superblock was written.
    is_at_home: bool,
}

impl<'a> Places<'a> {
    fn new(path: &'a Path, own: &Superblock) -> Self {
        let recorded = own.members.get(usize::from(own.member)).map(|entry| Path::new(&entry.path));
        let same = |recorded: &Path| {
            let resolved = (path.canonicalize().ok(), recorded.canonicalize().ok());
            resolved.0.is_some() && resolved.0 == resolved.1
        };
        let is_at_home = recorded.is_some_and(same);
        Self { beside: path.parent().unwrap_or(Path::new("")), is_at_home }
    }

    /// A volume that was moved or copied is found beside the member given first: what lies at the
    /// old places may be the original.
    fn of(&self, recorded: &str) -> Vec<PathBuf> {
        let recorded = Path::new(recorded);
        let beside = recorded.file_name().map(|name| self.beside.join(name));
        let mut places: Vec<PathBuf> = beside.into_iter().chain([recorded.to_path_buf()]).collect();
        if self.is_at_home {
            places.reverse();
        }
        places
    }
}

/// Why what lies at the place of an absent member cannot be it; `None` when nothing is there, or
/// something that is no member of any volume.
pub fn why_absent(path: &Path, volume: &Superblock, member: u8) -> Option<Error> {
    let entry = volume.members.get(usize::from(member))?;
    let places = Places { beside: path.parent().unwrap_or(Path::new("")), is_at_home: true };
    places.of(&entry.path).into_iter().find_map(|place| {
        let device = match device::open_read(&place) {
            Ok(device) => device,
            Err(error) => return error.is_failure().then(|| error.into()),
        };
        match superblocks::load_from(device.as_ref()) {
            Err(Error::NoSuperblock(SuperblockError::Magic)) => None,
            Err(error) => Some(error),
            Ok(found) if found.volume_id != volume.volume_id => {
                Some(Error::ForeignMember { place: 0, volume_id: found.volume_id })
            }
            Ok(_) => None,
        }
    })
}

/// Where an absent member should lie of the volume that `path` is a member of: of one that was
/// moved or copied beside it, for what lies at the old place may be the original.
pub fn place_of(path: &Path, member: u8) -> Option<PathBuf> {
    let own = superblocks::load_from(device::open_read(path).ok()?.as_ref()).ok()?;
    let entry = own.members.get(usize::from(member))?;
    Places::new(path, &own).of(&entry.path).into_iter().next()
}

/// Whether what is at `path` can be read and no superblock copy on it is valid.
pub fn lacks_superblock(path: &Path) -> bool {
    let device = device::open_read(path).ok();
    let loaded = device.map(|device| superblocks::load_from(device.as_ref()));
    matches!(loaded, Some(Err(Error::NoSuperblock(_))))
}

/// Whether `spare` is there, at `path`.
pub fn is_spare_at(path: &Path, spare: &Spare) -> bool {
    let superblock = device::open_read(path)
        .ok()
        .and_then(|device| superblocks::load_from(device.as_ref()).ok());
    superblock.is_some_and(|found| found.own_uuid() == spare.uuid)
}

/// Opens the volume that `path` is a member of, for reading only.
///
/// # Errors
/// As [`find_members`] and [`Reader::open`].
pub fn open_reader(path: &Path, named: &[PathBuf]) -> Result<Reader, Error> {
    let mut reader = open_superblocks(path, named)?;
    reader.find_newest()?;
    Ok(reader)
}

/// The same, with no look for the newest stripe: no stripe can be read with it yet.
pub fn open_superblocks(path: &Path, named: &[PathBuf]) -> Result<Reader, Error> {
    Reader::of_members(find(path, named)?.into_iter().map(|(_, device, _)| device).collect())
}

/// Opens members for reading.
pub fn open_members(members: &[MemberAt]) -> Result<Vec<Box<dyn ReadAt>>, Error> {
    let open = |found: &MemberAt| {
        device::open_read(&found.path)
            .map_err(|error| Error::At { path: found.path.clone(), source: Box::new(error.into()) })
    };
    members.iter().map(open).collect()
}
