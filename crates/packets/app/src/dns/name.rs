//! Names in DNS messages (RFC 1035 3.1, 4.1.4). A sender chooses how often compression leads to the
//! same labels, so the work on one message is bounded: a name is at most 255 bytes, pointers lead
//! backwards, a name whose beginning was read before is not read again, and the labels of all names
//! together are at most [`WORK_MAX`] bytes.

use crate::values::VALUE_LEN_MAX;

/// Bytes of a name, with the length of each label and that of the root (RFC 1035 2.3.4).
const NAME_LEN_MAX: usize = 255;

/// Pointers of one name: each has a label to itself, or was made to be slow.
const POINTER_COUNT_MAX: usize = 127;

/// Bytes of labels, and pointers, that are read of one message: as many as are kept of the longest
/// names, or some 100 names as hosts have them.
const WORK_MAX: usize = 4 << 10;

/// Beginnings of names that are remembered of one message; as many as values of a list are kept.
const KNOWN_MAX: usize = 32;

/// The names of one message.
#[derive(Debug)]
pub(super) struct NameReader<'a> {
    message: &'a [u8],
    /// Bytes and pointers that may still be read.
    work_left: usize,
    /// Where names that were read begin.
    known: [usize; KNOWN_MAX],
    known_count: usize,
}

/// What follows in a name at an offset.
enum Part<'a> {
    Root,
    Label(&'a [u8]),
    /// Its target.
    Pointer(usize),
}

fn part(message: &[u8], at: usize) -> Option<Part<'_>> {
    let &len = message.get(at)?;
    match len {
        0 => Some(Part::Root),
        1..=63 => Some(Part::Label(message.get(at + 1..)?.get(..usize::from(len))?)),
        0xc0.. => {
            let &low = message.get(at + 1)?;
            Some(Part::Pointer(usize::from(u16::from_be_bytes([len & 0x3f, low]))))
        }
        _ => None,
    }
}

impl<'a> NameReader<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { message, work_left: WORK_MAX, known: [0; KNOWN_MAX], known_count: 0 }
    }

    /// Names that were read may be read again, within the same bound of work.
    pub(super) fn forget(&mut self) {
        self.known_count = 0;
    }

    /// The offset after the name at an offset.
    pub(super) fn skip(&self, at: usize) -> Option<usize> {
        let mut end = at;
        while end < at + NAME_LEN_MAX {
            match part(self.message, end)? {
                Part::Root => return Some(end + 1),
                Part::Label(label) => end += 1 + label.len(),
                Part::Pointer(_) => return Some(end + 2),
            }
        }
        None
    }

    /// The name at an offset, its labels joined by dots, as far as a value is kept; the root is a
    /// dot. Labels are text in UTF-8 (RFC 6762 16) or else their bytes beyond ASCII are written as
    /// `\DDD` (RFC 1035 5.1).
    ///
    /// `None` for what is no name, for one that begins like one before, and where the work on the
    /// message has become too much.
    pub(super) fn text(&mut self, at: usize) -> Option<Vec<u8>> {
        let begin = match part(self.message, at)? {
            Part::Pointer(target) if target < at => target,
            _ => at,
        };
        if self.known.get(..self.known_count)?.contains(&begin) {
            return None;
        }
        let text = self.labels(begin)?;
        if let Some(free) = self.known.get_mut(self.known_count) {
            *free = begin;
            self.known_count += 1;
        }
        Some(text)
    }

    fn labels(&mut self, begin: usize) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        // Pointers lead to before where the labels since the last one begin.
        let (mut at, mut since, mut len, mut pointers) = (begin, begin, 1, 0);
        loop {
            let part = part(self.message, at)?;
            let work = if let Part::Label(label) = part { 1 + label.len() } else { 1 };
            self.work_left = self.work_left.checked_sub(work)?;
            match part {
                Part::Root => break,
                Part::Label(label) => {
                    len += work;
                    if len > NAME_LEN_MAX {
                        return None;
                    }
                    at += work;
                    push_label(&mut text, label);
                }
                Part::Pointer(target) => {
                    pointers += 1;
                    if target >= since || pointers > POINTER_COUNT_MAX {
                        return None;
                    }
                    (at, since) = (target, target);
                }
            }
        }
        if text.is_empty() {
            text.push(b'.');
        }
        Some(text)
    }
}

/// Appends a label while the text is no longer than a value that is kept.
fn push_label(text: &mut Vec<u8>, label: &[u8]) {
    if text.len() > VALUE_LEN_MAX {
        return;
    }
    if !text.is_empty() {
        text.push(b'.');
    }
    let is_utf8 = core::str::from_utf8(label).is_ok();
    for &byte in label {
        let is_plain = byte == b' ' || byte.is_ascii_graphic() && byte != b'.' && byte != b'\\';
        if is_plain || is_utf8 && !byte.is_ascii() {
            text.push(byte);
        } else {
            let digit = |value: u8| b'0' + value % 10;
            text.extend([b'\\', digit(byte / 100), digit(byte / 10), digit(byte)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: &[u8], at: usize) -> Option<String> {
        let text = NameReader::new(message).text(at)?;
        Some(String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_name_is_at_most_255_bytes_long() {
        let labels = |count: usize| [&b"\x03abc".repeat(count)[..], b"\0"].concat();
        // 63 labels of four bytes and the root are 253.
        assert_eq!(text(&labels(63), 0).unwrap().len(), 63 * 4 - 1);
        assert_eq!(text(&labels(64), 0), None);
        assert_eq!(NameReader::new(&labels(64)).skip(0), None);
    }

    #[test]
    fn pointers_lead_backwards() {
        assert_eq!(text(b"\x01a\0\x01b\xc0\0", 3).unwrap(), "b.a");
        assert_eq!(text(b"\xc0\x02\x01a\0", 0), None, "forward");
        assert_eq!(text(b"\x01a\xc0\0", 0), None, "to itself");
        assert_eq!(text(b"\x01a\0\xc0\0\x01b\xc0\x03", 5).unwrap(), "b.a", "over another");
        assert_eq!(NameReader::new(b"\x01b\xc0\0").skip(0), Some(4));
    }

    #[test]
    fn a_name_that_begins_like_one_before_is_not_read_again() {
        let mut names = NameReader::new(b"\x01a\0\xc0\0\xc0\0");
        assert_eq!(names.text(0), Some(b"a".to_vec()));
        let work_left = names.work_left;
        assert_eq!((names.text(3), names.text(5)), (None, None));
        assert_eq!(names.work_left, work_left);
    }

    #[test]
    fn the_work_on_a_message_ends_however_its_names_are_compressed() {
        // A name of 255 bytes, and many that add a pointer to it.
        let mut message = [&b"\x01a".repeat(126)[..], b"\0"].concat();
        let begin = message.len();
        for _ in 0..600 {
            message.extend(b"\x01b\xc0\x02");
        }
        let mut names = NameReader::new(&message);
        let read = (0..600).filter(|number| names.text(begin + 4 * number).is_some()).count();
        assert!((WORK_MAX / 256..=WORK_MAX / 250).contains(&read), "{read}");
    }
}
