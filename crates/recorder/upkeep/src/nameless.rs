//! Members that lost all their superblock copies: found by their heads, and named again.

use std::path::{Path, PathBuf};

use format::superblock::SUPERBLOCK_COPIES;
use volume::{MemberAt, Reader, Recognized};

use crate::Error;
use crate::fate::{BadCopy, Fate};

/// An absent member whose device is there.
pub(crate) struct Nameless {
    pub(crate) at: MemberAt,
    is_current: bool,
}

/// Devices of absent members that have no superblock any more: in the places of those members, and
/// where the user says.
///
/// # Errors
/// When the user named one that is none. What else lies in a member's place is left alone.
pub(crate) fn find(
    path: &Path,
    named: &[PathBuf],
    reader: &Reader,
) -> Result<Vec<Nameless>, Error> {
    let mut found: Vec<Nameless> = Vec::new();
    for place in named {
        match recognize(reader, place) {
            Recognized::Member { member, is_current } => {
                found.push(Nameless { at: MemberAt { member, path: place.clone() }, is_current });
            }
            Recognized::Ahead => return Err(Error::Ahead { path: place.clone() }),
            Recognized::Stranger => return Err(Error::Stranger { path: place.clone() }),
        }
    }
    for member in reader.membership().absent() {
        if found.iter().any(|other| other.at.member == member) {
            continue;
        }
        let place = volume::place_of(path, member);
        let Some(place) = place.filter(|place| volume::lacks_superblock(place)) else { continue };
        match recognize(reader, &place) {
            Recognized::Member { member: own, is_current } if own == member => {
                found.push(Nameless { at: MemberAt { member, path: place }, is_current });
            }
            Recognized::Ahead => return Err(Error::Ahead { path: place }),
            Recognized::Member { .. } | Recognized::Stranger => {}
        }
    }
    Ok(found)
}

fn recognize(reader: &Reader, place: &Path) -> Recognized {
    let device = device::open_read(place);
    device.map_or(Recognized::Stranger, |device| volume::recognize(reader, device.as_ref()))
}

/// Writes their superblocks anew.
pub(crate) fn restore(reader: &Reader, lost: &[Nameless]) -> Result<(), Error> {
    for Nameless { at, is_current } in lost {
        let mut device = device::open(&at.path, &device::Options::default())?;
        volume::restore_superblocks(reader, device.as_mut(), (at.member, *is_current))
            .map_err(|source| Error::of_volume(&at.path, source))?;
    }
    Ok(())
}

/// Their copies, for the report.
pub(crate) fn copies(lost: &[Nameless], dry_run: bool) -> impl Iterator<Item = BadCopy> {
    let fate = if dry_run { Fate::Repairable } else { Fate::Repaired };
    lost.iter().flat_map(move |lost| {
        let (member, fate) = (lost.at.member, fate.clone());
        (0..SUPERBLOCK_COPIES).map(move |copy| BadCopy {
            member,
            copy,
            is_old: false,
            fate: fate.clone(),
        })
    })
}
