//! Parts of a segment's index may be forged, and come in any order.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    fuzz::stored::index_parts(input);
});
