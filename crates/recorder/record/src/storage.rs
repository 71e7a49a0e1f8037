//! Where the members of a volume are, and how they are opened: by paths, or in a simulation.

use core::fmt;
use std::path::{Path, PathBuf};

use blockdev::disk::Disk;
use device::{Device, ReadAt, side_by_side};
use format::superblock::{Spare, Superblock};
use units::{MemberId, Sleep};
use volume::{MemberAt, NewPlace, Reader};
use writer::{Opener, RandomKey};

use crate::options::Options;

/// A device, or why there is none.
pub type OpenedDevice = Result<Box<dyn Device>, device::Error>;

/// The disks that a recording works on.
pub trait Storage: fmt::Debug + Send + Sync {
    /// The members at hand, as the user names them, and a reader that knows their superblocks.
    ///
    /// # Errors
    /// What was named is not there, or no member of the volume.
    fn find(&self) -> Result<(Vec<MemberAt>, Reader), volume::Error>;

    /// The members at hand, from whichever can be read.
    ///
    /// # Errors
    /// None can.
    fn find_any(&self) -> Result<Vec<MemberAt>, volume::Error>;

    /// Opens members to be read.
    ///
    /// # Errors
    /// As [`volume::open_members`].
    fn open_members(&self, members: &[MemberAt]) -> Result<Vec<Box<dyn ReadAt>>, volume::Error>;

    /// Opens what lies at `path` to be written.
    ///
    /// # Errors
    /// Those of the device; it is in use.
    fn open(&self, path: &Path) -> OpenedDevice;

    /// The same for all of these.
    fn open_all(&self, members: &[MemberAt]) -> Vec<OpenedDevice> {
        members.iter().map(|found| self.open(&found.path)).collect()
    }

    /// Who opens these members for writing, as others see it.
    ///
    /// # Errors
    /// There is no randomness.
    fn opener<'a>(
        &'a self,
        members: &[MemberAt],
        clock: &'a dyn Sleep,
    ) -> Result<Opener<'a>, host::Error>;

    /// Why what lies in the place of an absent member cannot be it; `None` when nothing is there.
    fn why_absent(&self, volume: &Superblock, member: MemberId) -> Option<volume::Error>;

    /// Where the spare is; `None` where it cannot be found.
    fn place_of(&self, spare: &Spare) -> Option<PathBuf>;

    /// What is to be remembered of a device that was found at `path`, where the volume knows it at
    /// `recorded`.
    fn new_place(&self, path: &Path, uuid: [u8; 16], recorded: &str) -> Option<NewPlace>;

    /// What is known of the disk at `path`.
    fn disk(&self, path: &Path) -> Option<Disk>;

    /// Makes the keys that packets are encrypted with.
    fn random_key(&self) -> RandomKey {
        Box::new(|| host::random_bytes().map_err(|error| error.to_string()))
    }
}

impl dyn Storage + '_ {
    /// The volume as it is now.
    ///
    /// # Errors
    /// Those of [`Self::find_any`] and [`Reader::open`].
    pub(crate) fn reader(&self) -> Result<Reader, volume::Error> {
        Reader::open(self.open_members(&self.find_any()?)?)
    }
}

/// Members at paths of this machine.
#[derive(Debug)]
pub(crate) struct Paths {
    volume: PathBuf,
    members: Vec<PathBuf>,
    options: device::Options,
}

impl Paths {
    pub(crate) fn new(options: &Options) -> Self {
        let (volume, members) = (options.volume.clone(), options.members.clone());
        Self { volume, members, options: options.device.clone() }
    }
}

impl Storage for Paths {
    fn find(&self) -> Result<(Vec<MemberAt>, Reader), volume::Error> {
        volume::open_found(&self.volume, &self.members)
    }

    fn find_any(&self) -> Result<Vec<MemberAt>, volume::Error> {
        // The member that the user named may be the one that failed.
        let first = volume::find_members(&self.volume, &self.members);
        let others = self.members.iter().map(|place| volume::find_members(place, &[]));
        let mut all = core::iter::once(first).chain(others);
        // Lazily: each search costs a look at every member.
        let first = all.next().expect("there is a first");
        match first {
            // From the place of a copy the copy would be found.
            Ok(_) | Err(volume::Error::Copies { .. }) => first,
            Err(_) => all.find(Result::is_ok).unwrap_or(first),
        }
    }

    fn open_members(&self, members: &[MemberAt]) -> Result<Vec<Box<dyn ReadAt>>, volume::Error> {
        volume::open_members(members)
    }

    fn open(&self, path: &Path) -> OpenedDevice {
        device::open(path, &self.options)
    }

    /// All at the same time.
    fn open_all(&self, members: &[MemberAt]) -> Vec<OpenedDevice> {
        side_by_side("open", members, |found| device::open(&found.path, &self.options))
    }

    fn opener<'a>(
        &'a self,
        members: &[MemberAt],
        clock: &'a dyn Sleep,
    ) -> Result<Opener<'a>, host::Error> {
        let (id, claimant) = (host::random_bytes()?, host::claimant());
        let interval_ms =
            blockdev::disk::claim_interval_ms(members.iter().map(|found| &*found.path));
        Ok(Opener { clock, interval_ms, id, claimant, is_gone: &host::is_gone })
    }

    fn why_absent(&self, volume: &Superblock, member: MemberId) -> Option<volume::Error> {
        volume::why_absent(&self.volume, volume, member)
    }

    fn place_of(&self, spare: &Spare) -> Option<PathBuf> {
        volume::place_of_spare(&self.volume, &self.members, spare)
    }

    fn new_place(&self, path: &Path, uuid: [u8; 16], recorded: &str) -> Option<NewPlace> {
        NewPlace::of(path, uuid, recorded)
    }

    fn disk(&self, path: &Path) -> Option<Disk> {
        blockdev::disk::of(path).ok().flatten()
    }
}
