//! Files that are read whole, within a limit. One that is longer is refused and never cut: what a
//! reader does not see of a list, a log or a witness file would make its answer wrong without a
//! word. A device, a pipe or a file that grows has no length to ask for, so the limit holds while
//! it is read, too.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use units::ByteSize;
use units::number::to_u64;

use crate::listing::children;
use crate::{Error, spared};

/// Of files whose reader names no limit: reports, configurations, certificates. The largest reports
/// have some MiB.
const TEXT_BYTES_MAX: u64 = 256 << 20;

/// Opens a file that a user named, to be read. No output of this process takes its place.
pub fn open_input(path: &Path) -> Result<File, Error> {
    let file = File::open(path).map_err(|error| Error::path("open", path, error))?;
    spared::keep_input(&file);
    Ok(file)
}

/// Keeps outputs from what others open by themselves: a file, or all with this extension in a
/// folder and its folders.
///
/// # Errors
/// When one of them cannot be opened.
pub fn keep_inputs(path: &Path, extension: &str) -> Result<(), Error> {
    let (mut waiting, mut folders) = (vec![path.to_path_buf()], BTreeSet::new());
    while let Some(path) = waiting.pop() {
        let Some(folder) = fs::metadata(&path).ok().filter(Metadata::is_dir) else {
            open_input(&path)?;
            continue;
        };
        // A link may lead back.
        if folders.insert((folder.dev(), folder.ino())) {
            let is_read = |inside: &PathBuf| {
                inside.is_dir() || inside.extension().is_some_and(|it| it == extension)
            };
            waiting.extend(children(&path).into_iter().filter(is_read));
        }
    }
    Ok(())
}

/// The text of such a file, of at most 256 MiB.
///
/// # Errors
/// When it cannot be read, is longer, or is no text.
pub fn read_input(path: &Path) -> Result<String, Error> {
    read_input_text(path, TEXT_BYTES_MAX)
}

/// The text of such a file, which may have `bytes_max` bytes.
///
/// # Errors
/// As [`read_input`].
pub fn read_input_text(path: &Path, bytes_max: u64) -> Result<String, Error> {
    text(path, read_input_bytes(path, bytes_max)?)
}

/// The bytes of such a file.
///
/// # Errors
/// When it cannot be read, or is longer than `bytes_max`.
pub fn read_input_bytes(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    read_whole(&open_input(path)?, path, bytes_max)
}

/// The text at standard input, which errors call `-`.
///
/// # Errors
/// As [`read_input_text`].
pub fn read_stdin_text(bytes_max: u64) -> Result<String, Error> {
    let name = Path::new("-");
    text(name, up_to(io::stdin().lock(), name, bytes_max, Vec::new())?)
}

/// Reads a file of text that is no input of the command: an output may take its place. At most
/// 256 MiB.
///
/// # Errors
/// As [`read_input`].
pub fn read_text(path: &Path) -> Result<String, Error> {
    let file = File::open(path).map_err(|error| Error::path("read", path, error))?;
    text(path, read_whole(&file, path, TEXT_BYTES_MAX)?)
}

/// All of an open file.
pub(crate) fn read_whole(file: &File, path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let found = file.metadata().map_err(|error| Error::path("read", path, error))?;
    // What is no regular file says 0.
    if found.len() > bytes_max && found.is_file() {
        return Err(too_long(path, bytes_max));
    }
    // One byte more, so that the end is found without twice the memory.
    let expected = if found.is_file() { found.len() + 1 } else { 0 };
    let bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
    up_to(file, path, bytes_max, bytes)
}

fn up_to(from: impl Read, path: &Path, most: u64, mut bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    let read = from.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Error::path("read", path, error))?;
    if to_u64(bytes.len()) > most {
        return Err(too_long(path, most));
    }
    Ok(bytes)
}

fn too_long(path: &Path, bytes_max: u64) -> Error {
    Error::TooLong { path: path.to_path_buf(), bytes_max: ByteSize(bytes_max) }
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let why = io::Error::other(format!("it is no text from byte {at} on"));
        Error::path("read", path, why)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_input_bytes(&path, 5).unwrap(), b"12345");
        let refused = read_input_text(&path, 4).unwrap_err().to_string();
        assert_eq!(
            refused,
            format!("{} is longer than 4 B, the most that is read of it", path.display())
        );
        fs::write(&path, "").unwrap();
        assert_eq!(read_input_text(&path, 0).unwrap(), "");
    }

    /// A folder that is linked into itself has each file once, and files by a link count as well.
    #[test]
    fn no_output_takes_the_place_of_what_others_read_below_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, elsewhere) = (folder.path().join("inside"), folder.path().join("elsewhere"));
        for made in [&inside, &elsewhere] {
            fs::create_dir(made).unwrap();
            fs::write(made.join("rows.parquet"), "1").unwrap();
            fs::write(made.join("other"), "2").unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), inside.join("again")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, inside.join("link")).unwrap();
        keep_inputs(&inside, "parquet").unwrap();
        for made in [&inside, &elsewhere] {
            crate::Output::create(&made.join("rows.parquet"), true).unwrap_err();
            crate::Output::create(&made.join("other"), true).unwrap();
        }
        keep_inputs(&folder.path().join("none"), "parquet").unwrap_err();
    }

    /// Their length is 0, or not yet what it will be.
    #[test]
    fn what_has_no_length_is_bounded_while_it_is_read() {
        assert!(matches!(
            read_input_bytes("/dev/zero".as_ref(), 1 << 16),
            Err(Error::TooLong { .. })
        ));
        assert!(!read_text("/proc/self/status".as_ref()).unwrap().is_empty());
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"123").unwrap();
        drop(writer);
        let path = Path::new("pipe");
        assert_eq!(up_to(reader, path, 3, Vec::new()).unwrap(), b"123");
    }

    #[test]
    fn a_long_file_costs_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        for read in [read_text(&path), read_input(&path)] {
            assert!(matches!(read, Err(Error::TooLong { .. })));
        }
    }

    #[test]
    fn what_is_no_text_is_named_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        fs::write(&path, b"ab\xff").unwrap();
        let Error::Path { source, .. } = read_input(&path).unwrap_err() else { panic!("no path") };
        assert_eq!(source.to_string(), "it is no text from byte 2 on");
    }
}
