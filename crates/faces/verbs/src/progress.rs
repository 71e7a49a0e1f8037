//! Progress of anything that takes over a second: a bar on a terminal, else a line now and then.

use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;

use host::{SPEAKS_AS, SystemClock, takes_a_line};
use units::{ByteSize, Clock, NANOS_PER_SECOND};

use indicatif::{ProgressBar, ProgressStyle};

use crate::stdout::terminal_draws;

/// Nothing is shown before.
const PATIENCE_NS: i64 = NANOS_PER_SECOND;
/// A time left is estimated only after this much: the first bytes of a job say nothing of its rate.
const BASIS_NS: i64 = NANOS_PER_SECOND;
const BASIS_BYTES: u64 = 4 << 20;
/// Between two lines where there is no terminal.
const LINE_EVERY_NS: i64 = 5 * NANOS_PER_SECOND;

/// What lines begin with where several programs have one log ([`SPEAKS_AS`]).
static NAME: LazyLock<String> = LazyLock::new(|| {
    std::env::var(SPEAKS_AS).map_or_else(|_| String::new(), |name| format!("{name}: "))
});

/// A line on standard error: one, whatever is in it. A standard error that is gone is no reason to
/// stop.
pub fn say(line: &str) {
    drop(writeln!(io::stderr(), "{}", page::safe::printable(&format!("{}{line}", *NAME))));
}

/// The same where standard error takes it without a wait; whether it was said.
pub fn try_say(line: &str) -> bool {
    let is_taken = takes_a_line(&io::stderr());
    if is_taken {
        say(line);
    }
    is_taken
}

/// A text of several lines there.
pub fn say_lines(text: &str) {
    for line in page::safe::lines(text.trim_end()).lines() {
        drop(writeln!(io::stderr(), "{}{line}", *NAME));
    }
}

/// Shows how far a job is.
#[derive(Debug)]
pub struct Progress {
    verb: &'static str,
    start_ns: i64,
    last_line_ns: i64,
    is_terminal: bool,
    bar: Option<ProgressBar>,
    /// When the first of it was done, and how much that was.
    first: Option<(i64, u64)>,
    /// Lines that were not said.
    left_out: u64,
}

impl Progress {
    /// Of a verb, which lines begin with.
    pub fn new(verb: &'static str) -> Self {
        let start_ns = SystemClock.boottime_ns();
        let is_terminal = io::stderr().is_terminal() && terminal_draws();
        let last_line_ns = start_ns + PATIENCE_NS - LINE_EVERY_NS;
        Self { verb, start_ns, last_line_ns, is_terminal, bar: None, first: None, left_out: 0 }
    }

    /// Bytes done of bytes in all, with rate and time left.
    pub fn bytes(&mut self, done: u64, total: u64) {
        self.share(done, total, &|elapsed_ns| {
            let (done_size, total) = (ByteSize(done), ByteSize(total));
            format!("{done_size} of {total}, {}", page::text::rate(done, elapsed_ns))
        });
    }

    /// Segments of the ring that were searched.
    pub fn segments(&mut self, done: usize, total: usize) {
        let [done, total] = [done, total].map(|count| u64::try_from(count).unwrap_or(u64::MAX));
        let of = page::text::plural(total, "segment");
        self.share(done, total, &|_| format!("{done} of {of}"));
    }

    /// A line beside it. A job that must not wait goes on where standard error takes none, and says
    /// later how many it left out.
    pub fn say(&mut self, line: &str) {
        if self.left_out > 0 && takes_a_line(&io::stderr()) {
            let left_out = core::mem::take(&mut self.left_out);
            say(&format!("{left_out} lines are missing here: standard error was blocked"));
        }
        if takes_a_line(&io::stderr()) {
            say(line);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    /// A text about the time that has passed, and the time left.
    pub fn share(&mut self, done: u64, total: u64, text: &dyn Fn(i64) -> String) {
        let now = SystemClock.boottime_ns();
        let elapsed_ns = now - self.start_ns;
        if self.first.is_none() && done > 0 {
            self.first = Some((now, done));
        }
        let (first_ns, first) = self.first.unwrap_or((now, done));
        let left_ns =
            left_ns(now - first_ns, done.saturating_sub(first), total.saturating_sub(done));
        self.show(Some((done, total)), &|| match left_ns {
            Some(left_ns) => {
                format!("{}, {} left", text(elapsed_ns), page::text::duration(left_ns))
            }
            None => text(elapsed_ns),
        });
    }

    /// A job without a known end.
    pub fn text(&mut self, text: &dyn Fn() -> String) {
        self.show(None, text);
    }

    fn show(&mut self, share: Option<(u64, u64)>, text: &dyn Fn() -> String) {
        let now = SystemClock.boottime_ns();
        let is_time = self.is_terminal || now - self.last_line_ns >= LINE_EVERY_NS;
        if now - self.start_ns < PATIENCE_NS || !is_time || !takes_a_line(&io::stderr()) {
            return;
        }
        if !self.is_terminal {
            self.last_line_ns = now;
            say(&format!("{}: {}", self.verb, text()));
            return;
        }
        let verb = self.verb;
        let bar = self.bar.get_or_insert_with(|| bar(verb, share.is_some()));
        if let Some((done, total)) = share {
            bar.set_length(total);
            bar.set_position(done);
        }
        bar.set_message(page::safe::printable(&text()));
        bar.tick();
    }

    /// Takes the bar off the terminal.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(verb: &'static str, has_end: bool) -> ProgressBar {
    let template = if has_end { "{prefix} [{wide_bar}] {msg}" } else { "{prefix} {wide_msg}" };
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    let bar = ProgressBar::new(0).with_prefix(verb);
    bar.set_style(style.progress_chars("=> "));
    bar
}

/// How long the rest takes at the rate so far; `None` while that is not known.
fn left_ns(elapsed_ns: i64, done: u64, left: u64) -> Option<i64> {
    let is_known = done > 0 && (elapsed_ns >= BASIS_NS || done >= BASIS_BYTES);
    let left_ns = i128::from(elapsed_ns) * i128::from(left) / i128::from(done.max(1));
    is_known.then(|| i64::try_from(left_ns).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_left_is_told_when_there_is_something_to_tell_it_by() {
        let second = NANOS_PER_SECOND;
        assert_eq!(left_ns(second / 2, 4096, 200 << 20), None, "13 hours are a guess");
        assert_eq!(left_ns(5 * second, 0, 200 << 20), None);
        assert_eq!(left_ns(second, 1 << 20, 10 << 20), Some(10 * second));
        assert_eq!(left_ns(second / 10, 8 << 20, 80 << 20), Some(second));
    }
}
