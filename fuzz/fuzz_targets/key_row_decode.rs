//! A row of keys whose MAC is right may still be forged.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PAGE, |input| fuzz::stored::key_row(input));
