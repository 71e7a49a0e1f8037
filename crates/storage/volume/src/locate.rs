//! Finding the members of a volume from any one of them.
//!
//! The others are looked for where the superblock says they were, beside the one given (there first
//! when that one is not where it was), where any other member or spare was, by the lasting names of
//! block devices, and where the user says: at a path, or among the files of a folder. A member is
//! known by its superblock, never by its name.
//!
//! Many places are asked at the same time, and none of them is waited for longer than
//! [`device::PATIENCE`]: who does not answer is absent.

use core::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use device::{ReadAt, patiently, side_by_side};
use format::superblock::{Spare, Superblock, SuperblockError};
use serde::{Serialize, Serializer};
use units::MemberId;

use crate::{Error, Reader, superblocks};

/// A member that was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MemberAt {
    /// Number of the member.
    pub member: MemberId,
    /// Path of the member.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
}

/// A path in a report, for serde: bytes that are no text are replaced, as JSON is text.
pub fn path_text<S: Serializer>(path: &impl AsRef<Path>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.as_ref().to_string_lossy())
}

/// A member that was found, its device, and what that says.
type Found = (MemberAt, Box<dyn ReadAt>, Superblock);

/// The members at hand of the volume that `path` is a member of, by number. `named` are further
/// places to look at: each must hold a member of the volume, or be a folder, which may have some
/// among its files.
///
/// # Errors
/// Those of the one at `path`, and, as [`Error::At`], of those named; [`Error::ReplacedMember`] and
/// [`Error::GivenUp`] are of either. Others that are not found, and those named that cannot be
/// read or are not there, are absent: the node of a disk goes with it. Where that is so of the one
/// at `path` the first one named stands in for it.
pub fn find_members(path: &Path, named: &[PathBuf]) -> Result<Vec<MemberAt>, Error> {
    Ok(find(path, named)?.into_iter().map(|(found, ..)| found).collect())
}

/// The same, opened.
fn find(path: &Path, named: &[PathBuf]) -> Result<Vec<Found>, Error> {
    let (folders, named) = folders_among(named)?;
    let mut asked: Vec<PathBuf> = core::iter::once(path.to_path_buf()).chain(named).collect();
    let (first, mut found) = given(look_at(&asked)?)?;
    let given = found.len();
    let places = Places::new(path, &first);
    for round in [Round::Named(&folders), Round::Others, Round::Links] {
        // One that was away does not know who came or moved meanwhile.
        let known = newest_of(&found).unwrap_or_else(|| first.clone());
        let is_found = |member| found.iter().any(|(at, ..)| at.member == member);
        let missing: Vec<MemberId> = seats(&known).filter(|&member| !is_found(member)).collect();
        if missing.is_empty() {
            break;
        }
        let mut candidates = round.places(&places, &known, &missing);
        candidates.retain(|path| !asked.contains(path));
        asked.extend(candidates.iter().cloned());
        let mut new = Vec::new();
        for (path, loaded) in look_at(&candidates)? {
            let Ok((device, superblock)) = loaded else { continue };
            let member = superblock.member;
            if superblock.volume_id == first.volume_id && missing.contains(&member) {
                new.push((MemberAt { member, path }, device, superblock));
            }
        }
        found.extend(newest_of_each(new));
    }
    if places.is_at_home {
        let twins = twins_of(found.get(..given).unwrap_or_default(), (&first, path), &asked)?;
        found.extend(twins);
    }
    leave_strangers(&mut found, given)?;
    found.sort_by_key(|(found, ..)| found.member);
    refuse_copies(&found)?;
    Ok(found)
}

