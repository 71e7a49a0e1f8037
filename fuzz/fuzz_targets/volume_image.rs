//! Any image may be given as a volume: to read, to salvage, to record into.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::IMAGE, |input| fuzz::image::run(input));
