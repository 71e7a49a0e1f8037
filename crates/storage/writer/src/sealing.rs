//! What a writer needs to encrypt: wrapped keys, recipients, the key in use, memory.

use core::ops::Range;
use std::sync::Arc;

use device::{Buffer, Pool, Shared};
use encryption::{DataKey, KEY_BYTES, Keyring, Recipients};
use format::geometry::Geometry;
use format::head::{HEAD_BYTES, StripeHead};
use format::key_log::{KeyLog, KeyMember};
use format::key_row::{KEY_ROWS, WrappedKey, key_row_offsets};
use format::superblock::Superblock;
use units::number::to_u64;
use units::{Clock, Sequence};
use volume::seal::place_of;
use volume::{Error, Membership};

use crate::member_writer::MemberWriter;
use crate::member_writers::{Failed, MemberWriters};
use crate::steps::{RENEWAL, Step};

/// How long a data key is used.
const KEY_NS: i64 = 3_600_000_000_000;
/// Stripes that are encrypted before the first of them is written.
const STRIPES: usize = 8;

const _: () = assert!(encryption::LEAD_BYTES == format::piece::LEAD_BYTES);

/// Fresh secret bytes; or why there are none.
pub type RandomKey = Box<dyn FnMut() -> Result<[u8; KEY_BYTES], String> + Send>;

/// The keys of a volume that is open for writing.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// Wrapped, as all members have them.
    pub(crate) log: KeyLog,
    /// How packets are encrypted.
    sealing: Option<Sealing>,
}

struct Sealing {
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

/// A key that is not durable so far.
pub(crate) struct NewKey {
    id: u64,
    key: DataKey,
    /// The row that it is put into.
    pub(crate) row: u32,
}

impl Keys {
    /// Those that the members have; copies of them that differ are written anew.
    pub(crate) fn load(
        writers: &mut MemberWriters,
        membership: &Membership,
        clock: &dyn Clock,
    ) -> Result<Self, Failed> {
        let superblock = membership.superblock();
        if !superblock.is_encrypted {
            return Ok(Self::default());
        }
        let members = writers.iter().map(|writer| KeyMember {
            size_bytes: writer.device().size_bytes(),
            is_current: membership.is_fresh(writer.superblock().member),
            read: |offset, into: &mut [u8]| writer.read_at(offset, into).is_ok(),
        });
        let volume = (superblock.volume_id, Some(&superblock.head_key));
        let (log, are_same) = KeyLog::load(volume, members);
        if !are_same {
            put_all(&log, (writers, superblock), clock)?;
        }
        Ok(Self { log, sealing: None })
    }

    /// Packets are encrypted from now on, with keys of `random`.
    pub(crate) fn begin(
        &mut self,
        geometry: &Geometry,
        (random, keyring): (RandomKey, Arc<Keyring>),
    ) -> Result<(), Error> {
        let texts = self.log.recipients();
        if texts.is_empty() {
            return Err(Error::KeysLost);
        }
        let recipients = Recipients::parse(&texts).map_err(|it| Error::Sealing(it.to_string()))?;
        let columns = columns_of(geometry)?;
        self.sealing = Some(Sealing { recipients, random, keyring, current: None, columns });
        Ok(())
    }

    /// Bytes of memory for what is being encrypted.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let columns = self.sealing.as_ref().map(|sealing| &sealing.columns);
        columns.map_or(0, |pool| to_u64(pool.count()).saturating_mul(to_u64(pool.buffer_size())))
    }

    /// The shape has changed, and with it how many columns a stripe has.
    pub(crate) fn fit(&mut self, geometry: &Geometry) -> Result<(), Error> {
        if let Some(sealing) = &mut self.sealing {
            sealing.columns = columns_of(geometry)?;
        }
        Ok(())
    }

    /// The key in use, if it is young enough.
    pub(crate) fn current(&self, now_ns: i64) -> Option<u64> {
        let current = self.sealing.as_ref()?.current.as_ref()?;
        (now_ns.saturating_sub(current.since_ns) < KEY_NS).then_some(current.id)
    }

    /// Makes a key for stripes from the sequence `from` on, while the ring holds those from `tail`
    /// on. `None` where there is no space for it: the key in use goes on for another hour rather
    /// than the recording ends.
    pub(crate) fn make(
        &mut self,
        superblock: &Superblock,
        (from, tail): (Sequence, Sequence),
        clock: &dyn Clock,
    ) -> Result<Option<NewKey>, Error> {
        let sealing = self.sealing.as_mut().ok_or(Error::KeysLost)?;
        let key = DataKey::new((sealing.random)().map_err(Error::Sealing)?);
        let id = self.log.next_id();
        let wrapped = sealing.recipients.wrap(&key, superblock.volume_id.0, id);
        let wrapped = wrapped.map_err(|error| Error::Sealing(error.to_string()))?;
        match self.log.add(WrappedKey { id, from, made: clock.realtime(), wrapped }, tail) {
            Ok(row) => Ok(Some(NewKey { id, key, row })),
            Err(full) => {
                let current = sealing.current.as_mut().ok_or(Error::from(full))?;
                current.since_ns = clock.boottime_ns();
                Ok(None)
            }
        }
    }

    /// The key is durable on every member.
    pub(crate) fn put_to_use(&mut self, NewKey { id, key, .. }: NewKey, now_ns: i64) {
        let sealing = self.sealing.as_mut().expect("it made the key");
        sealing.keyring.hold(id, key.clone(), id.saturating_sub(1));
        sealing.current = Some(Current { id, key, since_ns: now_ns });
    }

    /// Memory for the body of a column, if some is free.
    pub(crate) fn column(&self) -> Option<Buffer> {
        self.sealing.as_ref().expect("there is a key").columns.take()
    }

    /// Encrypts the bodies of a stripe.
    pub(crate) fn seal(&self, stripe: &StripeHead, plain: &[Buffer], sealed: &mut [Buffer]) {
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
}

/// Memory for the bodies of some stripes.
fn columns_of(geometry: &Geometry) -> Result<Pool, Error> {
    let piece_bytes = usize::try_from(geometry.piece_bytes).expect("at most 2 MiB");
    Ok(Pool::new(usize::from(geometry.data_columns) * STRIPES, piece_bytes)?)
}

/// Writes rows of keys to all members, first at the front, then at the end.
pub(crate) fn put_rows(
    log: &KeyLog,
    rows: Range<u32>,
    (writers, superblock): (&mut MemberWriters, &Superblock),
    clock: &dyn Clock,
) -> Result<(), Failed> {
    if rows.is_empty() {
        return Ok(());
    }
    let pages = log.pages(rows.clone(), (superblock.volume_id, &superblock.head_key));
    let pool = Pool::new(1, pages.len()).map_err(Failed::of_nobody)?;
    let mut buffer = pool.take().expect("it was just made");
    buffer.copy_from_slice(&pages);
    let data: Shared = buffer.freeze();
    writers.run(clock, |writer: &MemberWriter| {
        let offsets = key_row_offsets(rows.start, writer.device().size_bytes());
        let copy = |offset| [Step::Write { offset, data: data.clone() }, Step::Flush];
        RENEWAL.into_iter().chain(offsets.into_iter().flat_map(copy)).collect()
    })
}

/// All members shall have all keys, and nothing in the rows behind them.
pub(crate) fn put_all(
    log: &KeyLog,
    on: (&mut MemberWriters, &Superblock),
    clock: &dyn Clock,
) -> Result<(), Failed> {
    put_rows(log, 0..KEY_ROWS, on, clock)
}
