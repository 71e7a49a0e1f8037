//! A program that reads what we write.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::Error;

/// A program at the other end of a pipe; its output is ours.
#[derive(Debug)]
pub struct Piped {
    child: Child,
    input: Option<ChildStdin>,
}

impl Piped {
    /// Starts a program.
    pub fn start(program: &Path, arguments: &[OsString]) -> Result<Self, Error> {
        let child = Command::new(program).args(arguments).stdin(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| Error::path("start", program, error))?;
        let input = child.stdin.take();
        Ok(Self { child, input })
    }

    /// Ends its input and waits for it; its exit code, `None` where a signal ended it.
    pub fn finish(mut self) -> Result<Option<i32>, Error> {
        drop(self.input.take());
        let status = self.child.wait();
        Ok(status.map_err(|error| Error::system("wait for a program", error))?.code())
    }
}

impl Write for Piped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.input.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |to| to.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        drop(self.input.take());
        drop(self.child.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_reads_to_the_end_of_what_is_written() {
        let arguments = ["-c", "test \"$(cat)\" = all || exit 7"].map(OsString::from);
        for (text, code) in [("all", 0), ("some", 7)] {
            let mut piped = Piped::start(Path::new("sh"), &arguments).unwrap();
            piped.write_all(text.as_bytes()).unwrap();
            assert_eq!(piped.finish().unwrap(), Some(code));
        }
        assert!(Piped::start(Path::new("/nonexistent"), &[]).is_err());
    }
}
