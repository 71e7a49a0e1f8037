//! Progress of anything that takes over a second: a bar on a terminal, else a line now and then.

use std::io::{self, IsTerminal, Write};

use host::SystemClock;
use indicatif::{ProgressBar, ProgressStyle};
use units::{ByteSize, Clock, NANOS_PER_SECOND};

/// Nothing is shown before.
const PATIENCE_NS: i64 = NANOS_PER_SECOND;
/// Between two lines where there is no terminal.
const LINE_EVERY_NS: i64 = 5 * NANOS_PER_SECOND;

/// A line on standard error. A standard error that is gone is no reason to stop.
pub(crate) fn say(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}

/// Shows how far a job is.
pub(crate) struct Progress {
    verb: &'static str,
    start_ns: i64,
    last_line_ns: i64,
    is_terminal: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(verb: &'static str) -> Self {
        let start_ns = SystemClock.boottime_ns();
        let is_terminal = io::stderr().is_terminal();
        let last_line_ns = start_ns + PATIENCE_NS - LINE_EVERY_NS;
        Self { verb, start_ns, last_line_ns, is_terminal, bar: None }
    }

    /// Bytes done of bytes in all, with rate and time left.
    pub(crate) fn bytes(&mut self, done: u64, total: u64) {
        self.share(done, total, &|elapsed_ns| {
            let (done_size, total) = (ByteSize(done), ByteSize(total));
            format!("{done_size} of {total}, {}", view::rate(done, elapsed_ns))
        });
    }

    /// A text about the time that has passed, and the time left.
    pub(crate) fn share(&mut self, done: u64, total: u64, text: &dyn Fn(i64) -> String) {
        let elapsed_ns = SystemClock.boottime_ns() - self.start_ns;
        self.show(Some((done, total)), &|| {
            let left = total.saturating_sub(done);
            let left_ns = i128::from(elapsed_ns) * i128::from(left) / i128::from(done.max(1));
            let left_ns = i64::try_from(left_ns).unwrap_or(i64::MAX);
            format!("{}, {} left", text(elapsed_ns), view::duration(left_ns))
        });
    }

    /// A job without a known end.
    pub(crate) fn text(&mut self, text: &dyn Fn() -> String) {
        self.show(None, text);
    }

    fn show(&mut self, share: Option<(u64, u64)>, text: &dyn Fn() -> String) {
        let now = SystemClock.boottime_ns();
        if now - self.start_ns < PATIENCE_NS {
            return;
        }
        if !self.is_terminal {
            if now - self.last_line_ns >= LINE_EVERY_NS {
                self.last_line_ns = now;
                say(&format!("{}: {}", self.verb, text()));
            }
            return;
        }
        let verb = self.verb;
        let bar = self.bar.get_or_insert_with(|| bar(verb, share.is_some()));
        if let Some((done, total)) = share {
            bar.set_length(total);
            bar.set_position(done);
        }
        bar.set_message(text());
        bar.tick();
    }

    /// Takes the bar off the terminal.
    pub(crate) fn finish(self) {
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
