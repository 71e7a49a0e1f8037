//! Payloads of a session of TLS, with certificates.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PAYLOADS, |input| fuzz::payloads::one("app_tls", input));
