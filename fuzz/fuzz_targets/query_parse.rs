//! Any text may be given as a query.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::query_text::run(input);
});
