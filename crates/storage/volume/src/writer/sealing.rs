//! Encryption of what is appended: a data key for each hour and each opening, durable on every
//! member before anything is encrypted with it.

use core::ops::Range;
use std::sync::Arc;

use device::{Buffer, Pool, Shared};
use encryption::Keyring;
use format::key_row::key_row_offsets;
use units::Clock;

use super::Writer;
use crate::Error;
use crate::keys::KeyLog;
use crate::member_writer::MemberWriter;
use crate::member_writers::Failed;
use crate::sealing::RandomKey;
use crate::steps::{RENEWAL, Step};

impl Writer {
    /// Wrapped keys and recipients of an encrypted volume.
    pub fn key_log(&self) -> &KeyLog {
        &self.keys.log
    }

    /// From now on what is appended can be encrypted, with keys of `random`, which `keyring` gets
    /// to know, too. On a volume that is not encrypted this changes nothing.
    ///
    /// # Errors
    /// [`Error::KeysLost`] when no recipient can be read; [`Error::Sealing`].
    pub fn seal_with(&mut self, random: RandomKey, keyring: Arc<Keyring>) -> Result<(), Error> {
        if !self.superblock().is_encrypted {
            return Ok(());
        }
        self.keys.begin(self.membership.geometry(), (random, keyring))
    }

    /// Bytes of memory for what is being encrypted.
    pub fn sealing_bytes(&self) -> u64 {
        self.keys.memory_bytes()
    }

    /// The number of the key for what is appended now; a new one is durable when this returns.
    pub(super) fn key_of_now(&mut self, clock: &dyn Clock) -> Result<u64, Error> {
        loop {
            if let Some(id) = self.keys.current(clock.boottime_ns()) {
                return Ok(id);
            }
            let sequences = (self.next.sequence, self.tail());
            let superblock = self.membership.superblock();
            let Some(key) = self.keys.make(superblock, sequences, clock)? else { continue };
            match self.put_keys(key.row..key.row + 1, clock) {
                Ok(()) => {}
                Err(failed) => self.expel(failed, clock)?,
            }
            self.keys.put_to_use(key, clock.boottime_ns());
        }
    }

    /// Columns as many as a stripe has for data, to encrypt into.
    pub(super) fn take_sealed_columns(&mut self, clock: &dyn Clock) -> Result<Vec<Buffer>, Error> {
        let count = usize::from(self.geometry().data_columns);
        let mut columns = Vec::with_capacity(count);
        while columns.len() < count {
            match self.keys.column() {
                Some(column) => columns.push(column),
                None => self.poll_at_once(clock)?,
            }
        }
        Ok(columns)
    }

    /// Writes rows of keys to all members, first at the front, then at the end.
    fn put_keys(&mut self, rows: Range<u32>, clock: &dyn Clock) -> Result<(), Failed> {
        if rows.is_empty() {
            return Ok(());
        }
        let superblock = self.membership.superblock();
        let volume = (superblock.volume_id, &superblock.head_key);
        let pages = self.keys.log.pages(rows.clone(), volume);
        let pool = Pool::new(1, pages.len()).map_err(Failed::of_nobody)?;
        let mut buffer = pool.take().expect("it was just made");
        buffer.copy_from_slice(&pages);
        let data: Shared = buffer.freeze();
        self.writers.run(clock, |writer: &MemberWriter| {
            let offsets = key_row_offsets(rows.start, writer.device().size_bytes());
            let copy = |offset| [Step::Write { offset, data: data.clone() }, Step::Flush];
            RENEWAL.into_iter().chain(offsets.into_iter().flat_map(copy)).collect()
        })
    }

    /// All members shall have all keys.
    pub(super) fn put_all_keys(&mut self, clock: &dyn Clock) -> Result<(), Failed> {
        self.put_keys(0..self.keys.log.row_count(), clock)
    }

    /// Where copies differ, as after a crash, all are written anew.
    pub(crate) fn mend_keys(&mut self, clock: &dyn Clock) -> Result<(), Error> {
        if !core::mem::take(&mut self.keys.differ) {
            return Ok(());
        }
        self.put_all_keys(clock).or_else(|failed| self.expel(failed, clock))
    }
}
