//! The bytes of a raw extract: a heading, records, and an end with a hash of all.

use std::io::{self, Read, Write};

use format::geometry::MEMBERS_MAX;
use units::number::to_u64;
use units::{MemberId, Timestamp};

use crate::Error;

/// Bytes in front of the first record.
pub(crate) const HEADING_BYTES: usize = 256;
/// Bytes in front of the content of a record.
pub(crate) const RECORD_BYTES: usize = 16;
/// Most bytes of one record: no piece is longer.
pub(crate) const CONTENT_MAX: usize = 2 << 20;

const MAGIC: [u8; 8] = *b"wireRAWX";
const VERSION: u16 = 1;
const CONTENT: u8 = 1;
const END: u8 = 2;
const HASH_BYTES: usize = 32;

/// Byte offsets; drawn with their meaning in docs/format.md, Raw extract.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 8;
    pub(super) const MEMBERS: usize = 10;
    pub(super) const FLAGS: usize = 11;
    pub(super) const VOLUME_ID: usize = 16;
    pub(super) const MADE: usize = 32;
    pub(super) const FROM: usize = 40;
    pub(super) const TO: usize = 48;
    pub(super) const SIZES: usize = 56;
}

/// What a raw extract is of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Heading {
    pub(crate) volume_id: [u8; 16],
    pub(crate) made: Timestamp,
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    /// A recorder ran.
    pub(crate) is_recorded: bool,
    /// Bytes of each member by its number; 0 where one was absent.
    pub(crate) sizes: Vec<u64>,
}

impl Heading {
    fn encode(&self) -> [u8; HEADING_BYTES] {
        let mut bytes = [0; HEADING_BYTES];
        let mut put = |offset: usize, field: &[u8]| {
            let place = bytes.get_mut(offset..offset + field.len());
            place.expect("inside the heading").copy_from_slice(field);
        };
        put(at::MAGIC, &MAGIC);
        put(at::VERSION, &VERSION.to_le_bytes());
        put(at::MEMBERS, &[u8::try_from(self.sizes.len()).expect("a volume has few members")]);
        put(at::FLAGS, &[u8::from(self.is_recorded)]);
        put(at::VOLUME_ID, &self.volume_id);
        let times = [(at::MADE, self.made), (at::FROM, self.from), (at::TO, self.to)];
        for (offset, Timestamp(ns)) in times {
            put(offset, &ns.to_le_bytes());
        }
        for (number, size) in self.sizes.iter().enumerate() {
            put(at::SIZES + number * 8, &size.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8; HEADING_BYTES]) -> Result<Self, Error> {
        if !bytes.starts_with(&MAGIC) {
            return Err(Error::Magic);
        }
        let version = u16::from_le_bytes(field(bytes, at::VERSION));
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let time = |offset| Timestamp(i64::from_le_bytes(field(bytes, offset)));
        let [members, flags] = field(bytes, at::MEMBERS);
        let members = usize::from(members);
        if members == 0 || members > MEMBERS_MAX {
            return Err(Error::Place(to_u64(at::MEMBERS)));
        }
        let size = |number| u64::from_le_bytes(field(bytes, at::SIZES + number * 8));
        Ok(Self {
            volume_id: field(bytes, at::VOLUME_ID),
            made: time(at::MADE),
            from: time(at::FROM),
            to: time(at::TO),
            is_recorded: flags & 1 == 1,
            sizes: (0..members).map(size).collect(),
        })
    }
}

fn field<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let field = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    *field.expect("inside what was read")
}

/// Writes a raw extract.
pub(crate) struct Sink<'a> {
    out: &'a mut dyn Write,
    hasher: blake3::Hasher,
    records: u64,
}

impl core::fmt::Debug for Sink<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Sink({} records)", self.records)
    }
}

impl<'a> Sink<'a> {
    pub(crate) fn begin(out: &'a mut dyn Write, heading: &Heading) -> io::Result<Self> {
        let mut sink = Self { out, hasher: blake3::Hasher::new(), records: 0 };
        sink.put(&heading.encode())?;
        Ok(sink)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.hasher.update(bytes);
        Ok(())
    }

    /// What a member has at `offset`.
    pub(crate) fn record(&mut self, member: MemberId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        for (number, content) in bytes.chunks(CONTENT_MAX).enumerate() {
            let offset = offset + to_u64(number * CONTENT_MAX);
            self.put(&record_head(CONTENT, member, content.len(), offset))?;
            self.put(content)?;
            self.records += 1;
        }
        Ok(())
    }

    /// The end; gives the hash that stands in it.
    pub(crate) fn finish(mut self) -> io::Result<[u8; HASH_BYTES]> {
        self.put(&record_head(END, MemberId(0), HASH_BYTES, self.records))?;
        let hash = *self.hasher.finalize().as_bytes();
        self.out.write_all(&hash)?;
        self.out.flush()?;
        Ok(hash)
    }
}

fn record_head(kind: u8, member: MemberId, len: usize, offset: u64) -> [u8; RECORD_BYTES] {
    let mut head = [0; RECORD_BYTES];
    let (front, place) = head.split_at_mut(8);
    place.copy_from_slice(&offset.to_le_bytes());
    let (kinds, length) = front.split_at_mut(4);
    kinds.copy_from_slice(&[kind, member.get(), 0, 0]);
    let len = u32::try_from(len).expect("a record is at most 2 MiB long");
    length.copy_from_slice(&len.to_le_bytes());
    head
}

