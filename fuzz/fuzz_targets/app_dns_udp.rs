//! Payloads of a session of DNS over UDP.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PAYLOADS, |input| fuzz::payloads::one("app_dns_udp", input));
