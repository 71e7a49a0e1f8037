//! Internet checksums after a change, by the difference (RFC 1624, equation 3): what was right
//! stays right, and what was wrong stays wrong.

/// What a checksum has to make up for: the sum of `~old + new` over 16-bit words.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChecksumChange(u64);

impl ChecksumChange {
    /// Bytes that were exchanged for as many others, from an even place of what is summed. An odd
    /// last byte is the upper one of its word (RFC 1071).
    pub fn add(&mut self, old: &[u8], new: &[u8]) {
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
    pub fn join(&mut self, other: Self) {
        self.0 += other.0;
    }

    /// The checksum after the change: HC' = ~(~HC + ~m + m').
    pub fn apply(self, old: u16) -> u16 {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071, over everything anew.
    fn checksum(bytes: &[u8]) -> u16 {
        let mut sum: u64 = bytes
            .chunks(2)
            .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !u16::try_from(sum).unwrap()
    }

    proptest! {
        #[test]
        fn an_updated_checksum_is_the_one_over_everything(
            before in prop::collection::vec(any::<u8>(), 4..40),
            new in prop::collection::vec(any::<u8>(), 1..9),
            at in 0..16_usize,
        ) {
            let begin = (at * 2 % before.len()) & !1;
            let end = before.len().min(begin + new.len());
            let mut after = before.clone();
            after[begin..end].copy_from_slice(&new[..end - begin]);
            // What ends within a word has the rest of it behind.
            let end = after.len().min(end.next_multiple_of(2));
            let mut change = ChecksumChange::default();
            change.add(&before[begin..end], &after[begin..end]);
            // All zeros and all ones are the same sum; the former is that of nothing but zeros.
            prop_assume!(after.iter().any(|&byte| byte != 0));
            prop_assume!(before.iter().any(|&byte| byte != 0));
            prop_assert_eq!(change.apply(checksum(&before)), checksum(&after));
        }
    }

    #[test]
    fn what_did_not_change_keeps_its_checksum_right_or_wrong() {
        for old in [0, 0x1234, 0xffff] {
            let mut change = ChecksumChange::default();
            change.add(&[1, 2, 3, 4], &[1, 2, 3, 4]);
            assert_eq!(change.apply(old), old);
        }
    }
}
