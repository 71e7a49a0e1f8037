//! Any text may be given as a log of Suricata or Zeek.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| fuzz::texts::log(input));
