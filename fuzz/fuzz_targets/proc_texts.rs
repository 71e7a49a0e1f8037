//! Files of /proc and /sys.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    host::untrusted::texts(bytes);
});
