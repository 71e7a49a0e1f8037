//! Payloads of a session of SMB.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::Protocol;

fuzz_target!(|input: &[u8]| fuzz::payloads(Protocol::TCP, (40_000, 445), input));
