//! Any file may be given as a capture.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::capture_file::run(input, || {});
});
