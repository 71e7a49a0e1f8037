//! Lines as they lie in a file, however long they are.

use std::io::{self, BufRead};

use sha2::{Digest as _, Sha256};

use crate::line::LINE_BYTES_MAX;

/// A line as it lies in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RawLine {
    /// Its bytes without the line feed, those that may belong to a line of ours.
    pub(crate) text: Vec<u8>,
    /// All of its bytes without the line feed.
    pub(crate) len: u64,
    /// SHA-256 with the line feed, also where that is missing.
    pub(crate) hash: [u8; 32],
    /// It has its line feed.
    pub(crate) has_end: bool,
}

/// The next line; none at the end.
pub(crate) fn next_line(input: &mut impl BufRead) -> io::Result<Option<RawLine>> {
    let mut hasher = Sha256::new();
    let (mut text, mut len, mut has_end) = (Vec::new(), 0_u64, false);
    while !has_end {
        let bytes = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        if bytes.is_empty() {
            break;
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        hasher.update(part);
        let room = LINE_BYTES_MAX.saturating_sub(text.len()).min(part.len());
        text.extend_from_slice(part.get(..room).unwrap_or_default());
        len = len.saturating_add(units::number::to_u64(part.len()));
        has_end = end.is_some();
        let count = part.len() + usize::from(has_end);
        input.consume(count);
    }
    if len == 0 && !has_end {
        return Ok(None);
    }
    hasher.update(b"\n");
    Ok(Some(RawLine { text, len, hash: hasher.finalize().into(), has_end }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_and_a_long_one_is_hashed_whole() {
        let long = vec![b'x'; LINE_BYTES_MAX + 5];
        let input = [b"one\n\n", &*long, b"\ntwo"].concat();
        let mut input = io::BufReader::with_capacity(7, &*input);
        let mut next = || next_line(&mut input).unwrap();
        let one = next().unwrap();
        let hash = |text: &[u8]| <[u8; 32]>::from(Sha256::digest(text));
        assert_eq!((&*one.text, one.hash, one.has_end), (&b"one"[..], hash(b"one\n"), true));
        assert_eq!(next().unwrap().len, 0);
        let third = next().unwrap();
        assert_eq!(third.text.len(), LINE_BYTES_MAX);
        assert_eq!(third.len, units::number::to_u64(long.len()));
        assert_eq!(third.hash, hash(&[&*long, b"\n"].concat()));
        let last = next().unwrap();
        assert_eq!((last.hash, last.has_end), (hash(b"two\n"), false));
        assert_eq!(next(), None);
    }
}
