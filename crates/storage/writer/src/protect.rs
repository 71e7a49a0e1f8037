//! Everything that protects the bodies of a stripe, in one pass over memory: the checksums of rows
//! and bodies, and parity.
//!
//! A body is larger than the caches near the core, and each of the three would fetch it again. So
//! the columns are taken a tile at a time, the same rows of all of them, and what was fetched for
//! one is still near for the others. Parity is protected like data.

use format::checksum::{BodyCrc, RowAddress, body_crc_of_p};
use format::head::HEAD_BYTES;
use parity::Codec;

/// Of a column: with it a tile of eight columns is a small part of a second-level cache.
const TILE_BYTES: usize = 4 * HEAD_BYTES;

/// Checksums of a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnSums {
    /// Of the whole body: its entry in the manifest.
    pub body_crc: u64,
    /// Of each row: for the column's own head.
    pub row_crcs: Vec<u32>,
}

/// Computes parity from the data, and the checksums of all columns: data, then parity. `parity` is
/// none, P, or P and Q; all bodies have the same number of whole rows. The column in `stripe` does
/// not matter.
///
/// # Panics
/// When the checksum of P is not what those of the data make it: parity was computed wrongly, or
/// memory changed meanwhile. When there is more parity than Q, and as [`Codec::encode`].
pub fn protect(
    codec: Codec,
    stripe: RowAddress,
    data: &[&[u8]],
    parity: &mut [&mut [u8]],
) -> Vec<ColumnSums> {
    let len = data.first().map_or(0, |body| body.len());
    let rows = u16::try_from(len / HEAD_BYTES).expect("a body has at most 511 rows");
    assert!(len.is_multiple_of(HEAD_BYTES), "a body is whole rows");
    assert!(parity.len() <= 2, "parity is P and Q");
    let count = data.len() + parity.len();
    let mut sums: Vec<Running> = (0..)
        .take(count)
        .map(|column| Running::new(RowAddress { column, ..stripe }, rows))
        .collect();
    let (data_sums, parity_sums) = sums.split_at_mut(data.len());
    let mut tile: Vec<&[u8]> = Vec::with_capacity(data.len());
    for begin in (0..len).step_by(TILE_BYTES) {
        let range = begin..len.min(begin + TILE_BYTES);
        tile.clear();
        tile.extend(data.iter().map(|body| body.get(range.clone()).expect("bodies are as long")));
        for (sums, rows) in data_sums.iter_mut().zip(&tile) {
            sums.update(rows);
        }
        let mut outputs =
            parity.iter_mut().map(|body| body.get_mut(range.clone()).expect("bodies are as long"));
        let (mut p, mut q) = (outputs.next(), outputs.next());
        if p.is_some() {
            codec.encode(&tile, p.as_deref_mut(), q.as_deref_mut());
        }
        for (sums, rows) in parity_sums.iter_mut().zip([p, q].into_iter().flatten()) {
            sums.update(rows);
        }
    }
    let sums: Vec<ColumnSums> = sums.into_iter().map(Running::finish).collect();
    check_p(&sums, data.len(), rows);
    sums
}

/// P is the sum of the data, and so is its checksum.
fn check_p(sums: &[ColumnSums], data_count: usize, rows: u16) {
    let crcs: Vec<u64> = sums.iter().map(|sums| sums.body_crc).collect();
    if let Some((data, [p, ..])) = crcs.split_at_checked(data_count) {
        assert_eq!(
            *p,
            body_crc_of_p(data, rows),
            "P has the checksum of what it was computed from"
        );
    }
}

/// A column's checksums so far.
struct Running {
    address: RowAddress,
    next_row: u16,
    body: BodyCrc,
    row_crcs: Vec<u32>,
}

impl Running {
    fn new(address: RowAddress, rows: u16) -> Self {
        let row_crcs = Vec::with_capacity(usize::from(rows));
        Self { address, next_row: 0, body: BodyCrc::new(), row_crcs }
    }

    fn update(&mut self, rows: &[u8]) {
        for row in rows.chunks_exact(HEAD_BYTES) {
            self.row_crcs.push(self.address.row_crc(self.next_row, row));
            self.next_row += 1;
        }
        self.body.update(rows);
    }

    fn finish(self) -> ColumnSums {
        ColumnSums { body_crc: self.body.value(), row_crcs: self.row_crcs }
    }
}

#[cfg(test)]
mod tests {
    use format::checksum::body_crc;
    use proptest::prelude::*;
    use units::{Epoch, Sequence};

    use super::*;

    const STRIPE: RowAddress =
        RowAddress { epoch: Epoch(3), sequence: Sequence(77), sub: 2, column: 0 };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn one_pass_gives_what_three_give(
            columns in 1_usize..=24,
            parity_count in 0_usize..=2,
            rows in 0_usize..12,
            seed in any::<u64>(),
        ) {
            let mut state = seed;
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_be_bytes()[0]
            };
            let len = rows * HEAD_BYTES;
            let data: Vec<Vec<u8>> =
                (0..columns).map(|_| (0..len).map(|_| random()).collect()).collect();
            let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
            let codec = Codec::new().unwrap();

            let (mut p, mut q) = (vec![1; len], vec![2; len]);
            let mut parity = [p.as_mut_slice(), q.as_mut_slice()];
            let sums = protect(codec, STRIPE, &data, &mut parity[..parity_count]);

            let (mut right_p, mut right_q) = (vec![0; len], vec![0; len]);
            codec.encode(&data, Some(&mut right_p), Some(&mut right_q));
            prop_assert!(parity_count < 1 || p == right_p);
            prop_assert!(parity_count < 2 || q == right_q);
            let all: Vec<&[u8]> = data.iter().copied().chain([p.as_slice(), &q]).collect();
            prop_assert_eq!(sums.len(), columns + parity_count);
            for ((column, sums), body) in (0..).zip(&sums).zip(all) {
                prop_assert_eq!(sums.body_crc, body_crc(body));
                let address = RowAddress { column, ..STRIPE };
                let rows = (0..).zip(body.chunks_exact(HEAD_BYTES));
                let rows: Vec<u32> = rows.map(|(row, bytes)| address.row_crc(row, bytes)).collect();
                prop_assert_eq!(&sums.row_crcs, &rows);
            }
        }
    }

    #[test]
    #[should_panic(expected = "P has the checksum of what it was computed from")]
    fn wrong_parity_is_noticed() {
        let sums = |body_crc| ColumnSums { body_crc, row_crcs: Vec::new() };
        let row = [7; HEAD_BYTES];
        let crc = body_crc(&row);
        check_p(&[sums(crc), sums(crc), sums(crc ^ 1)], 2, 1);
    }
}
