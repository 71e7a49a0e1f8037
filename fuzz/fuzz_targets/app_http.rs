//! Payloads of a session of HTTP/1, and the preface of HTTP/2.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::payloads::one("app_http", input);
});
