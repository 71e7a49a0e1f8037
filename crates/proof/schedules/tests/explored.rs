//! Each scene in many orders: at random, and with few switches at places of chance (PCT), which
//! finds what needs one thread to stand still for long.

use schedules::{disks, recorder, scenes};

/// Orders that are tried of each scene in each way.
const ORDERS: usize = 300;

fn explore(scene: fn()) {
    shuttle::check_random(scene, ORDERS);
    shuttle::check_pct(scene, ORDERS, 3);
}

#[test]
fn a_buffer_goes_round() {
    explore(scenes::a_buffer_goes_round);
}

#[test]
fn a_lent_buffer_ends_a_wait() {
    explore(scenes::a_lent_buffer_ends_a_wait);
}

#[test]
fn touching_ahead_ends() {
    explore(scenes::touching_ahead_ends);
}

#[test]
fn a_queue_ends_behind_its_last_value() {
    explore(scenes::a_queue_ends_behind_its_last_value);
}

#[test]
fn who_waits_for_room_hears_of_the_end() {
    explore(scenes::who_waits_for_room_hears_of_the_end);
}

#[test]
fn a_stop_is_heard_while_waiting() {
    explore(scenes::a_stop_is_heard_while_waiting);
}

#[test]
fn questions_are_answered() {
    explore(scenes::questions_are_answered);
}

#[test]
fn what_is_stored_was_taken() {
    explore(recorder::what_is_stored_was_taken);
}

#[test]
fn a_long_wait_is_told_and_so_is_its_end() {
    explore(recorder::a_long_wait_is_told_and_so_is_its_end);
}

#[test]
fn columns_come_back_from_an_index_that_hangs() {
    explore(recorder::columns_come_back_from_an_index_that_hangs);
}

#[test]
fn a_stripe_is_indexed_or_left_out() {
    explore(recorder::a_stripe_is_indexed_or_left_out);
}

#[test]
fn a_way_is_closed_behind_who_waits_in_it() {
    explore(recorder::a_way_is_closed_behind_who_waits_in_it);
}

#[test]
fn each_job_is_done_once() {
    explore(disks::each_job_is_done_once);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_up_that_is_lost_is_found() {
    explore(scenes::a_wake_up_that_is_lost);
}
