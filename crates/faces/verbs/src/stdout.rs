//! Standard output: for results. Text goes out as lines of harmless characters, whatever is in it;
//! packets as they are, and never to a terminal.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

/// What is said where packets would go to a terminal.
pub const NO_TEXT: &str =
    "packets are no text for a terminal; name a file, or pipe them into a program";

/// Writes a text that is ready.
pub fn print(text: &str) -> io::Result<()> {
    write(&page::safe::lines(text))
}

/// The same of a text with a plot, which has colours on a terminal.
pub fn print_plot(text: &str) -> io::Result<()> {
    if is_drawn_on() { write(&page::safe::coloured_lines(text)) } else { print(text) }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| named(&error))
}

/// The error with where it was: a full disk below the output is else taken for one of the volume.
pub fn named(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}

/// For results that come in pieces; each is text that is whole.
pub fn buffered() -> Lines {
    Lines(bytes())
}

/// Text on its way out.
#[derive(Debug)]
pub struct Lines(BufWriter<StdoutLock<'static>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(page::safe::lines(&text).as_bytes()).map_err(|error| named(&error))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(|error| named(&error))
    }
}

/// For scripts, and for packets where a terminal has been refused.
pub fn bytes() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// The same for a job that another thread does.
pub fn shared() -> io::Stdout {
    io::stdout()
}

/// Whether a person reads it.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// The same of one that places text and has colours.
pub fn is_drawn_on() -> bool {
    is_terminal() && terminal_draws()
}

/// Whether the terminal of this process, if it has one, takes more than lines.
pub(crate) fn terminal_draws() -> bool {
    std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// Width of the terminal; `None` when standard output is none.
pub fn width() -> Option<usize> {
    host::terminal_columns().map(usize::from)
}
