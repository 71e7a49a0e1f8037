//! Members side by side, written as a volume writes its own: what is compared when several disks,
//! checksums and parity are contestants.
//!
//! Nothing that is written here is ever found again by a volume. What it costs is what a volume's
//! writer costs: the same computation, the same number of bytes, the same places of members. A
//! target may be lent to several contestants, which drive it in turn and never at the same time.

mod layout;
mod protection;
mod striped;
#[cfg(test)]
mod tests;

use std::sync::Mutex;

use device::{Device, Error as DeviceError, ReadAt};
use guard::Identity;
use units::Sleep;

use crate::bench::{Bench, Tell};
use crate::error::Error;
use layout::Layout;
pub use protection::Protection;
use striped::Striped;

/// Processor time so far, see [`Bench::with_processor`].
type Processor = fn() -> Result<u64, Error>;

/// A target that contestants use in turn.
#[derive(Debug)]
pub struct Lent<'d> {
    reader: &'d dyn ReadAt,
    writer: Option<Mutex<&'d mut dyn Device>>,
    identity: Option<&'d Identity>,
    processor: Option<Processor>,
}

impl<'d> Lent<'d> {
    /// Both are the same target; without a writer it may only be read.
    pub fn new(reader: &'d dyn ReadAt, writer: Option<&'d mut dyn Device>) -> Self {
        Self { reader, writer: writer.map(Mutex::new), identity: None, processor: None }
    }

    /// Of this machine: the device that must stay the same, and processor time.
    #[must_use]
    pub(crate) fn of_machine(self, identity: Option<&'d Identity>, processor: Processor) -> Self {
        Self { identity, processor: Some(processor), ..self }
    }
}

/// One or several targets as one.
#[derive(Debug)]
pub struct Members<'a, 'd> {
    reader: Reader<'d>,
    writer: Option<Striped<'a, 'd>>,
    identities: Vec<&'d Identity>,
    processor: Option<Processor>,
    layout: Layout,
}

impl<'a, 'd> Members<'a, 'd> {
    /// Columns of `column_bytes`, each on the next of the members; the last ones hold the parity.
    /// They can be written when all of them can. With any protection a column is at least two rows
    /// and at most the 512 of a volume; its first row is that of a head, which nothing covers.
    ///
    /// # Panics
    /// If there are not more members than columns of parity, or a protected column has another
    /// size.
    pub fn new(
        lent: &[&'a Lent<'d>],
        protection: Protection,
        column_bytes: u64,
    ) -> Result<Self, Error> {
        let parity = protection.parity_columns();
        assert!(lent.len() > parity, "there is a column of data");
        let data = lent.len() - parity;
        let layout = Layout { columns: data, column_bytes };
        let readers: Vec<&'d dyn ReadAt> = lent.iter().map(|one| one.reader).collect();
        let sizes = readers.iter().map(|one| one.size_bytes());
        let size_bytes = layout.size_bytes(sizes.min().unwrap_or(0));
        let writers: Option<Vec<_>> = lent.iter().map(|one| one.writer.as_ref()).collect();
        let writer = writers
            .map(|writers| Striped::new(writers, protection, (layout, size_bytes)))
            .transpose()?;
        Ok(Self {
            reader: Reader { members: readers, layout, size_bytes },
            writer,
            identities: lent.iter().filter_map(|one| one.identity).collect(),
            processor: lent.first().and_then(|one| one.processor),
            layout,
        })
    }

    /// Members that hold data.
    pub fn data_columns(&self) -> usize {
        self.layout.columns
    }

    /// Where parts run on them.
    pub fn bench<'b>(&'b mut self, clock: &'b dyn Sleep, seed: u64, tell: Tell<'b>) -> Bench<'b> {
        let writer = self.writer.as_mut().map(|writer| -> &mut dyn Device { writer });
        let bench = Bench::new((&self.reader, writer), clock, seed, tell);
        let bench = bench.guarded(self.identities.iter().copied());
        match &self.processor {
            Some(processor) => bench.with_processor(processor),
            None => bench,
        }
    }
}

/// Reads what lies side by side.
#[derive(Debug)]
struct Reader<'d> {
    members: Vec<&'d dyn ReadAt>,
    layout: Layout,
    size_bytes: u64,
}

impl ReadAt for Reader<'_> {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let mut rest = into;
        for piece in self.layout.pieces(offset, rest.len()) {
            let (part, behind) = rest.split_at_mut(piece.len);
            self.members
                .get(piece.member)
                .expect("a piece lies on a member")
                .read_at(piece.offset, part)?;
            rest = behind;
        }
        Ok(())
    }
}
