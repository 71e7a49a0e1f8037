//! The unit of all reads and writes.

use units::number::to_u64;

/// Offsets and lengths of all reads and writes are multiples of this: design, section 4.2.
pub const ROW_SIZE: usize = 4096;

/// The bytes of one row.
pub type Row = [u8; ROW_SIZE];

/// Holds every implementation to the contract of [`crate::Device`].
#[track_caller]
pub(crate) fn assert_range(offset: u64, len: usize, size: u64) {
    let (row, len) = (to_u64(ROW_SIZE), to_u64(len));
    assert!(offset.is_multiple_of(row), "offset {offset} is a multiple of {row}");
    assert!(len > 0 && len.is_multiple_of(row), "length {len} is a positive multiple of {row}");
    assert!(
        offset.checked_add(len).is_some_and(|end| end <= size),
        "{len} bytes at {offset} lie within {size}"
    );
}

/// For values that were bounded by a length in memory before.
pub(crate) fn to_usize(value: u64) -> usize {
    usize::try_from(value).expect("the value was bounded by a length in memory")
}
