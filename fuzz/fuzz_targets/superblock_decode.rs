//! A superblock whose checksum is right may still be forged.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PAGE, |input| fuzz::stored::superblock(input));
