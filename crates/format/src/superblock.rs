//! The superblock: what must be known before the first head can be read.
//!
//! Four copies on every member, in different places; each says which copy it is, so that a
//! misdirected read shows. Layout: docs/format.md, Superblock. Written when a volume is created,
//! opened for writing and changed in its members, never while data flows.

use crate::checksum::crc32c;
use crate::field::{get, get_i64, get_u16, get_u32, get_u64, put};
use crate::geometry::{GEOMETRY_BYTES, Geometry, MEMBERS_MAX, RESERVED_BYTES, ROW_BYTES};
use crate::head::{HeadError, HeadKey, VolumeId};
use thiserror::Error;
use units::Timestamp;

/// Bytes of a superblock.
pub const SUPERBLOCK_BYTES: usize = 4096;
/// Copies on every member.
pub const SUPERBLOCK_COPIES: u8 = 4;
/// Longest path of a member that is remembered.
pub const MEMBER_PATH_BYTES_MAX: usize = 88;

const MAGIC: [u8; 8] = *b"wireSUPR";
const VERSION: u16 = 1;
const MEMBER_ENTRY_BYTES: usize = 128;

/// Byte offsets; drawn with their meaning in docs/format.md, Superblock.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 8;
    pub(super) const COPY: usize = 10;
    pub(super) const MEMBER: usize = 11;
    pub(super) const CRC: usize = 12;
    pub(super) const VOLUME_ID: usize = 16;
    pub(super) const HEAD_KEY: usize = 32;
    pub(super) const GENERATION: usize = 64;
    pub(super) const GEOMETRY: usize = 72;
    pub(super) const PREPARED_EPOCH: usize = 128;
    pub(super) const JOINED_EPOCH: usize = 132;
    pub(super) const JOINED_START: usize = 136;
    pub(super) const EXPIRED_THROUGH: usize = 152;
    pub(super) const CREATED: usize = 160;
    pub(super) const WINDOW: usize = 168;
    pub(super) const JOINED_MEMBERS: usize = 170;
    pub(super) const PARENT: usize = 176;
    pub(super) const MEMBERS: usize = 512;
    pub(super) const END: usize = MEMBERS + super::MEMBERS_MAX * super::MEMBER_ENTRY_BYTES;
}

/// Byte offsets within the entry of a member.
mod entry {
    pub(super) const UUID: usize = 0;
    /// 1, and the length of the path.
    pub(super) const PRESENT: usize = 16;
    pub(super) const PATH: usize = 24;
    pub(super) const STALE_FROM: usize = 112;
    pub(super) const CLEAN_FROM: usize = 120;
}

const _: () = {
    assert!(at::GEOMETRY + GEOMETRY_BYTES == at::PREPARED_EPOCH);
    assert!(at::COPY + 1 == at::MEMBER && at::END <= SUPERBLOCK_BYTES);
    assert!(entry::PATH + MEMBER_PATH_BYTES_MAX == entry::STALE_FROM);
    assert!(
        entry::STALE_FROM + 8 == entry::CLEAN_FROM && entry::CLEAN_FROM + 8 == MEMBER_ENTRY_BYTES
    );
};

/// One member as the volume knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberEntry {
    /// Identity of the member, also in every head on it.
    pub uuid: [u8; 16],
    /// Where it was when the superblock was written, for finding the others; empty when too long.
    pub path: String,
    /// From this sequence on, up to `clean_from`, it has missed what the others did. Where the
    /// range is empty it is whole.
    pub stale_from: u64,
    /// Stripes from this sequence on are whole on it again; `u64::MAX` when it took no part in the
    /// newest epoch that this superblock joined.
    pub clean_from: u64,
}

/// A superblock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Volume.
    pub volume_id: VolumeId,
    /// Key of head MACs.
    pub head_key: HeadKey,
    /// Number of the member that this copy lies on.
    pub member: u8,
    /// Rises with every rewrite; the newest valid copy counts.
    pub generation: u64,
    /// Shape.
    pub geometry: Geometry,
    /// Highest epoch that a mount has begun (PREPARE).
    pub prepared_epoch: u32,
    /// Newest epoch that this member joined (JOIN).
    pub joined_epoch: u32,
    /// Sequence of the EPOCH stripe of `joined_epoch`.
    pub joined_start: u64,
    /// Members that joined it: bit m stands for member m.
    pub joined_members: u32,
    /// No path serves data at or before this time (maximum age).
    pub expired_through: Timestamp,
    /// When the volume was created.
    pub created: Timestamp,
    /// W: most stripes in flight, and most slots they may reach over.
    pub window: u16,
    /// Hash of the superblock that this one replaced.
    pub parent: [u8; 32],
    /// All members by number.
    pub members: Vec<MemberEntry>,
}

