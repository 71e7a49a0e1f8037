//! What the fuzz targets of this crate start from (`fuzz/seeds`), whole, cut everywhere and with
//! bytes changed: nothing panics, and what is right is read.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn texts_of_the_kernel_may_say_anything() {
    replay("proc_texts", host::untrusted::texts);
}

#[test]
fn questions_may_come_in_any_parts() {
    replay("control_question", host::untrusted::control_question);
}
