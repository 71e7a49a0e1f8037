//! Records of tracepoints, with the text that says how they are laid out, and of sampling.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    host::untrusted::perf_records(bytes);
});