/// A record as it was read.
#[derive(Debug)]
pub(crate) struct Record<'b> {
    pub(crate) member: MemberId,
    pub(crate) offset: u64,
    pub(crate) content: &'b [u8],
}

/// Reads a raw extract, which may be anybody's.
pub(crate) struct Source<'a> {
    from: &'a mut dyn Read,
    hasher: blake3::Hasher,
    content: Vec<u8>,
    records: u64,
    /// Bytes so far.
    pub(crate) bytes: u64,
    /// Hash of all bytes, once the end was reached.
    pub(crate) hash: Option<[u8; HASH_BYTES]>,
}

impl<'a> Source<'a> {
    pub(crate) fn begin(from: &'a mut dyn Read) -> Result<(Self, Heading), Error> {
        let (hasher, content) = (blake3::Hasher::new(), Vec::new());
        let mut source = Self { from, hasher, content, records: 0, bytes: 0, hash: None };
        let mut bytes = [0; HEADING_BYTES];
        let begun = source.take(&mut bytes);
        if begun.is_err() && !bytes.starts_with(&MAGIC) {
            return Err(Error::Magic);
        }
        begun?;
        let heading = Heading::decode(&bytes)?;
        Ok((source, heading))
    }

    fn take(&mut self, into: &mut [u8]) -> Result<(), Error> {
        let bytes = self.bytes;
        self.from.read_exact(into).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::CutOff(bytes),
            _ => Error::Read(error),
        })?;
        self.hasher.update(into);
        self.bytes += to_u64(into.len());
        Ok(())
    }

    fn check_end(&mut self) -> Result<(), Error> {
        let mut further = [0];
        match self.from.read(&mut further) {
            Ok(0) => Ok(()),
            Ok(_) => Err(Error::Further(self.bytes)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.check_end(),
            Err(error) => Err(Error::Read(error)),
        }
    }

    /// The next record; `None` at the end, whose hash is right.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        let mut head = [0; RECORD_BYTES];
        let at = self.bytes;
        self.take(&mut head)?;
        let [kind, member, ..] = head;
        let len = usize::try_from(u32::from_le_bytes(field(&head, 4))).unwrap_or(usize::MAX);
        let offset = u64::from_le_bytes(field(&head, 8));
        match kind {
            CONTENT if len > 0 && len <= CONTENT_MAX => {
                let mut content = core::mem::take(&mut self.content);
                content.resize(len, 0);
                let taken = self.take(&mut content);
                self.content = content;
                taken?;
                self.records += 1;
                Ok(Some(Record { member: MemberId(member), offset, content: &self.content }))
            }
            END if len == HASH_BYTES && offset == self.records => {
                let expected = *self.hasher.finalize().as_bytes();
                let mut hash = [0; HASH_BYTES];
                self.take(&mut hash)?;
                self.hash = Some(*self.hasher.finalize().as_bytes());
                if hash != expected {
                    return Err(Error::Hash);
                }
                // What is behind its end is under no hash.
                self.check_end().map(|()| None)
            }
            _ => Err(Error::Place(at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heading() -> Heading {
        let times = [Timestamp(5), Timestamp(-1), Timestamp::MAX];
        let [made, from, to] = times;
        Heading { volume_id: [7; 16], made, from, to, is_recorded: true, sizes: vec![1 << 40, 0] }
    }

    fn file() -> Vec<u8> {
        let mut out = Vec::new();
        let mut sink = Sink::begin(&mut out, &heading()).unwrap();
        sink.record(MemberId(0), 4096, &[1; 4096]).unwrap();
        sink.record(MemberId(1), 0, &vec![2; CONTENT_MAX + 4096]).unwrap();
        sink.finish().unwrap();
        out
    }

    fn read(mut bytes: &[u8]) -> Result<(Heading, u64), Error> {
        let (mut source, heading) = Source::begin(&mut bytes)?;
        let mut total = 0;
        while let Some(record) = source.next()? {
            total += to_u64(record.content.len());
        }
        Ok((heading, total))
    }

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(read(&file()).unwrap(), (heading(), to_u64(CONTENT_MAX) + 2 * 4096));
    }

    #[test]
    fn every_cut_and_every_flipped_byte_is_noticed() {
        let whole = file();
        for end in (0..whole.len()).step_by(4099).chain([whole.len() - 1]) {
            let error = read(&whole[..end]).unwrap_err();
            assert!(matches!(error, Error::CutOff(_) | Error::Magic), "{end}: {error}");
        }
        for at in (0..whole.len()).step_by(10_007).chain(0..HEADING_BYTES + RECORD_BYTES) {
            let mut changed = whole.clone();
            changed[at] ^= 0x40;
            assert!(read(&changed).is_err(), "byte {at}");
        }
        assert!(matches!(read(b"\x0a\x0d\x0d\x0a"), Err(Error::Magic)));
        for more in [&b"\0"[..], b"more", &whole] {
            let longer = [&whole, more].concat();
            assert!(matches!(read(&longer), Err(Error::Further(at)) if at == to_u64(whole.len())));
        }
    }
}