/// What lies where members were known to be that the user has named elsewhere, and is as good as
/// what was named. The one at `home` lies where it was.
fn twins_of(
    given: &[Found],
    (volume, home): (&Superblock, &Path),
    asked: &[PathBuf],
) -> Result<Vec<Found>, Error> {
    let named = given.iter().filter(|(at, ..)| at.path != home);
    let place = |(at, ..): &Found| {
        let entry = volume.members.get(at.member.place())?;
        let place = PathBuf::from(&entry.path);
        (!entry.path.is_empty() && !asked.contains(&place)).then_some(place)
    };
    let places: Vec<PathBuf> = named.clone().filter_map(place).collect();
    let mut twins = Vec::new();
    for (path, loaded) in look_at(&places)? {
        let Ok((device, own)) = loaded else { continue };
        let is_twin = |(at, _, known): &Found| {
            let is_same_member = (known.volume_id, at.member) == (own.volume_id, own.member);
            is_same_member
                && own.newness() >= known.newness()
                && device::refuse_same_storage([&*at.path, &*path]).is_ok()
        };
        if named.clone().any(is_twin) {
            twins.push((MemberAt { member: own.member, path }, device, own));
        }
    }
    Ok(twins)
}

/// Which of them is the member nobody can tell. Sorted by member.
fn refuse_copies(found: &[Found]) -> Result<(), Error> {
    let alike = found.windows(2).find_map(|pair| match pair {
        [(one, ..), (other, ..)] if one.member == other.member => Some([one, other]),
        _ => None,
    });
    alike.map_or(Ok(()), |[one, other]| {
        let [path, other] = [&one.path, &other.path].map(PathBuf::clone);
        Err(Error::Copies { member: one.member, path, other })
    })
}

/// Of copies of a member the newest: one that was put aside is not taken for the member. Copies
/// that are alike are all kept, to be refused, unless they are one disk under several names.
fn newest_of_each(mut new: Vec<Found>) -> Vec<Found> {
    new.sort_by_key(|(.., own)| Reverse(own.newness()));
    let mut kept: Vec<Found> = Vec::new();
    for one in new {
        let (at, _, own) = &one;
        let is_another = |(other, _, known): &Found| {
            let places = [&*other.path, &*at.path];
            known.newness() == own.newness() && device::refuse_same_storage(places).is_ok()
        };
        if kept.iter().filter(|(other, ..)| other.member == at.member).all(is_another) {
            kept.push(one);
        }
    }
    kept
}

/// The superblock that the others are found by, and the members among what the user gave: that of
/// the first one, or, where its device has failed, of the first that can be read.
fn given(looked: Vec<(PathBuf, Loaded)>) -> Result<(Superblock, Vec<Found>), Error> {
    let mut named = looked.into_iter();
    let own = match named.next() {
        // Any other one would do.
        Some((_, Err(Error::Device(cause)))) if is_away(&cause) => Err(cause),
        Some((path, loaded)) => Ok((path, loaded?)),
        None => return Err(Error::NoMembers),
    };
    let named: Vec<_> = named.collect();
    let first = match &own {
        Ok((_, (_, superblock))) => superblock.clone(),
        Err(cause) => {
            let mut readable = named.iter().filter_map(|(_, loaded)| loaded.as_ref().ok());
            let (_, superblock) = readable.next().ok_or_else(|| match cause {
                device::Error::NotFound { .. } => Error::Device(cause.clone()),
                _ => Error::Unreadable { cause: cause.clone() },
            })?;
            superblock.clone()
        }
    };
    // A spare knows the members, and is none.
    let is_member = first.member.place() < first.members.len();
    let own = own.ok().filter(|_| is_member).map(|(path, (device, superblock))| {
        (MemberAt { member: superblock.member, path }, device, superblock)
    });
    let mut found: Vec<Found> = own.into_iter().collect();
    for (path, loaded) in named {
        let (device, superblock) = match loaded {
            // A disk that died is absent, also for who has always named it.
            Err(Error::Device(error)) if is_away(&error) => continue,
            Err(error) => return Err(Error::At { path, source: Box::new(error) }),
            Ok(loaded) => loaded,
        };
        if superblock.volume_id != first.volume_id {
            let volume_id = superblock.volume_id;
            let source = Box::new(Error::ForeignMember { place: found.len(), volume_id });
            return Err(Error::At { path, source });
        }
        // A spare is named to be found as one.
        if superblock.member.place() >= first.members.len() {
            continue;
        }
        let is_same = |(other, ..): &&Found| other.member == superblock.member;
        if let Some((other, ..)) = found.iter().find(is_same) {
            device::refuse_same_storage([&*other.path, &*path])?;
        }
        found.push((MemberAt { member: superblock.member, path }, device, superblock));
    }
    Ok((first, found))
}

