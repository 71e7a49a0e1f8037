//! A set of instructions that was chosen, and what is computed with it.

use crate::lanes::{self, Portable};
use crate::solve;
use crate::sums::{BLOCK_BYTES, Lanes as _, Sums};

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
    pub(crate) engine: Engine,
}

/// The path with the proof that the processor has it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Engine {
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
    /// When there are no data columns or more than [`crate::DATA_COLUMNS_MAX`], when the columns
    /// differ in length, or when the length is no multiple of [`LENGTH_MULTIPLE_BYTES`].
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
    /// The proof, where the processor has the instructions.
    pub(crate) fn detect(path: Path) -> Option<Self> {
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
