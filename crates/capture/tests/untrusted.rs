//! What the fuzz targets of this crate start from (`fuzz/seeds`), whole, cut everywhere and with
//! bytes changed: nothing panics, and what is right is read.

#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn a_kernel_block_ends_whatever_its_offsets_say() {
    replay("kernel_block", capture::untrusted::kernel_block);
}

#[test]
fn descriptors_are_believed_of_what_was_lent() {
    replay("xdp_descriptors", |bytes| capture::untrusted::descriptors(bytes).unwrap());
}

#[test]
fn drivers_may_answer_anything() {
    replay("driver_answer", capture::untrusted::driver_answer);
}
