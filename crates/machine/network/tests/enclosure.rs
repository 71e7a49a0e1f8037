//! A namespace with a way out, made by a process that has one thread: tests of the usual kind have
//! several, and are refused.

#![expect(clippy::print_stdout, reason = "tests say why they did not run")]

use std::process::Command;

use network::{Enclosure, Way, enter_namespace};

fn main() {
    if let Err(error) = enter_namespace() {
        println!("not run: {error}");
        return;
    }
    // A thread that has ended is no thread.
    std::thread::scope(|scope| {
        scope.spawn(|| ());
    });
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
    if !up.is_ok_and(|status| status.success()) {
        println!("not run: ip cannot bring an interface up");
        return;
    }
    match Enclosure::new(&Way::by("lo".to_owned()).expect("lo is there")) {
        Ok(enclosure) => {
            let found = enclosure.within(network::interfaces);
            let found = found.expect("a thread").expect("a list of interfaces");
            assert!(found.contains(&enclosure.interface().to_owned()), "{found:?}");
            assert!(enclosure.processes().is_empty(), "the guard is outside");
        }
        Err(error) => {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let source = source.unwrap_or_default();
            assert!(!source.contains("threads"), "one thread is taken for several");
            println!("not run: {error}: {source}");
            return;
        }
    }
    println!("test result: ok. 1 passed; 0 failed; 0 ignored");
}