/// Why bytes are not a usable superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SuperblockError {
    /// No superblock of any volume.
    #[error("no superblock magic")]
    Magic,
    /// Written by a later format.
    #[error("superblock version {0} is not known")]
    Version(u16),
    /// Damaged.
    #[error("superblock checksum does not match")]
    Checksum,
    /// A copy that belongs elsewhere.
    #[error("superblock copy {found} lies where copy {expected} belongs")]
    Copy {
        /// Copy that should be here.
        expected: u8,
        /// Copy that is here.
        found: u8,
    },
    /// Values out of bounds.
    #[error("superblock values are out of bounds")]
    Values,
}

/// Byte offset of a copy on a member of `size_bytes`: two at the front, two at the end.
pub fn copy_offset(copy: u8, size_bytes: u64) -> u64 {
    let end = size_bytes - size_bytes % u64::from(ROW_BYTES);
    let row = u64::from(ROW_BYTES);
    match copy {
        0 => 0,
        1 => row,
        2 => end - 2 * row,
        _ => end - row,
    }
}

/// Smallest member that can hold the reserved ranges at both ends.
pub const MEMBER_BYTES_MIN: u64 = 2 * RESERVED_BYTES;

impl MemberEntry {
    /// A member of a new volume.
    pub fn new(uuid: [u8; 16], path: String) -> Self {
        Self { uuid, path, stale_from: 0, clean_from: 0 }
    }

    /// Whether stripes of `sequence` are whole on it, as far as the others know.
    pub fn is_whole_at(&self, sequence: u64) -> bool {
        !(self.stale_from..self.clean_from).contains(&sequence)
    }
}

impl Superblock {
    /// The copy `copy` as it lies on the disk.
    ///
    /// # Panics
    /// When there are more than 24 members.
    pub fn encode(&self, copy: u8) -> [u8; SUPERBLOCK_BYTES] {
        assert!(self.members.len() <= MEMBERS_MAX, "a volume has at most 24 members");
        let mut page = [0; SUPERBLOCK_BYTES];
        put(&mut page, at::MAGIC, &MAGIC);
        put(&mut page, at::VERSION, &VERSION.to_le_bytes());
        put(&mut page, at::COPY, &[copy, self.member]);
        put(&mut page, at::VOLUME_ID, &self.volume_id.0);
        put(&mut page, at::HEAD_KEY, &self.head_key.0);
        put(&mut page, at::GENERATION, &self.generation.to_le_bytes());
        self.geometry.encode(&mut page, at::GEOMETRY);
        put(&mut page, at::PREPARED_EPOCH, &self.prepared_epoch.to_le_bytes());
        put(&mut page, at::JOINED_EPOCH, &self.joined_epoch.to_le_bytes());
        put(&mut page, at::JOINED_START, &self.joined_start.to_le_bytes());
        put(&mut page, at::EXPIRED_THROUGH, &self.expired_through.0.to_le_bytes());
        put(&mut page, at::CREATED, &self.created.0.to_le_bytes());
        put(&mut page, at::WINDOW, &self.window.to_le_bytes());
        put(&mut page, at::JOINED_MEMBERS, &self.joined_members.to_le_bytes());
        put(&mut page, at::PARENT, &self.parent);
        for (number, member) in self.members.iter().enumerate() {
            let start = at::MEMBERS + number * MEMBER_ENTRY_BYTES;
            let path = member.path.as_bytes();
            let path = if path.len() <= MEMBER_PATH_BYTES_MAX { path } else { &[] };
            put(&mut page, start + entry::UUID, &member.uuid);
            let len = u8::try_from(path.len()).expect("at most 88");
            put(&mut page, start + entry::PRESENT, &[1, len]);
            put(&mut page, start + entry::PATH, path);
            put(&mut page, start + entry::STALE_FROM, &member.stale_from.to_le_bytes());
            put(&mut page, start + entry::CLEAN_FROM, &member.clean_from.to_le_bytes());
        }
        let crc = crc32c(&page);
        put(&mut page, at::CRC, &crc.to_le_bytes());
        page
    }

