//! Making a volume: the shape, the identity, the superblocks. Nothing else needs initialising,
//! because old content never validates against a new volume's identity and key.

use std::path::PathBuf;

use device::Device;
use format::geometry::{Geometry, MEMBERS_MAX, PIECE_BYTES_MAX, PIECE_BYTES_MIN};
use format::head::{HeadKey, VolumeId};
use format::key_log::KeyLog;
use format::key_row::key_row_offsets;
use format::superblock::{Mark, MemberEntry, Qualified, Spare, Superblock, TimeKnown, window_max};
use units::{Epoch, MemberId, Sequence, Timestamp};

use crate::layout::Placed;
use crate::{Error, Layout, superblocks};

/// Most bytes of a member that may be in flight: bounds what a mount must read and judge.
const WINDOW_BYTES: u64 = 64 << 20;

/// What a user chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CreateOptions {
    /// Bytes of a piece, head included: a power of two from 16 KiB to 2 MiB.
    pub piece_bytes: u32,
    /// Parity columns: as many members may be lost.
    pub parity_columns: u8,
    /// How the ring goes over the surface.
    pub layout: Layout,
    /// Packets older than this, in nanoseconds, are not served; 0: whatever their age.
    pub max_age_ns: i64,
    /// What was measured of each member; kept in the superblock.
    pub qualified: Option<Qualified>,
    /// When it is made, by the clock.
    pub time: TimeKnown,
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self {
            piece_bytes: PIECE_BYTES_MAX,
            parity_columns: 0,
            layout: Layout::default(),
            max_age_ns: 0,
            qualified: None,
            time: TimeKnown::default(),
        }
    }
}

/// What must be random, and what the clock says: arguments, so that a simulation repeats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Public id of the volume.
    pub volume_id: VolumeId,
    /// Secret; never leaves the superblocks.
    pub head_key: HeadKey,
    /// The members by number: public identities, and where each is. The volume is made without
    /// those that are vacant.
    pub members: Vec<MemberEntry>,
    /// Devices that wait to take a member's place.
    pub spares: Vec<Spare>,
    /// Time of creation.
    pub created: Timestamp,
}

/// Data and parity columns of a volume of so many members.
///
/// # Errors
/// [`Error::Geometry`] when no volume can have them.
pub fn columns_for(members: usize, parity: u8) -> Result<(u8, u8), Error> {
    let columns = u8::try_from(members).ok().filter(|&columns| usize::from(columns) <= MEMBERS_MAX);
    let data_columns = columns.and_then(|columns| columns.checked_sub(parity));
    let data_columns = data_columns.filter(|&data| data > 0 && parity <= 2);
    data_columns.map(|data| (data, parity)).ok_or(Error::Geometry { members, parity })
}

/// Shape of a ring on `members` members of which the smallest has `size_bytes`, and its window W in
/// stripes.
pub fn geometry_for(
    size_bytes: u64,
    members: usize,
    options: &CreateOptions,
) -> Result<(Geometry, u16), Error> {
    let (data_columns, parity_columns) = columns_for(members, options.parity_columns)?;
    let piece_bytes = options.piece_bytes;
    if !piece_bytes.is_power_of_two() || !(PIECE_BYTES_MIN..=PIECE_BYTES_MAX).contains(&piece_bytes)
    {
        return Err(Error::PieceBytes(piece_bytes));
    }
    let Placed { order, zones, slots_per_extent, slots, slot0_offset, usable_begin, usable_end } =
        options.layout.place(size_bytes, piece_bytes)?;
    let geometry = Geometry {
        data_columns,
        parity_columns,
        order,
        zones,
        piece_bytes,
        slots,
        slot0_offset,
        slots_per_extent,
        usable_begin,
        usable_end,
    };
    Ok((geometry, window_of(&geometry)))
}

/// W of a new volume of this shape.
pub(crate) fn window_of(geometry: &Geometry) -> u16 {
    let window = WINDOW_BYTES / u64::from(geometry.piece_bytes);
    u16::try_from(window.clamp(2, window_max(geometry))).expect("at most 64")
}

