//! What an indexer and its owner say to each other: neither trusts the other.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::FRAMES, |input| indexer::untrusted::frames(input));
