//! The messages between a process, its launcher and its children: fields one after the other,
//! numbers little-endian, texts behind their length.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A message that is being put together.
#[derive(Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn byte(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    pub(crate) fn number(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn text(self, value: &OsString) -> Self {
        let mut longer = self.number(length(value.as_bytes().len()));
        longer.0.extend(value.as_bytes());
        longer
    }

    pub(crate) fn texts<'a>(self, values: impl ExactSizeIterator<Item = &'a OsString>) -> Self {
        let counted = self.number(length(values.len()));
        values.fold(counted, Self::text)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

fn length(length: usize) -> u64 {
    u64::try_from(length).expect("a length fits u64")
}

/// What is left of a message that is read; each field is `None` where it is not all there.
#[derive(Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&value, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(value)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let (value, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*value))
    }

    pub(crate) fn text(&mut self) -> Option<OsString> {
        let length = usize::try_from(self.number()?).ok()?;
        let (value, rest): (&'a [u8], _) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(OsString::from_vec(value.to_vec()))
    }

    pub(crate) fn texts(&mut self) -> Option<Vec<OsString>> {
        let count = self.number()?;
        // Each text takes some of the message, so that a count that lies ends at the first one that
        // is missing.
        (0..count).map(|_| self.text()).collect()
    }

    /// There is nothing behind the last field.
    pub(crate) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_in_their_order() {
        let words = ["", "two words"].map(OsString::from);
        let message = Message::default().byte(7).number(1 << 40).texts(words.iter());
        let mut fields = Fields(message.as_bytes());
        assert_eq!((fields.byte(), fields.number()), (Some(7), Some(1 << 40)));
        assert_eq!(fields.texts(), Some(words.to_vec()));
        assert_eq!(fields.end(), Some(()));
    }

    #[test]
    fn a_message_that_was_cut_anywhere_is_refused() {
        let words = ["one", "two"].map(OsString::from);
        let message = Message::default().number(3).texts(words.iter());
        let read = |bytes| {
            let mut fields = Fields(bytes);
            let found = (fields.number()?, fields.texts()?);
            fields.end().map(|()| found)
        };
        let whole = message.as_bytes();
        assert!(read(whole).is_some());
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_none(), "{length}");
        }
        let longer = [whole, &[0]].concat();
        assert!(read(&longer).is_none());
        let lie = Message::default().number(3).number(u64::MAX);
        assert!(read(lie.as_bytes()).is_none());
    }
}
