//! Columns that the ring writer puts a stripe together with.
//!
//! A stripe that is cut before it is full has its packets spread over as many columns as a stripe
//! has. Those come from the packets' pool; but where the pool is empty, its columns may be with the
//! indexer, who in turn may wait for the ring writer to place an index, or in the tasks that wait
//! for the ring writer itself. So he waits for them only briefly, and then takes columns of a
//! reserve that no other thread ever holds: they come back from the members, whose writes have an
//! end.

use core::time::Duration;

use device::{Buffer, Error, Pool};
use format::geometry::Geometry;
use units::Clock;
use writer::Writer;

/// How long a column is waited for at once.
const WAIT: Duration = Duration::from_millis(2);
/// How often, before those of the reserve are taken: 0.1 s in all.
const WAITS_MAX: usize = 50;

/// How much a stripe is wanted for which there are no columns of the packets' pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Urgency {
    /// The packets that hold them make up full columns soon enough.
    None,
    /// A thread waits for it.
    Now,
}

/// Columns to spread packets over.
pub(crate) struct Taken {
    pub(crate) columns: Vec<Buffer>,
    /// They are the reserve's, which only the members may hold.
    pub(crate) are_reserve: bool,
}

/// The packets' pool, and the reserve.
pub(crate) struct Columns {
    pool: Pool,
    reserve: Pool,
    /// Of a stripe.
    count: usize,
}

/// Columns that wait for the members only: those of two stripes, and as many as members
/// that hang may keep of two more.
pub(crate) fn count_aside(geometry: &Geometry) -> usize {
    2 * (usize::from(geometry.data_columns) + usize::from(geometry.parity_columns))
}

/// Columns for the parts of an index, which wait for the members only, and memory for two
/// stripes that are read back.
pub(crate) fn index_pools(geometry: &Geometry) -> Result<(Pool, Pool), Error> {
    let piece_bytes = usize::try_from(geometry.piece_bytes).expect("at most 2 MiB");
    let read_back = 2 * usize::from(geometry.data_columns);
    let aside = count_aside(geometry);
    Ok((Pool::new(aside, piece_bytes)?, Pool::shared(read_back, piece_bytes)?))
}

impl Columns {
    /// A reserve beside `pool`, for a ring of this shape. Its memory is taken when it is needed.
    pub(crate) fn new(pool: Pool, geometry: &Geometry) -> Result<Self, Error> {
        let reserve = Pool::new(count_aside(geometry), pool.buffer_size())?;
        Ok(Self { pool, reserve, count: usize::from(geometry.data_columns) })
    }

    /// The packets' pool.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// As many columns as a stripe has; nothing where there are none, and that is not urgent.
    pub(crate) fn take(
        &self,
        urgency: Urgency,
        writer: &mut Writer,
        clock: &dyn Clock,
    ) -> Result<Option<Taken>, volume::Error> {
        let mut waits = match urgency {
            Urgency::None => 1,
            Urgency::Now => WAITS_MAX,
        };
        let mut columns = Vec::new();
        while waits > 0 {
            columns
                .extend(core::iter::from_fn(|| self.pool.take()).take(self.count - columns.len()));
            if columns.len() == self.count {
                return Ok(Some(Taken { columns, are_reserve: false }));
            }
            waits -= 1;
            if waits > 0 {
                columns.extend(self.pool.take_timeout(WAIT));
                writer.poll(None, clock)?;
            }
        }
        if urgency == Urgency::None {
            return Ok(None);
        }
        columns.clear();
        while columns.len() < self.count {
            match self.reserve.take_timeout(WAIT) {
                Some(column) => columns.push(column),
                None => writer.poll(None, clock)?,
            }
        }
        Ok(Some(Taken { columns, are_reserve: true }))
    }
}
