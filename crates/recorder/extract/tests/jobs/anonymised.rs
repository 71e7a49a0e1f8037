//! Other addresses for whatever the fuzzer began with, and found.

#[path = "../../../../../fuzz/src/seeds.rs"]
mod seeds;
#[path = "../../../../../fuzz/src/anonymise.rs"]
#[expect(unreachable_pub, reason = "it is the library of the fuzz targets, too")]
mod target;

#[test]
fn inputs_of_the_fuzzer_go_through() {
    for seed in seeds::of("anonymise", 16) {
        target::run(&seed);
    }
}

proptest::proptest! {
    #[test]
    fn so_does_anything(input: Vec<u8>) {
        target::run(&input);
    }
}
