//! Rows that say what they hold, for tests of what a disk keeps.

use std::time::Duration;

use device::{Completion, Device, Pool, Shared};

pub(crate) const ROW: u64 = 4096;
pub(crate) const ROWS: u64 = 8;

/// A row whose sectors all hold one number.
pub(crate) fn row_of(tag: u64) -> [u8; 4096] {
    let mut row = [0; 4096];
    for word in row.chunks_exact_mut(8) {
        word.copy_from_slice(&tag.to_le_bytes());
    }
    row
}

pub(crate) fn buffer(tags: &[u64]) -> Shared {
    let mut buffer = Pool::new(1, tags.len() * 4096).unwrap().take().unwrap();
    for (row, &tag) in buffer.chunks_exact_mut(4096).zip(tags) {
        row.copy_from_slice(&row_of(tag));
    }
    buffer.freeze()
}

/// The numbers in the eight sectors of a row; every sector holds one number throughout.
pub(crate) fn tags_at(device: &dyn Device, row: u64) -> Vec<u64> {
    let mut bytes = [0; 4096];
    device.read_at(row * ROW, &mut bytes).unwrap();
    let tags = bytes.chunks_exact(512).map(|sector| {
        let tag: [u8; 8] = sector[..8].try_into().unwrap();
        assert!(sector.chunks_exact(8).all(|word| word == tag));
        u64::from_le_bytes(tag)
    });
    tags.collect()
}

pub(crate) fn reap(device: &mut dyn Device) -> Vec<Completion> {
    let mut completions = Vec::new();
    device.reap(Some(Duration::ZERO), &mut completions);
    completions
}
