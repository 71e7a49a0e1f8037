//! Blocks of a local-use type (bit 31 set): every pcapng reader skips them, none shows them.

use crate::field::put;

/// Type of a block that only fills.
pub const LOCAL_PADDING: u32 = 0x8000_5750;
/// Bytes around a block's content: type, length, trailing length.
pub const LOCAL_FRAME_BYTES: usize = 12;

/// Fills `space` with one padding block.
///
/// # Panics
/// When the space is no multiple of 4 or smaller than the frame of a block.
pub fn fill_with_padding(space: &mut [u8]) {
    let length = u32::try_from(space.len()).expect("padding is shorter than a piece");
    assert!(space.len() >= LOCAL_FRAME_BYTES && length % 4 == 0, "padding needs a whole block");
    let trailer = space.len() - 4;
    space.fill(0);
    put(space, 0, &LOCAL_PADDING.to_le_bytes());
    put(space, 4, &length.to_le_bytes());
    put(space, trailer, &length.to_le_bytes());
}
