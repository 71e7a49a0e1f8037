//! What the fuzz target of frames starts from (`fuzz/seeds`), whole, cut everywhere and with bytes
//! changed.

#[path = "../../../../../fuzz/src/made.rs"]
mod made;
#[path = "../../../../../fuzz/src/replay.rs"]
mod replay;

use crate::message::Request;
use crate::message::tests::{answers, before, begin, closing, stripe};
use session::Config;

#[test]
fn frames_may_say_anything() {
    let mut requests = Vec::new();
    begin(Some(Config::default())).encode(&mut requests);
    Request::Before(before()).encode(&mut requests);
    Request::Stripe(stripe()).encode(&mut requests);
    Request::Close(closing()).encode(&mut requests);
    Request::UseThreads(4).encode(&mut requests);
    made::made("indexer_frames", "requests", &requests);
    let mut without_rows = Vec::new();
    begin(None).encode(&mut without_rows);
    made::made("indexer_frames", "without-rows", &without_rows);
    let mut said = Vec::new();
    for answer in answers() {
        answer.encode(&mut said);
    }
    made::made("indexer_frames", "answers", &said);
    replay::replay("indexer_frames", super::frames);
}
