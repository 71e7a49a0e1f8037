//! The most memory that a recording may take, whatever comes.

use core::fmt;

use format::geometry::Geometry;
use units::ByteSize;
use units::number::to_u64;

use crate::columns;
use crate::error::Error;
use crate::options::{Input, Options};

/// Files of segments that have come from the indexer and are not yet durable, for the cache; more
/// are left to be read from the ring.
pub(crate) const PENDING_BYTES_MAX: u64 = 128 << 20;
/// The program, its stacks, the descriptions of stripes under way, and the like.
const OTHER_BYTES: u64 = 128 << 20;

/// Where the kernel does not say how much memory is free: more than a machine has.
const UNKNOWN_BYTES: u64 = 16 << 40;
/// So much is asked for all the same: of a ring the kernel gives less where memory is short, and a
/// pool takes its memory as it needs it.
const TRIED_BYTES: u64 = 1 << 30;

/// Refuses what the machine cannot give, before it is asked for.
pub(crate) fn check(what: &'static str, bytes: u64) -> Result<(), Error> {
    let free_bytes = host::memory_available_bytes().unwrap_or(UNKNOWN_BYTES);
    if bytes > free_bytes.max(TRIED_BYTES) {
        Err(Error::TooMuch { what, bytes, free_bytes })
    } else {
        Ok(())
    }
}

/// What a recording may take, part by part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Budget(Vec<(&'static str, u64)>);

impl Budget {
    /// `queues` threads take packets; `pool` bytes lie between capture and disk.
    pub(crate) fn new(
        options: &Options,
        geometry: &Geometry,
        (queues, pool, encryption): (usize, u64, u64),
    ) -> Self {
        let (interfaces, files) = match &options.input {
            Input::Interfaces(names) => (names.len(), 0),
            Input::Files(_) => (0, capture::FILE_BYTES_MAX),
        };
        let rings = u64::try_from(interfaces.saturating_mul(queues)).unwrap_or(u64::MAX);
        let piece = u64::from(geometry.piece_bytes);
        // Parts of an index, the ring writer's reserve, and stripes that are read back.
        let aside = u64::try_from(columns::count_aside(geometry)).unwrap_or(u64::MAX);
        let columns = (2 * aside + 2 * u64::from(geometry.data_columns)) * piece;
        // Files of segments before a run wait twice: read, and on their way to the indexer.
        let before = 2 * indexer::BEFORE_BYTES_MAX;
        let index = indexer::PARQUET_BYTES_MAX + PENDING_BYTES_MAX + columns + before;
        let indexer = options.sessions.as_ref().map_or(OTHER_BYTES, indexer::memory_bytes_max);
        let kernel_rings = rings.saturating_mul(options.kernel_ring_bytes);
        let files = u64::try_from(files).unwrap_or(u64::MAX);
        let of_a_queue = selection::memory_bytes_max(&options.classes);
        let classes = of_a_queue.saturating_mul(to_u64(queues));
        Self(Vec::from([
            ("pool", pool),
            ("kernel rings", kernel_rings),
            ("reading files", files),
            ("encryption", encryption),
            ("sessions of classes", classes),
            ("index on its way to the disk", index),
            ("indexer", indexer),
            ("other", OTHER_BYTES),
        ]))
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.0.iter().filter(|(_, bytes)| *bytes > 0);
        let taken: Vec<String> =
            taken.map(|(what, bytes)| format!("{what} {}", ByteSize(*bytes))).collect();
        write!(f, "at most {} of memory: {}", ByteSize(self.sum()), taken.join(", "))
    }
}
