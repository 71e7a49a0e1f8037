//! What lies on disks in the format's own bytes: heads, superblocks, claims, bodies of pieces,
//! pcapng blocks, parts of a segment's index.
//!
//! Checksums and MACs are put right here, else no input would come further. Offsets:
//! docs/format.md. Each body gives how much it read.

use format::checksum::{body_crc, crc32c};
use format::claim::{CLAIM_BYTES, Claim};
use format::directory::{Assembler, BLOCK_TYPE, Part};
use format::head::{HEAD_BYTES, Head, HeadKey, VolumeId};
use format::key_row::{KEY_ROW_BYTES, KeyRow};
use format::pcapng::{Blocks, ByteOrder};
use format::piece::packets;
use format::superblock::{SUPERBLOCK_BYTES, Superblock};

pub const KEY: HeadKey = HeadKey([7; 32]);

/// The beginning of the input as a page, the rest of which is zero.
fn page<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut page = [0; N];
    let len = bytes.len().min(N);
    page[..len].copy_from_slice(&bytes[..len]);
    page
}

/// A head whose checksums are right may still be forged: decoding refuses it or gives what encodes
/// again.
///
/// # Panics
/// Decoding does, or what it gives is another head once it is written.
pub fn head(bytes: &[u8]) -> usize {
    let mut page = page::<HEAD_BYTES>(bytes);
    page[32..40].copy_from_slice(b"wireHEAD");
    page[56..58].copy_from_slice(&1_u16.to_le_bytes());
    let identity = blake3::hash(&page[32..1072]);
    page[1072..1104].copy_from_slice(identity.as_bytes());
    page[3684..3704].fill(0);
    let crc = crc32c(&page);
    page[3684..3688].copy_from_slice(&crc.to_le_bytes());
    let Ok(head) = Head::decode(&page, None) else { return 0 };
    let again = head.encode(&KEY);
    assert_eq!(Head::decode(&again, Some(&KEY)).as_ref(), Ok(&head));
    1
}

/// The same of a superblock, whose first copy it is.
///
/// # Panics
/// As [`head`] does.
pub fn superblock(bytes: &[u8]) -> usize {
    let mut page = page::<SUPERBLOCK_BYTES>(bytes);
    page[..8].copy_from_slice(b"wireSUPR");
    page[8..10].copy_from_slice(&1_u16.to_le_bytes());
    page[12..16].fill(0);
    let crc = crc32c(&page);
    page[12..16].copy_from_slice(&crc.to_le_bytes());
    let copy = page[10];
    let Ok(superblock) = Superblock::decode(&page, copy) else { return 0 };
    let again = superblock.encode(copy);
    assert_eq!(Superblock::decode(&again, copy).as_ref(), Ok(&superblock));
    1
}

/// The same of a claim.
///
/// # Panics
/// As [`head`] does.
pub fn claim(bytes: &[u8]) -> usize {
    let mut page = page::<CLAIM_BYTES>(bytes);
    page[..8].copy_from_slice(b"wireCLAM");
    page[8..10].copy_from_slice(&1_u16.to_le_bytes());
    page[16..32].fill(0);
    let mac = blake3::keyed_hash(&KEY.0, &page);
    page[16..32].copy_from_slice(&mac.as_bytes()[..16]);
    let Ok(claim) = Claim::decode(&page, &KEY) else { return 0 };
    let again = claim.encode(&KEY);
    assert_eq!(Claim::decode(&again, &KEY).as_ref(), Ok(&claim));
    1
}

