//! Any image may be given as a volume: to read, to salvage, to record into.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| fuzz::image::run(input));
