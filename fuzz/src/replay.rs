//! What fuzz targets start from, whole, cut everywhere and with bytes changed, for ordinary tests:
//! included by its path.

#[path = "seeds.rs"]
mod seeds;

/// Changed copies of each seed.
const CHANGES: u64 = if cfg!(miri) { 5 } else { 500 };

/// Gives everything to a reader; it must find something in one seed at least.
#[track_caller]
pub(crate) fn replay(target: &str, read: impl Fn(&[u8]) -> usize) {
    let mut found = 0;
    for bytes in seeds::of(target, 1) {
        found += read(&bytes);
        let step = if cfg!(miri) { 97 } else { 1 + bytes.len() / 500 };
        for len in (0..bytes.len()).step_by(step) {
            read(bytes.get(..len).unwrap_or_default());
        }
        for number in 0..CHANGES {
            read(&changed(&bytes, number));
        }
    }
    assert!(found > 0, "nothing was read of any seed of {target}");
}

/// Up to four bytes are others: a generator of Marsaglia's (xorshift64) says which.
fn changed(bytes: &[u8], number: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut state = number + 0x9e37_79b9_7f4a_7c15;
    for _ in 0..=number % 4 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let [value, kind, ..] = state.to_le_bytes();
        let at = usize::try_from(state >> 16).expect("48 bits fit") % bytes.len();
        if let Some(byte) = bytes.get_mut(at) {
            *byte = if kind.is_multiple_of(3) { 0xff } else { value };
        }
    }
    bytes
}
