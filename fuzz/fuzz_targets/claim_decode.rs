//! A claim whose MAC is right may still be forged: decoding refuses it or gives what encodes again.
//!
//! The MAC is put right here, else no input would come further. Offsets: docs/format.md, Claim.
#![no_main]

use format::claim::{CLAIM_BYTES, Claim};
use format::head::HeadKey;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let key = HeadKey([7; 32]);
    let mut page = [0; CLAIM_BYTES];
    let len = bytes.len().min(CLAIM_BYTES);
    page[..len].copy_from_slice(&bytes[..len]);
    page[..8].copy_from_slice(b"wireCLAM");
    page[8..10].copy_from_slice(&1_u16.to_le_bytes());
    page[16..32].fill(0);
    let mac = blake3::keyed_hash(&key.0, &page);
    page[16..32].copy_from_slice(&mac.as_bytes()[..16]);
    if let Ok(claim) = Claim::decode(&page, &key) {
        let again = claim.encode(&key);
        assert_eq!(Claim::decode(&again, &key).as_ref(), Ok(&claim));
    }
});
