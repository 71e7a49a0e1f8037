//! The wrapped data keys of a volume, as all members have them.
//!
//! They lie in rows at both ends of each member. A row is written at the front, made durable, and
//! written at the end: at every instant one of the two is whole. A key is durable on every member
//! before the first stripe is encrypted with it. Who reads takes of each row the newest copy on the
//! members of the newest epoch. [A member that was away may alone have rows of a change that was
//! cut short, and was then made otherwise without it.]
//!
//! Keys are wrapped anew where they lie, for other recipients, and destroyed there. Such a row has
//! a higher revision, by which it is known from one that the same change had not reached.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;
use units::{Sequence, Timestamp};

use crate::head::{HeadKey, VolumeId};
use crate::key_row::{
    DestroyedKey, ENTRY_BYTES_MAX, KEY_ROW_BYTES, KEY_ROWS, KeyEntry, KeyRow, KeyRowError,
    WrappedKey, key_row_offsets,
};

/// Why a key or a recipient gets no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum KeyLogError {
    /// The recipients take too much space.
    #[error("there are too many recipients, or one is too long")]
    Recipients,
    /// All rows hold keys of stripes that are in the ring.
    #[error("there is no space for another data key")]
    Full,
}

/// Rows that are read at a time.
const ROWS_AT_ONCE: usize = 16;

/// Reads a place of a member; false where that fails.
type ReadKeys<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

/// A member whose keys are read.
#[derive(Debug)]
pub struct KeyMember<R> {
    /// Its bytes.
    pub size_bytes: u64,
    /// It is of the newest epoch. What others have counts only where none of these has a row that
    /// can be read.
    pub is_current: bool,
    /// Reads a place of it, given by its first byte; false where that fails.
    pub read: R,
}

