//! Datagrams of sock_diag and rtnetlink.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    host::untrusted::netlink(bytes);
});
