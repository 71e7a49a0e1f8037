//! The body of a piece may be forged.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::stored::piece(input);
});
