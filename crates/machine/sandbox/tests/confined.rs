//! What a confined process may still do, tried from inside: this program is also the processes that
//! try.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::print_stdout, reason = "tests say how they ended")]

use std::ffi::OsString;

use sandbox::attempts::{Confined, Tried, play, self_test};

const VERB: &str = "attempt";

fn main() {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == VERB) {
        let words: Vec<OsString> = words.collect();
        return play(&words).unwrap_or_default();
    }
    for (name, test) in [
        ("an_indexer_can_do_nothing_but_its_work", Confined::Indexer),
        ("a_recorder_can_do_nothing_but_record", Confined::Recorder),
        ("a_launcher_can_do_nothing_but_start_indexers", Confined::Launcher),
    ] {
        all_is_right(test);
        println!("test {name} ... ok");
    }
    attempts_are_real();
    println!("test without_confinement_most_attempts_are_not_refused ... ok");
}

fn all_is_right(who: Confined) {
    let (tried, notes) = self_test(who, VERB).unwrap();
    for note in &notes {
        println!("note: {note}");
    }
    let wrong: Vec<&Tried> = tried.iter().filter(|tried| !tried.is_right).collect();
    let forbidden = tried.iter().filter(|tried| tried.is_forbidden).count();
    assert!(wrong.is_empty(), "{who:?}: {wrong:#?}");
    assert!(forbidden >= 60 && tried.len() > forbidden, "{forbidden} of {}", tried.len());
    println!("{who:?}: {forbidden} refused, {} still possible", tried.len() - forbidden);
}

/// An attempt that is always refused shows nothing.
fn attempts_are_real() {
    let (tried, _) = self_test(Confined::Nobody, VERB).unwrap();
    let refused = tried.iter().filter(|tried| tried.is_forbidden && tried.is_right);
    let refused: Vec<&str> = refused.map(|tried| tried.name).collect();
    let (all, refused_count) = (tried.iter().filter(|it| it.is_forbidden).count(), refused.len());
    println!("without confinement {refused_count} of {all} are refused: {refused:?}");
    assert!(refused_count * 3 < all, "{refused:?}");
}
