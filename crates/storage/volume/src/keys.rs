//! The wrapped data keys of a volume, as all members have them.
//!
//! They lie in rows at both ends of each member. A row is written at the front, made durable, and
//! written at the end: at every instant one of the two is whole. A key is durable on every member
//! before the first stripe is encrypted with it. Who reads takes of each row the newest copy on any
//! member.

use format::head::{HeadKey, VolumeId};
use format::key_row::{
    ENTRY_BYTES_MAX, KEY_ROW_BYTES, KEY_ROWS, KeyEntry, KeyRow, KeyRowError, WrappedKey,
    key_row_offsets,
};

use crate::Error;

/// Rows that are read at a time.
const ROWS_AT_ONCE: usize = 16;

/// Reads a place of a member; false where that fails.
type ReadKeys<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

/// Recipients and wrapped keys of a volume.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyLog {
    /// By number.
    rows: Vec<KeyRow>,
}

impl KeyLog {
    /// Of a new volume.
    ///
    /// # Errors
    /// [`Error::Recipients`] when they take more than half of the space.
    pub(crate) fn new(recipients: &[String]) -> Result<Self, Error> {
        let mut log = Self::default();
        for text in recipients {
            let entry = KeyEntry::Recipient(text.clone());
            let fits = text.len() <= ENTRY_BYTES_MAX && log.rows.len() < rows_of_recipients();
            if !fits {
                return Err(Error::Recipients);
            }
            log.put_last(entry);
        }
        Ok(log)
    }

    /// Reads the keys of members, each given by its bytes and how it is read, which is false where
    /// it cannot be; says whether all their copies are the same.
    pub(crate) fn load<R: Fn(u64, &mut [u8]) -> bool>(
        (volume, key): (VolumeId, Option<&HeadKey>),
        members: impl Iterator<Item = (u64, R)>,
    ) -> (Self, bool) {
        let copies: Vec<Vec<Option<KeyRow>>> = members
            .flat_map(|(bytes, read)| {
                [0, 1].map(|end| read_copy((volume, key), (bytes, &read), end))
            })
            .collect();
        let count = copies.iter().map(Vec::len).max().unwrap_or(0);
        let newest = |number: usize| {
            let found = copies.iter().filter_map(|copy| copy.get(number)?.as_ref());
            let newest = found.max_by_key(|row| (row.newest_key(), row.entries.len()));
            newest.cloned().unwrap_or_default()
        };
        let rows: Vec<KeyRow> = (0..count).map(newest).collect();
        let is_same = |copy: &Vec<Option<KeyRow>>| copy.iter().flatten().eq(&rows);
        let are_same = copies.iter().all(is_same);
        (Self { rows }, are_same)
    }

    /// Texts of the public keys that data keys are wrapped to.
    pub fn recipients(&self) -> Vec<String> {
        let entries = self.rows.iter().flat_map(|row| &row.entries);
        let texts = entries.filter_map(|entry| match entry {
            KeyEntry::Recipient(text) => Some(text.clone()),
            KeyEntry::Key(_) => None,
        });
        texts.collect()
    }

    /// The wrapped keys, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &WrappedKey> {
        self.rows.iter().flat_map(|row| &row.entries).filter_map(|entry| match entry {
            KeyEntry::Recipient(_) => None,
            KeyEntry::Key(key) => Some(key),
        })
    }

    /// Rows in use.
    pub(crate) fn row_count(&self) -> u32 {
        u32::try_from(self.rows.len()).expect("at most 509")
    }

    /// The number of the next key.
    pub(crate) fn next_id(&self) -> u64 {
        1 + self.keys().map(|key| key.id).max().unwrap_or(0)
    }

    /// Puts a key where there is room: behind the newest one, or in place of keys that no stripe
    /// from `tail` on needs. Gives the row that has changed.
    ///
    /// # Errors
    /// [`Error::KeysFull`].
    pub(crate) fn add(&mut self, key: WrappedKey, tail: u64) -> Result<u32, Error> {
        let entry = KeyEntry::Key(key);
        if self.rows.len() < to_usize(KEY_ROWS) {
            return Ok(self.put_last(entry));
        }
        let newest = (0..).zip(&mut self.rows).max_by_key(|(_, row)| row.newest_key());
        if let Some((number, row)) = newest.filter(|(_, row)| row.has_room_for(&entry)) {
            row.entries.push(entry);
            return Ok(number);
        }
        let number = self.retired_row(tail).ok_or(Error::KeysFull)?;
        let row = self.rows.get_mut(to_usize(number)).expect("it was found");
        row.entries = Vec::from([entry]);
        Ok(number)
    }

    /// In the last row, or in one behind it.
    fn put_last(&mut self, entry: KeyEntry) -> u32 {
        match self.rows.last_mut().filter(|row| row.has_room_for(&entry)) {
            Some(row) => row.entries.push(entry),
            None => self.rows.push(KeyRow { entries: Vec::from([entry]) }),
        }
        self.row_count() - 1
    }

    /// A row of keys alone, each of which another one had followed before the stripe `tail`.
    fn retired_row(&self, tail: u64) -> Option<u32> {
        let is_recipient = |entry: &KeyEntry| matches!(entry, KeyEntry::Recipient(_));
        let followed = |row: &KeyRow| {
            let later = self.keys().filter(|key| key.id > row.newest_key());
            later.min_by_key(|key| key.id).is_some_and(|next| next.from <= tail)
        };
        let rows = (0..).zip(&self.rows);
        let retired = rows.filter(|(_, row)| !row.entries.iter().any(is_recipient));
        let retired = retired.filter(|(_, row)| followed(row));
        retired.min_by_key(|(_, row)| row.newest_key()).map(|(number, _)| number)
    }

    /// Rows as they lie on the disk, one behind the other.
    pub(crate) fn pages(
        &self,
        rows: core::ops::Range<u32>,
        (volume, key): (VolumeId, &HeadKey),
    ) -> Vec<u8> {
        let page = |number: u32| {
            let row = self.rows.get(to_usize(number)).expect("it is one of them");
            row.encode(number, volume, key)
        };
        rows.flat_map(page).collect()
    }
}

