//! Any text may be given as the manifest of an extract.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| fuzz::texts::manifest(input));
