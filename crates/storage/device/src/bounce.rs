//! Memory that direct I/O may use, for callers whose own is not aligned.

use crate::ROW_SIZE;

/// Memory with an aligned part, grown to the largest transfer seen.
#[derive(Default)]
pub(crate) struct Bounce(Vec<u8>);

impl core::fmt::Debug for Bounce {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Bounce of {} bytes", self.0.len())
    }
}

impl Bounce {
    /// The first `len` bytes, aligned.
    pub(crate) fn aligned(&mut self, len: usize) -> &mut [u8] {
        if self.0.len() < len + ROW_SIZE {
            self.0.resize(len + ROW_SIZE, 0);
        }
        let start = self.0.as_ptr().align_offset(ROW_SIZE);
        self.0.get_mut(start..start + len).expect("one row more than asked for was allocated")
    }
}
