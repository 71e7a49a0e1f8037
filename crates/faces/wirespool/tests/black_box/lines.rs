//! What a program says, line by line while it runs.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Lines that are read as they come.
pub(crate) struct Lines {
    lines: Receiver<String>,
    /// Those that were read.
    pub(crate) said: Vec<String>,
}

impl Lines {
    pub(crate) fn of(output: impl Read + Send + 'static) -> Self {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.try_for_each(|line| sender.send(line))
        });
        Self { lines, said: Vec::new() }
    }

    /// Reads up to a line that contains these words; so long for each line.
    #[track_caller]
    pub(crate) fn hear(&mut self, words: &str, patience: Duration) -> String {
        loop {
            let line = self.lines.recv_timeout(patience);
            let line = line.unwrap_or_else(|why| panic!("{why}: no {words:?} in {:?}", self.said));
            self.said.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
    }

    /// Reads up to a line that contains these words, if one comes in this time.
    pub(crate) fn heard(&mut self, words: &str, patience: Duration) -> Option<String> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).ok()?;
            self.said.push(line.clone());
            if line.contains(words) {
                return Some(line);
            }
        }
    }

    /// The same of several, in whatever order they come.
    #[track_caller]
    pub(crate) fn hear_all(&mut self, words: &[&str], patience: Duration) {
        let mut missing = words.to_vec();
        while let Some(next) = missing.first().copied() {
            let line = self.lines.recv_timeout(patience);
            let line = line.unwrap_or_else(|why| panic!("{why}: no {next:?} in {:?}", self.said));
            missing.retain(|words| !line.contains(words));
            self.said.push(line);
        }
    }

    /// All lines, once the program has ended.
    pub(crate) fn into_all(mut self) -> Vec<String> {
        self.said.extend(self.lines.iter());
        self.said
    }
}
