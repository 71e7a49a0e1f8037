//! A block of the ring of a packet socket: the walk ends, packets lie in it and do not overlap.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::KERNEL_BLOCK, |input| capture::untrusted::kernel_block(input));
