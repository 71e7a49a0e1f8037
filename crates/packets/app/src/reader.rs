//! Reads big-endian fields off the front of a slice; every read says whether the bytes were there.

/// Where the words stand first. Their first byte is looked for on its own, which is fast.
pub(crate) fn find(bytes: &[u8], words: &[u8]) -> Option<usize> {
    let &first = words.first()?;
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        at += rest.iter().position(|&byte| byte == first)?;
        if bytes.get(at..)?.starts_with(words) {
            return Some(at);
        }
        at += 1;
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// At most `len` bytes: less where the slice ends before.
    pub(crate) fn take_up_to(&mut self, len: usize) -> &'a [u8] {
        self.take(len.min(self.0.len())).expect("not more than there are")
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        let (&bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_be_bytes(bytes))
    }

    pub(crate) fn u24(&mut self) -> Option<u32> {
        let (&[a, b, c], rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes([0, a, b, c]))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        let (&bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(bytes))
    }

    /// Bytes after their length in one byte.
    pub(crate) fn vector8(&mut self) -> Option<&'a [u8]> {
        let len = self.u8()?;
        self.take(len.into())
    }

    /// Bytes after their length in two bytes.
    pub(crate) fn vector16(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.take(len.into())
    }
}
