//! The end of a file that another program writes.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use units::number::to_u64;

use crate::{Error, open_input};

/// Bytes read at a time.
const READ_BYTES: u64 = 1 << 20;
/// A longer line is none of a log.
const LINE_BYTES_MAX: usize = 4 << 20;

/// Follows a file of lines from its beginning, also when it is rotated: another file under its
/// name, or one that is shorter, is read from its beginning.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    file: File,
    inode: u64,
    offset: u64,
    /// The beginning of a line whose end is not written yet.
    begun: Vec<u8>,
    /// The line is none of a log, and what comes of it is left out up to its end.
    is_too_long: bool,
}

impl Tail {
    /// Opens the file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let fail = |error| Error::path("open", path, error);
        let file = open_input(path)?;
        let inode = file.metadata().map_err(fail)?.ino();
        let (path, begun) = (path.to_owned(), Vec::new());
        Ok(Self { path, file, inode, offset: 0, begun, is_too_long: false })
    }

    /// Lines that were written since, without their ends; none when there is nothing new. Bytes
    /// that are no text are replaced.
    pub fn lines(&mut self) -> Result<Vec<String>, Error> {
        let fail = |error| Error::path("read", &self.path, error);
        let mut bytes = Vec::new();
        let read = (&self.file).take(READ_BYTES).read_to_end(&mut bytes).map_err(fail)?;
        self.offset += to_u64(read);
        if read == 0 {
            self.look_for_another()?;
        }
        if self.is_too_long {
            let end = bytes.iter().position(|byte| *byte == b'\n');
            self.is_too_long = end.is_none();
            bytes.drain(..end.map_or(bytes.len(), |at| at + 1));
        }
        self.begun.append(&mut bytes);
        let end = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = self.begun.split_off(end);
        let whole = core::mem::replace(&mut self.begun, rest);
        if self.begun.len() > LINE_BYTES_MAX {
            self.begun.clear();
            self.is_too_long = true;
        }
        Ok(String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect())
    }

    /// The last line, if its end was never written.
    pub fn rest(&mut self) -> Option<String> {
        let rest = core::mem::take(&mut self.begun);
        (!rest.is_empty()).then(|| String::from_utf8_lossy(&rest).into_owned())
    }

    /// At the end: is it still the file of that name, and as long as it was?
    fn look_for_another(&mut self) -> Result<(), Error> {
        // Between two files there may be none.
        let Ok(now) = fs::metadata(&self.path) else { return Ok(()) };
        if now.ino() != self.inode {
            *self = Self::open(&self.path)?;
        } else if now.len() < self.offset {
            self.begun.clear();
            self.is_too_long = false;
            self.offset = 0;
            let begin = self.file.seek(SeekFrom::Start(0));
            begin.map_err(|error| Error::path("read", &self.path, error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests write the file")]

    use std::io::Write;

    use super::*;

    #[test]
    fn lines_come_when_they_are_whole_and_from_the_next_file_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one\ntw").unwrap();
        let mut tail = Tail::open(&path).unwrap();
        assert_eq!(tail.lines().unwrap(), ["one"]);
        assert!(tail.lines().unwrap().is_empty());
        file.write_all(b"o\nthree\n").unwrap();
        assert_eq!(tail.lines().unwrap(), ["two", "three"]);
        fs::rename(&path, folder.path().join("log.1")).unwrap();
        assert!(tail.lines().unwrap().is_empty());
        fs::write(&path, "four\nfive").unwrap();
        assert!(tail.lines().unwrap().is_empty());
        assert_eq!(tail.lines().unwrap(), ["four"]);
        assert_eq!(tail.rest().as_deref(), Some("five"));
        fs::write(&path, "6\n").unwrap();
        assert!(tail.lines().unwrap().is_empty());
        assert_eq!(tail.lines().unwrap(), ["6"], "a file that is cut is read anew");
        assert!(Tail::open(&folder.path().join("absent")).is_err());
    }

    /// Or whoever writes into a line could write an event of their own.
    #[test]
    fn the_end_of_a_line_that_is_too_long_is_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let long = "x".repeat(3 * LINE_BYTES_MAX);
        fs::write(&path, format!("one\n{long}forged\ntwo\n{long}")).unwrap();
        let mut tail = Tail::open(&path).unwrap();
        let mut all = Vec::new();
        for _ in 0..to_u64(2 * long.len()) / READ_BYTES + 3 {
            all.extend(tail.lines().unwrap());
        }
        all.extend(tail.rest());
        assert_eq!(all, ["one", "two"]);
    }
}
