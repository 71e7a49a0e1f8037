//! A question to a control socket, in any parts.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|parts: &[u8]| {
    host::untrusted::control_question(parts);
});
