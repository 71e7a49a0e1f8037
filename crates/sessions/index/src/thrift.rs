//! Thrift's compact protocol as far as it is needed to look at what a Parquet file says of itself
//! before the Parquet reader, which reserves memory for what is only claimed, sees it.
//!
//! (Thrift, `doc/specs/thrift-compact-protocol.md`.)

/// Structures in structures: Parquet has six.
const DEPTH_MAX: u8 = 16;
/// Elements of a list: row groups and columns are fewer.
const LIST_MAX: u64 = 1 << 15;

mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const STRUCT: u8 = 12;
}

/// Called with the numbers in a structure: the fields that lead to them, outermost first, and the
/// value. Elements of lists have the path of their list.
pub(crate) type Visit<'v> = &'v mut dyn FnMut(&[i16], i64) -> Option<()>;

/// Reads one structure at the start of `bytes`; says how long it is. `None` where it is not whole,
/// or has longer lists or deeper structures than any of Parquet, or `visit` refuses a number.
pub(crate) fn structure(bytes: &[u8], visit: Visit<'_>) -> Option<usize> {
    let mut walk = Walk { rest: bytes, path: Vec::new(), visit };
    walk.structure(0)?;
    Some(bytes.len() - walk.rest.len())
}

struct Walk<'a, 'v> {
    rest: &'a [u8],
    path: Vec<i16>,
    visit: Visit<'v>,
}

impl Walk<'_, '_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn skip(&mut self, len: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(len).ok()?..)?;
        Some(())
    }

    /// A number of up to 64 bits, seven in each byte.
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn structure(&mut self, depth: u8) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut id = 0_i16;
        loop {
            let header = self.byte()?;
            if header == 0 {
                return Some(());
            }
            id = match header >> 4 {
                0 => self.zigzag()?.try_into().ok()?,
                step => id.checked_add(step.into())?,
            };
            self.path.push(id);
            match header & 15 {
                // A flag is in the header itself.
                kind::TRUE | kind::FALSE => {}
                kind => self.value(kind, depth)?,
            }
            self.path.pop();
        }
    }

    fn value(&mut self, kind: u8, depth: u8) -> Option<()> {
        match kind {
            kind::TRUE | kind::FALSE | kind::BYTE => self.skip(1),
            kind::I16 | kind::I32 | kind::I64 => {
                let value = self.zigzag()?;
                (self.visit)(&self.path, value)
            }
            kind::DOUBLE => self.skip(8),
            kind::BINARY => {
                let len = self.varint()?;
                self.skip(len)
            }
            kind::LIST | kind::SET => self.list(depth),
            kind::STRUCT => self.structure(depth + 1),
            // Parquet has no maps.
            _ => None,
        }
    }

    fn list(&mut self, depth: u8) -> Option<()> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => self.varint()?,
            few => few.into(),
        };
        // Each element takes a byte at least.
        let is_there = usize::try_from(count).is_ok_and(|count| count <= self.rest.len());
        if count > LIST_MAX || !is_there || depth >= DEPTH_MAX {
            return None;
        }
        (0..count).try_for_each(|_| self.value(header & 15, depth + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number and the path to it.
    type Number = (Vec<i16>, i64);

    /// The numbers of a structure, and its length.
    fn read(bytes: &[u8]) -> Option<(Vec<Number>, usize)> {
        let mut seen = Vec::new();
        let len = structure(bytes, &mut |path, value| {
            seen.push((path.to_vec(), value));
            Some(())
        })?;
        Some((seen, len))
    }

    #[test]
    fn numbers_are_found_with_their_paths() {
        // 1: i32 -1; 2: { 3: i64 300 }; 20: list of two i32; 21: true; 22: "ab".
        let bytes = [
            0x15, 1, 0x1c, 0x36, 0xd8, 4, 0, 0x09, 40, 0x25, 2, 4, 0x11, 0x18, 2, b'a', b'b', 0, 9,
        ];
        let expect = vec![(vec![1], -1), (vec![2, 3], 300), (vec![20], 1), (vec![20], 2)];
        assert_eq!(read(&bytes), Some((expect, 18)));
        for len in 0..18 {
            assert_eq!(read(&bytes[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn claims_that_are_not_there_are_refused() {
        // A list of 2^31 structures, one of as many as there is space for, and deep structures.
        assert_eq!(read(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0, 0]), None);
        assert_eq!(read(&[0x19, 0x2c, 0, 0, 0]).map(|(_, len)| len), Some(5));
        assert_eq!(read(&[0x1c; 100]), None);
        assert_eq!(read(&[0x19; 100]), None);
        // A string of 2^63 bytes, and a number of more than 64 bits.
        assert_eq!(read(&[0x18, 255, 255, 255, 255, 255, 255, 255, 255, 127, 0]), None);
        assert_eq!(read(&[0x15, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2, 0]), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            if let Some((_, len)) = read(&bytes) {
                assert!(len <= bytes.len());
            }
        }
    }
}
