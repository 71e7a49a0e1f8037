//! What the kernel hands to this process and is read here, for tests and fuzz targets that give any
//! bytes: they end, without a panic, and nothing is read beyond what came.
//!
//! Not for use: what is read is thrown away, but for a number by which a test sees that something
//! was read.

use crate::live::{read_any_answer, read_any_block, read_any_descriptors};

/// A block of a ring of `TPACKET_V3`.
pub fn kernel_block(bytes: &[u8]) -> usize {
    read_any_block(bytes)
}

/// Chunks of `AF_XDP` that change hands, and descriptions of packets in them.
///
/// # Errors
/// There is no memory.
pub fn descriptors(bytes: &[u8]) -> std::io::Result<usize> {
    read_any_descriptors(bytes)
}

/// What a driver answers to `ethtool`: names and values of its statistics.
pub fn driver_answer(bytes: &[u8]) -> usize {
    read_any_answer(bytes)
}
