//! Encryption of what is appended: a data key for each hour and each opening, wrapped, and durable
//! on every member before anything is encrypted with it.

use std::sync::Arc;

use device::{Buffer, Pool, Shared};
use encryption::{DataKey, KEY_BYTES, Keyring, Place, Recipients};
use format::head::{HEAD_BYTES, StripeHead};
use format::key_row::{WrappedKey, key_row_offsets};
use units::Clock;
use units::number::to_u64;

use super::{SPARE_STRIPES, Writer};
use crate::Error;
use crate::keys::KeyLog;
use crate::member_writer::MemberWriter;
use crate::member_writers::Failed;
use crate::steps::{RENEWAL, Step};

/// How long a data key is used.
const KEY_NS: i64 = 3_600_000_000_000;

const _: () = assert!(encryption::LEAD_BYTES == format::piece::LEAD_BYTES);

/// Fresh secret bytes; or why there are none.
pub type RandomKey = Box<dyn FnMut() -> Result<[u8; KEY_BYTES], String> + Send>;

/// What a writer needs to encrypt.
pub(super) struct Sealing {
    recipients: Recipients,
    random: RandomKey,
    keyring: Arc<Keyring>,
    current: Option<Current>,
    /// Columns that bodies are encrypted into: the plain ones are still read by the indexer.
    columns: Pool,
}

impl core::fmt::Debug for Sealing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Sealing({:?})", self.recipients)
    }
}

/// The key in use.
struct Current {
    id: u64,
    key: DataKey,
    since_ns: i64,
}

impl Writer {
    /// Wrapped keys and recipients of an encrypted volume.
    pub fn key_log(&self) -> &KeyLog {
        &self.keys
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
        let texts = self.keys.recipients();
        if texts.is_empty() {
            return Err(Error::KeysLost);
        }
        let recipients = Recipients::parse(&texts).map_err(|it| Error::Sealing(it.to_string()))?;
        let columns = self.sealed_columns()?;
        self.sealing = Some(Sealing { recipients, random, keyring, current: None, columns });
        Ok(())
    }

    /// Memory for the bodies of some stripes.
    fn sealed_columns(&self) -> Result<Pool, Error> {
        let geometry = self.geometry();
        let piece_bytes = usize::try_from(geometry.piece_bytes).expect("at most 2 MiB");
        Ok(Pool::new(usize::from(geometry.data_columns) * SPARE_STRIPES, piece_bytes)?)
    }

    /// Bytes of memory for what is being encrypted.
    pub fn sealing_bytes(&self) -> u64 {
        let columns = self.sealing.as_ref().map(|sealing| &sealing.columns);
        columns.map_or(0, |pool| to_u64(pool.count()).saturating_mul(to_u64(pool.buffer_size())))
    }

    /// The shape has changed, and with it how many columns a stripe has.
    pub(super) fn fit_sealed_columns(&mut self) -> Result<(), Error> {
        let columns = self.sealing.is_some().then(|| self.sealed_columns()).transpose()?;
        if let (Some(sealing), Some(columns)) = (&mut self.sealing, columns) {
            sealing.columns = columns;
        }
        Ok(())
    }

