//! What is typed at standard input, read by a thread of its own, so that a signal is heard while
//! nobody answers.

use core::time::Duration;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;

/// Lines of standard input, once one was asked for.
#[derive(Debug, Default)]
pub struct Typed(Option<Receiver<String>>);

impl Typed {
    /// The next line, without blanks around it; none at the end of input, or once `is_stopped`,
    /// which is looked at each time that so long nothing was typed.
    pub fn next_line(&mut self, nap: Duration, is_stopped: &dyn Fn() -> bool) -> Option<String> {
        let lines = self.0.get_or_insert_with(lines);
        loop {
            match lines.recv_timeout(nap) {
                Ok(line) => return Some(line.trim().to_owned()),
                Err(RecvTimeoutError::Timeout) if !is_stopped() => {}
                Err(_) => return None,
            }
        }
    }
}

fn lines() -> Receiver<String> {
    let (sender, lines) = sync_channel(1);
    let read = move || {
        // It ends when nobody asks any more, or with the program.
        drop(io::stdin().lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    };
    // Without it no answer comes, as at the end of input.
    drop(thread::Builder::new().name("answers".to_owned()).spawn(read));
    lines
}
