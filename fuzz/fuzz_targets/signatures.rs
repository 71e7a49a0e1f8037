//! What lies on a disk: the search reads whole rows inside of it, and each kind is found once.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::DISK, |input| blockdev::untrusted::signatures(input));