/// Recipients must leave space for keys.
fn rows_of_recipients() -> usize {
    to_usize(KEY_ROWS) / 2
}

fn to_usize(row: u32) -> usize {
    usize::try_from(row).expect("at most 509")
}

/// The rows at one end of a member, up to the first that was never written; `None` for those that
/// are not readable there.
fn read_copy(
    (volume, key): (VolumeId, Option<&HeadKey>),
    (size_bytes, read): (u64, ReadKeys<'_>),
    end: usize,
) -> Vec<Option<KeyRow>> {
    let mut rows: Vec<Option<KeyRow>> = Vec::new();
    let mut bytes = vec![0; ROWS_AT_ONCE * KEY_ROW_BYTES];
    for first in (0..KEY_ROWS).step_by(ROWS_AT_ONCE) {
        let count = to_usize(KEY_ROWS - first).min(ROWS_AT_ONCE);
        let Some(&offset) = key_row_offsets(first, size_bytes).get(end) else { break };
        let part = bytes.get_mut(..count * KEY_ROW_BYTES).expect("as many rows at most");
        if !read(offset, part) {
            rows.extend((0..count).map(|_| None));
            continue;
        }
        let (pages, _) = part.as_chunks::<KEY_ROW_BYTES>();
        for (number, page) in (first..).zip(pages) {
            match KeyRow::decode(page, number, volume, key) {
                Ok(row) => rows.push(Some(row)),
                Err(KeyRowError::Empty) => return without_end(rows),
                Err(_) => rows.push(None),
            }
        }
    }
    without_end(rows)
}

/// Unreadable rows behind the last readable one are nothing that this copy knows of.
fn without_end(mut rows: Vec<Option<KeyRow>>) -> Vec<Option<KeyRow>> {
    while rows.pop_if(|row| row.is_none()).is_some() {}
    rows
}

#[cfg(test)]
mod tests {
    use units::Timestamp;

    use super::*;

    fn key(id: u64, from: u64) -> WrappedKey {
        WrappedKey { id, from, made: Timestamp(0), wrapped: vec![7; 1000] }
    }

    /// Rows are used again when the ring has passed their keys, and never before.
    #[test]
    fn keys_go_round_behind_the_tail() {
        let mut log = KeyLog::new(&["age1a".to_owned(), "age1b".to_owned()]).unwrap();
        assert_eq!(log.recipients(), ["age1a", "age1b"]);
        let mut id = 0;
        loop {
            assert_eq!(log.next_id(), id + 1);
            match log.add(key(id + 1, 1000 + id), 0) {
                Ok(_) => id += 1,
                Err(Error::KeysFull) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(log.row_count(), KEY_ROWS);
        assert!(log.keys().count() > 1500, "{}", log.keys().count());
        // The first row has the recipients, and so stays.
        let oldest = log.keys().map(|key| key.id).min().unwrap();
        assert_eq!(oldest, 1);
        let second: Vec<u64> =
            log.rows[1].entries.iter().map(KeyEntry::len_bytes).map(|_| 0).collect();
        assert_eq!(second.len(), 3);
        let last_of_second = log.rows[1].newest_key();
        let followed_at = log.keys().find(|key| key.id == last_of_second + 1).unwrap().from;
        assert!(matches!(log.add(key(id + 1, 9000), followed_at - 1), Err(Error::KeysFull)));
        assert_eq!(log.add(key(id + 1, 9000), followed_at).unwrap(), 1);
        // The next ones go there, too.
        assert_eq!(log.add(key(id + 2, 9001), followed_at).unwrap(), 1);
        assert_eq!(log.next_id(), id + 3);
        assert_eq!(log.recipients(), ["age1a", "age1b"]);
    }

    #[test]
    fn recipients_that_leave_no_space_are_refused() {
        let many: Vec<String> = (0..1000).map(|_| "a".repeat(2000)).collect();
        assert!(matches!(KeyLog::new(&many), Err(Error::Recipients)));
        assert!(matches!(KeyLog::new(&["a".repeat(5000)]), Err(Error::Recipients)));
    }
}