/// Writes the superblocks of a new volume on its members that are there, in the order of their
/// numbers, and on its spares. What the devices held before is lost to every tool that reads their
/// first or last rows; guarding it is the caller's part.
///
/// # Errors
/// [`Error::TooFew`] when more members are missing than may be lost.
///
/// # Panics
/// When the identity does not name as many members and spares as there are devices.
pub fn create(
    devices: &mut [Box<dyn Device>],
    options: &CreateOptions,
    identity: &Identity,
) -> Result<Superblock, Error> {
    create_for(devices, options, identity, &[])
}

/// The same of a volume whose packets only these recipients can read; without any it is not
/// encrypted.
///
/// # Errors
/// [`Error::Recipients`]; as [`create`]. Whether the texts are public keys is the caller's part.
///
/// # Panics
/// As [`create`].
pub fn create_for(
    devices: &mut [Box<dyn Device>],
    options: &CreateOptions,
    identity: &Identity,
    recipients: &[String],
) -> Result<Superblock, Error> {
    let there = MemberId::all().zip(&identity.members).filter(|(_, member)| !member.is_vacant());
    let columns = u8::try_from(identity.members.len()).unwrap_or(u8::MAX);
    let spares = (columns..).zip(&identity.spares).map(|(number, _)| MemberId(number));
    let numbers: Vec<MemberId> = there.map(|(number, _)| number).chain(spares).collect();
    assert_eq!(devices.len(), numbers.len(), "every device is a member or a spare");
    let smallest = devices.iter().map(|device| device.size_bytes()).min().unwrap_or(0);
    let (geometry, window) = geometry_for(smallest, identity.members.len(), options)?;
    let (present, needed) = (numbers.len() - identity.spares.len(), geometry.data_columns);
    if present < usize::from(needed) {
        return Err(Error::TooFew { present, needed });
    }
    let superblock = Superblock {
        volume_id: identity.volume_id,
        head_key: identity.head_key,
        member: MemberId(0),
        generation: 1,
        geometry,
        prepared_epoch: Epoch::NONE,
        joined_epoch: Epoch::NONE,
        joined_start: Sequence(0),
        previous_epoch: Epoch::NONE,
        previous_start: Sequence(0),
        previous_members: 0,
        joined_members: 0,
        expired_through: Timestamp::MIN,
        max_age_ns: options.max_age_ns,
        erases: false,
        qualified: options.qualified,
        given_up_before: Sequence(0),
        forgetting: None,
        erased_before: Sequence(0),
        mark: Mark::default(),
        time: options.time,
        created: identity.created,
        window,
        is_encrypted: !recipients.is_empty(),
        parent: [0; 32],
        members: identity.members.clone(),
        spares: identity.spares.clone(),
        earlier: Vec::new(),
    };
    let keys = KeyLog::new(recipients)?;
    let pages = keys.pages(0..keys.row_count(), (superblock.volume_id, &superblock.head_key));
    for (member, device) in numbers.into_iter().zip(devices) {
        let own = Superblock { member, ..superblock.clone() };
        write(device.as_mut(), &own, &pages).map_err(|source| {
            let members = identity.members.iter().map(|entry| &entry.path);
            let mut paths = members.chain(identity.spares.iter().map(|spare| &spare.path));
            let path = paths.nth(member.place()).map(PathBuf::from).unwrap_or_default();
            Error::At { path, source: Box::new(source) }
        })?;
    }
    Ok(superblock)
}

fn write(device: &mut dyn Device, own: &Superblock, key_pages: &[u8]) -> Result<(), Error> {
    let offsets = key_row_offsets(0, device.size_bytes()).into_iter();
    let mut offsets = offsets.filter(|_| !key_pages.is_empty());
    offsets.try_for_each(|offset| device.write_at(offset, key_pages))?;
    superblocks::store(device, own)
}
