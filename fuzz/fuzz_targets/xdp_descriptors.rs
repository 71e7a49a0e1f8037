//! Descriptions of packets in memory that is lent to the kernel: only what was lent is believed.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::DESCRIPTORS, |input| {
    capture::untrusted::descriptors(input).expect("there is memory");
});
