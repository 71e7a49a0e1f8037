//! Payloads of a session of DNS over TCP.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PAYLOADS, |input| fuzz::payloads::one("app_dns_tcp", input));