    /// The number of the key for what is appended now; a new one is durable when this returns.
    pub(super) fn key_of_now(&mut self, clock: &dyn Clock) -> Result<u64, Error> {
        let now_ns = clock.boottime_ns();
        let sealing = self.sealing.as_mut().ok_or(Error::KeysLost)?;
        let is_young = |current: &&Current| now_ns.saturating_sub(current.since_ns) < KEY_NS;
        if let Some(current) = sealing.current.as_ref().filter(is_young) {
            return Ok(current.id);
        }
        let failed = |why: String| Error::Sealing(why);
        let key = DataKey::new((sealing.random)().map_err(failed)?);
        let id = self.keys.next_id();
        let volume = self.membership.superblock().volume_id.0;
        let wrapped = sealing.recipients.wrap(&key, volume, id);
        let wrapped = wrapped.map_err(|error| failed(error.to_string()))?;
        let from = self.next.sequence;
        let wrapped = WrappedKey { id, from, made: clock.realtime(), wrapped };
        let tail = self.tail();
        let row = match self.keys.add(wrapped, tail) {
            Ok(row) => row,
            // The key in use goes on for another hour rather than the recording ends.
            Err(full) => {
                let sealing = self.sealing.as_mut();
                let current = sealing.and_then(|sealing| sealing.current.as_mut()).ok_or(full)?;
                current.since_ns = now_ns;
                return Ok(current.id);
            }
        };
        match self.put_keys(row..row + 1, clock) {
            Ok(()) => {}
            Err(failed) => self.expel(failed, clock)?,
        }
        let sealing = self.sealing.as_mut().expect("it was there before");
        sealing.keyring.hold(id, key.clone(), id.saturating_sub(1));
        sealing.current = Some(Current { id, key, since_ns: now_ns });
        Ok(id)
    }

    /// Columns as many as a stripe has for data, to encrypt into.
    pub(super) fn take_sealed_columns(&mut self, clock: &dyn Clock) -> Result<Vec<Buffer>, Error> {
        let count = usize::from(self.geometry().data_columns);
        let mut columns = Vec::with_capacity(count);
        while columns.len() < count {
            let sealing = self.sealing.as_ref().expect("there is a key");
            match sealing.columns.take() {
                Some(column) => columns.push(column),
                None => self.poll_at_once(clock)?,
            }
        }
        Ok(columns)
    }

    /// Encrypts the bodies of a stripe.
    pub(super) fn seal(&self, stripe: &StripeHead, plain: &[Buffer], sealed: &mut [Buffer]) {
        let current = self.sealing.as_ref().and_then(|sealing| sealing.current.as_ref());
        let current = current.filter(|current| Some(current.id) == stripe.key_id);
        let key = current.expect("it was made before").key.of_epoch(stripe.epoch);
        let body = HEAD_BYTES..HEAD_BYTES * (1 + usize::from(stripe.rows));
        let tail = stripe.local_block_bytes().to_le_bytes();
        for (column, (plain, sealed)) in (0..).zip(plain.iter().zip(sealed)) {
            let plain = plain.get(body.clone()).expect("rows fit a column");
            let sealed = sealed.get_mut(body.clone()).expect("rows fit a column");
            key.seal(&place_of(stripe, column), plain, sealed, tail);
        }
    }

    /// Writes rows of keys to all members, first at the front, then at the end.
    pub(super) fn put_keys(
        &mut self,
        rows: core::ops::Range<u32>,
        clock: &dyn Clock,
    ) -> Result<(), Failed> {
        if rows.is_empty() {
            return Ok(());
        }
        let superblock = self.membership.superblock();
        let pages = self.keys.pages(rows.clone(), superblock.volume_id, &superblock.head_key);
        let mut buffer =
            Pool::new(1, pages.len()).map_err(Failed::of_nobody)?.take().expect("it was just made");
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
        self.put_keys(0..self.keys.row_count(), clock)
    }

    /// Where copies differ, as after a crash, all are written anew.
    pub(crate) fn mend_keys(&mut self, clock: &dyn Clock) -> Result<(), Error> {
        if self.keys_are_same {
            return Ok(());
        }
        self.keys_are_same = true;
        self.put_all_keys(clock).or_else(|failed| self.expel(failed, clock))
    }
}

/// Which body it is, for its key.
pub(crate) fn place_of(stripe: &StripeHead, column: u8) -> Place {
    Place {
        volume_id: stripe.volume_id.0,
        sequence: stripe.stripe.sequence,
        sub: stripe.stripe.sub,
        column,
        len: HEAD_BYTES * usize::from(stripe.rows),
    }
}
