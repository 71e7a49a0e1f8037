//! What the fuzz targets of this crate start from (`fuzz/seeds`), whole, cut everywhere and with
//! bytes changed: nothing panics, and what is right is read.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn records_of_perf_are_bounded_by_what_came() {
    replay("perf_records", observe::untrusted::perf_records);
}

#[test]
fn events_of_fanotify_are_bounded_by_what_came() {
    replay("file_events", observe::untrusted::file_events);
}

#[test]
fn texts_of_the_kernel_may_say_anything() {
    replay("proc_texts", observe::untrusted::texts);
}
