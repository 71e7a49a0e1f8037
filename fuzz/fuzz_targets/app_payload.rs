//! Any payloads of a session through every parser.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::payloads::any(input);
});
