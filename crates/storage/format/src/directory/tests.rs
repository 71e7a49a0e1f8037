use proptest::prelude::*;
use units::Sequence;

use super::*;

fn entry(number: u64) -> SegmentEntry {
    SegmentEntry {
        summary: Summary {
            first: StripeId { sequence: Sequence(10 * number), sub: 1 },
            last: StripeId { sequence: Sequence(10 * number + 7), sub: 3 },
            time_min: Timestamp(-5),
            time_max: Timestamp(1_795_171_222_000_000_000),
            sessions: 100_000,
            packets: 1_500_000,
            unindexed: number.is_multiple_of(2),
            gaps: number.is_multiple_of(3),
            unread: number.is_multiple_of(5),
        },
        index: StripeId { sequence: Sequence(10 * number + 8), sub: 2 },
        parts: 3,
        bytes: 5_000_000,
    }
}

fn older(count: u64) -> Vec<SegmentEntry> {
    (0..count).rev().map(entry).collect()
}

fn join(blocks: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut assembler = Assembler::default();
    blocks.iter().find_map(|block| assembler.push(&Part::decode(block).unwrap()).unwrap())
}

#[test]
fn the_directory_lists_itself_first_and_then_the_newest() {
    let own = entry(3000);
    let blocks = split(&[7; 5000], &own.summary, &older(3000), 2 << 20);
    let at = StripeId { sequence: Sequence(40_000), sub: 9 };
    let entries = Part::decode(&blocks[0]).unwrap().directory(at);
    assert_eq!(blocks.len(), 1);
    assert_eq!(entries.len(), DIRECTORY_MAX);
    assert_eq!(entries[0], SegmentEntry { index: at, parts: 1, bytes: 5000, ..own });
    assert_eq!(entries[1..], older(3000)[..DIRECTORY_MAX - 1]);
}

#[test]
fn a_small_piece_gives_the_directory_half_of_the_first_part() {
    let blocks = split(&vec![7; 50_000], &entry(500).summary, &older(500), 12 << 10);
    let parts: Vec<_> = blocks.iter().map(|block| Part::decode(block).unwrap()).collect();
    assert_eq!(parts[0].directory(StripeId::default()).len(), 6 * 1024 / ENTRY_SIZE);
    assert!(parts[1..].iter().all(|part| part.directory(StripeId::default()).is_empty()));
    assert!(blocks[..blocks.len() - 1].iter().all(|block| block.len() > (12 << 10) - 8));
}

#[test]
fn every_flipped_bit_is_found() {
    let block = &split(b"parquet", &entry(5).summary, &older(2), 4096)[0];
    let padding = HEADER_SIZE + 3 * ENTRY_SIZE + 7;
    for at in (0..block.len()).filter(|&at| at != padding) {
        for bit in 0..8 {
            let mut damaged = block.clone();
            damaged[at] ^= 1 << bit;
            assert!(Part::decode(&damaged).is_err(), "byte {at} bit {bit}");
        }
    }
}

#[test]
fn every_cut_is_found() {
    let block = &split(b"parquet", &entry(5).summary, &older(2), 4096)[0];
    for len in 0..block.len() {
        assert!(Part::decode(&block[..len]).is_err(), "{len}");
    }
    let mut followed = block.clone();
    followed.extend([5, 0, 0, 0]);
    assert_eq!(Part::decode(&followed), Part::decode(block));
}

#[test]
fn a_later_version_is_named() {
    let mut block = split(b"parquet", &entry(5).summary, &[], 4096).remove(0);
    block[16] = 2;
    assert_eq!(Part::decode(&block), Err(PartError::Version { version: 2 }));
}

#[test]
fn parts_of_two_indexes_are_not_joined() {
    let one = split(&[1; 9000], &entry(5).summary, &[], 4096);
    let two = split(&[2; 9000], &entry(5).summary, &[], 4096);
    let mut assembler = Assembler::default();
    assert_eq!(assembler.push(&Part::decode(&one[0]).unwrap()), Ok(None));
    assert_eq!(assembler.push(&Part::decode(&two[1]).unwrap()), Err(PartError::Foreign));
}

#[test]
fn a_part_whose_entry_ends_before_it_begins_is_refused() {
    let own = entry(5);
    let reversed = SegmentEntry {
        summary: Summary { first: own.summary.last, last: own.summary.first, ..own.summary },
        ..entry(4)
    };
    let block = split(b"parquet", &own.summary, &[reversed], 4096).remove(0);
    assert_eq!(Part::decode(&block), Err(PartError::Range { field: "directory entry" }));
}

proptest! {
    #[test]
    fn parts_join_to_the_file_in_any_order(
        parquet in prop::collection::vec(any::<u8>(), 0..20_000),
        count in 0_u64..80,
        capacity in PART_CAPACITY_MIN..8192,
        seed in any::<u64>(),
    ) {
        let mut blocks = split(&parquet, &entry(count).summary, &older(count), capacity);
        prop_assert!(blocks.iter().all(|block| block.len() <= capacity && block.len() % 4 == 0));
        let at = usize::try_from(seed % 1000).unwrap() % blocks.len();
        blocks.rotate_left(at);
        prop_assert_eq!(join(&blocks), Some(parquet));
        blocks.pop();
        prop_assert_eq!(join(&blocks), None);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Part::decode(&bytes).is_err());
    }

    /// Headers whose checksum is right reach the range checks.
    #[test]
    fn arbitrary_headers_never_panic(
        at in CHECKED_FROM + 10..CHECKSUM_AT,
        value in any::<u64>(),
        width in 1_usize..9,
    ) {
        let mut block = split(&[3; 100], &entry(5).summary, &older(3), 4096).remove(0);
        let bytes = value.to_le_bytes();
        let width = width.min(CHECKSUM_AT - at);
        block[at..at + width].copy_from_slice(&bytes[..width]);
        let listed = usize::from(u16::from_le_bytes([block[56], block[57]]));
        let payload_len = to_usize(u32::from_le_bytes(block[60..64].try_into().unwrap()));
        let end = HEADER_SIZE + listed * ENTRY_SIZE;
        if let Some(rest) = block.get(HEADER_SIZE..end + payload_len) {
            let crc = part_checksum([&block[CHECKED_FROM..CHECKSUM_AT], rest, &[]]);
            block[CHECKSUM_AT..HEADER_SIZE].copy_from_slice(&crc.to_le_bytes());
        }
        if let Ok(part) = Part::decode(&block) {
            let mut assembler = Assembler::default();
            drop(assembler.push(&part));
        }
    }
}
