//! Encryption of what is appended: a data key for each hour and each opening, durable on every
//! member before anything is encrypted with it; and what becomes of keys later.

use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::Arc;

use device::Buffer;
use encryption::Keyring;
use format::key_log::KeyLog;
use format::key_row::DestroyedKey;
use format::superblock::Superblock;
use units::Clock;
use volume::Error;

use super::Writer;
use crate::member_writers::Failed;
use crate::sealing::{RandomKey, put_all, put_rows};

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

    /// Encrypts what is recorded from the next opening on; what is there stays as it is. On a
    /// volume that is encrypted this changes nothing.
    ///
    /// # Errors
    /// [`Error::Recipients`]; when so many members fail that no others could go on. Whether the
    /// texts are public keys is the caller's part.
    pub fn begin_to_encrypt(
        &mut self,
        recipients: &[String],
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        if self.superblock().is_encrypted {
            return Ok(());
        }
        // Whom keys are wrapped to is known on every member before one says that they are.
        self.keys.log = KeyLog::new(recipients)?;
        // An attempt that was cut short may have left more rows.
        self.put_all_keys(clock).or_else(|failed| self.expel(failed, clock))?;
        self.store(clock, |own| Superblock { is_encrypted: true, ..own })
    }

    /// Wraps keys for other recipients from now on, and those that are there as `wrapped` has them
    /// by number; others stay as they are. Durable on every member when this returns. Whatever a
    /// crash leaves, each key is there for those who had it before or have it afterwards.
    ///
    /// # Errors
    /// [`Error::Recipients`]; [`Error::KeysFull`] when there is no room; when so many members fail
    /// that no others could go on. Whether the texts are public keys is the caller's part.
    pub fn set_recipients(
        &mut self,
        recipients: &[String],
        wrapped: &BTreeMap<u64, Vec<u8>>,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        for log in self.keys.log.rewrapped(recipients, wrapped)? {
            self.put_log(log, clock)?;
        }
        Ok(())
    }

    /// Gives up what was recorded with keys that were followed by others when what is older than
    /// `age_ns` was, and takes those keys off every member: whoever has the disks, and whatever
    /// private key, reads it no more. Takes as long for a large ring as for a small one.
    ///
    /// # Errors
    /// When so many members fail that no others could go on.
    pub fn destroy_keys(
        &mut self,
        age_ns: i64,
        clock: &dyn Clock,
    ) -> Result<Vec<DestroyedKey>, Error> {
        let through = self.erasable_through(age_ns, clock);
        let Some(before) = self.keys.log.followed_through(through) else { return Ok(Vec::new()) };
        self.give_up_before(before, clock)?;
        let mut log = self.keys.log.clone();
        let given_up = self.superblock().given_up_before;
        let destroyed = log.destroy_before(given_up, clock.realtime());
        self.put_log(log, clock)?;
        Ok(destroyed)
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
            // No slot has two keys: what is given up of the older one is given up whole.
            if self.next_row > 0 {
                self.close_slot(clock, false)?;
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

    /// Rows that have changed, on all members.
    fn put_log(&mut self, log: KeyLog, clock: &dyn Clock) -> Result<(), Error> {
        let rows = self.keys.log.changed_rows(&log);
        self.keys.log = log;
        self.put_keys(rows, clock).or_else(|failed| self.expel(failed, clock))
    }

    fn put_keys(&mut self, rows: Range<u32>, clock: &dyn Clock) -> Result<(), Failed> {
        let on = (&mut self.writers, self.membership.superblock());
        put_rows(&self.keys.log, rows, on, clock)
    }

    /// All members shall have all keys.
    pub(super) fn put_all_keys(&mut self, clock: &dyn Clock) -> Result<(), Failed> {
        if self.keys.log.row_count() == 0 {
            return Ok(());
        }
        put_all(&self.keys.log, (&mut self.writers, self.membership.superblock()), clock)
    }
}
