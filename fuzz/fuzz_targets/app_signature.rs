//! Any payloads of a session: one decision, which is final.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::SIGNATURE, |input| fuzz::payloads::signature(input));
