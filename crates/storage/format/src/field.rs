//! Fixed little-endian fields in a byte array: the two primitives of every encoder and decoder
//! here.

/// Writes `bytes` at `offset`.
///
/// # Panics
/// When the field does not lie inside `page`: layouts are constants, so that is a programmer error.
pub(crate) fn put(page: &mut [u8], offset: usize, bytes: &[u8]) {
    page.get_mut(offset..offset + bytes.len())
        .expect("a field lies inside its page")
        .copy_from_slice(bytes);
}

/// Reads the `N` bytes at `offset`.
///
/// # Panics
/// As [`put`].
pub(crate) fn get<const N: usize>(page: &[u8], offset: usize) -> [u8; N] {
    *page.get(offset..).and_then(<[u8]>::first_chunk).expect("a field lies inside its page")
}

pub(crate) fn get_u16(page: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(get(page, offset))
}

pub(crate) fn get_u32(page: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(get(page, offset))
}

pub(crate) fn get_u64(page: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(get(page, offset))
}

pub(crate) fn get_i64(page: &[u8], offset: usize) -> i64 {
    i64::from_le_bytes(get(page, offset))
}
