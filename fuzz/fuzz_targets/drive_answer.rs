//! Health logs, identities and sense data of drives.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    host::untrusted::drive_answer(bytes);
});
