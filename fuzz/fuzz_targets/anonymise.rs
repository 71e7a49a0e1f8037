//! Packets of any link type are given other addresses.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::ANONYMISE, |input| fuzz::anonymise::run(input));
