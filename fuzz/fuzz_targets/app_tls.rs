//! Payloads of a session of TLS, with certificates.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::payloads::one("app_tls", input);
});