/// The rows of one end of a member.
struct KeyCopy {
    is_current: bool,
    rows: Vec<Option<KeyRow>>,
}

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
    /// [`KeyLogError::Recipients`] when they take more than half of the space.
    pub fn new(recipients: &[String]) -> Result<Self, KeyLogError> {
        let mut log = Self::default();
        for text in recipients {
            let entry = KeyEntry::Recipient(text.clone());
            let fits = text.len() <= ENTRY_BYTES_MAX && log.rows.len() < rows_of_recipients();
            if !fits {
                return Err(KeyLogError::Recipients);
            }
            log.put_last(entry);
        }
        Ok(log)
    }

    /// Reads the keys of members; says whether all their copies are the same.
    pub fn load<R: Fn(u64, &mut [u8]) -> bool>(
        (volume, key): (VolumeId, Option<&HeadKey>),
        members: impl Iterator<Item = KeyMember<R>>,
    ) -> (Self, bool) {
        let copies: Vec<KeyCopy> = members
            .flat_map(|KeyMember { size_bytes, is_current, read }| {
                [0, 1].map(|end| {
                    let rows = read_copy((volume, key), (size_bytes, &read), end);
                    KeyCopy { is_current, rows }
                })
            })
            .collect();
        let has_current = copies.iter().any(|copy| copy.is_current && !copy.rows.is_empty());
        let is_trusted = |copy: &&KeyCopy| copy.is_current || !has_current;
        let count = copies.iter().filter(is_trusted).map(|copy| copy.rows.len()).max();
        let newest = |number: usize| {
            let row = |copy: &'_ KeyCopy| copy.rows.get(number)?.clone();
            let age = |row: &KeyRow| (row.revision, row.newest_key(), row.entries.len());
            let newest = copies.iter().filter(is_trusted).filter_map(row).max_by_key(age);
            newest.or_else(|| copies.iter().filter_map(row).max_by_key(age)).unwrap_or_default()
        };
        let rows: Vec<KeyRow> = (0..count.unwrap_or(0)).map(newest).collect();
        let are_same = copies.iter().all(|copy| copy.rows.iter().flatten().eq(&rows));
        (Self { rows }, are_same)
    }

    /// Texts of the public keys that data keys are wrapped to.
    pub fn recipients(&self) -> Vec<String> {
        let texts = self.entries().filter_map(|entry| match entry {
            KeyEntry::Recipient(text) => Some(text.clone()),
            KeyEntry::Key(_) | KeyEntry::Destroyed(_) => None,
        });
        texts.collect()
    }

    /// The wrapped keys, in no order. One may be there several times, for different recipients.
    pub fn keys(&self) -> impl Iterator<Item = &WrappedKey> {
        self.entries().filter_map(|entry| match entry {
            KeyEntry::Key(key) => Some(key),
            KeyEntry::Recipient(_) | KeyEntry::Destroyed(_) => None,
        })
    }

    /// Keys that were destroyed, in no order.
    pub fn destroyed(&self) -> impl Iterator<Item = &DestroyedKey> {
        self.entries().filter_map(|entry| match entry {
            KeyEntry::Destroyed(key) => Some(key),
            KeyEntry::Recipient(_) | KeyEntry::Key(_) => None,
        })
    }

    fn entries(&self) -> impl Iterator<Item = &KeyEntry> {
        self.rows.iter().flat_map(|row| &row.entries)
    }

    /// Numbers of all keys there ever were that still have a place, and since when each was used.
    fn begins(&self) -> BTreeMap<u64, Sequence> {
        let destroyed = self.destroyed().map(|key| (key.id, key.from));
        self.keys().map(|key| (key.id, key.from)).chain(destroyed).collect()
    }

    /// Rows in use.
    pub fn row_count(&self) -> u32 {
        u32::try_from(self.rows.len()).expect("at most 509")
    }

    /// The number of the next key.
    pub fn next_id(&self) -> u64 {
        1 + self.rows.iter().map(KeyRow::newest_key).max().unwrap_or(0)
    }

    /// Puts a key where there is room: behind the newest one, or in place of keys that no stripe
    /// from `tail` on needs. Gives the row that has changed.
    ///
    /// # Errors
    /// [`KeyLogError::Full`].
    pub fn add(&mut self, key: WrappedKey, tail: Sequence) -> Result<u32, KeyLogError> {
        let entry = KeyEntry::Key(key);
        if self.rows.len() < to_usize(KEY_ROWS) {
            return Ok(self.put_last(entry));
        }
        let newest = (0..).zip(&mut self.rows).max_by_key(|(_, row)| row.newest_key());
        if let Some((number, row)) = newest.filter(|(_, row)| row.has_room_for(&entry)) {
            row.entries.push(entry);
            return Ok(number);
        }
        let number = self.retired_row(tail).ok_or(KeyLogError::Full)?;
        let row = self.rows.get_mut(to_usize(number)).expect("it was found");
        row.entries = Vec::from([entry]);
        Ok(number)
    }

    /// The log with all keys wrapped for `recipients`, as `wrapped` has them by number, in two
    /// steps that each have to be durable before the next: first the new beside the old, then the
    /// new alone. Keys that `wrapped` lacks stay as they are. What does not fit where it was gets a
    /// row behind all others.
    ///
    /// # Errors
    /// [`KeyLogError::Full`] when there are not enough rows; [`KeyLogError::Recipients`] as for a
    /// new log.
    pub fn rewrapped(
        &self,
        recipients: &[String],
        wrapped: &BTreeMap<u64, Vec<u8>>,
    ) -> Result<[Self; 2], KeyLogError> {
        let known = self.recipients();
        let new = recipients.iter().filter(|text| !known.contains(text));
        if recipients.iter().any(|text| text.len() > ENTRY_BYTES_MAX) {
            return Err(KeyLogError::Recipients);
        }
        let mut behind: Vec<KeyEntry> = new.cloned().map(KeyEntry::Recipient).collect();
        let mut alone = self.clone();
        let mut seen = BTreeSet::new();
        for row in &mut alone.rows {
            let before = row.clone();
            row.entries.clear();
            for entry in before.entries.iter().cloned() {
                let (entry, may_move) = match entry {
                    KeyEntry::Recipient(text) if !recipients.contains(&text) => continue,
                    KeyEntry::Key(key) => match wrapped.get(&key.id) {
                        Some(_) if !seen.insert(key.id) => continue,
                        Some(wrapped) => {
                            (KeyEntry::Key(WrappedKey { wrapped: wrapped.clone(), ..key }), true)
                        }
                        None => (KeyEntry::Key(key), false),
                    },
                    entry => (entry, false),
                };
                if may_move && !row.has_room_for(&entry) {
                    behind.push(entry);
                } else {
                    row.entries.push(entry);
                }
            }
            let has_changed = row.entries != before.entries;
            row.revision = before.revision + u64::from(has_changed);
        }
        // What an earlier change left in rows of this number, if it was cut short, is older.
        let revision = 1 + self.rows.iter().map(|row| row.revision).max().unwrap_or(0);
        let mut further = Self { rows: Vec::from([KeyRow { revision, entries: Vec::new() }]) };
        for entry in behind {
            further.put_last(entry);
        }
        further.rows.pop_if(|row| row.entries.is_empty());
        alone.rows.extend_from_slice(&further.rows);
        let mut joined = self.clone();
        joined.rows.extend(further.rows);
        if joined.rows.len() > to_usize(KEY_ROWS) {
            return Err(KeyLogError::Full);
        }
        Ok([joined, alone])
    }

    /// Destroys the keys that others had followed before the stripe `tail`; gives them.
    pub fn destroy_before(&mut self, tail: Sequence, now: Timestamp) -> Vec<DestroyedKey> {
        let begins = self.begins();
        let mut destroyed = BTreeMap::new();
        for row in &mut self.rows {
            let mut has_changed = false;
            for entry in &mut row.entries {
                let KeyEntry::Key(WrappedKey { id, from, made, .. }) = *entry else { continue };
                let next = begins.range(id + 1..).next();
                if next.is_some_and(|(_, from)| *from <= tail) {
                    let key = DestroyedKey { id, from, made, destroyed: now };
                    destroyed.insert(id, key);
                    *entry = KeyEntry::Destroyed(key);
                    has_changed = true;
                }
            }
            row.revision += u64::from(has_changed);
        }
        destroyed.into_values().collect()
    }

    /// A stripe such that no earlier one is younger than `through`, as far as keys say it. One that
    /// was made by a clock that had been set back says nothing, nor does any behind a younger one.
    pub fn followed_through(&self, through: Timestamp) -> Option<Sequence> {
        let made: BTreeMap<u64, &WrappedKey> = self.keys().map(|key| (key.id, key)).collect();
        let old = made.values().take_while(|key| key.made <= through);
        let mut latest = Timestamp::MIN;
        let mut found = None;
        for key in old {
            if key.made >= latest {
                (latest, found) = (key.made, Some(key.from));
            }
        }
        found
    }

    /// The rows in which another log differs, one behind the other.
    pub fn changed_rows(&self, other: &Self) -> Range<u32> {
        let differs = |number: &u32| {
            let at = to_usize(*number);
            self.rows.get(at) != other.rows.get(at)
        };
        let mut changed = (0..other.row_count()).filter(differs);
        let first = changed.next();
        let last = changed.next_back().or(first);
        first.zip(last).map_or(0..0, |(first, last)| first..last + 1)
    }

    /// In the last row, or in one behind it.
    fn put_last(&mut self, entry: KeyEntry) -> u32 {
        match self.rows.last_mut().filter(|row| row.has_room_for(&entry)) {
            Some(row) => row.entries.push(entry),
            None => self.rows.push(KeyRow { revision: 0, entries: Vec::from([entry]) }),
        }
        self.row_count() - 1
    }

    /// A row of keys alone, each of which another one had followed before the stripe `tail`.
    fn retired_row(&self, tail: Sequence) -> Option<u32> {
        let is_recipient = |entry: &KeyEntry| matches!(entry, KeyEntry::Recipient(_));
        let begins = self.begins();
        let followed = |row: &KeyRow| {
            begins.range(row.newest_key() + 1..).next().is_some_and(|(_, from)| *from <= tail)
        };
        let rows = (0..).zip(&self.rows);
        let retired = rows.filter(|(_, row)| !row.entries.iter().any(is_recipient));
        let retired = retired.filter(|(_, row)| followed(row));
        retired.min_by_key(|(_, row)| row.newest_key()).map(|(number, _)| number)
    }

    /// Rows as they lie on the disk, one behind the other; those that are not in use are blank.
    pub fn pages(&self, rows: Range<u32>, (volume, key): (VolumeId, &HeadKey)) -> Vec<u8> {
        let page = |number: u32| {
            let row = self.rows.get(to_usize(number));
            row.map_or([0; KEY_ROW_BYTES], |row| row.encode(number, volume, key))
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
    use super::*;

    fn key(id: u64, from: Sequence) -> WrappedKey {
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
            match log.add(key(id + 1, Sequence(1000 + id)), Sequence(0)) {
                Ok(_) => id += 1,
                Err(KeyLogError::Full) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(log.row_count(), KEY_ROWS);
        assert!(log.keys().count() > 1500, "{}", log.keys().count());
        // The first row has the recipients, and so stays.
        let oldest = log.keys().map(|key| key.id).min().unwrap();
        assert_eq!(oldest, 1);
        assert_eq!(log.rows[1].entries.len(), 3);
        let last_of_second = log.rows[1].newest_key();
        let followed_at = log.keys().find(|key| key.id == last_of_second + 1).unwrap().from;
        assert!(matches!(
            log.add(key(id + 1, Sequence(9000)), followed_at - 1),
            Err(KeyLogError::Full)
        ));
        assert_eq!(log.add(key(id + 1, Sequence(9000)), followed_at).unwrap(), 1);
        // The next ones go there, too.
        assert_eq!(log.add(key(id + 2, Sequence(9001)), followed_at).unwrap(), 1);
        assert_eq!(log.next_id(), id + 3);
        assert_eq!(log.recipients(), ["age1a", "age1b"]);
    }

    fn made(id: u64, hour: i64, len: usize) -> WrappedKey {
        WrappedKey { id, from: Sequence(100 * id), made: Timestamp(hour), wrapped: vec![1; len] }
    }

    fn wrapped(ids: core::ops::RangeInclusive<u64>, len: usize) -> BTreeMap<u64, Vec<u8>> {
        ids.map(|id| (id, vec![2; len])).collect()
    }

    /// Keys by number: of which kind their wrapping is.
    fn kinds(log: &KeyLog) -> Vec<(u64, u8)> {
        let mut kinds: Vec<(u64, u8)> = log.keys().map(|key| (key.id, key.wrapped[0])).collect();
        kinds.sort_unstable();
        kinds
    }

    #[test]
    fn between_the_steps_of_a_change_everybody_can_read_and_after_them_the_new_alone() {
        for (old, new) in [(300, 300), (300, 700), (700, 300), (1, 3000)] {
            let mut log = KeyLog::new(&["age1a".to_owned(), "age1b".to_owned()]).unwrap();
            for id in 1..=40 {
                log.add(made(id, 0, old), Sequence(0)).unwrap();
            }
            let recipients = ["age1b".to_owned(), "age1c".to_owned()];
            let [joined, alone] = log.rewrapped(&recipients, &wrapped(1..=39, new)).unwrap();
            assert_eq!(joined.recipients(), ["age1a", "age1b", "age1c"]);
            assert_eq!(alone.recipients(), recipients);
            let all: Vec<(u64, u8)> = (1..40).map(|id| (id, 2)).chain([(40, 1)]).collect();
            assert_eq!(kinds(&alone), all, "{old} {new}");
            // Nothing that was there has gone before the rest is.
            assert!(kinds(&log).iter().all(|key| kinds(&joined).contains(key)));
            let rows = log.rows.len();
            assert_eq!(joined.rows[..rows], log.rows);
            assert_eq!(joined.rows[rows..], alone.rows[rows..]);
            for (old, new) in joined.rows.iter().zip(&alone.rows) {
                assert_eq!(new.revision > old.revision, new.entries != old.entries);
            }
            // Whatever a crash leaves of the second step has every key.
            for cut in 0..=alone.rows.len() {
                let mut mixed = joined.clone();
                mixed.rows[..cut].clone_from_slice(&alone.rows[..cut]);
                let mut ids: Vec<u64> = mixed.keys().map(|key| key.id).collect();
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids, (1..=40).collect::<Vec<_>>(), "{old} {new}, cut {cut}");
            }
            // Once more changes nothing but revisions.
            let again = wrapped(1..=40, new);
            let [_, again] = alone.rewrapped(&recipients, &again).unwrap();
            assert_eq!(kinds(&again).len(), 40);
            assert_eq!(again.next_id(), 41);
        }
    }

    #[test]
    fn keys_that_have_no_room_leave_all_as_it_was() {
        let mut log = KeyLog::new(&["age1a".to_owned()]).unwrap();
        let mut id = 0;
        while log.add(made(id + 1, 0, 1000), Sequence(0)).is_ok() {
            id += 1;
        }
        let recipients = ["age1a".to_owned()];
        let full = log.rewrapped(&recipients, &wrapped(1..=id, 1400));
        assert!(matches!(full, Err(KeyLogError::Full)));
        assert!(log.rewrapped(&recipients, &wrapped(1..=id, 1000)).is_ok());
    }

    #[test]
    fn keys_before_a_stripe_are_destroyed_and_their_numbers_never_used_again() {
        let mut log = KeyLog::new(&["age1a".to_owned()]).unwrap();
        for id in 1..=10 {
            log.add(made(id, 0, 500), Sequence(0)).unwrap();
        }
        assert_eq!(log.destroy_before(Sequence(199), Timestamp(5)), []);
        let before = log.clone();
        let gone = log.destroy_before(Sequence(500), Timestamp(5));
        assert_eq!(gone.iter().map(|key| key.id).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(log.destroyed().count(), 4);
        assert_eq!(log.keys().map(|key| key.id).min(), Some(5));
        assert_eq!(before.changed_rows(&log), 0..1);
        assert_eq!(log.changed_rows(&log), 0..0);
        assert_eq!(log.destroy_before(Sequence(500), Timestamp(6)), []);
        log.destroy_before(Sequence::MAX, Timestamp(7));
        // The newest is in use.
        assert_eq!(log.keys().map(|key| key.id).collect::<Vec<_>>(), [10]);
        assert_eq!(log.next_id(), 11);
    }

    #[test]
    fn a_clock_that_was_wrong_makes_no_key_old() {
        let of = |hours: &[i64]| {
            let mut log = KeyLog::new(&["age1a".to_owned()]).unwrap();
            for (id, hour) in (1..).zip(hours) {
                log.add(made(id, *hour, 10), Sequence(0)).unwrap();
            }
            log.followed_through(Timestamp(100))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[50]), Some(Sequence(100)));
        assert_eq!(of(&[50, 100, 101, 102]), Some(Sequence(200)));
        // Set back for one start.
        assert_eq!(of(&[90, 1, 101]), Some(Sequence(100)));
        assert_eq!(of(&[150, 1, 50]), None);
        // Far ahead: what follows is not judged before that time has come.
        assert_eq!(of(&[50, 9000, 60, 70]), Some(Sequence(100)));
    }

    #[test]
    fn recipients_that_leave_no_space_are_refused() {
        let many: Vec<String> = (0..1000).map(|_| "a".repeat(2000)).collect();
        assert!(matches!(KeyLog::new(&many), Err(KeyLogError::Recipients)));
        assert!(matches!(KeyLog::new(&["a".repeat(5000)]), Err(KeyLogError::Recipients)));
    }
}
