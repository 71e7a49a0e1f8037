//! Any payloads of a session through every parser.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::SESSION, |input| fuzz::payloads::any(input));
