//! Payloads of a session of SSH, with HASSH.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::Protocol;

fuzz_target!(|input: &[u8]| fuzz::payloads(Protocol::TCP, (40_000, 22), input));
