//! Files that no encoder wrote.

#[path = "../../../../../fuzz/src/seeds.rs"]
mod seeds;
#[path = "../../../../../fuzz/src/index_file.rs"]
#[expect(unreachable_pub, reason = "it is the library of the fuzz targets, too")]
mod target;

use proptest::prelude::*;

#[test]
fn inputs_of_the_fuzzer_are_rows_or_errors() {
    for seed in seeds::of("index_file", 4) {
        target::run(&seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn so_are_files_with_other_bytes(
        flags: u8,
        edits in prop::collection::vec(any::<[u8; 8]>(), 0..4),
    ) {
        target::run(&[&[flags & !1], edits.as_flattened()].concat());
    }
}
