//! Parquet bytes into rows.
//!
//! Nothing here panics on a damaged file that the Parquet reader lets through: columns of another
//! type and values that no writer writes are errors. What the Parquet reader itself does with
//! damage is kept from mattering by the checksums that [`crate::Catalog`] verifies before a file is
//! opened.

use core::net::IpAddr;
use core::ops::{ControlFlow, RangeInclusive};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type, TimestampNanosecondType};
use arrow_array::{ArrayRef, ArrowPrimitiveType, RecordBatch};
use bytes::Bytes;
use format::directory::Summary;
use format::slice::{PieceId, Slice};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use units::Timestamp;

use crate::columns::{ADDRESS_COLUMNS, Access, COLUMNS, Column, TIME_COLUMNS, Width, blank};
use crate::error::{Error, Result};
use crate::meta::{KEY, SegmentMeta};

/// Rows decoded at a time: bounds the memory of a reading to about 1 MB beside the compressed file.
const BATCH_ROWS: usize = 1024;

/// Which columns to read; fields of columns left out are empty or zero.
#[derive(Clone, Copy, Debug)]
pub enum Columns<'a> {
    /// All of them.
    All,
    /// Those with these names, and the times. Unknown names are not looked for.
    Named(&'a [&'a str]),
}

impl Columns<'_> {
    fn contain(&self, column: &Column) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => {
                names.contains(&column.name) || TIME_COLUMNS.contains(&column.name)
            }
        }
    }
}

/// A segment's file, its footer read. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Segment {
    bytes: Bytes,
    footer: ArrowReaderMetadata,
    meta: SegmentMeta,
}

impl Segment {
    /// Reads the footer.
    pub fn open(bytes: Bytes) -> Result<Self> {
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let footer = ArrowReaderMetadata::load(&bytes, options)?;
        let pairs = footer.metadata().file_metadata().key_value_metadata();
        let text = pairs
            .and_then(|pairs| pairs.iter().find(|pair| pair.key == KEY)?.value.as_deref())
            .ok_or(Error::Metadata { field: KEY })?;
        let meta = SegmentMeta::from_text(text)?;
        Ok(Self { bytes, footer, meta })
    }

    /// What the segment says of itself.
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// The directory's view of the segment.
    pub fn summary(&self) -> Summary {
        self.meta.summary(self.row_count())
    }

    /// Bytes of the file.
    pub fn size_bytes(&self) -> u64 {
        u64::try_from(self.bytes.len()).unwrap_or(u64::MAX)
    }

    /// Number of rows.
    pub fn row_count(&self) -> u64 {
        self.parquet().row_groups().iter().map(rows_of).sum()
    }

    /// Calls `visit` with every row, and its number, whose packets may lie in `times`: first to
    /// last packet and the range overlap. Rows come in the order of their start; a break ends the
    /// reading.
    pub fn rows(
        &self,
        columns: Columns<'_>,
        times: &RangeInclusive<Timestamp>,
        visit: &mut dyn FnMut(u64, Slice) -> ControlFlow<()>,
    ) -> Result<()> {
        self.rows_of_hosts(&[], columns, times, visit)
    }

    /// As [`Self::rows`], but rows may be left out in which one of `hosts` is neither originator
    /// nor responder: the Bloom filters of the row groups rule most of them out.
    pub fn rows_of_hosts(
        &self,
        hosts: &[IpAddr],
        columns: Columns<'_>,
        times: &RangeInclusive<Timestamp>,
        visit: &mut dyn FnMut(u64, Slice) -> ControlFlow<()>,
    ) -> Result<()> {
        let hosts: Vec<Vec<String>> = hosts.iter().map(texts_of).collect();
        let mut group_row = 0;
        for (number, group) in self.parquet().row_groups().iter().enumerate() {
            let mut row = group_row;
            group_row += rows_of(group);
            if !may_overlap(group, times) || !self.may_hold(number, &hosts)? {
                continue;
            }
            for batch in self.reader(columns).with_row_groups(vec![number]).build()? {
                for slice in decode(&batch?, row, columns)? {
                    if slice.start <= *times.end()
                        && slice.end >= *times.start()
                        && visit(row, slice).is_break()
                    {
                        return Ok(());
                    }
                    row += 1;
                }
            }
        }
        Ok(())
    }

