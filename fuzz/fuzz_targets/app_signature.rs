//! Any payloads of a session: one decision, which is final.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::payloads::signature(input);
});
