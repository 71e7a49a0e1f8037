//! Changes of a volume's members while no recorder runs: a member gets back what it missed, a
//! device takes a member's place, members are added.
//!
//! Each opens the volume as a recorder does, and so is refused while one runs. Whatever is broken
//! off leaves a volume that knows how far it came.

use core::ops::ControlFlow;
use std::path::PathBuf;

use device::Device;
use format::geometry::{Geometry, RESERVED_BYTES, serialize_columns};
use format::superblock::Spare;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use units::{Clock, MemberId, Sleep};
use volume::{MemberAt, NewPlace, Reader};
use writer::{Opener, Resilvered, Writer};

use crate::create::{self, CreatedMember};
use crate::status::redundancy_without;
use crate::{CreateOptions, Error, Progress};

/// A volume to be changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// A member, or a spare.
    pub volume: PathBuf,
    /// Where further members are, besides the places that the volume knows.
    pub members: Vec<PathBuf>,
    /// Members that are given up for ever: not waited for, and strangers should they come back.
    pub without: Vec<MemberId>,
}

/// A device that is to become a member or a spare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewMember {
    /// A new file, or a block device.
    pub path: PathBuf,
    /// Leave a file unwritten.
    pub sparse: bool,
    /// Put no partition table on a whole disk.
    pub raw: bool,
    /// Destroy a volume or the known content of another program.
    pub force: bool,
}

/// A device that became a member or a spare.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Joined {
    /// The device.
    #[serde(flatten, serialize_with = "place")]
    pub device: CreatedMember,
    /// Its number; `None` for a spare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<MemberId>,
}

fn place<S: Serializer>(device: &CreatedMember, to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(2))?;
    map.serialize_entry("path", &device.path.to_string_lossy())?;
    map.serialize_entry("size_bytes", &device.size_bytes)?;
    map.end()
}

/// The shape that a volume has grown to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Grown {
    /// Members that joined.
    pub joined: Vec<Joined>,
    /// The shape before.
    #[serde(skip)]
    pub before: Geometry,
    /// The shape from now on.
    #[serde(flatten, serialize_with = "serialize_columns")]
    pub after: Geometry,
}

/// A volume opened by this process alone.
pub(crate) struct Opened {
    pub(crate) writer: Writer,
    pub(crate) members: Vec<MemberAt>,
}

/// This process, as it opens a volume for writing.
pub(crate) fn opener<'a>(members: &[MemberAt], clock: &'a dyn Sleep) -> Result<Opener<'a>, Error> {
    let (id, claimant) = (host::random_bytes()?, host::claimant());
    let interval_ms = blockdev::disk::claim_interval_ms(members.iter().map(|found| &*found.path));
    Ok(Opener { clock, interval_ms, id, claimant, is_gone: &host::is_gone })
}

/// Its members, locked, before anything is written.
struct Locked<'a> {
    target: &'a Target,
    members: Vec<MemberAt>,
    devices: Vec<Box<dyn Device>>,
}

impl<'a> Locked<'a> {
    fn new(target: &'a Target) -> Result<Self, Error> {
        let of_volume = |error| Error::of_volume(&target.volume, error);
        let found = volume::find_members(&target.volume, &target.members).map_err(of_volume)?;
        let members: Vec<MemberAt> =
            found.into_iter().filter(|found| !target.without.contains(&found.member)).collect();
        let open = |found: &MemberAt| device::open(&found.path, &device::Options::default());
        let devices = device::side_by_side("open", &members, open);
        let devices = devices.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { target, members, devices })
    }

    /// The shape of the ring, if a mount would come up.
    fn geometry(&self) -> Result<Geometry, Error> {
        let check = || {
            let reader = Reader::of_members(volume::open_members(&self.members)?)?;
            reader.check_quorum(&self.target.without)?;
            Ok(*reader.geometry())
        };
        check().map_err(|error| Error::of_volume(&self.target.volume, error))
    }

    fn mount(self, clock: &dyn Sleep) -> Result<Opened, Error> {
        let Self { target, members, devices } = self;
        let opener = opener(&members, clock)?;
        let of_volume = |error| Error::of_volume(&target.volume, error);
        let (mut writer, _) =
            writer::mount_without(devices, &target.without, &opener).map_err(of_volume)?;
        let moved = NewPlace::of_members(writer.membership(), &members, NewPlace::of);
        writer.remember(&moved, clock).map_err(of_volume)?;
        Ok(Opened { writer, members })
    }
}

