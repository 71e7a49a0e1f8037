//! Payloads of a session of HTTP/1, and the preface of HTTP/2.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PAYLOADS, |input| fuzz::payloads::one("app_http", input));
