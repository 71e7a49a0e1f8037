//! What the fuzz targets of this crate start from (`fuzz/seeds`), whole, cut everywhere and with
//! bytes changed: nothing panics, and what is right is read.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn texts_of_the_kernel_may_say_anything() {
    replay("proc_texts", blockdev::untrusted::texts);
}

#[test]
fn answers_of_drives_may_say_anything() {
    replay("drive_answer", blockdev::untrusted::drive_answer);
}

#[test]
fn disks_may_hold_anything() {
    replay("signatures", blockdev::untrusted::signatures);
}
