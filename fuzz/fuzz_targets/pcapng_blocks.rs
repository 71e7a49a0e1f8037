//! Any bytes may stand where pcapng blocks are expected.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::stored::blocks(input);
});
