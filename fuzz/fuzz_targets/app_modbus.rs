//! Payloads of a session of Modbus.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PAYLOADS, |input| fuzz::payloads::one("app_modbus", input));
