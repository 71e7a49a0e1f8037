//! The rest of an extract, for a client that has its beginning.
//!
//! An extract of the same packets has the same bytes. So it is made again from its start, and what
//! the client has is compared by its hash and not sent: a packet that was doubled, lost or changed
//! in between cannot pass, and manifest and statement are those of the whole.

use std::io::{self, ErrorKind, Write};

use questions::Behind;
use sha2::{Digest as _, Sha256};

/// Passes on what comes behind the first bytes.
pub(super) struct Rest<'a> {
    out: &'a mut dyn Write,
    /// Until the first bytes are there, and are those.
    first: Option<First>,
    is_other: bool,
}

struct First {
    left: u64,
    hasher: Sha256,
    expected: String,
}

impl<'a> Rest<'a> {
    /// All, where nothing was had before.
    pub(super) fn new(behind: Option<&Behind>, out: &'a mut dyn Write) -> Self {
        let first = behind.map(|behind| First {
            left: behind.bytes,
            hasher: Sha256::new(),
            expected: behind.sha256.clone(),
        });
        Self { out, first, is_other: false }
    }

    /// The first bytes were there and had another hash.
    pub(super) fn is_other(&self) -> bool {
        self.is_other
    }

    /// The first bytes were there and had the hash.
    pub(super) fn is_behind(&self) -> bool {
        self.first.is_none()
    }
}

impl Write for Rest<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(first) = &mut self.first else { return self.out.write(bytes) };
        let count = usize::try_from(first.left).map_or(bytes.len(), |left| left.min(bytes.len()));
        first.hasher.update(bytes.get(..count).unwrap_or_default());
        first.left = first.left.saturating_sub(units::number::to_u64(count));
        if first.left == 0 {
            let is_same = units::hex(&first.hasher.clone().finalize()) == first.expected;
            if !is_same {
                self.is_other = true;
                return Err(io::Error::from(ErrorKind::InvalidData));
            }
            self.first = None;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(text: &[u8], (bytes, of): (u64, &[u8]), piece: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let behind = Behind { bytes, sha256: units::hex(&Sha256::digest(of)) };
        let mut rest = Rest::new(Some(&behind), &mut out);
        let written = text.chunks(piece).try_for_each(|piece| rest.write_all(piece));
        (written.is_ok() && rest.is_behind()).then_some(out)
    }

    #[test]
    fn what_was_had_is_compared_and_left_out_wherever_it_is_cut() {
        let text: &[u8] = b"0123456789";
        for piece in 1..=text.len() {
            for (bytes, at) in (1..=10).zip(1..=10) {
                let had = &text[..at];
                assert_eq!(rest(text, (bytes, had), piece).as_deref(), Some(&text[at..]));
                assert_eq!(rest(text, (bytes, b"other"), piece), None);
            }
            assert_eq!(rest(text, (11, b"0123456789a"), piece), None, "it is shorter now");
        }
        let mut out = Vec::new();
        Rest::new(None, &mut out).write_all(text).unwrap();
        assert_eq!(out, text);
    }
}
