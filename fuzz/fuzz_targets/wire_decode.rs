//! Any bytes are a packet.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PACKET, |input| fuzz::packet::run(input));
