//! What an indexer and its owner say to each other: neither trusts the other.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _read = indexer::untrusted::frames(bytes);
});
