//! Reading DER (ITU-T X.690) as far as time stamps need it: definite lengths, tags of one byte.

/// A value and its frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    /// With tag and length.
    pub(crate) whole: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// Values one behind the other.
#[derive(Clone, Debug)]
pub(crate) struct Der<'a>(pub(crate) &'a [u8]);

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const OBJECT_ID: u8 = 0x06;
pub(crate) const UTF8: u8 = 0x0c;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// The tag of a constructed value that its place in a structure names.
pub(crate) const fn context(number: u8) -> u8 {
    0xa0 | number
}

impl<'a> Der<'a> {
    /// The next value, if there is one and it is well formed.
    pub(crate) fn next(&mut self) -> Option<Element<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let len = if first < 0x80 {
            usize::from(first)
        } else {
            let count = usize::from(first & 0x7f);
            let (bytes, behind) = rest.split_at_checked(count)?;
            // The shortest form is the only one.
            if !(1..=4).contains(&count) || bytes.first() == Some(&0) {
                return None;
            }
            rest = behind;
            let len = bytes.iter().fold(0_usize, |len, byte| len << 8 | usize::from(*byte));
            if len < 0x80 {
                return None;
            }
            len
        };
        let (value, behind) = rest.split_at_checked(len)?;
        let whole = self.0.get(..self.0.len() - behind.len())?;
        self.0 = behind;
        // A tag of several bytes.
        (tag & 0x1f != 0x1f).then_some(Element { tag, whole, value })
    }

    /// The next value, which has to be of this kind.
    pub(crate) fn read(&mut self, tag: u8) -> Option<Element<'a>> {
        self.next().filter(|element| element.tag == tag)
    }

    /// The next value, if it is of this kind; else it stays.
    pub(crate) fn read_if(&mut self, tag: u8) -> Option<Element<'a>> {
        if self.0.first() == Some(&tag) { self.next() } else { None }
    }

    /// The values inside the next one, which has to be of this kind.
    pub(crate) fn enter(&mut self, tag: u8) -> Option<Self> {
        self.read(tag).map(|element| Self(element.value))
    }
}

impl<'a> Iterator for Der<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        Der::next(self)
    }
}

/// A value with its frame.
pub(crate) fn encode(tag: u8, value: &[u8]) -> Vec<u8> {
    let len = value.len();
    let bytes = len.to_be_bytes();
    let bytes = bytes.get(bytes.iter().take_while(|byte| **byte == 0).count()..);
    let bytes = bytes.unwrap_or_default();
    let mut out = vec![tag];
    match u8::try_from(len) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let count = u8::try_from(bytes.len()).expect("at most 8 bytes");
            out.push(0x80 | count);
            out.extend_from_slice(bytes);
        }
    }
    out.extend_from_slice(value);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read() {
        for len in [0, 1, 127, 128, 255, 256, 70_000] {
            let value = vec![7; len];
            let bytes = [encode(OCTETS, &value), encode(INTEGER, &[1])].concat();
            let mut der = Der(&bytes);
            let read = der.read(OCTETS).unwrap();
            assert!(read.value == value && read.whole == encode(OCTETS, &value));
            assert!(der.read_if(OCTETS).is_none() && der.read(INTEGER).is_some());
            assert!(der.next().is_none());
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for bytes in [
            &[0x30, 0x80][..],
            &[0x30, 0x81, 0x05, 0, 0, 0, 0, 0],
            &[0x30, 0x82, 0x00, 0x80],
            &[0x30, 0x85, 1, 1, 1, 1, 1],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x1f, 0x01, 0x00],
            &[0x30, 0x01],
            &[0x30],
        ] {
            assert!(Der(bytes).next().is_none(), "{bytes:02x?}");
        }
    }
}
