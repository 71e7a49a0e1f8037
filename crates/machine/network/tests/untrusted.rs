//! What the fuzz targets of this crate start from (`fuzz/seeds`), whole, cut everywhere and with
//! bytes changed: nothing panics, and what is right is read.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn messages_of_netlink_are_bounded_by_what_came() {
    replay("netlink", network::untrusted::netlink);
}

#[test]
fn texts_of_the_kernel_may_say_anything() {
    replay("proc_texts", network::untrusted::texts);
}