    /// The row with this number, whole.
    pub fn row(&self, row: u64) -> Result<Option<Slice>> {
        let mut first = 0;
        for (number, group) in self.parquet().row_groups().iter().enumerate() {
            let within = row - first;
            first += rows_of(group);
            if row < first {
                let offset = usize::try_from(within).expect("a row group fits memory");
                let reader = self.reader(Columns::All).with_row_groups(vec![number]);
                let mut reader = reader.with_offset(offset).with_limit(1).build()?;
                let Some(batch) = reader.next() else { return Ok(None) };
                return Ok(decode(&batch?, row, Columns::All)?.pop());
            }
        }
        Ok(None)
    }

    fn reader(&self, columns: Columns<'_>) -> ParquetRecordBatchReaderBuilder<Bytes> {
        let schema = self.footer.schema();
        let roots = COLUMNS
            .iter()
            .filter(|column| columns.contain(column))
            .filter_map(|column| schema.index_of(column.name).ok());
        let mask = ProjectionMask::roots(self.footer.parquet_schema(), roots);
        ParquetRecordBatchReaderBuilder::new_with_metadata(self.bytes.clone(), self.footer.clone())
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS)
    }

    /// Whether each of `hosts` may be an end of some row of a row group.
    fn may_hold(&self, group: usize, hosts: &[Vec<String>]) -> Result<bool> {
        if hosts.is_empty() {
            return Ok(true);
        }
        let reader = self.reader(Columns::Named(&ADDRESS_COLUMNS));
        let schema = self.footer.parquet_schema();
        let mut filters = Vec::new();
        for name in ADDRESS_COLUMNS {
            let column = schema.columns().iter().position(|column| column.name() == name);
            let Some(column) = column else { return Ok(true) };
            // A file without filters rules nothing out.
            let filter = reader.get_row_group_column_bloom_filter(group, column)?;
            let Some(filter) = filter else { return Ok(true) };
            filters.push(filter);
        }
        let known = |text: &String| filters.iter().any(|filter| filter.check(text.as_str()));
        Ok(hosts.iter().all(|texts| texts.iter().any(known)))
    }

    fn parquet(&self) -> &ParquetMetaData {
        self.footer.metadata()
    }
}

/// Compressed bytes of every column, in the order of the file, and at the end what is not in a
/// column: the footer.
pub fn column_sizes(segment: &Segment) -> Vec<(String, u64)> {
    let positive = |size: i64| u64::try_from(size).unwrap_or(0);
    let mut sizes: Vec<(String, u64)> =
        COLUMNS.iter().map(|column| (column.name.to_owned(), 0)).collect();
    for chunk in segment.parquet().row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let root = chunk.column_path().parts().first();
        if let Some((_, size)) = sizes.iter_mut().find(|(name, _)| Some(name) == root) {
            *size += positive(chunk.compressed_size());
        }
    }
    let columns: u64 = sizes.iter().map(|(_, size)| size).sum();
    sizes.push(("footer".to_owned(), segment.size_bytes().saturating_sub(columns)));
    sizes
}

/// How an address may be written in a row: an IPv4 host also as the IPv6 address it is mapped to.
fn texts_of(host: &IpAddr) -> Vec<String> {
    match host {
        IpAddr::V4(ip) => vec![ip.to_string(), ip.to_ipv6_mapped().to_string()],
        IpAddr::V6(ip) => vec![ip.to_string()],
    }
}

fn rows_of(group: &RowGroupMetaData) -> u64 {
    u64::try_from(group.num_rows()).unwrap_or(0)
}

/// Whether a row of the group can overlap `times`, by the bounds of its starts and durations.
fn may_overlap(group: &RowGroupMetaData, times: &RangeInclusive<Timestamp>) -> bool {
    let bounds = |name| {
        let chunk = group.columns().iter().find(|chunk| chunk.column_path().string() == name);
        match chunk.and_then(|chunk| chunk.statistics()) {
            Some(Statistics::Int64(bounds)) => Some((*bounds.min_opt()?, *bounds.max_opt()?)),
            _ => None,
        }
    };
    let [start, duration] = TIME_COLUMNS.map(bounds);
    let (Some((start_min, start_max)), Some((duration_min, duration_max))) = (start, duration)
    else {
        return true;
    };
    // A duration that wrapped says nothing about the end.
    let end_max = if duration_min < 0 { i64::MAX } else { start_max.saturating_add(duration_max) };
    start_min <= times.end().0 && end_max >= times.start().0
}

