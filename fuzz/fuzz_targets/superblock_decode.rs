//! A superblock whose checksum is right may still be forged: decoding refuses it or gives what
//! encodes again.
//!
//! The checksum is put right here, else no input would come further. Offsets: docs/format.md,
//! Superblock.
#![no_main]

use format::checksum::crc32c;
use format::superblock::{SUPERBLOCK_BYTES, Superblock};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut page = [0; SUPERBLOCK_BYTES];
    let len = bytes.len().min(SUPERBLOCK_BYTES);
    page[..len].copy_from_slice(&bytes[..len]);
    page[..8].copy_from_slice(b"wireSUPR");
    page[8..10].copy_from_slice(&1_u16.to_le_bytes());
    page[12..16].fill(0);
    let crc = crc32c(&page);
    page[12..16].copy_from_slice(&crc.to_le_bytes());
    let copy = page[10];
    if let Ok(superblock) = Superblock::decode(&page, copy) {
        let again = superblock.encode(copy);
        assert_eq!(Superblock::decode(&again, copy).as_ref(), Ok(&superblock));
    }
});
