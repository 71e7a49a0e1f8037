//! Any payloads of a session through every parser.
//!
//! The input: 1 for TCP, both ports, then payloads as `fuzz::payloads` takes them. Payloads of
//! captures make seeds: see README.md.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::Protocol;

fuzz_target!(|input: &[u8]| {
    let Some((&[proto, a, b, c, d], rest)) = input.split_first_chunk() else {
        return;
    };
    let ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    fuzz::payloads(if proto == 1 { Protocol::TCP } else { Protocol::UDP }, ports, rest);
});