/// A disk that died, with its node or without.
fn is_away(error: &device::Error) -> bool {
    error.is_failure() || matches!(error, device::Error::NotFound { .. })
}

/// Numbers of members that are not vacant.
fn seats(volume: &Superblock) -> impl Iterator<Item = MemberId> {
    let seats = MemberId::all().zip(&volume.members).filter(|(_, entry)| !entry.is_vacant());
    seats.map(|(member, _)| member)
}

/// What is to be looked for members in, and the other paths.
fn folders_among(named: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Error> {
    let mut parts = (Vec::new(), Vec::new());
    let looked = side_by_side("look", named, |path| {
        let own = path.clone();
        patiently(path, move || own.is_dir())
    });
    for (path, answer) in named.iter().zip(looked) {
        let is_folder = match answer {
            Err(device::Error::Interrupted) => return Err(device::Error::Interrupted.into()),
            answer => answer.unwrap_or(false),
        };
        if is_folder { &mut parts.0 } else { &mut parts.1 }.push(path.clone());
    }
    Ok(parts)
}

/// What is at a place: a device and what it says.
type Loaded = Result<(Box<dyn ReadAt>, Superblock), Error>;

/// What the device at a place says; `None` where there is none, or it is silent.
pub(crate) fn superblock_at(place: &Path) -> Option<Superblock> {
    let (_, loaded) = look_at(&[place.to_path_buf()]).ok()?.pop()?;
    loaded.ok().map(|(_, superblock)| superblock)
}

/// Opens what is at these places, all at the same time, and reads what it says. Places that are
/// silent are among the errors; that the process is to stop ends it.
fn look_at(places: &[PathBuf]) -> Result<Vec<(PathBuf, Loaded)>, Error> {
    let load = |path: &PathBuf| -> Loaded {
        let device = device::open_read(path)?;
        let superblock = superblocks::load_from(device.as_ref())?;
        Ok((device, superblock))
    };
    let loaded = side_by_side("look", places, load);
    let looked: Vec<(PathBuf, Loaded)> = places.iter().cloned().zip(loaded).collect();
    let is_interrupted =
        |loaded: &Loaded| matches!(loaded, Err(Error::Device(device::Error::Interrupted)));
    if looked.iter().any(|(_, loaded)| is_interrupted(loaded)) {
        return Err(device::Error::Interrupted.into());
    }
    Ok(looked)
}

/// Where members that are missing are looked for, one after the other.
#[derive(Clone, Copy)]
enum Round<'a> {
    /// Where each of them was, and in folders that the user named.
    Named(&'a [PathBuf]),
    /// Where any other member or spare was: names of devices move when a machine starts.
    Others,
    /// By the lasting names of devices.
    Links,
}

impl Round<'_> {
    fn places(
        self,
        places: &Places<'_>,
        volume: &Superblock,
        missing: &[MemberId],
    ) -> Vec<PathBuf> {
        let entries = volume.members.iter().map(|entry| &entry.path);
        match self {
            Self::Named(folders) => {
                let is_missing = |(member, _): &(MemberId, _)| missing.contains(member);
                let own = MemberId::all().zip(entries).filter(is_missing);
                let own = own.filter_map(|(_, path)| places.of(path).into_iter().next());
                own.chain(files_of(folders)).collect()
            }
            Self::Others => {
                let spares = volume.spares.iter().map(|spare| &spare.path);
                let mut seen = BTreeSet::new();
                let all = entries.chain(spares).flat_map(|path| places.of(path));
                all.filter(|path| seen.insert(path.clone())).collect()
            }
            // Not every disk of the machine is woken for a volume of files.
            Self::Links if !volume.members.iter().any(|it| it.path.starts_with("/dev/")) => {
                Vec::new()
            }
            Self::Links => device::linked_devices(),
        }
    }
}

