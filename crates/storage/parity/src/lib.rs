//! P and Q, the parity columns of a stripe: computed from the data, and data from them.
//!
//! With D the K data columns, byte for byte, over the field GF(2^8) of 0x11d with generator 2:
//!
//! ```text
//! P = D[0] + D[1] + ... + D[K-1]
//! Q = D[0] + 2 D[1] + ... + 2^(K-1) D[K-1]
//! ```
//!
//! These are the sums of Linux md's RAID 6 (H. P. Anvin, The mathematics of RAID-6), so its tools
//! and every textbook agree with what lies on the members. Any two columns of K + 2 can be
//! missing.
//!
//! Columns are whatever the caller slices: whole bodies, tiles of them, single rows. No call
//! allocates. Not here: which columns are good (checksums say that), and where they lie.
//!
//! A [`Codec`] uses the fastest instructions that the processor has, and exists only if they gave
//! the right answers. The instructions are in `lanes`, the only unsafe code; the loop that all of
//! them share is in `sums`, its weights in `solve`.

mod field;
mod lanes;
mod self_test;
mod solve;
mod sums;

use std::sync::OnceLock;

use lanes::{Lanes, Portable};
use sums::{BLOCK_BYTES, Sums};

/// Most data columns of a stripe.
pub const DATA_COLUMNS_MAX: usize = 24;
/// Lengths of columns are multiples of this.
pub const LENGTH_MULTIPLE_BYTES: usize = BLOCK_BYTES;

/// A set of instructions to compute with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// AVX-512 F and BW.
    Avx512,
    /// AVX2.
    Avx2,
    /// NEON.
    Neon,
    /// Integers of 64 bits, on any processor.
    Portable,
}

impl Path {
    /// The paths of this architecture, the fastest first, whether the processor has them or not.
    pub const ALL: &[Self] = &[
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "aarch64")]
        Self::Neon,
        Self::Portable,
    ];
}

/// Why there is no codec, or no reconstruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The processor lacks the instructions of the path that was asked for.
    #[error("this processor has no {path:?}")]
    Unavailable {
        /// The path asked for.
        path: Path,
    },
    /// A known answer came out wrong: the processor or this program is broken.
    #[error("parity computed by {path:?} is wrong: do not trust this processor")]
    WrongAnswer {
        /// The path that is not to be trusted.
        path: Path,
    },
    /// More columns are missing than parity can give back.
    #[error("{missing} columns are missing, and two can be reconstructed")]
    TooManyMissing {
        /// Columns whose content is not known, parity included.
        missing: usize,
    },
}

/// A column of a stripe, or a part of it, for [`Codec::reconstruct`].
#[derive(Debug)]
pub enum Column<'a> {
    /// Its content is known to be right.
    Known(&'a [u8]),
    /// Not known; to be computed into this.
    Wanted(&'a mut [u8]),
    /// Not known, and not asked for; or parity that the geometry does not have.
    Missing,
}

/// Computes parity, and columns from parity.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    engine: Engine,
}

/// The path with the proof that the processor has it.
#[derive(Clone, Copy, Debug)]
enum Engine {
    #[cfg(target_arch = "x86_64")]
    Avx512(lanes::Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(lanes::Avx2),
    #[cfg(target_arch = "aarch64")]
    Neon(lanes::Neon),
    Portable(Portable),
    #[cfg(test)]
    Wrong(lanes::Wrong),
}

impl Codec {
    /// The fastest path of this processor, tested with known answers once in the life of the
    /// process.
    ///
    /// # Errors
    /// [`Error::WrongAnswer`]. There is no other path to fall back to: a processor that is wrong
    /// once is not trusted with the next one.
    pub fn new() -> Result<Self, Error> {
        static TESTED: OnceLock<Result<Codec, Error>> = OnceLock::new();
        *TESTED.get_or_init(|| {
            let engine = Path::ALL.iter().copied().find_map(Engine::detect);
            Self::tested(engine.expect("every processor has the portable path"))
        })
    }

    /// A path of one's own choice, for tests and comparisons; else as [`Codec::new`].
    pub fn on(path: Path) -> Result<Self, Error> {
        Self::tested(Engine::detect(path).ok_or(Error::Unavailable { path })?)
    }

    fn tested(engine: Engine) -> Result<Self, Error> {
        let codec = Self { engine };
        let path = codec.path();
        if self_test::passes(codec) { Ok(codec) } else { Err(Error::WrongAnswer { path }) }
    }

