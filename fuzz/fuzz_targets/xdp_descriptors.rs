//! Descriptions of packets in memory that is lent to the kernel: only what was lent is believed.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    capture::untrusted::descriptors(bytes).unwrap();
});
