//! Rows of wrapped data keys, in the reserved ranges at both ends of each member.
//!
//! Layout: docs/format.md, Keys. Each row has as many entries as fit: first the recipients to whom
//! keys are wrapped, then the keys in the order in which they came. All rows are the same on all
//! members, and each lies twice on each. No row has a secret: what is in it only a recipient can
//! open.
//!
//! Rows that were changed otherwise than by further keys have a revision, and are of version 2.

use std::borrow::Cow;

use thiserror::Error;
use units::{Sequence, Timestamp};

use crate::claim::{CLAIM_BYTES, CLAIM_OFFSET};
use crate::field::{get, get_i64, get_u16, get_u32, get_u64, put};
use crate::geometry::{RESERVED_BYTES, ROW_BYTES};
use crate::head::{HeadKey, SEQUENCE_MAX, VolumeId};

/// Bytes of a row.
pub const KEY_ROW_BYTES: usize = 4096;
/// Rows at each end of a member.
pub const KEY_ROWS: u32 = 509;
/// Longest text of a recipient, and longest wrapped key, that has room in a row.
pub const ENTRY_BYTES_MAX: usize = KEY_ROW_BYTES - at::ENTRIES - ENTRY_HEADER_BYTES;

const MAGIC: [u8; 8] = *b"wireKEYS";
const VERSION: u16 = 1;
const VERSION_REVISED: u16 = 2;
const ENTRY_HEADER_BYTES: usize = 28;

/// Byte offsets; drawn with their meaning in docs/format.md, Keys.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 8;
    pub(super) const COUNT: usize = 10;
    pub(super) const NUMBER: usize = 12;
    pub(super) const MAC: usize = 16;
    pub(super) const VOLUME_ID: usize = 32;
    /// Of version 2.
    pub(super) const REVISION: usize = 48;
    pub(super) const ENTRIES: usize = 56;
}

/// Where the entries of version 1 begin, which has no revision.
const ENTRIES_UNREVISED: usize = at::REVISION;

/// Byte offsets within an entry.
mod entry {
    pub(super) const KIND: usize = 0;
    pub(super) const LENGTH: usize = 2;
    pub(super) const ID: usize = 4;
    pub(super) const FROM: usize = 12;
    pub(super) const MADE: usize = 20;
    pub(super) const CONTENT: usize = super::ENTRY_HEADER_BYTES;
}

const RECIPIENT: u8 = 1;
const DATA_KEY: u8 = 2;
const DESTROYED_KEY: u8 = 3;

const _: () = {
    assert!(at::MAC + 16 == at::VOLUME_ID && at::VOLUME_ID + 16 == at::REVISION);
    assert!(at::REVISION + 8 == at::ENTRIES);
    // Behind the claim at the front, before the superblock copies at the end: 509 rows.
    assert!(CLAIM_BYTES == KEY_ROW_BYTES && KEY_ROW_BYTES == 4096 && ROW_BYTES == 4096);
    assert!(KEY_ROWS == 509 && FRONT + 509 * 4096 == RESERVED_BYTES);
    assert!((509 + 2) * 4096 <= RESERVED_BYTES);
};

/// Where the first row lies at the front.
const FRONT: u64 = CLAIM_OFFSET + 4096;

/// Where a row lies on a member of so many bytes: at the front and at the end.
///
/// # Panics
/// When there is no such row, or the member is smaller than its reserved ranges.
pub fn key_row_offsets(row: u32, size_bytes: u64) -> [u64; 2] {
    assert!(row < KEY_ROWS, "there are {KEY_ROWS} rows");
    let end = size_bytes - size_bytes % u64::from(ROW_BYTES);
    let at = u64::from(row) * u64::from(ROW_BYTES);
    [FRONT + at, end - RESERVED_BYTES + at]
}

/// A data key as it lies on the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrappedKey {
    /// Its number, as heads name it; from 1.
    pub id: u64,
    /// No stripe of an earlier sequence was encrypted with it.
    pub from: Sequence,
    /// When it was made.
    pub made: Timestamp,
    /// The key, encrypted to the recipients: a file of age.
    pub wrapped: Vec<u8>,
}

