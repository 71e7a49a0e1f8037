//! Numbered packets: each says which one it is and how it must look, so that the reader of an
//! extract needs no copy of what was sent to find a lost, doubled, or altered one.
//!
//! A frame is Ethernet, IPv4, UDP, then the number, then bytes that follow from it. Lengths go from
//! 60 to 1514 bytes, so pieces never end at the same place; 251 source ports make sessions.

use std::ops::Range;

use units::Random;

const HEADERS_BYTES: usize = 14 + 20 + 8;
const LENGTH_MIN: u64 = 60;
const LENGTH_MAX: u64 = 1514;
const PORTS: u64 = 251;
/// Kept in a report; the rest is counted.
const RANGES_SHOWN: usize = 5;

/// The frame with this number.
pub(crate) fn frame(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    let length = LENGTH_MIN + random.below(LENGTH_MAX - LENGTH_MIN + 1);
    let length = usize::try_from(length).expect("a frame's length fits usize");
    let mut bytes = headers(number, length);
    bytes.extend(number.to_be_bytes());
    while bytes.len() < length {
        bytes.extend(random.next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Ethernet without options, IPv4 (RFC 791) with its checksum, UDP (RFC 768) without one.
fn headers(number: u64, length: usize) -> Vec<u8> {
    let short = |bytes: usize| u16::try_from(bytes).expect("a frame is short").to_be_bytes();
    let port = u16::try_from(10_000 + number % PORTS).expect("a port fits");
    let mut ip = Vec::from([0x45, 0]);
    ip.extend(short(length - 14));
    ip.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let checksum = internet_checksum(&ip);
    ip.splice(10..12, checksum.to_be_bytes());
    let mut bytes = Vec::from([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    bytes.extend(ip);
    bytes.extend(port.to_be_bytes());
    bytes.extend(9_u16.to_be_bytes());
    bytes.extend(short(length - 34));
    bytes.extend([0, 0]);
    bytes
}

/// RFC 1071.
fn internet_checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).filter_map(|pair| pair.try_into().ok());
    let mut sum: u32 = words.map(|pair| u32::from(u16::from_be_bytes(pair))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("carries are folded")
}

/// The number of a frame that is exactly as it was made.
fn number(bytes: &[u8]) -> Option<u64> {
    let field = bytes.get(HEADERS_BYTES..HEADERS_BYTES + 8)?;
    let number = u64::from_be_bytes(field.try_into().ok()?);
    (frame(number) == bytes).then_some(number)
}

/// What was found in an extract.
#[derive(Default, Debug)]
pub(crate) struct Found {
    numbers: Vec<u64>,
    altered: u64,
}

impl Found {
    /// Takes one packet of the extract.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        match number(bytes) {
            Some(number) => self.numbers.push(number),
            None => self.altered += 1,
        }
    }

    /// The least number, by which a ring shows how far back it reaches.
    pub(crate) fn first(&self) -> Option<u64> {
        self.numbers.iter().min().copied()
    }

    pub(crate) fn count(&self) -> usize {
        self.numbers.len()
    }

    /// What is wrong: frames that were not sent, numbers of the range that are missing, numbers
    /// that came more than once. `None` when every packet is there, once, byte for byte.
    pub(crate) fn fault(&self, expected: Range<u64>) -> Option<String> {
        let mut numbers = self.numbers.clone();
        numbers.sort_unstable();
        let doubled = numbers.windows(2).filter(|pair| matches!(pair, [a, b] if a == b)).count();
        numbers.dedup();
        let mut missing = Vec::new();
        let mut next = expected.start;
        for number in numbers.into_iter().filter(|number| expected.contains(number)) {
            if number > next {
                missing.push(next..number);
            }
            next = number + 1;
        }
        if next < expected.end {
            missing.push(next..expected.end);
        }
        let lost: u64 = missing.iter().map(|range| range.end - range.start).sum();
        if lost == 0 && doubled == 0 && self.altered == 0 {
            return None;
        }
        missing.truncate(RANGES_SHOWN);
        Some(format!("{lost} missing {missing:?}, {doubled} doubled, {} altered", self.altered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(numbers: impl Iterator<Item = u64>) -> Found {
        let mut found = Found::default();
        numbers.for_each(|number| found.take(&frame(number)));
        found
    }

    #[test]
    fn a_frame_says_its_number_and_no_other_frame_does() {
        for sent in [0, 1, 77, u64::MAX] {
            assert_eq!(number(&frame(sent)), Some(sent));
        }
        let lengths: Vec<usize> = (0..2000).map(|number| frame(number).len()).collect();
        assert!(lengths.iter().all(|length| (60..=1514).contains(length)));
        assert!(lengths.iter().any(|length| *length < 70) && lengths.contains(&1514));
    }

    #[test]
    fn a_flipped_bit_is_an_altered_packet() {
        let good = frame(5);
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(number(&bytes), None, "bit {bit}");
        }
    }

    #[test]
    fn what_is_missing_doubled_or_altered_is_said() {
        assert_eq!(found(0..9).fault(0..9), None);
        assert_eq!(found((0..9).rev()).fault(2..5), None);
        let fault = |found: Found, expected| found.fault(expected).unwrap();
        assert!(fault(found(0..9), 0..10).starts_with("1 missing [9..10], 0 doubled"));
        assert!(fault(found((0..3).chain(6..9)), 0..9).starts_with("3 missing [3..6]"));
        assert!(fault(found((0..3).chain(2..9)), 0..9).starts_with("0 missing [], 1 doubled"));
        let mut altered = found(0..9);
        altered.take(&[0; 60]);
        assert!(fault(altered, 0..9).ends_with("1 altered"));
        assert!(fault(found(0..0), 0..4).starts_with("4 missing [0..4]"));
    }
}