    /// Reads the copy that lies where copy `copy` belongs.
    pub fn decode(page: &[u8; SUPERBLOCK_BYTES], copy: u8) -> Result<Self, SuperblockError> {
        if get::<8>(page, at::MAGIC) != MAGIC {
            return Err(SuperblockError::Magic);
        }
        let version = get_u16(page, at::VERSION);
        if version != VERSION {
            return Err(SuperblockError::Version(version));
        }
        let mut blank = *page;
        put(&mut blank, at::CRC, &[0; 4]);
        if crc32c(&blank) != get_u32(page, at::CRC) {
            return Err(SuperblockError::Checksum);
        }
        let [found, member] = get(page, at::COPY);
        if found != copy {
            return Err(SuperblockError::Copy { expected: copy, found });
        }
        let geometry =
            Geometry::decode(page, at::GEOMETRY).map_err(|_: HeadError| SuperblockError::Values)?;
        let members = decode_members(page)?;
        let window = get_u16(page, at::WINDOW);
        if usize::from(member) >= members.len() || window == 0 {
            return Err(SuperblockError::Values);
        }
        Ok(Self {
            volume_id: VolumeId(get(page, at::VOLUME_ID)),
            head_key: HeadKey(get(page, at::HEAD_KEY)),
            member,
            generation: get_u64(page, at::GENERATION),
            geometry,
            prepared_epoch: get_u32(page, at::PREPARED_EPOCH),
            joined_epoch: get_u32(page, at::JOINED_EPOCH),
            joined_start: get_u64(page, at::JOINED_START),
            joined_members: get_u32(page, at::JOINED_MEMBERS),
            expired_through: Timestamp(get_i64(page, at::EXPIRED_THROUGH)),
            created: Timestamp(get_i64(page, at::CREATED)),
            window,
            parent: get(page, at::PARENT),
            members,
        })
    }

    /// The superblock that replaces this one: one generation later, chained to it by hash.
    #[must_use]
    pub fn successor(&self) -> Self {
        let parent = *blake3::hash(&self.encode(0)).as_bytes();
        Self { generation: self.generation + 1, parent, ..self.clone() }
    }
}

fn decode_members(page: &[u8; SUPERBLOCK_BYTES]) -> Result<Vec<MemberEntry>, SuperblockError> {
    let entries = page.get(at::MEMBERS..at::END).expect("the table lies inside the page");
    let mut members = Vec::new();
    for bytes in entries.chunks_exact(MEMBER_ENTRY_BYTES) {
        let [present, path_bytes] = get(bytes, entry::PRESENT);
        if present == 0 {
            break;
        }
        let path = bytes
            .get(entry::PATH..entry::STALE_FROM)
            .and_then(|path| path.get(..usize::from(path_bytes)))
            .and_then(|path| core::str::from_utf8(path).ok())
            .ok_or(SuperblockError::Values)?;
        members.push(MemberEntry {
            uuid: get(bytes, entry::UUID),
            path: path.to_owned(),
            stale_from: get_u64(bytes, entry::STALE_FROM),
            clean_from: get_u64(bytes, entry::CLEAN_FROM),
        });
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{ExtentOrder, PIECE_BYTES_MIN};

    fn superblock() -> Superblock {
        Superblock {
            volume_id: VolumeId([1; 16]),
            head_key: HeadKey([2; 32]),
            member: 0,
            generation: 5,
            geometry: Geometry {
                data_columns: 1,
                parity_columns: 0,
                order: ExtentOrder::FirstToLast,
                zones: 1,
                piece_bytes: PIECE_BYTES_MIN,
                slots: 40,
                slot0_offset: RESERVED_BYTES,
                slots_per_extent: 1,
                usable_begin: 0,
                usable_end: 8 << 20,
            },
            prepared_epoch: 4,
            joined_epoch: 3,
            joined_start: 99,
            joined_members: 1,
            expired_through: Timestamp::MIN,
            created: Timestamp(12),
            window: 4,
            parent: [3; 32],
            members: vec![MemberEntry {
                uuid: [6; 16],
                path: "/srv/ring".to_owned(),
                stale_from: 5,
                clean_from: 7,
            }],
        }
    }

    #[test]
    fn superblocks_round_trip() {
        for copy in 0..SUPERBLOCK_COPIES {
            assert_eq!(Superblock::decode(&superblock().encode(copy), copy), Ok(superblock()));
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let page = superblock().encode(1);
        for bit in 0..SUPERBLOCK_BYTES * 8 {
            let mut damaged = page;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Superblock::decode(&damaged, 1).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_copy_in_the_wrong_place_is_refused() {
        let error = Superblock::decode(&superblock().encode(2), 0);
        assert_eq!(error, Err(SuperblockError::Copy { expected: 0, found: 2 }));
    }

    #[test]
    fn copies_lie_apart_inside_the_reserved_ranges() {
        let size = (64 << 20) + 512;
        let offsets: Vec<_> = (0..SUPERBLOCK_COPIES).map(|copy| copy_offset(copy, size)).collect();
        assert_eq!(offsets, [0, 4096, (64 << 20) - 8192, (64 << 20) - 4096]);
    }

    #[test]
    fn a_successor_is_chained() {
        let old = superblock();
        let new = old.successor();
        assert_eq!(new.generation, old.generation + 1);
        assert_ne!(new.parent, old.parent);
    }
}
