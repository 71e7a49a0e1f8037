//! The body of a piece may be forged.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::PIECE, |input| fuzz::stored::piece(input));
