//! A head whose checksums are right may still be forged: decoding refuses it or gives what encodes
//! again.
//!
//! The checksums are put right here, else no input would come further. Offsets: docs/format.md,
//! Head.
#![no_main]

use format::checksum::crc32c;
use format::head::{HEAD_BYTES, Head, HeadKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut page = [0; HEAD_BYTES];
    let len = bytes.len().min(HEAD_BYTES);
    page[..len].copy_from_slice(&bytes[..len]);
    page[32..40].copy_from_slice(b"wireHEAD");
    page[56..58].copy_from_slice(&1_u16.to_le_bytes());
    let identity = blake3::hash(&page[32..1072]);
    page[1072..1104].copy_from_slice(identity.as_bytes());
    page[3684..3704].fill(0);
    let crc = crc32c(&page);
    page[3684..3688].copy_from_slice(&crc.to_le_bytes());
    if let Ok(head) = Head::decode(&page, None) {
        let key = HeadKey([7; 32]);
        let again = head.encode(&key);
        assert_eq!(Head::decode(&again, Some(&key)).as_ref(), Ok(&head));
    }
});
