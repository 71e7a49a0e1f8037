//! Payloads of a session of DHCP.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PAYLOADS, |input| fuzz::payloads::one("app_dhcp", input));
