//! Payloads of a session of NTP.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::Protocol;

fuzz_target!(|input: &[u8]| fuzz::payloads(Protocol::UDP, (123, 123), input));