/// The same of a row of keys.
///
/// # Panics
/// As [`head`] does.
pub fn key_row(bytes: &[u8]) -> usize {
    let volume = VolumeId([1; 16]);
    let mut page = page::<KEY_ROW_BYTES>(bytes);
    page[..8].copy_from_slice(b"wireKEYS");
    // Of either version.
    let version = 2 - u16::from(page[8] & 1);
    page[8..10].copy_from_slice(&version.to_le_bytes());
    page[12..16].copy_from_slice(&7_u32.to_le_bytes());
    page[16..32].fill(0);
    page[32..48].copy_from_slice(&volume.0);
    let mac = blake3::keyed_hash(&KEY.0, &page);
    page[16..32].copy_from_slice(&mac.as_bytes()[..16]);
    let Ok(row) = KeyRow::decode(&page, 7, volume, Some(&KEY)) else { return 0 };
    let again = row.encode(7, volume, &KEY);
    assert_eq!(KeyRow::decode(&again, 7, volume, Some(&KEY)).as_ref(), Ok(&row));
    row.entries.len()
}

/// Any bytes may stand where blocks are expected: the walk ends, and every view of a block can be
/// read.
///
/// # Panics
/// Blocks overlap, or one that is converted is none.
pub fn blocks(bytes: &[u8]) -> usize {
    let mut count = 0;
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut end = 0;
        for (offset, block) in Blocks::new(bytes, order).map_while(Result::ok) {
            assert_eq!(offset, end, "blocks lie one after the other");
            end = offset + block.body.len() + 12;
            let _contents = format!("{:?}", block.view());
            if let Ok(Some(converted)) = block.to_little_endian() {
                let mut again = Blocks::new(&converted, ByteOrder::Little);
                assert!(again.next().is_some_and(|block| block.is_ok()));
                assert!(again.next().is_none(), "one block becomes one block");
            }
            count += 1;
        }
        assert!(end <= bytes.len());
    }
    count
}

/// A forged body: the walk over its packets ends, and every packet lies inside the body, behind the
/// one before.
///
/// # Panics
/// A packet lies elsewhere, or is of no interface.
pub fn piece(body: &[u8]) -> usize {
    let mut walk = packets(body);
    let (mut end, mut count) = (0, 0);
    while let Some(Ok(packet)) = walk.next() {
        assert!(end <= packet.begin && packet.begin < packet.end, "blocks follow one another");
        assert!(packet.interface < walk.interfaces().len());
        assert!(packet.end <= body.len());
        end = packet.end;
        count += 1;
    }
    for interface in walk.interfaces() {
        assert!(body.get(interface.block.clone()).is_some());
    }
    count
}

/// Length of the header of a part, and of one entry of its directory.
const HEADER: usize = 72;
const ENTRY: usize = 80;

/// Parts of a segment's index, each behind its length in two bytes: forged ones are refused, and
/// the assembler takes any of them in any order.
///
/// # Panics
/// Reading them does.
pub fn index_parts(mut input: &[u8]) -> usize {
    let mut assembler = Assembler::default();
    let mut count = 0;
    while let Some((&len, rest)) = input.split_first_chunk() {
        let len = usize::from(u16::from_be_bytes(len)).min(rest.len());
        let (bytes, rest) = rest.split_at(len);
        input = rest;
        let bytes = with_checksum(bytes.to_vec());
        let Ok(part) = Part::decode(&bytes) else { continue };
        let _directory = part.directory(part.segment());
        let _index = assembler.push(&part);
        count += 1;
    }
    count
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() < HEADER {
        return bytes;
    }
    bytes[..4].copy_from_slice(&BLOCK_TYPE.to_le_bytes());
    bytes[8..16].copy_from_slice(b"wspindex");
    bytes[16..18].copy_from_slice(&1_u16.to_le_bytes());
    let number = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("a header"));
    let entries = ENTRY * usize::from(u16::from_le_bytes([bytes[56], bytes[57]]));
    let payload = usize::try_from(number(60)).expect("addresses have at least 32 bits");
    let checked = [bytes.get(8..64), bytes.get(HEADER..HEADER + entries + payload)];
    if let [Some(header), Some(rest)] = checked {
        let checksum = body_crc(&[header, rest].concat());
        bytes[64..72].copy_from_slice(&checksum.to_le_bytes());
    }
    bytes
}
