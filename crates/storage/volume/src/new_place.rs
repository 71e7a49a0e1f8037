//! Members and spares that lie elsewhere than the volume says, and what is kept of that.
//!
//! Kept is the path by which a member was found, made absolute: a lasting name of a disk stays one.
//! A name that leads to the member still is not replaced: of two names the older one may be the
//! lasting one.

use std::path::Path;

use format::superblock::{Superblock, kept_path};

use crate::{MemberAt, Membership, locate};

/// Where a member or spare lies from now on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewPlace {
    /// Id of the device.
    pub uuid: [u8; 16],
    /// As the superblocks will have it.
    pub path: String,
}

impl NewPlace {
    /// Of the device `uuid`, found at `path`, which the volume knows at `recorded`; `None` where it
    /// lies there still, or where no superblock can hold the path.
    pub fn of(path: &Path, uuid: [u8; 16], recorded: &str) -> Option<Self> {
        let absolute = std::path::absolute(path).ok()?;
        let kept = kept_path(absolute.to_str()?);
        let is_new = !kept.is_empty() && kept != recorded;
        (is_new && !leads_to(Path::new(recorded), &absolute, uuid))
            .then(|| Self { uuid, path: kept.to_owned() })
    }

    /// Of the members that were found and take part, by [`NewPlace::of`] or what stands in for it.
    pub fn of_members(
        membership: &Membership,
        found: &[MemberAt],
        of: impl Fn(&Path, [u8; 16], &str) -> Option<Self>,
    ) -> Vec<Self> {
        let new = |at: &MemberAt| {
            membership.of(at.member)?;
            let entry = membership.superblock().members.get(at.member.place())?;
            of(&at.path, entry.uuid, &entry.path)
        };
        found.iter().filter_map(new).collect()
    }

    /// The superblock with these places in it.
    pub fn in_superblock(places: &[Self], mut superblock: Superblock) -> Superblock {
        let members = superblock.members.iter_mut().map(|entry| (entry.uuid, &mut entry.path));
        let spares = superblock.spares.iter_mut().map(|spare| (spare.uuid, &mut spare.path));
        for (uuid, path) in members.chain(spares) {
            if let Some(new) = places.iter().find(|new| new.uuid == uuid) {
                path.clone_from(&new.path);
            }
        }
        superblock
    }
}

/// Whether the place that the volume knows is another name of where the device was found. A disk
/// is not what lies in its partition, although their bytes are the same.
fn leads_to(recorded: &Path, path: &Path, uuid: [u8; 16]) -> bool {
    let same = device::refuse_same_storage([recorded, path]);
    recorded.is_absolute()
        && matches!(same, Err(device::Error::SameStorage { .. }))
        && locate::superblock_at(recorded).is_some_and(|own| own.own_uuid() == uuid)
}
