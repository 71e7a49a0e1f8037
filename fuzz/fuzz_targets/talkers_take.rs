//! Packets of any bytes and times, for `top`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::talkers::run(input);
});
