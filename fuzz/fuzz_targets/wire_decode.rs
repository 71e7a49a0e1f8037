//! Any bytes are a packet.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::packet::run(input);
});
