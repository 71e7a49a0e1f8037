//! A head whose checksums are right may still be forged.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PAGE, |input| fuzz::stored::head(input));
