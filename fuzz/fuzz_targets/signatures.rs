//! What lies on a disk: the search reads whole rows inside of it, and each kind is found once.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    host::untrusted::signatures(bytes);
});
