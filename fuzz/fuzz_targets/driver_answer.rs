//! A driver's answers about its statistics.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::DRIVER, |input| capture::untrusted::driver_answer(input));
