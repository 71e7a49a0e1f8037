//! Internet checksums after a change, by the difference (RFC 1624, equation 3): what was right
//! stays right, and what was wrong stays wrong.

/// What a checksum has to make up for: the sum of `~old + new` over 16-bit words.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change(u64);

impl Change {
    /// Bytes that were exchanged, from an even place of what is summed. An odd last byte is the
    /// upper one of its word (RFC 1071).
    pub(super) fn add(&mut self, old: &[u8], new: &[u8]) {
        if old == new {
            return;
        }
        let word = |pair: &[u8]| match *pair {
            [high, low] => u16::from_be_bytes([high, low]),
            [high] => u16::from_be_bytes([high, 0]),
            _ => 0,
        };
        for (old, new) in old.chunks(2).zip(new.chunks(2)) {
            self.0 += u64::from(!word(old)) + u64::from(word(new));
        }
    }

    /// Adds another change.
    pub(super) fn join(&mut self, other: Self) {
        self.0 += other.0;
    }

    /// HC' = ~(~HC + ~m + m').
    pub(super) fn apply(self, old: u16) -> u16 {
        if self.0 == 0 {
            return old;
        }
        let mut sum = u64::from(!old) + self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !u16::try_from(sum).expect("the sum was folded into 16 bits")
    }
}
