//! Standard output: for results.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

/// Writes a text that is ready.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// For results that come in pieces.
pub(crate) fn buffered() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Width of the terminal; `None` when standard output is none.
pub(crate) fn width() -> Option<usize> {
    host::terminal_columns().map(usize::from)
}
