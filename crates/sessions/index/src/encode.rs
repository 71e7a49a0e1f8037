//! Rows into Parquet bytes.

use core::{fmt, mem};

use format::directory::{SegmentEntry, Summary};
use format::head::StripeId;
use format::session_row::SessionRow;
use parquet::arrow::arrow_writer::ArrowColumnChunk;
use parquet::file::metadata::KeyValue;
use units::Timestamp;
use units::number::to_u64;

use crate::column_encoder::{BLOCK_ROWS, BlankGroup, ColumnEncoder};
use crate::columns::COLUMNS;
#[cfg(test)]
use crate::columns::Column;
use crate::error::Result;
use crate::filter::{self, Keys};
use crate::layout::{FileLayout, GROUP_ROWS};
use crate::meta::{KEY, SegmentMeta};

/// A segment's file, and what the directory says of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// The Parquet file.
    pub parquet: Vec<u8>,
    /// The directory's view of the segment.
    pub summary: Summary,
}

impl Encoded {
    /// The directory's entry, with the stripe of the INDEX part 0 and the number of its parts,
    /// where the ring has it.
    pub fn entry(&self, index: Option<(StripeId, u16)>) -> SegmentEntry {
        let (index, parts) = index.unwrap_or_default();
        let bytes = to_u64(self.parquet.len());
        SegmentEntry { summary: self.summary, index, parts, bytes }
    }
}

/// The Parquet file of a segment: `rows` in the order of their start.
pub fn encode(meta: &SegmentMeta, rows: &[SessionRow]) -> Result<Encoded> {
    let encoder = GroupEncoder::new()?;
    let order = by_start(rows).into_iter();
    let sorted: Vec<&SessionRow> = order.filter_map(|(_, at)| rows.get(at)).collect();
    let groups = sorted.chunks(GROUP_ROWS).enumerate();
    let groups = groups.map(|(number, rows)| encoder.encode(number, rows));
    encoder.file(meta, groups.collect::<Result<_>>()?)
}

/// The order of rows in a segment: their starts, and their places in `rows`. Rows of the same start
/// keep their order.
pub fn by_start(rows: &[SessionRow]) -> Vec<(Timestamp, usize)> {
    // The rows are far apart in memory: to be compared, their starts are put side by side.
    let mut order: Vec<(Timestamp, usize)> = rows.iter().map(|row| row.start).zip(0..).collect();
    order.sort_unstable();
    order
}

/// A row group on its way into the file.
pub struct EncodedGroup {
    /// `None` where all values are those of a blank row, and the group is full.
    chunks: Vec<Option<ArrowColumnChunk>>,
    /// The distinct keys of its rows, for the filter.
    keys: Keys,
    rows: usize,
    earliest: Timestamp,
    latest: Timestamp,
}

/// Makes the file of a segment out of row groups, which are encoded each for itself, on any thread.
#[derive(Debug)]
pub struct GroupEncoder(FileLayout);