/// The slices of a batch whose first row has the number `first_row`.
fn decode(batch: &RecordBatch, first_row: u64, columns: Columns<'_>) -> Result<Vec<Slice>> {
    let mut slices = vec![blank(); batch.num_rows()];
    for column in COLUMNS.iter().filter(|column| columns.contain(column)) {
        let name = column.name;
        let array = batch.column_by_name(name).ok_or(Error::Column { column: name })?;
        if let Some(at) = fill(&mut slices, column, array)? {
            let row = first_row + u64::try_from(at).expect("a batch has few rows");
            return Err(Error::Value { column: name, row });
        }
    }
    Ok(slices)
}

/// Sets one column; gives the place of the first impossible value, if any.
fn fill(slices: &mut [Slice], column: &Column, array: &ArrayRef) -> Result<Option<usize>> {
    let wrong = Error::Column { column: column.name };
    let rows = slices.iter_mut();
    Ok(match column.access {
        Access::Time(_, set) => {
            let times = array.as_primitive_opt::<TimestampNanosecondType>().ok_or(wrong)?;
            set_all(rows, times.iter(), |slice, value| {
                set(slice, value);
                Some(())
            })
        }
        Access::Number(width, _, set) | Access::MaybeNumber(width, _, set) => match width {
            Width::Narrow => {
                let values = array.as_primitive_opt::<Int32Type>().ok_or(wrong)?;
                set_all(rows, values.iter(), |slice, value| set(slice, value.into()))
            }
            Width::Wide => {
                let values = array.as_primitive_opt::<Int64Type>().ok_or(wrong)?;
                set_all(rows, values.iter(), set)
            }
        },
        Access::Flag(_, set) | Access::MaybeFlag(_, set) => {
            let flags = array.as_boolean_opt().ok_or(wrong)?;
            set_all(rows, flags.iter(), |slice, flag| {
                set(slice, flag);
                Some(())
            })
        }
        Access::Text(_, set) => {
            let texts = array.as_string_opt::<i32>().ok_or(wrong)?;
            set_all(rows, texts.iter(), set)
        }
        Access::Texts(_, get) => {
            let lists = array.as_list_opt::<i32>().ok_or(wrong)?;
            set_all(rows, lists.iter(), |slice, list| {
                let texts = list.as_string_opt::<i32>()?;
                get(slice).extend(texts.iter().flatten().map(str::to_owned));
                Some(())
            })
        }
        Access::Numbers(_, get) => {
            let lists = array.as_list_opt::<i32>().ok_or(wrong)?;
            set_all(rows, lists.iter(), |slice, list| {
                let numbers = values::<Int32Type>(&list)?;
                for &number in numbers {
                    get(slice).push(number.try_into().ok()?);
                }
                Some(())
            })
        }
        Access::Pieces(_, _, set) => {
            let lists = array.as_list_opt::<i32>().ok_or(wrong)?;
            set_all(rows, lists.iter(), |slice, list| set_pieces(slice, &list, set))
        }
    })
}

/// Sets the values that are there, row by row; gives the place of the first that `set` refuses.
fn set_all<'a, T>(
    slices: impl Iterator<Item = &'a mut Slice>,
    values: impl Iterator<Item = Option<T>>,
    set: impl Fn(&mut Slice, T) -> Option<()>,
) -> Option<usize> {
    slices
        .zip(values)
        .position(|(slice, value)| value.is_some_and(|value| set(slice, value).is_none()))
}

fn values<T: ArrowPrimitiveType>(list: &ArrayRef) -> Option<&[T::Native]> {
    Some(list.as_primitive_opt::<T>()?.values())
}

/// The first list that has values makes the pieces, the others fill them.
fn set_pieces(
    slice: &mut Slice,
    list: &ArrayRef,
    set: fn(&mut PieceId, i64) -> Option<()>,
) -> Option<()> {
    let stored = values::<Int64Type>(list)?;
    if slice.pieces.is_empty() {
        slice.pieces.resize(stored.len(), PieceId { sequence: 0, sub: 0, column: 0 });
    }
    if !stored.is_empty() && stored.len() != slice.pieces.len() {
        return None;
    }
    slice.pieces.iter_mut().zip(stored).try_for_each(|(piece, &value)| set(piece, value))
}
