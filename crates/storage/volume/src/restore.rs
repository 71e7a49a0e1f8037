//! A device that lost all its superblock copies: which member it is, and its superblock anew.
//!
//! Its heads carry the volume, the member and the identity of its device under the volume's key, so
//! they say who it is and no other member can. Whether it is up to date the others know: it is if
//! it has what was acknowledged last. One that is not comes back stale, like one that was away.

use device::{Device, ReadAt};
use format::head::{HEAD_BYTES, Head, HeadKey};
use format::superblock::Superblock;
use units::{EachSequence, Epoch, MemberId, Sequence};

use crate::{Error, Reader, superblocks};

/// Slots whose first heads are asked: the newest ones. One that can be read is enough.
const SLOTS_ASKED: u64 = 64;

/// Who a device without superblocks is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recognized {
    /// This member, which is absent; it may have everything that was acknowledged, or not.
    Member {
        /// Number of the member.
        member: MemberId,
        /// It has what was acknowledged last, and took part then.
        is_current: bool,
    },
    /// A member that has recorded since without those at hand: its past is newer than theirs.
    Ahead,
    /// Its heads are of another volume or device, or there are none.
    Stranger,
}

/// Who `device`, of which no superblock can be read, is among the members of the volume of
/// `reader`.
pub fn recognize(reader: &Reader, device: &dyn ReadAt) -> Recognized {
    let (Some(span), volume) = (reader.span(), reader.superblock()) else {
        return Recognized::Stranger;
    };
    let newest = span.acknowledged.sequence;
    // Members that went on without the others began behind what they know, by at most W slots.
    let beyond = newest + 2 * u64::from(volume.window) + 2;
    let oldest = newest.saturating_sub(SLOTS_ASKED).max(span.tail);
    let of_slot = |sequence| head_of(device, volume, sequence);
    let heads: Vec<Head> = (oldest..=beyond).each().rev().filter_map(of_slot).collect();
    let Some(first) = heads.first() else { return Recognized::Stranger };
    let (member, uuid) = (first.piece.member, first.piece.member_uuid);
    let is_one =
        heads.iter().all(|head| (head.piece.member, head.piece.member_uuid) == (member, uuid));
    let entry = volume.members.get(member.place()).filter(|entry| entry.uuid == uuid);
    let Some(entry) = entry.filter(|_| is_one && reader.membership().of(member).is_none()) else {
        return Recognized::Stranger;
    };
    if heads.iter().any(|head| head.stripe.epoch > volume.joined_epoch) {
        return Recognized::Ahead;
    }
    let last = reader.head(newest).map(|head| head.cid);
    let has_last = last.is_some_and(|last| heads.iter().any(|head| head.cid == last));
    let took_part = volume.joined_members & (member.bit()) != 0;
    let lacks_nothing = entry.stale_from >= entry.clean_from;
    Recognized::Member { member, is_current: has_last && took_part && lacks_nothing }
}

/// The first head in the slot of `sequence`, of whatever lap, if it is one of the volume.
fn head_of(device: &dyn ReadAt, volume: &Superblock, sequence: Sequence) -> Option<Head> {
    let mut page = [0; HEAD_BYTES];
    let key: &HeadKey = &volume.head_key;
    device.read_at(volume.geometry.slot_offset(sequence), &mut page).ok()?;
    let head = Head::decode(&page, Some(key)).ok()?;
    let (stripe, slot) = (&head.stripe, volume.geometry.slot(sequence));
    let belongs = stripe.volume_id == volume.volume_id
        && volume.geometry.slot(stripe.stripe.sequence) == slot
        && stripe.stripe.sub == 0;
    belongs.then_some(head)
}

/// Writes all superblock copies of `member` anew, as the other members have them. One that is not
/// current is named stale: it counts again when it was given back what it misses.
///
/// # Errors
/// [`Error::Shrunk`] when the device is smaller than the ring.
pub fn restore_superblocks(
    reader: &Reader,
    device: &mut dyn Device,
    (member, is_current): (MemberId, bool),
) -> Result<(), Error> {
    let volume = reader.superblock();
    let geometry = &volume.geometry;
    let expected = geometry.slot0_offset + geometry.slots * u64::from(geometry.piece_bytes);
    let actual = device.size_bytes();
    if actual < expected {
        return Err(Error::Shrunk { actual, expected });
    }
    let own = Superblock { member, erased_before: Sequence(0), ..volume.clone() };
    let stale = Superblock { joined_epoch: Epoch::NONE, joined_start: Sequence(0), ..own.clone() };
    superblocks::store(device, if is_current { &own } else { &stale })
}
