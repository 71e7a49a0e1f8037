//! The one loop of this crate: two sums over the columns, and up to two outputs made of them.
//!
//! With D the data columns, a missing one counting as zero, and P and Q where they are known:
//!
//! ```text
//! sum[0] = P + D[0] + D[1] + ... + D[K-1]
//! sum[1] = Q + D[0] + 2 D[1] + ... + 2^(K-1) D[K-1]        by Horner's rule
//! output = weight[0] sum[0] + weight[1] sum[1]
//! ```
//!
//! Encoding is the case in which P and Q are the outputs; [`crate::solve`] has the weights.

#![expect(
    clippy::inline_always,
    reason = "must become part of the function that is compiled for the instructions"
)]

/// Columns go through the registers in blocks; lengths are multiples of the smallest.
pub(crate) const BLOCK_BYTES: usize = 64;

/// Most data columns of a stripe.
pub const DATA_COLUMNS_MAX: usize = 24;

/// What the loop needs of a set of instructions: bytes side by side, each an element of the field.
pub(crate) trait Lanes: Copy {
    /// A register.
    type Vector: Copy;
    /// Bytes in a register; a divisor of 64.
    const BYTES: usize;

    /// The proof, where the processor has the instructions.
    fn detect() -> Option<Self>;
    /// All bytes zero.
    fn zero(self) -> Self::Vector;
    /// The first bytes, at any alignment. Panics where there are fewer than [`Lanes::BYTES`].
    fn load(self, from: &[u8]) -> Self::Vector;
    /// Overwrites the first bytes. Panics where there are fewer than [`Lanes::BYTES`].
    fn store(self, vector: Self::Vector, to: &mut [u8]);
    /// a + b.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// 2a + b: a step of Horner's rule.
    fn double_add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Computes `sums` inside a function that is compiled for the instructions.
    fn run(self, sums: Sums<'_>);
}

/// What to add up. All slices have the length `len`.
pub(crate) struct Sums<'a> {
    len: usize,
    data: [Option<&'a [u8]>; DATA_COLUMNS_MAX],
    data_count: usize,
    parity: [Option<&'a [u8]>; 2],
    outputs: [Option<Output<'a>>; 2],
}

struct Output<'a> {
    bytes: &'a mut [u8],
    weights: [u8; 2],
}

impl<'a> Sums<'a> {
    /// No outputs yet, and all columns missing.
    ///
    /// # Panics
    /// When there are no data columns, too many, or the length is no multiple of the block.
    pub(crate) fn new(data_count: usize, len: usize) -> Self {
        assert!((1..=DATA_COLUMNS_MAX).contains(&data_count), "{data_count} data columns");
        assert!(len.is_multiple_of(BLOCK_BYTES), "{len} bytes are whole blocks");
        let data = [None; DATA_COLUMNS_MAX];
        Self { len, data, data_count, parity: [None; 2], outputs: [None, None] }
    }

    /// Makes a column known: data, then P, then Q.
    pub(crate) fn set(&mut self, column: usize, bytes: &'a [u8]) {
        assert_eq!(bytes.len(), self.len, "columns are of one length");
        let place = if column < self.data_count {
            self.data.get_mut(column)
        } else {
            self.parity.get_mut(column - self.data_count)
        };
        *place.expect("a column is data, P or Q") = Some(bytes);
    }

    /// Adds an output.
    pub(crate) fn push_output(&mut self, bytes: &'a mut [u8], weights: [u8; 2]) {
        assert_eq!(bytes.len(), self.len, "columns are of one length");
        let free = self.outputs.iter_mut().find(|output| output.is_none());
        *free.expect("at most two columns are computed") = Some(Output { bytes, weights });
    }

    /// Fills the outputs, `N` registers at a time, and the rest a block (`TAIL` registers) at a
    /// time.
    #[inline(always)]
    pub(crate) fn compute<L: Lanes, const N: usize, const TAIL: usize>(mut self, lanes: L) {
        const { assert!(TAIL * L::BYTES == BLOCK_BYTES && N >= TAIL) };
        if self.outputs.iter().flatten().all(|output| output.weights == [1, 0]) {
            self.all_blocks::<L, N, TAIL, false>(lanes);
        } else {
            self.all_blocks::<L, N, TAIL, true>(lanes);
        }
    }

    #[inline(always)]
    fn all_blocks<L: Lanes, const N: usize, const TAIL: usize, const BOTH: bool>(
        &mut self,
        lanes: L,
    ) {
        let mut offset = 0;
        while self.len - offset >= N * L::BYTES {
            self.block::<L, N, BOTH>(lanes, offset);
            offset += N * L::BYTES;
        }
        while offset < self.len {
            self.block::<L, TAIL, BOTH>(lanes, offset);
            offset += TAIL * L::BYTES;
        }
    }

    /// `BOTH`: the second sum is needed, too.
    #[inline(always)]
    fn block<L: Lanes, const N: usize, const BOTH: bool>(&mut self, lanes: L, offset: usize) {
        let mut sums = [[lanes.zero(); N]; 2];
        let [first, second] = &mut sums;
        let (data, _) = self.data.split_at(self.data_count);
        for column in data.iter().rev() {
            let column = column.map(|bytes| load::<L, N>(lanes, bytes, offset));
            let vectors = column.unwrap_or([lanes.zero(); N]);
            for ((first, second), vector) in first.iter_mut().zip(second.iter_mut()).zip(vectors) {
                *first = lanes.add(*first, vector);
                if BOTH {
                    *second = lanes.double_add(*second, vector);
                }
            }
        }
        for (sum, parity) in sums.iter_mut().zip(self.parity) {
            let Some(bytes) = parity else { continue };
            for (sum, vector) in sum.iter_mut().zip(load::<L, N>(lanes, bytes, offset)) {
                *sum = lanes.add(*sum, vector);
            }
        }
        for output in self.outputs.iter_mut().flatten() {
            let vectors = match output.weights {
                [1, 0] => sums[0],
                [0, 1] => sums[1],
                weights => weigh::<L, N>(lanes, &sums, weights),
            };
            let bytes = output.bytes.get_mut(offset..).expect("the block lies in the column");
            for (vector, bytes) in vectors.into_iter().zip(bytes.chunks_exact_mut(L::BYTES)) {
                lanes.store(vector, bytes);
            }
        }
    }
}

#[inline(always)]
fn load<L: Lanes, const N: usize>(lanes: L, bytes: &[u8], offset: usize) -> [L::Vector; N] {
    let bytes = bytes.get(offset..offset + N * L::BYTES).expect("the block lies in the column");
    let mut vectors = [lanes.zero(); N];
    for (vector, bytes) in vectors.iter_mut().zip(bytes.chunks_exact(L::BYTES)) {
        *vector = lanes.load(bytes);
    }
    vectors
}

/// The weighted sum of both: Horner's rule over the bits of the weights.
#[inline(always)]
fn weigh<L: Lanes, const N: usize>(
    lanes: L,
    sums: &[[L::Vector; N]; 2],
    weights: [u8; 2],
) -> [L::Vector; N] {
    let mut result = [lanes.zero(); N];
    for bit in (0..u8::BITS).rev() {
        for place in &mut result {
            *place = lanes.double_add(*place, lanes.zero());
        }
        for (sum, weight) in sums.iter().zip(weights) {
            if (weight >> bit) & 1 != 0 {
                for (place, vector) in result.iter_mut().zip(sum) {
                    *place = lanes.add(*place, *vector);
                }
            }
        }
    }
    result
}