impl Opened {
    pub(crate) fn new(target: &Target, clock: &dyn Sleep) -> Result<Self, Error> {
        Locked::new(target)?.mount(clock)
    }

    fn resilver(&mut self, clock: &dyn Clock, progress: Progress<'_>) -> Result<Resilvered, Error> {
        let members = self.members.clone();
        let open = |writer: &Writer| writer.reader(volume::open_members(&members)?);
        let report = writer::resilver(&mut self.writer, &open, clock, progress);
        report.map_err(|error| self.named(error))
    }

    /// [`prepare`] for this volume, which stays claimed meanwhile: a large file takes its time.
    fn prepare(
        &mut self,
        new: &NewMember,
        clock: &dyn Clock,
        progress: Progress<'_>,
    ) -> Result<Prepared, Error> {
        let (geometry, mut lost) = (*self.writer.geometry(), None);
        let prepared =
            prepare(&geometry, new, &mut |done, total| match self.writer.poll(None, clock) {
                Ok(()) => progress(done, total),
                Err(error) => {
                    lost = Some(error);
                    ControlFlow::Break(())
                }
            });
        lost.map_or(prepared, |error| Err(self.named(error)))
    }

    /// With what was got ready for it. Where that was refused, the volume is closed in order first:
    /// readers would take an end without a stop for a crash.
    fn with<T>(self, ready: Result<T, Error>, clock: &dyn Clock) -> Result<(Self, T), Error> {
        match ready {
            Ok(ready) => Ok((self, ready)),
            Err(refusal) => match self.close(clock) {
                Ok(()) | Err(_) => Err(refusal),
            },
        }
    }

    /// Where its first member is.
    pub(crate) fn path(&self) -> PathBuf {
        self.members.first().map(|member| member.path.clone()).unwrap_or_default()
    }

    pub(crate) fn named(&self, error: volume::Error) -> Error {
        Error::of_volume(&self.path(), error)
    }

    pub(crate) fn close(self, clock: &dyn Clock) -> Result<(), Error> {
        let path = self.path();
        self.writer.close(clock).map(|_| ()).map_err(|error| Error::of_volume(&path, error))
    }
}

/// A device that is fit to be a member, opened, and how the volume will know it.
type Prepared = (CreatedMember, Box<dyn Device>, Spare);

/// Makes a device fit to be a member: checked, written if it is a file, its ends cleared.
fn prepare(
    geometry: &Geometry,
    new: &NewMember,
    progress: Progress<'_>,
) -> Result<Prepared, Error> {
    let size_bytes =
        geometry.slot0_offset + geometry.slots * u64::from(geometry.piece_bytes) + RESERVED_BYTES;
    let NewMember { path, sparse, raw, force } = new.clone();
    let options = CreateOptions { sparse, raw, force, ..CreateOptions::of_member(path) };
    let (member, device) = create::prepare_member(&options, size_bytes, progress)?;
    let path = std::path::absolute(&member.path).unwrap_or_else(|_| member.path.clone());
    let path = path.to_string_lossy().into_owned();
    Ok((member, device, Spare { uuid: host::random_bytes()?, path }))
}

/// Gives stale members what they missed; `progress` may stop it, and the next time goes on there.
pub fn resilver(
    target: &Target,
    clock: &dyn Sleep,
    progress: Progress<'_>,
) -> Result<Resilvered, Error> {
    let mut opened = Opened::new(target, clock)?;
    let report = opened.resilver(clock, progress)?;
    opened.close(clock)?;
    Ok(report)
}

