//! Any text may be given as what a recorder says of itself: by its socket, or as a report.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::texts::recorder(input);
});
