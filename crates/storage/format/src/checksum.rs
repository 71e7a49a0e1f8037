//! The checksums of the volume: CRC-32C per row, CRC-64/NVME per body.
//!
//! A row's checksum starts from its address, so that a row that is whole but in the wrong place
//! does not pass (docs/format.md, Rows).

use std::sync::LazyLock;

use crc_fast::{CrcAlgorithm, Digest};
use units::{Epoch, Sequence};

use crate::geometry::{BODY_ROWS_MAX, HEAD_BYTES};

/// CRC-64/NVME of a piece's body: the entry of the manifest. Linear, so that parity can be checked
/// against data.
pub fn body_crc(body: &[u8]) -> u64 {
    crc_fast::crc64_nvme(body)
}

/// CRC-32C without an address: heads and superblocks.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// Where a row lies; its checksum depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowAddress {
    /// Epoch of the stripe.
    pub epoch: Epoch,
    /// Sequence of the stripe.
    pub sequence: Sequence,
    /// Place of the stripe in its slot.
    pub sub: u16,
    /// Column of the piece.
    pub column: u8,
}

impl RowAddress {
    /// Checksum of body row `row` of this piece.
    pub fn row_crc(&self, row: u16, bytes: &[u8]) -> u32 {
        let mut digest =
            Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(self.seed(row)));
        digest.update(bytes);
        // The algorithm is 32 bits wide: the upper half is zero.
        u32::try_from(digest.finalize()).expect("a CRC-32 fits 32 bits")
    }

    /// CRC-32C(epoch, sequence, sub, column, row), little endian, 17 bytes.
    fn seed(&self, row: u16) -> u32 {
        let mut address = [0_u8; 17];
        let (epoch, rest) = address.split_at_mut(4);
        let (sequence, rest) = rest.split_at_mut(8);
        let (sub, rest) = rest.split_at_mut(2);
        let (column, row_bytes) = rest.split_at_mut(1);
        epoch.copy_from_slice(&self.epoch.get().to_le_bytes());
        sequence.copy_from_slice(&self.sequence.get().to_le_bytes());
        sub.copy_from_slice(&self.sub.to_le_bytes());
        column.copy_from_slice(&[self.column]);
        row_bytes.copy_from_slice(&row.to_le_bytes());
        crc32c(&address)
    }
}

/// [`body_crc`] of a body whose rows come one after another.
#[derive(Clone, Copy, Debug)]
pub struct BodyCrc(Digest);

impl BodyCrc {
    /// Of no rows yet.
    #[expect(clippy::new_without_default, reason = "an empty body has no use")]
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc64Nvme))
    }

    /// Takes the next rows.
    pub fn update(&mut self, rows: &[u8]) {
        self.0.update(rows);
    }

    /// Checksum of all rows taken.
    pub fn value(&self) -> u64 {
        self.0.finalize()
    }
}

/// [`body_crc`] that P must have when the data columns, of `rows` rows each, have the given ones.
///
/// A CRC is linear but for a constant, which is the checksum of as many zeros: it cancels out in an
/// even number of columns. There is no such rule for Q: multiplication by 2 inside of every byte
/// does not carry over to the checksum.
pub fn body_crc_of_p(data: &[u64], rows: u16) -> u64 {
    /// The constant, by number of rows.
    static OF_ZEROS: LazyLock<[u64; BODY_ROWS_MAX + 1]> = LazyLock::new(|| {
        let mut crc = BodyCrc::new();
        core::array::from_fn(|_| {
            let value = crc.value();
            crc.update(&[0; HEAD_BYTES]);
            value
        })
    });
    let of_zeros = OF_ZEROS.get(usize::from(rows)).expect("a body has at most 511 rows");
    let start = if data.len().is_multiple_of(2) { *of_zeros } else { 0 };
    data.iter().fold(start, |sum, crc| sum ^ crc)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: RowAddress =
        RowAddress { epoch: Epoch(3), sequence: Sequence(9), sub: 1, column: 0 };

    #[test]
    fn known_answers() {
        // The catalogue's check values for "123456789".
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(body_crc(b"123456789"), 0xae8b_1486_0a79_9888);
    }

    /// Bytes without a pattern.
    fn body(seed: u64, rows: usize) -> Vec<u8> {
        let mut state = seed;
        let step = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed | 1);
            state.to_be_bytes()[0]
        };
        (0..rows * HEAD_BYTES).map(step).collect()
    }

    #[test]
    fn rows_one_after_another_have_the_checksum_of_the_body() {
        let body = body(1, 3);
        let mut crc = BodyCrc::new();
        assert_eq!(crc.value(), body_crc(&[]));
        body.chunks(HEAD_BYTES).for_each(|row| crc.update(row));
        assert_eq!(crc.value(), body_crc(&body));
    }

    #[test]
    fn the_checksum_of_p_follows_from_those_of_the_data() {
        for rows in [0_u16, 1, 2, 7, 511] {
            let mut p = vec![0; usize::from(rows) * HEAD_BYTES];
            let mut crcs = Vec::new();
            for column in 0..24 {
                let data = body(column, usize::from(rows));
                p.iter_mut().zip(&data).for_each(|(sum, byte)| *sum ^= byte);
                crcs.push(body_crc(&data));
                assert_eq!(body_crc_of_p(&crcs, rows), body_crc(&p), "{column}, {rows} rows");
            }
        }
    }

    #[test]
    fn the_checksum_of_q_does_not_follow_from_those_of_the_data() {
        // Eight bytes, and eight that take the checksum back to that of zeros.
        let random = *body(5, 1).first_chunk::<8>().unwrap();
        let back = body_crc(&random) ^ body_crc(&[0; 8]);
        let data = [random, back.to_le_bytes()].concat();
        assert_eq!(body_crc(&data), body_crc(&[0; 16]));
        let double = |byte: u8| (byte << 1) ^ if byte & 0x80 == 0 { 0 } else { 0x1d };
        let doubled: Vec<u8> = data.into_iter().map(double).collect();
        assert_ne!(body_crc(&doubled), body_crc(&[0; 16]));
    }

    #[test]
    fn a_row_in_another_place_has_another_checksum() {
        let row = [7_u8; 4096];
        let right = ADDRESS.row_crc(2, &row);
        assert_eq!(right, ADDRESS.row_crc(2, &row));
        assert_ne!(right, ADDRESS.row_crc(3, &row));
        assert_ne!(right, RowAddress { epoch: Epoch(4), ..ADDRESS }.row_crc(2, &row));
        assert_ne!(right, RowAddress { sequence: Sequence(10), ..ADDRESS }.row_crc(2, &row));
        assert_ne!(right, RowAddress { sub: 2, ..ADDRESS }.row_crc(2, &row));
        assert_ne!(right, RowAddress { column: 1, ..ADDRESS }.row_crc(2, &row));
    }
}