/// Puts a device into the place of member `member` and gives it everything that the others can.
///
/// # Errors
/// [`Error::StillNeeded`] when the others do not hold everything without it.
pub fn replace(
    target: &Target,
    (member, new): (MemberId, &NewMember),
    clock: &dyn Sleep,
    progress: Progress<'_>,
) -> Result<(Joined, Resilvered), Error> {
    // What is to go need not be waited for, whether it answers or not.
    let without = [&target.without[..], &[member]].concat();
    let without = Target { without, ..target.clone() };
    refuse_if_needed(target, member)?;
    let locked = Locked::new(&without)?;
    // The mount gives the member up for ever: not before there is something to put into its seat.
    let (device, opened_device, spare) = prepare(&locked.geometry()?, new, progress)?;
    let mut opened = locked.mount(clock)?;
    let replaced = opened.writer.replace((member, spare), opened_device, clock);
    replaced.map_err(|error| opened.named(error))?;
    opened.members.push(MemberAt { member, path: device.path.clone() });
    let report = opened.resilver(clock, progress)?;
    opened.close(clock)?;
    Ok((Joined { device, member: Some(member) }, report))
}

/// What a member holds and the others cannot give would be lost with it.
fn refuse_if_needed(target: &Target, member: MemberId) -> Result<(), Error> {
    let reader = crate::open(&target.volume, &target.members)?;
    let last = reader.geometry().last_member();
    if member > last {
        let source = volume::Error::NoSuchMember { member, last };
        return Err(Error::of_volume(&target.volume, source));
    }
    let others = redundancy_without(&reader, Some(member));
    if reader.membership().of(member).is_some()
        && others.iter().any(|part| part.spare_members.is_none())
    {
        return Err(Error::StillNeeded { path: target.volume.clone(), member });
    }
    Ok(())
}

/// Adds members: new stripes have a column for each of them, of which `parity_columns` in all are
/// for parity (as many as now, if that is not said).
pub fn grow(
    target: &Target,
    new: &[NewMember],
    parity_columns: Option<u8>,
    clock: &dyn Sleep,
    progress: Progress<'_>,
) -> Result<Grown, Error> {
    let mut opened = Opened::new(target, clock)?;
    let before = *opened.writer.geometry();
    let parity_columns = parity_columns.unwrap_or(before.parity_columns);
    // Refused before a device is touched.
    let ready = volume::columns_for(usize::from(before.columns()) + new.len(), parity_columns)
        .map_err(|error| Error::of_volume(&target.volume, error))
        .and_then(|_| prepare_all(&mut opened, new, clock, progress));
    let (mut opened, ready) = opened.with::<Vec<Prepared>>(ready, clock)?;
    let (mut joined, mut newcomers) = (Vec::new(), Vec::new());
    let behind = MemberId::all().skip(before.columns().into());
    for (member, (device, opened_device, spare)) in behind.zip(ready) {
        joined.push(Joined { device, member: Some(member) });
        newcomers.push((spare, opened_device));
    }
    let grown = opened.writer.grow(newcomers, parity_columns, clock);
    grown.map_err(|error| opened.named(error))?;
    let after = *opened.writer.geometry();
    opened.close(clock)?;
    Ok(Grown { joined, before, after })
}

/// All of them, or none is left.
fn prepare_all(
    opened: &mut Opened,
    new: &[NewMember],
    clock: &dyn Sleep,
    progress: Progress<'_>,
) -> Result<Vec<Prepared>, Error> {
    let mut ready: Vec<Prepared> = Vec::new();
    for one in new {
        match opened.prepare(one, clock, progress) {
            Ok(prepared) => ready.push(prepared),
            Err(error) => {
                for ((member, device, _), one) in ready.into_iter().zip(new) {
                    // The lock goes first.
                    drop(device);
                    create::unmake(&one.path, &member);
                }
                return Err(error);
            }
        }
    }
    Ok(ready)
}

/// Makes a device known that takes the place of a member when it fails.
pub fn add_spare(
    target: &Target,
    new: &NewMember,
    clock: &dyn Sleep,
    progress: Progress<'_>,
) -> Result<Joined, Error> {
    let mut opened = Opened::new(target, clock)?;
    let ready = opened.prepare(new, clock, progress);
    let (mut opened, (device, opened_device, spare)) = opened.with(ready, clock)?;
    let added = opened.writer.add_spare(spare, opened_device, clock);
    added.map_err(|error| opened.named(error))?;
    opened.close(clock)?;
    Ok(Joined { device, member: None })
}
