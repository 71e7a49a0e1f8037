//! Payloads of a session of FTP, which is told from SMTP on its way.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::Protocol;

fuzz_target!(|input: &[u8]| fuzz::payloads(Protocol::TCP, (40_000, 21), input));
