//! Who may be refused, as docs/format.md says it (Members, 1 to 3), from the superblocks as they
//! lie on the disks: written without looking at how a mount does it.

use device::{Modelled, ReadAt};
use format::superblock::{SUPERBLOCK_BYTES, SUPERBLOCK_COPIES, Superblock, copy_offset};
use units::{Epoch, Sequence};

use crate::disks::Disks;

/// The newest copy of a member's superblock.
fn newest_copy(disk: &Modelled) -> Option<Superblock> {
    let copies = (0..SUPERBLOCK_COPIES).filter_map(|copy| {
        let mut page = [0; SUPERBLOCK_BYTES];
        let offset = copy_offset(copy, ReadAt::size_bytes(disk));
        ReadAt::read_at(disk, offset, &mut page).ok()?;
        Superblock::decode(&page, copy).ok()
    });
    copies.max_by_key(|copy| copy.generation)
}

/// Where the newest epoch starts that the superblocks of those in `here` name; 0: none.
pub(crate) fn newest_start(disks: &Disks, here: u32) -> Sequence {
    let found = disks.among(here).filter_map(|(_, disk)| newest_copy(disk));
    found.map(|own| own.joined_start).max().unwrap_or_default()
}

/// Members needed of so many.
fn quorum(members: u32, data: u32) -> u32 {
    data.max((members.count_ones() + 1).saturating_sub(data))
}

/// Whether those in `here` need not be enough for a mount. `used_to` is the newest sequence that
/// surely lies on the ring.
pub(crate) fn may_refuse(disks: &Disks, here: u32, (data, used_to): (u32, Sequence)) -> bool {
    let found: Vec<(u32, Superblock)> = disks
        .among(here)
        .filter_map(|(member, disk)| Some((1 << member, newest_copy(disk)?)))
        .collect();
    let Some((_, newest)) = found.iter().max_by_key(|(_, own)| own.newness()) else { return true };
    let here = found.iter().fold(0, |bits, (member, _)| bits | member);
    let everybody = (1 << newest.members.len()) - 1;
    if here == everybody {
        return false;
    }
    if newest.joined_epoch == Epoch::NONE {
        return true;
    }
    let has_joined = |(_, own): &&(u32, Superblock)| own.joined_epoch == newest.joined_epoch;
    let joined = found.iter().filter(has_joined).fold(0, |bits, (member, _)| bits | member);
    let (of_newest, before) = (newest.joined_members, newest.previous_members);
    let needed = quorum(of_newest, data);
    if (here & of_newest).count_ones() < needed {
        return true;
    }
    // No member has to know of a JOIN that so few have.
    let is_settled = before == 0 || (before & !joined).count_ones() < quorum(before, data);
    let is_used = used_to > newest.joined_start;
    let lacks_before = !is_settled && (here & before).count_ones() < quorum(before, data);
    (joined & of_newest).count_ones() < needed || (lacks_before && !is_used)
}
