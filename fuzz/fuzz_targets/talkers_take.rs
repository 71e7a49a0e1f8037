//! Packets of any bytes and times, for `top`.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::TALKERS, |input| fuzz::talkers::run(input));
