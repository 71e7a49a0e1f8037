//! Any bytes may stand where pcapng blocks are expected.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::BLOCKS, |input| fuzz::stored::blocks(input));