/// A data key that was taken off the disks: what it encrypted nobody can read any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DestroyedKey {
    /// Its number; from 1.
    pub id: u64,
    /// No stripe of an earlier sequence was encrypted with it.
    pub from: Sequence,
    /// When it was made.
    pub made: Timestamp,
    /// When it was destroyed.
    pub destroyed: Timestamp,
}

/// What rows hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyEntry {
    /// Text of a public key that data keys are wrapped to.
    Recipient(String),
    /// A data key.
    Key(WrappedKey),
    /// One that was.
    Destroyed(DestroyedKey),
}

impl KeyEntry {
    /// Bytes of it in a row.
    pub fn len_bytes(&self) -> usize {
        ENTRY_HEADER_BYTES + self.content().len()
    }

    fn content(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Recipient(text) => text.as_bytes().into(),
            Self::Key(key) => key.wrapped.as_slice().into(),
            Self::Destroyed(key) => key.destroyed.0.to_le_bytes().to_vec().into(),
        }
    }

    /// Number of the key, since when, and when it was made.
    fn of_key(&self) -> Option<(u64, Sequence, Timestamp)> {
        match self {
            Self::Recipient(_) => None,
            Self::Key(key) => Some((key.id, key.from, key.made)),
            Self::Destroyed(key) => Some((key.id, key.from, key.made)),
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Recipient(_) => RECIPIENT,
            Self::Key(_) => DATA_KEY,
            Self::Destroyed(_) => DESTROYED_KEY,
        }
    }
}

/// Bytes of a row for entries.
pub const KEY_ROW_ROOM: usize = KEY_ROW_BYTES - at::ENTRIES;

/// A row.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyRow {
    /// How often keys of it were wrapped anew or destroyed; of two copies the one with more counts.
    pub revision: u64,
    /// What it holds, oldest first.
    pub entries: Vec<KeyEntry>,
}

/// Why a row cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum KeyRowError {
    /// Nothing was ever written there.
    #[error("it is empty")]
    Empty,
    /// It does not begin as a row of keys does, or is of a later version.
    #[error("it is no row of keys")]
    Magic,
    /// Damaged, or of another volume.
    #[error("MAC does not match the volume's key")]
    Mac,
    /// It belongs elsewhere, or has a value that no writer gives it.
    #[error("values are out of bounds")]
    Values,
}

impl KeyRow {
    /// Whether another entry fits.
    pub fn has_room_for(&self, entry: &KeyEntry) -> bool {
        let used: usize = self.entries.iter().map(KeyEntry::len_bytes).sum();
        used + entry.len_bytes() <= KEY_ROW_ROOM
    }

    /// The number of its newest key; 0 where it has none.
    pub fn newest_key(&self) -> u64 {
        let ids = self.entries.iter().filter_map(KeyEntry::of_key).map(|(id, ..)| id);
        ids.max().unwrap_or(0)
    }

    /// The row as it lies on the disk.
    ///
    /// # Panics
    /// When the entries do not fit.
    pub fn encode(&self, number: u32, volume: VolumeId, key: &HeadKey) -> [u8; KEY_ROW_BYTES] {
        let mut page = [0; KEY_ROW_BYTES];
        put(&mut page, at::MAGIC, &MAGIC);
        let is_revised = self.revision > 0;
        let version = if is_revised { VERSION_REVISED } else { VERSION };
        put(&mut page, at::VERSION, &version.to_le_bytes());
        if is_revised {
            put(&mut page, at::REVISION, &self.revision.to_le_bytes());
        }
        let count = u16::try_from(self.entries.len()).expect("a row has few entries");
        put(&mut page, at::COUNT, &count.to_le_bytes());
        put(&mut page, at::NUMBER, &number.to_le_bytes());
        put(&mut page, at::VOLUME_ID, &volume.0);
        let mut place = if is_revised { at::ENTRIES } else { ENTRIES_UNREVISED };
        for it in &self.entries {
            let content = it.content();
            let length = u16::try_from(content.len()).expect("an entry fits a row");
            if let Some((id, from, made)) = it.of_key() {
                put(&mut page, place + entry::ID, &id.to_le_bytes());
                put(&mut page, place + entry::FROM, &from.get().to_le_bytes());
                put(&mut page, place + entry::MADE, &made.0.to_le_bytes());
            }
            put(&mut page, place + entry::KIND, &[it.kind()]);
            put(&mut page, place + entry::LENGTH, &length.to_le_bytes());
            put(&mut page, place + entry::CONTENT, &content);
            place += it.len_bytes();
        }
        let mac = key.mac(&page);
        put(&mut page, at::MAC, &mac);
        page
    }

