//! The checksums of the volume: CRC-32C per row, CRC-64/NVME per body.
//!
//! A row's checksum starts from its address, so that a row that is whole but in the wrong place
//! does not pass (docs/format.md, Rows).

use crc_fast::{CrcAlgorithm, Digest};

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
    pub epoch: u32,
    /// Sequence of the stripe.
    pub sequence: u64,
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
        epoch.copy_from_slice(&self.epoch.to_le_bytes());
        sequence.copy_from_slice(&self.sequence.to_le_bytes());
        sub.copy_from_slice(&self.sub.to_le_bytes());
        column.copy_from_slice(&[self.column]);
        row_bytes.copy_from_slice(&row.to_le_bytes());
        crc32c(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: RowAddress = RowAddress { epoch: 3, sequence: 9, sub: 1, column: 0 };

    #[test]
    fn known_answers() {
        // The catalogue's check values for "123456789".
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(body_crc(b"123456789"), 0xae8b_1486_0a79_9888);
    }

    #[test]
    fn a_row_in_another_place_has_another_checksum() {
        let row = [7_u8; 4096];
        let right = ADDRESS.row_crc(2, &row);
        assert_eq!(right, ADDRESS.row_crc(2, &row));
        assert_ne!(right, ADDRESS.row_crc(3, &row));
        assert_ne!(right, RowAddress { epoch: 4, ..ADDRESS }.row_crc(2, &row));
        assert_ne!(right, RowAddress { sequence: 10, ..ADDRESS }.row_crc(2, &row));
        assert_ne!(right, RowAddress { sub: 2, ..ADDRESS }.row_crc(2, &row));
        assert_ne!(right, RowAddress { column: 1, ..ADDRESS }.row_crc(2, &row));
    }
}
