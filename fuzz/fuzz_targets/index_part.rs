//! Parts of a segment's index may be forged, and come in any order.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::INDEX_PARTS, |input| fuzz::stored::index_parts(input));
