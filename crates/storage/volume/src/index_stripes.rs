//! Reading a segment's index out of the ring.

use format::directory::{Assembler, Part, PartError, SegmentEntry};
use format::head::{Kind, StripeId};
use units::EachSequence;

use crate::{Error, Reader, RowsWanted};

/// Rows that hold a directory of some 200 segments, and of any number.
const DIRECTORY_ROWS: [u16; 2] = [4, 21];

/// What is looked through for the next part of an index: between two parts data may lie.
const BETWEEN_PARTS_BYTES: u64 = 64 << 20;

/// The index of a segment as it lies in INDEX stripes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexFile {
    /// The Parquet file.
    pub parquet: Vec<u8>,
    /// The segments known when it was written, newest first, this one included.
    pub directory: Vec<SegmentEntry>,
}

impl Reader {
    /// First part of the newest INDEX that an acknowledged stripe points to.
    pub fn newest_index(&self) -> Option<StripeId> {
        let span = self.span()?;
        // Every head names the newest INDEX before it, so any readable one near the watermark will
        // do. Where the INDEX is the last thing acknowledged, only the head that closes the
        // volume names it.
        let closing = self.last_head().filter(|head| head.stripe.clean_stop);
        let pointer = closing.map(|head| head.stripe.index).or_else(|| {
            let near = (span.tail..=span.acknowledged.sequence).each().rev().take(4);
            near.filter_map(|sequence| self.last_head_of(sequence))
                .map(|head| head.stripe.index)
                .next()
        })?;
        (pointer.sequence >= span.tail).then_some(pointer)
    }

    /// The segments known when the INDEX at `at` was written, newest first, its own included;
    /// `None` when they cannot be read.
    pub fn directory(&self, at: StripeId) -> Option<Vec<SegmentEntry>> {
        self.directory_in_rows(at).or_else(|| {
            let mut buffer = vec![0; self.piece_bytes()];
            let slot = self.slot(at.sequence, 0, &mut buffer).ok()?;
            let stripe = slot.stripes.iter().find(|stripe| stripe.head.stripe.stripe == at)?;
            let part = Part::decode(Self::body(&stripe.head, &buffer)).ok()?;
            Some(part.directory(at)).filter(|entries| !entries.is_empty())
        })
    }

    /// The same from the first rows of the part, where they are whole.
    fn directory_in_rows(&self, at: StripeId) -> Option<Vec<SegmentEntry>> {
        DIRECTORY_ROWS.into_iter().find_map(|rows| {
            let all = 0..rows;
            let wanted = RowsWanted { stripe: at, column: 0, rows: Vec::from([all]) };
            let read = self.rows(&[wanted]).pop()??;
            let (_, bytes) = read.runs.first()?;
            let entries = Part::directory_in(bytes, at).ok()?;
            (read.head.stripe.kind == Kind::Index && !entries.is_empty()).then_some(entries)
        })
    }

    /// Reads and joins the parts of the INDEX that begins at `at`. Data stripes may lie between
    /// them.
    ///
    /// # Errors
    /// [`Error::Damaged`] when a part is missing or does not fit the others.
    pub fn index(&self, at: StripeId) -> Result<IndexFile, Error> {
        let acknowledged = self.span().ok_or(Error::Damaged(at))?.acknowledged.sequence;
        let mut memory = Vec::new();
        let mut assembler = Assembler::default();
        let (mut directory, mut has_begun) = (Vec::new(), false);
        // Parts are appended while data goes on: between two of them lie few stripes, but small
        // ones come fast.
        let piece_bytes = u64::from(self.geometry().piece_bytes);
        let between = u64::from(self.superblock().window).max(BETWEEN_PARTS_BYTES / piece_bytes);
        let mut last = at.sequence;
        let mut sequence = at.sequence;
        while sequence <= acknowledged.min(last + between) {
            let columns = self.membership().geometry_at(sequence).data_columns;
            memory.resize_with(usize::from(columns), Vec::new);
            let columns: Vec<u8> = (0..columns).collect();
            let slots = self.slots(sequence, &columns, &mut memory);
            for (slot, bytes) in slots.into_iter().zip(&memory) {
                let slot = slot?;
                let stripes = slot.stripes.iter().map(|stripe| &stripe.head);
                let of_index = stripes
                    .filter(|head| head.stripe.kind == Kind::Index && head.stripe.stripe >= at);
                for head in of_index {
                    let part = match Part::decode(Self::body(head, bytes)) {
                        Ok(part) => part,
                        // The last stripe of an index need not have a part in every column.
                        Err(PartError::Magic) => continue,
                        Err(_) => return Err(Error::Damaged(at)),
                    };
                    if head.stripe.stripe == at && part.number().0 == 0 {
                        directory = part.directory(at);
                        has_begun = true;
                    }
                    // A mount may have kept a later INDEX and not this one.
                    if !has_begun {
                        return Err(Error::Damaged(at));
                    }
                    last = sequence;
                    if let Some(parquet) = assembler.push(&part).map_err(|_| Error::Damaged(at))? {
                        return Ok(IndexFile { parquet, directory });
                    }
                }
            }
            sequence += 1;
        }
        Err(Error::Damaged(at))
    }
}
