//! What is inside of the Initial packets of QUIC, which the target encrypts.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::QUIC, |input| fuzz::payloads::quic(input));
