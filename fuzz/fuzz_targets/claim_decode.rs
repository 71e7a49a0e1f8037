//! A claim whose MAC is right may still be forged.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::stored::claim(input);
});
