//! Payloads of a session of FTP, which is told from SMTP on its way.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::payloads::one("app_ftp", input);
});