    /// Reads the row of this number. Without a key, as salvage has none, its MAC counts for
    /// nothing: that a wrapped key is of this volume shows when it is unwrapped.
    ///
    /// # Errors
    /// It is empty, damaged, or of another place.
    pub fn decode(
        page: &[u8; KEY_ROW_BYTES],
        number: u32,
        volume: VolumeId,
        key: Option<&HeadKey>,
    ) -> Result<Self, KeyRowError> {
        if page.iter().all(|byte| *byte == 0) {
            return Err(KeyRowError::Empty);
        }
        let (revision, begin) = match get_u16(page, at::VERSION) {
            VERSION => (0, ENTRIES_UNREVISED),
            VERSION_REVISED => (get_u64(page, at::REVISION), at::ENTRIES),
            _ => return Err(KeyRowError::Magic),
        };
        if get::<8>(page, at::MAGIC) != MAGIC {
            return Err(KeyRowError::Magic);
        }
        let mut blank = *page;
        put(&mut blank, at::MAC, &[0; 16]);
        if key.is_some_and(|key| key.mac(&blank) != get::<16>(page, at::MAC)) {
            return Err(KeyRowError::Mac);
        }
        let is_revised = get_u16(page, at::VERSION) == VERSION_REVISED;
        let is_it = get_u32(page, at::NUMBER) == number
            && get(page, at::VOLUME_ID) == volume.0
            && is_revised == (revision > 0);
        let mut rest = page.get(begin..).expect("inside the row");
        let mut entries = Vec::new();
        for _ in 0..get_u16(page, at::COUNT) {
            let (entry, behind) = entry_of(rest).filter(|_| is_it).ok_or(KeyRowError::Values)?;
            entries.push(entry);
            rest = behind;
        }
        is_it.then_some(Self { revision, entries }).ok_or(KeyRowError::Values)
    }
}

