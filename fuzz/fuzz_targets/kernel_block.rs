//! A block of the ring of a packet socket: the walk ends, packets lie in it and do not overlap.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    capture::untrusted::kernel_block(bytes);
});
