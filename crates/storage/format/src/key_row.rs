//! Rows of wrapped data keys, in the reserved ranges at both ends of each member.
//!
//! Layout: docs/format.md, Keys. Each row has as many entries as fit: first the recipients to whom
//! keys are wrapped, then the keys in the order in which they came. All rows are the same on all
//! members, and each lies twice on each. No row has a secret: what is in it only a recipient can
//! open.

use thiserror::Error;
use units::Timestamp;

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
const ENTRY_HEADER_BYTES: usize = 28;

/// Byte offsets; drawn with their meaning in docs/format.md, Keys.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 8;
    pub(super) const COUNT: usize = 10;
    pub(super) const NUMBER: usize = 12;
    pub(super) const MAC: usize = 16;
    pub(super) const VOLUME_ID: usize = 32;
    pub(super) const ENTRIES: usize = 48;
}

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

const _: () = {
    assert!(at::MAC + 16 == at::VOLUME_ID && at::VOLUME_ID + 16 == at::ENTRIES);
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
    pub from: u64,
    /// When it was made.
    pub made: Timestamp,
    /// The key, encrypted to the recipients: a file of age.
    pub wrapped: Vec<u8>,
}

/// What rows hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyEntry {
    /// Text of a public key that data keys are wrapped to.
    Recipient(String),
    /// A data key.
    Key(WrappedKey),
}

impl KeyEntry {
    /// Bytes of it in a row.
    pub fn len_bytes(&self) -> usize {
        ENTRY_HEADER_BYTES + self.content().len()
    }

    fn content(&self) -> &[u8] {
        match self {
            Self::Recipient(text) => text.as_bytes(),
            Self::Key(key) => &key.wrapped,
        }
    }
}

/// Bytes of a row for entries.
pub const KEY_ROW_ROOM: usize = KEY_ROW_BYTES - at::ENTRIES;

/// A row.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyRow {
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
        let ids = self.entries.iter().map(|entry| match entry {
            KeyEntry::Recipient(_) => 0,
            KeyEntry::Key(key) => key.id,
        });
        ids.max().unwrap_or(0)
    }

    /// The row as it lies on the disk.
    ///
    /// # Panics
    /// When the entries do not fit.
    pub fn encode(&self, number: u32, volume: VolumeId, key: &HeadKey) -> [u8; KEY_ROW_BYTES] {
        let mut page = [0; KEY_ROW_BYTES];
        put(&mut page, at::MAGIC, &MAGIC);
        put(&mut page, at::VERSION, &VERSION.to_le_bytes());
        let count = u16::try_from(self.entries.len()).expect("a row has few entries");
        put(&mut page, at::COUNT, &count.to_le_bytes());
        put(&mut page, at::NUMBER, &number.to_le_bytes());
        put(&mut page, at::VOLUME_ID, &volume.0);
        let mut place = at::ENTRIES;
        for it in &self.entries {
            let content = it.content();
            let length = u16::try_from(content.len()).expect("an entry fits a row");
            let kind = match it {
                KeyEntry::Recipient(_) => RECIPIENT,
                KeyEntry::Key(key) => {
                    put(&mut page, place + entry::ID, &key.id.to_le_bytes());
                    put(&mut page, place + entry::FROM, &key.from.to_le_bytes());
                    put(&mut page, place + entry::MADE, &key.made.0.to_le_bytes());
                    DATA_KEY
                }
            };
            put(&mut page, place + entry::KIND, &[kind]);
            put(&mut page, place + entry::LENGTH, &length.to_le_bytes());
            put(&mut page, place + entry::CONTENT, content);
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
        if get::<8>(page, at::MAGIC) != MAGIC || get_u16(page, at::VERSION) != VERSION {
            return Err(KeyRowError::Magic);
        }
        let mut blank = *page;
        put(&mut blank, at::MAC, &[0; 16]);
        if key.is_some_and(|key| key.mac(&blank) != get::<16>(page, at::MAC)) {
            return Err(KeyRowError::Mac);
        }
        let is_it = get_u32(page, at::NUMBER) == number && get(page, at::VOLUME_ID) == volume.0;
        let mut rest = page.get(at::ENTRIES..).expect("inside the row");
        let mut entries = Vec::new();
        for _ in 0..get_u16(page, at::COUNT) {
            let (entry, behind) = entry_of(rest).filter(|_| is_it).ok_or(KeyRowError::Values)?;
            entries.push(entry);
            rest = behind;
        }
        is_it.then_some(Self { entries }).ok_or(KeyRowError::Values)
    }
}

/// The entry that `rest` begins with, and what is behind it.
fn entry_of(rest: &[u8]) -> Option<(KeyEntry, &[u8])> {
    let (header, rest) = rest.split_at_checked(ENTRY_HEADER_BYTES)?;
    let [kind] = get(header, entry::KIND);
    let length = usize::from(get_u16(header, entry::LENGTH));
    let (content, behind) = rest.split_at_checked(length)?;
    let entry = match kind {
        RECIPIENT => KeyEntry::Recipient(core::str::from_utf8(content).ok()?.to_owned()),
        DATA_KEY => KeyEntry::Key(WrappedKey {
            id: Some(get_u64(header, entry::ID)).filter(|id| *id > 0)?,
            from: Some(get_u64(header, entry::FROM)).filter(|from| *from <= SEQUENCE_MAX)?,
            made: Timestamp(get_i64(header, entry::MADE)),
            wrapped: content.to_vec(),
        }),
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
        KeyEntry::Key(WrappedKey { id, from: 40 + id, made: Timestamp(-5), wrapped })
    }

    fn row() -> KeyRow {
        let recipient = KeyEntry::Recipient("age1abc".to_owned());
        KeyRow { entries: vec![recipient, wrapped(1, 300), wrapped(2, 0)] }
    }

    #[test]
    fn rows_round_trip() {
        for row in [row(), KeyRow::default()] {
            let page = row.encode(7, VOLUME, &KEY);
            assert_eq!(KeyRow::decode(&page, 7, VOLUME, Some(&KEY)), Ok(row));
        }
        assert_eq!(row().newest_key(), 2);
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
        let page = row().encode(7, VOLUME, &KEY);
        for bit in 0..KEY_ROW_BYTES * 8 {
            let mut damaged = page;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(KeyRow::decode(&damaged, 7, VOLUME, Some(&KEY)).is_err(), "bit {bit}");
            drop(KeyRow::decode(&damaged, 7, VOLUME, None));
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
        let spoilt = |offset: usize, bytes: &[u8]| {
            let mut page = row().encode(7, VOLUME, &KEY);
            put(&mut page, offset, bytes);
            put(&mut page, at::MAC, &[0; 16]);
            let mac = KEY.mac(&page);
            put(&mut page, at::MAC, &mac);
            KeyRow::decode(&page, 7, VOLUME, Some(&KEY))
        };
        let refused = Err(KeyRowError::Values);
        assert_eq!(spoilt(at::COUNT, &[4, 0]), refused);
        assert_eq!(spoilt(at::ENTRIES + entry::LENGTH, &[255, 255]), refused);
        assert_eq!(spoilt(at::ENTRIES + entry::KIND, &[3]), refused);
        assert_eq!(spoilt(at::ENTRIES + entry::CONTENT, &[0xff]), refused);
    }
}
