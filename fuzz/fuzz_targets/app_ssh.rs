//! Payloads of a session of SSH, with HASSH.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PAYLOADS, |input| fuzz::payloads::one("app_ssh", input));
