//! A mutator for lengths and counters: it finds a number in an input and puts another one there
//! that is at an end of what it may be.
//!
//! libFuzzer changes bytes and copies parts; that four bytes are a length which must now be one
//! more than what follows is nothing that it would soon think of.

use libfuzzer_sys::fuzzer_mutate;
use units::Random;

/// One change in so many is of a number; the others are libFuzzer's own, with its dictionaries.
const NUMBERS_ONE_IN: u64 = 4;

/// Places that are looked at for one that holds a number.
const LOOKS: u64 = 16;

/// What `fuzz_mutator!` calls: changes the first `size` bytes, and gives how many there are then.
pub fn mutate(data: &mut [u8], size: usize, size_max: usize, seed: u32) -> usize {
    let mut random = Random::new(seed.into());
    if random.below(NUMBERS_ONE_IN) > 0 || size == 0 {
        return fuzzer_mutate(data, size, size_max);
    }
    change(&mut data[..size], &mut random);
    size
}

/// A stretch of 1, 2, 4 or 8 bytes, and their order.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    width: usize,
    is_big_endian: bool,
}

impl Place {
    fn random(len: usize, random: &mut Random) -> Self {
        let widest = len.ilog2().min(3);
        let width = 1 << random.below(u64::from(widest) + 1);
        let at = below(len - width + 1, random);
        Self { at, width, is_big_endian: random.below(2) == 0 }
    }

    fn read(self, data: &[u8]) -> u64 {
        let bytes = data[self.at..self.at + self.width].iter();
        let add = |number, byte: &u8| number << 8 | u64::from(*byte);
        if self.is_big_endian { bytes.fold(0, add) } else { bytes.rev().fold(0, add) }
    }

    fn write(self, data: &mut [u8], number: u64) {
        let place = &mut data[self.at..self.at + self.width];
        place.copy_from_slice(&number.to_le_bytes()[..self.width]);
        if self.is_big_endian {
            place.reverse();
        }
    }
}

fn below(bound: usize, random: &mut Random) -> usize {
    let bound = u64::try_from(bound).expect("64 bits hold a length");
    usize::try_from(random.below(bound)).expect("it is less than a length")
}

/// Puts a number at an end in place of one that may be a length or a counter: of the places that
/// are looked at the first one that holds no more than the length of the input, and not 0.
fn change(data: &mut [u8], random: &mut Random) {
    let len = u64::try_from(data.len()).expect("64 bits hold a length");
    let mut place = Place::random(data.len(), random);
    for _ in 1..LOOKS {
        if (1..=len).contains(&place.read(data)) {
            break;
        }
        place = Place::random(data.len(), random);
    }
    let old = place.read(data);
    let most = u64::MAX >> (64 - 8 * place.width);
    let behind = data.len() - place.at - place.width;
    let behind = u64::try_from(behind).expect("64 bits hold a length");
    let ends = [0, 1, most, most - 1, most / 2, most / 2 + 1, len, behind, old, old];
    let end = ends[below(ends.len(), random)];
    // A length that is kept, or is right, becomes one that is off by one.
    let number = match random.below(3) {
        0 => end.wrapping_add(1),
        1 => end.wrapping_sub(1),
        _ => end,
    };
    place.write(data, number);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_place_of_at_most_eight_bytes_changes() {
        for len in [1, 2, 3, 7, 8, 100] {
            for seed in 0..2000 {
                let before: Vec<u8> = (0..len).collect();
                let mut data = before.clone();
                change(&mut data, &mut Random::new(seed));
                let differs = |at: &usize| data[*at] != before[*at];
                let first = (0..data.len()).find(differs).unwrap_or_default();
                let last = (0..data.len()).rfind(differs).unwrap_or_default();
                assert!(last - first < 8);
            }
        }
    }

    #[test]
    fn a_length_comes_to_each_of_its_ends() {
        let record =
            [&[0xff; 4][..], &[0, 0, 0, 6], b"\xe1\xe1\xe1\xe1\xe1\xe1", &[0xff; 4]].concat();
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..20_000 {
            let mut data = record.clone();
            change(&mut data, &mut Random::new(seed));
            let mut rest = data.clone();
            rest[4..8].copy_from_slice(&record[4..8]);
            if rest == record {
                seen.insert(u32::from_be_bytes(*data[4..].first_chunk().unwrap()));
            }
        }
        for end in [0, 1, 2, 5, 7, 9, 10, 11, 17, 18, 19, u32::MAX, 1 << 31, i32::MAX as u32] {
            assert!(seen.contains(&end), "{end}");
        }
    }
}