/// A folder that cannot be listed holds nothing.
fn files_of(folders: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    folders.iter().flat_map(|folder| device::files_in(folder).unwrap_or_default())
}

/// What counts for all of them.
fn newest_of(found: &[Found]) -> Option<Superblock> {
    let all = found.iter().map(|(.., superblock)| superblock);
    all.max_by_key(|superblock| superblock.newness()).cloned()
}

/// Refuses those `given` by the user that are members no more: replaced, or called gone for good.
/// The others lie where the member named first knew them, and are left alone.
fn leave_strangers(found: &mut Vec<Found>, given: usize) -> Result<(), Error> {
    let Some(newest) = newest_of(found) else { return Ok(()) };
    let seat_of = |own: &Superblock| newest.members.get(own.member.place());
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
        let recorded = own.members.get(own.member.place()).map(|entry| Path::new(&entry.path));
        let resolve = |path: &Path| {
            let own = path.to_path_buf();
            patiently(path, move || own.canonicalize().ok()).ok().flatten()
        };
        let same = |recorded: &Path| {
            path == recorded || resolve(path).is_some_and(|own| Some(own) == resolve(recorded))
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
pub fn why_absent(path: &Path, volume: &Superblock, member: MemberId) -> Option<Error> {
    let entry = volume.members.get(member.place())?;
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
pub fn place_of(path: &Path, member: MemberId) -> Option<PathBuf> {
    let own = superblocks::load_from(device::open_read(path).ok()?.as_ref()).ok()?;
    let entry = own.members.get(member.place())?;
    Places::new(path, &own).of(&entry.path).into_iter().next()
}

/// Whether what is at `path` can be read and no superblock copy on it is valid.
pub fn lacks_superblock(path: &Path) -> bool {
    let device = device::open_read(path).ok();
    let loaded = device.map(|device| superblocks::load_from(device.as_ref()));
    matches!(loaded, Some(Err(Error::NoSuperblock(_))))
}

/// Where a spare of the volume that `path` is a member of lies: where it was, beside that member,
/// or at a place or in a folder of those `named`.
pub fn place_of_spare(path: &Path, named: &[PathBuf], spare: &Spare) -> Option<PathBuf> {
    let recorded = PathBuf::from(&spare.path);
    let beside = recorded.file_name().map(|name| path.with_file_name(name));
    let (folders, named) = folders_among(named).ok()?;
    let places = core::iter::once(recorded).chain(beside).chain(named).chain(files_of(&folders));
    let looked = look_at(&places.collect::<Vec<_>>()).ok()?;
    let is_it = |loaded: Loaded| loaded.is_ok_and(|(_, own)| own.own_uuid() == spare.uuid);
    looked.into_iter().find_map(|(path, loaded)| is_it(loaded).then_some(path))
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
    Ok(open_found(path, named)?.1)
}

/// The same, and where its members are.
///
/// # Errors
/// As [`find_members`] and [`Reader::open`].
pub fn open_found(path: &Path, named: &[PathBuf]) -> Result<(Vec<MemberAt>, Reader), Error> {
    let found = find(path, named)?;
    let places = found.iter().map(|(at, ..)| at.clone()).collect();
    let loaded = found.into_iter().map(|(_, device, superblock)| (device, superblock)).collect();
    Ok((places, Reader::of_found(loaded, true)?))
}

/// Opens members for reading, all at the same time. Those that fail are left out, as long as there
/// is another one.
pub fn open_members(members: &[MemberAt]) -> Result<Vec<Box<dyn ReadAt>>, Error> {
    let (mut opened, mut failed) = (Vec::new(), None);
    let all = side_by_side("open", members, |found| device::open_read(&found.path));
    for (MemberAt { path, .. }, result) in members.iter().zip(all) {
        match result {
            Ok(device) => opened.push(device),
            Err(error) => {
                let is_failure = error.is_failure();
                let error = Error::At { path: path.clone(), source: Box::new(error.into()) };
                if !is_failure {
                    return Err(error);
                }
                failed.get_or_insert(error);
            }
        }
    }
    failed.filter(|_| opened.is_empty()).map_or(Ok(opened), Err)
}
