//! A number in the last bytes of a frame, so that it differs from all others of a run.
//!
//! Layout, big endian: the number (8 bytes), and a hash of it under the key of the run (8 bytes).
//! What has a valid stamp was sent in this run, but for one in 2^64 strangers.

use units::mix;

/// Bytes at the end of a frame that a stamp takes.
pub const STAMP_BYTES: usize = 16;

/// Writes `number` over the last [`STAMP_BYTES`] of a frame; false, and nothing changed, where it
/// is shorter.
pub fn stamp(frame: &mut [u8], key: u64, number: u64) -> bool {
    let Some(end) = frame.last_chunk_mut::<STAMP_BYTES>() else { return false };
    let (first, second) = end.split_at_mut(STAMP_BYTES / 2);
    first.copy_from_slice(&number.to_be_bytes());
    second.copy_from_slice(&hash(key, number).to_be_bytes());
    true
}

/// The number of a frame of this run; `None` where it has no valid stamp.
pub fn stamped(frame: &[u8], key: u64) -> Option<u64> {
    let end = frame.last_chunk::<STAMP_BYTES>()?;
    let [number, hashed] =
        [end.first_chunk()?, end.last_chunk()?].map(|&at| u64::from_be_bytes(at));
    (hashed == hash(key, number)).then_some(number)
}

/// A changed bit changes half of the hash.
fn hash(key: u64, number: u64) -> u64 {
    mix(mix(key ^ 0x9e37_79b9_7f4a_7c15).wrapping_add(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_tells_its_number_to_its_own_run_alone() {
        for number in [0, 1, 77, u64::MAX] {
            let mut frame = [7; 60];
            assert!(stamp(&mut frame, 5, number));
            assert_eq!((stamped(&frame, 5), stamped(&frame, 6)), (Some(number), None));
            assert_eq!(frame[..44], [7; 44]);
        }
        assert!(!stamp(&mut [0; 15], 5, 1));
        assert_eq!((stamped(&[0; 15], 5), stamped(&[0; 60], 5)), (None, None));
    }

    #[test]
    fn a_changed_bit_makes_a_stamp_invalid() {
        let mut frame = [0; 20];
        stamp(&mut frame, 9, 123_456);
        for bit in 0..STAMP_BYTES * 8 {
            let mut other = frame;
            other[4 + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(stamped(&other, 9), None, "bit {bit}");
        }
    }
}