impl fmt::Debug for EncodedGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodedGroup").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl GroupEncoder {
    /// For one file.
    pub fn new() -> Result<Self> {
        FileLayout::new().map(Self)
    }

    /// For one with bounds of these columns.
    #[cfg(test)]
    pub(crate) fn with_bounds(has_bounds: fn(&Column) -> bool) -> Result<Self> {
        FileLayout::with_bounds(has_bounds).map(Self)
    }

    /// Row group `number`, from 0: [`GROUP_ROWS`] rows, or fewer in the last; they and the groups
    /// lie in the order of their start.
    pub fn encode(&self, number: usize, group: &[&SessionRow]) -> Result<EncodedGroup> {
        let writers = self.0.factory.create_column_writers(number)?;
        let mut encoders: Vec<_> = writers.into_iter().map(ColumnEncoder::new).collect();
        let mut keys = Keys::default();
        for rows in group.chunks(BLOCK_ROWS) {
            let fields = self.0.schema.fields().iter();
            for ((column, field), encoder) in COLUMNS.iter().zip(fields).zip(&mut encoders) {
                encoder.write((column, field), rows)?;
            }
            keys.add(rows);
        }
        let fields = self.0.schema.fields().iter();
        let columns = COLUMNS.iter().zip(fields).zip(encoders);
        let chunks = columns.map(|(column, encoder)| encoder.close(column, group.len()));
        Ok(EncodedGroup {
            chunks: chunks.collect::<Result<_>>()?,
            keys: keys.distinct(),
            rows: group.len(),
            earliest: group.iter().fold(Timestamp::MAX, |time, row| time.min(row.start)),
            latest: group.iter().fold(Timestamp::MIN, |time, row| time.max(row.end)),
        })
    }

    /// The file of all `groups`, in their order. The bounds of `meta` grow to cover the rows: a
    /// slice may begin in the segment before.
    pub fn file(&self, meta: &SegmentMeta, groups: Vec<EncodedGroup>) -> Result<Encoded> {
        let mut meta = meta.clone();
        for group in &groups {
            meta.time_min = meta.time_min.min(group.earliest);
            meta.time_max = meta.time_max.max(group.latest);
        }
        let mut file = self.0.file()?;
        let rows: usize = groups.iter().map(|group| group.rows).sum();
        let mut keys = Vec::with_capacity(groups.len());
        for encoded in groups {
            let mut group = file.next_row_group()?;
            for (place, chunk) in encoded.chunks.into_iter().enumerate() {
                match chunk {
                    Some(chunk) => chunk.append_to_row_group(&mut group)?,
                    None => BlankGroup::get()?.append(place, &mut group)?,
                }
            }
            group.close()?;
            keys.push(encoded.keys);
        }
        file.append_key_value_metadata(KeyValue::new(KEY.to_owned(), meta.to_text()));
        let metadata = file.finish()?;
        let parquet = filter::insert(mem::take(file.inner_mut()), &metadata, &meta, &keys);
        let sessions = to_u64(rows);
        Ok(Encoded { parquet, summary: meta.summary(sessions) })
    }
}

#[cfg(test)]
mod tests {
    use format::head::VolumeId;
    use parquet::arrow::arrow_writer::ArrowColumnWriter;
    use units::{Epoch, Sequence};

    use super::*;
    use crate::column_encoder::ColumnOf;
    use crate::columns;

    /// The same row group, every column of it encoded.
    fn encode_all(encoder: &GroupEncoder, group: &[&SessionRow]) -> Vec<Option<ArrowColumnChunk>> {
        let writers = encoder.0.factory.create_column_writers(0).unwrap();
        let columns = COLUMNS.iter().zip(encoder.0.schema.fields().iter()).zip(writers);
        let encode = |(column, writer): (ColumnOf<'_>, ArrowColumnWriter)| {
            let mut encoder = ColumnEncoder::of_all(writer);
            for rows in group.chunks(BLOCK_ROWS) {
                encoder.write(column, rows).unwrap();
            }
            encoder.close(column, group.len()).unwrap()
        };
        columns.map(encode).collect()
    }

    #[test]
    fn a_file_has_the_same_bytes_whether_a_blank_column_was_copied_or_encoded() {
        let rows: Vec<SessionRow> = (0..to_u64(GROUP_ROWS))
            .map(|number| {
                let start = Timestamp(i64::try_from(number).unwrap());
                let mut row = SessionRow { start, ..columns::blank() };
                // Columns that have their first value in one of the last blocks, or in the first.
                row.orig.resets = number / 8000;
                row.icmp = (number == 5000).then_some((8, 0));
                row.names.dns_types.extend((number == 0).then_some(28));
                row.names.sni = (number == 8191).then(|| "last.example".to_owned());
                row
            })
            .collect();
        let group: Vec<&SessionRow> = rows.iter().collect();
        let encoder = GroupEncoder::new().unwrap();
        let copied = encoder.encode(0, &group).unwrap();
        let copied_count = copied.chunks.iter().filter(|chunk| chunk.is_none()).count();
        assert_eq!(copied_count, COLUMNS.len() - 10, "times, state, history, and what was set");
        let whole = EncodedGroup { chunks: encode_all(&encoder, &group), ..copied };
        let copied = encoder.encode(0, &group).unwrap();
        let stripe = |sequence| StripeId { sequence, sub: 0 };
        let meta =
            SegmentMeta::new(VolumeId([1; 16]), Epoch(1), stripe(Sequence(1)), stripe(Sequence(2)));
        let [copied, whole] =
            [copied, whole].map(|group| encoder.file(&meta, vec![group]).unwrap());
        assert_eq!(copied, whole);
    }
}
