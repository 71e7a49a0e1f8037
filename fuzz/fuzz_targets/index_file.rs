//! Any bytes may stand where the sessions of a segment are stored.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| fuzz::index_file::run(input));
