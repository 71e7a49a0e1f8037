//! A claim whose MAC is right may still be forged.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PAGE, |input| fuzz::stored::claim(input));
