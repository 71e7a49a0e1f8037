//! A driver's answers about its statistics.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    capture::untrusted::driver_answer(bytes);
});
