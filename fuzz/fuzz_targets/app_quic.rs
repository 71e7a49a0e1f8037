//! What is inside of the Initial packets of QUIC, which the target encrypts.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::payloads::quic(input);
});