/// The entry that `rest` begins with, and what is behind it.
fn entry_of(rest: &[u8]) -> Option<(KeyEntry, &[u8])> {
    let (header, rest) = rest.split_at_checked(ENTRY_HEADER_BYTES)?;
    let [kind] = get(header, entry::KIND);
    let length = usize::from(get_u16(header, entry::LENGTH));
    let (content, behind) = rest.split_at_checked(length)?;
    let id = || Some(get_u64(header, entry::ID)).filter(|id| *id > 0);
    let from = || Some(Sequence(get_u64(header, entry::FROM))).filter(|from| *from <= SEQUENCE_MAX);
    let made = Timestamp(get_i64(header, entry::MADE));
    let entry = match kind {
        RECIPIENT => KeyEntry::Recipient(core::str::from_utf8(content).ok()?.to_owned()),
        DATA_KEY => {
            let wrapped = content.to_vec();
            KeyEntry::Key(WrappedKey { id: id()?, from: from()?, made, wrapped })
        }
        DESTROYED_KEY => {
            let destroyed = Timestamp(i64::from_le_bytes(content.try_into().ok()?));
            KeyEntry::Destroyed(DestroyedKey { id: id()?, from: from()?, made, destroyed })
        }
        _ => return None,
    };
    Some((entry, behind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::superblock::copy_offset;

    const KEY: HeadKey = HeadKey([2; 32]);
    const VOLUME: VolumeId = VolumeId([1; 16]);

    fn wrapped(id: u64, len: usize) -> KeyEntry {
        let wrapped = vec![u8::try_from(id % 251).unwrap(); len];
        KeyEntry::Key(WrappedKey { id, from: Sequence(40 + id), made: Timestamp(-5), wrapped })
    }

    fn row() -> KeyRow {
        let recipient = KeyEntry::Recipient("age1abc".to_owned());
        KeyRow { revision: 0, entries: vec![recipient, wrapped(1, 300), wrapped(2, 0)] }
    }

    fn revised() -> KeyRow {
        let (made, destroyed) = (Timestamp(-5), Timestamp(9));
        let gone = KeyEntry::Destroyed(DestroyedKey { id: 7, from: Sequence(50), made, destroyed });
        KeyRow { revision: 3, entries: vec![wrapped(6, 300), gone] }
    }

    #[test]
    fn rows_round_trip() {
        for row in [row(), revised(), KeyRow::default()] {
            let page = row.encode(7, VOLUME, &KEY);
            assert_eq!(KeyRow::decode(&page, 7, VOLUME, Some(&KEY)), Ok(row));
        }
        assert_eq!((row().newest_key(), revised().newest_key()), (2, 7));
    }

    #[test]
    fn a_row_takes_what_fits_and_no_more() {
        let mut row = row();
        let used: usize = row.entries.iter().map(KeyEntry::len_bytes).sum();
        let exact = wrapped(3, KEY_ROW_ROOM - used - ENTRY_HEADER_BYTES);
        assert!(!row.has_room_for(&wrapped(3, KEY_ROW_ROOM - used - ENTRY_HEADER_BYTES + 1)));
        assert!(row.has_room_for(&exact));
        row.entries.push(exact);
        assert!(!row.has_room_for(&wrapped(4, 0)));
        assert_eq!(KeyRow::decode(&row.encode(0, VOLUME, &KEY), 0, VOLUME, Some(&KEY)), Ok(row));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        for page in [row(), revised()].map(|row| row.encode(7, VOLUME, &KEY)) {
            for bit in 0..KEY_ROW_BYTES * 8 {
                let mut damaged = page;
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(KeyRow::decode(&damaged, 7, VOLUME, Some(&KEY)).is_err(), "bit {bit}");
                drop(KeyRow::decode(&damaged, 7, VOLUME, None));
            }
        }
    }

    #[test]
    fn rows_of_other_places_are_none() {
        let page = row().encode(7, VOLUME, &KEY);
        let refused = Err(KeyRowError::Values);
        assert_eq!(KeyRow::decode(&page, 8, VOLUME, Some(&KEY)), refused);
        assert_eq!(KeyRow::decode(&page, 7, VolumeId([9; 16]), Some(&KEY)), refused);
        let other = HeadKey([3; 32]);
        assert_eq!(KeyRow::decode(&page, 7, VOLUME, Some(&other)), Err(KeyRowError::Mac));
        let empty = [0; KEY_ROW_BYTES];
        assert_eq!(KeyRow::decode(&empty, 7, VOLUME, Some(&KEY)), Err(KeyRowError::Empty));
    }

    #[test]
    fn they_lie_between_claim_and_superblocks() {
        let size_bytes = (64 << 20) + 17;
        let [front, back] = key_row_offsets(0, size_bytes);
        assert_eq!(front, CLAIM_OFFSET + 4096);
        assert_eq!(back, (62 << 20));
        let [front, back] = key_row_offsets(KEY_ROWS - 1, size_bytes);
        assert_eq!(front + 4096, RESERVED_BYTES);
        assert!(back + 4096 < copy_offset(2, size_bytes));
    }

    #[test]
    fn counts_and_lengths_that_reach_too_far_are_refused() {
        let spoilt_of = |row: KeyRow, offset: usize, bytes: &[u8]| {
            let mut page = row.encode(7, VOLUME, &KEY);
            put(&mut page, offset, bytes);
            put(&mut page, at::MAC, &[0; 16]);
            let mac = KEY.mac(&page);
            put(&mut page, at::MAC, &mac);
            KeyRow::decode(&page, 7, VOLUME, Some(&KEY))
        };
        let spoilt = |offset: usize, bytes: &[u8]| spoilt_of(row(), offset, bytes);
        let refused = Err(KeyRowError::Values);
        assert_eq!(spoilt_of(revised(), at::REVISION, &[0]), refused);
        assert_eq!(spoilt_of(revised(), at::VERSION, &[3]), Err(KeyRowError::Magic));
        assert_eq!(spoilt(at::COUNT, &[4, 0]), refused);
        assert_eq!(spoilt(ENTRIES_UNREVISED + entry::LENGTH, &[255, 255]), refused);
        assert_eq!(spoilt(ENTRIES_UNREVISED + entry::KIND, &[3]), refused);
        assert_eq!(spoilt(ENTRIES_UNREVISED + entry::KIND, &[4]), refused);
        assert_eq!(spoilt(ENTRIES_UNREVISED + entry::CONTENT, &[0xff]), refused);
    }
}
