//! How a tracepoint's record is laid out: its `format` file in tracefs, read at run time, because
//! fields move between releases of the kernel (Documentation/trace/events.rst).

/// A tracepoint's number and fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Format {
    /// Stands first in each of its records.
    pub(super) id: u16,
    fields: Vec<(String, Field)>,
}

/// Where a field stands in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Field {
    pub(super) offset: usize,
    size: usize,
}

impl Format {
    /// Reads the text of a `format` file; `None` where it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields: Vec<_> = text.lines().filter_map(field).collect();
        (!fields.is_empty()).then_some(Self { id, fields })
    }

    pub(super) fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field)
    }
}

/// `field:char rwbs[10]; offset:34; size:10; signed:0;`
fn field(line: &str) -> Option<(String, Field)> {
    let rest = line.trim_start().strip_prefix("field:")?;
    let (declaration, rest) = rest.split_once(';')?;
    let name = declaration.split_whitespace().next_back()?.split('[').next()?;
    let number = |key: &str| -> Option<usize> {
        let part = rest.split(';').find_map(|part| part.trim().strip_prefix(key))?;
        part.parse().ok()
    };
    let field = Field { offset: number("offset:")?, size: number("size:")? };
    Some((name.to_owned(), field))
}

impl Field {
    /// The bytes of the field in a record; `None` where the record ends before.
    pub(super) fn bytes(self, record: &[u8]) -> Option<&[u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// A number of one, two, four or eight bytes.
    #[expect(clippy::host_endian_bytes, reason = "the kernel of this machine wrote it")]
    pub(super) fn number(self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record)?;
        match bytes.len() {
            1 => bytes.first().copied().map(u64::from),
            2 => Some(u16::from_ne_bytes(*bytes.first_chunk()?).into()),
            4 => Some(u32::from_ne_bytes(*bytes.first_chunk()?).into()),
            8 => Some(u64::from_ne_bytes(*bytes.first_chunk()?)),
            _ => None,
        }
    }

    /// The same where it fits 32 bits.
    pub(super) fn short(self, record: &[u8]) -> Option<u32> {
        u32::try_from(self.number(record)?).ok()
    }

    /// A number with a sign, of four or eight bytes, where it fits 32 bits.
    #[expect(clippy::host_endian_bytes, reason = "the kernel of this machine wrote it")]
    pub(super) fn signed(self, record: &[u8]) -> Option<i32> {
        let bytes = self.bytes(record)?;
        match bytes.len() {
            4 => Some(i32::from_ne_bytes(*bytes.first_chunk()?)),
            8 => i32::try_from(i64::from_ne_bytes(*bytes.first_chunk()?)).ok(),
            _ => None,
        }
    }

    /// Characters up to the first zero.
    pub(super) fn text(self, record: &[u8]) -> Option<&[u8]> {
        self.bytes(record)?.split(|&byte| byte == 0).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:12;\tsize:10;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:22;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"%d,%d %s\", ((unsigned int) ((REC->dev) >> 20)), REC->rwbs\n";

    #[test]
    fn fields_are_where_the_kernel_says() {
        let format = Format::parse(TEXT).unwrap();
        assert_eq!(format.id, 2104);
        let mut record = vec![0; 22];
        record[8] = 7;
        record[12..14].copy_from_slice(b"RA");
        let (dev, rwbs) = (format.field("dev").unwrap(), format.field("rwbs").unwrap());
        assert_eq!((dev.number(&record), rwbs.text(&record)), (Some(7), Some(&b"RA"[..])));
        assert_eq!(rwbs.number(&record), None, "ten bytes are no number");
        assert_eq!(format.field("cmd").unwrap().bytes(&record), None, "the record ends before");
        assert_eq!(format.field("sector"), None);
        assert!(Format::parse("no such thing").is_none());
    }
}