    /// What it computes with.
    pub fn path(self) -> Path {
        match self.engine {
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512(_) => Path::Avx512,
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(_) => Path::Avx2,
            #[cfg(target_arch = "aarch64")]
            Engine::Neon(_) => Path::Neon,
            Engine::Portable(_) => Path::Portable,
            #[cfg(test)]
            Engine::Wrong(_) => Path::Portable,
        }
    }

    /// Computes P, or Q, or both from the data columns.
    ///
    /// # Panics
    /// When there are no data columns or more than [`DATA_COLUMNS_MAX`], when the columns differ in
    /// length, or when the length is no multiple of [`LENGTH_MULTIPLE_BYTES`].
    pub fn encode(self, data: &[&[u8]], p: Option<&mut [u8]>, q: Option<&mut [u8]>) {
        let len = data.first().map_or(0, |column| column.len());
        let mut sums = Sums::new(data.len(), len);
        for (column, bytes) in data.iter().enumerate() {
            sums.set(column, bytes);
        }
        for (output, weights) in [(p, [1, 0]), (q, [0, 1])] {
            if let Some(output) = output {
                sums.push_output(output, weights);
            }
        }
        self.compute(sums);
    }

    /// Computes every [`Column::Wanted`] from the known ones: K data columns, then P, then Q. Both
    /// parities have their place always; those that the geometry does not have are missing.
    ///
    /// Reads of the known columns only what it needs: P where one column is wanted and P is known.
    ///
    /// # Errors
    /// [`Error::TooManyMissing`] when a column is wanted and more than two are not known, also
    /// where the others would not matter. Nothing was written then.
    ///
    /// # Panics
    /// As [`Codec::encode`].
    pub fn reconstruct(self, columns: &mut [Column<'_>]) -> Result<(), Error> {
        let data_count = columns.len().checked_sub(2).expect("columns end with P and Q");
        let wanted = columns.iter().find_map(|column| match column {
            Column::Wanted(bytes) => Some(bytes.len()),
            Column::Known(_) | Column::Missing => None,
        });
        let Some(len) = wanted else { return Ok(()) };
        let pair = missing_pair(columns)?;
        let mut sums = Sums::new(data_count, len);
        for (place, column) in columns.iter_mut().enumerate() {
            match column {
                Column::Known(bytes) if !pair.contains(&place) => sums.set(place, bytes),
                Column::Wanted(bytes) => {
                    let other = if pair[0] == place { pair[1] } else { pair[0] };
                    sums.push_output(bytes, solve::weights(place, other, data_count));
                }
                Column::Known(_) | Column::Missing => {}
            }
        }
        self.compute(sums);
        Ok(())
    }

    fn compute(self, sums: Sums<'_>) {
        match self.engine {
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512(lanes) => lanes.run(sums),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(lanes) => lanes.run(sums),
            #[cfg(target_arch = "aarch64")]
            Engine::Neon(lanes) => lanes.run(sums),
            Engine::Portable(lanes) => lanes.run(sums),
            #[cfg(test)]
            Engine::Wrong(lanes) => lanes.run(sums),
        }
    }
}

/// The two columns that are taken for missing: those that are, then Q and P, which need not be
/// read.
fn missing_pair(columns: &[Column<'_>]) -> Result<[usize; 2], Error> {
    let is_missing = |place: &usize| !matches!(columns.get(*place), Some(Column::Known(_)));
    let missing = (0..columns.len()).filter(is_missing);
    let spare = (columns.len() - 2..columns.len()).rev().filter(|place| !is_missing(place));
    let count = missing.clone().count();
    let mut pair = missing.chain(spare);
    match (pair.next(), pair.next()) {
        (Some(first), Some(second)) if count <= 2 => Ok([first, second]),
        _ => Err(Error::TooManyMissing { missing: count }),
    }
}

impl Engine {
    fn detect(path: Path) -> Option<Self> {
        match path {
            #[cfg(target_arch = "x86_64")]
            Path::Avx512 => lanes::Avx512::detect().map(Self::Avx512),
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => lanes::Avx2::detect().map(Self::Avx2),
            #[cfg(target_arch = "aarch64")]
            Path::Neon => lanes::Neon::detect().map(Self::Neon),
            Path::Portable => Portable::detect().map(Self::Portable),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_doubles_one_byte_wrongly_gives_no_codec() {
        let wrong = Codec::tested(Engine::Wrong(lanes::Wrong { doubled: 0xd5 }));
        assert_eq!(wrong.unwrap_err(), Error::WrongAnswer { path: Path::Portable });
    }
}
