//! Images that an attacker made: right checksums around any numbers.

#[path = "../../../../../fuzz/src/seeds.rs"]
mod seeds;
#[path = "../../../../../fuzz/src/image.rs"]
#[expect(unreachable_pub, reason = "it is the library of the fuzz targets, too")]
mod target;

use proptest::prelude::*;

#[test]
fn inputs_of_the_fuzzer_are_read_or_refused() {
    for seed in seeds::of("volume_image", 4) {
        target::run(&seed);
    }
}

/// Each field of superblocks and heads at its maximum, in all copies and in the newest slots.
#[test]
fn every_number_may_be_the_highest() {
    let mut failed = Vec::new();
    let mut run = |input: [u8; 12]| {
        if std::panic::catch_unwind(|| target::run(&input)).is_err() {
            failed.push(input);
        }
    };
    for at in (0..600_u16).step_by(4) {
        let [low, high] = at.to_le_bytes();
        for width in [1, 2, 3_u8] {
            run([0x80 | width << 4, 0, low, high, 0, 0, 0, 0, 0, 0, 0, 0]);
            for slot in [0, 26, 63] {
                run([0x82 | width << 4, slot, low, high, 0, 0, 0, 0, 0, 0, 0, 0]);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn so_is_anything(edits in prop::collection::vec(any::<[u8; 12]>(), 0..6)) {
        target::run(edits.as_flattened());
    }
}
