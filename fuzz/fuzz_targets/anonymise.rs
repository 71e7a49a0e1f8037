//! Packets of any link type are given other addresses.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| fuzz::anonymise::run(input));
