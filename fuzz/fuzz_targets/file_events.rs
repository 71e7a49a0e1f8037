//! Events of fanotify.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    host::untrusted::file_events(bytes);
});
