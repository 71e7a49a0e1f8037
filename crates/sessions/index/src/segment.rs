//! Parquet bytes into rows.
//!
//! A file is read in parts: its end, the filter's answers, and the columns asked for of the row
//! groups left; each is verified by its checksum before the Parquet reader sees it.
//!
//! Nothing here panics on a damaged or forged file that the Parquet reader lets through: columns of
//! another type and values that no writer writes are errors, and what the footer and the pages
//! claim is checked before that reader reserves memory for it ([`shape`]).

use core::ops::{ControlFlow, Range, RangeInclusive};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type, TimestampNanosecondType};
use arrow_array::{Array as _, ArrayRef, ArrowPrimitiveType, RecordBatch};
use bytes::Bytes;
use format::directory::{COUNT_MAX, Summary};
use format::head::{StripeId, VolumeId};
use format::session_row::{PieceSpan, SessionRow, SourceNames};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::file::metadata::{ParquetMetaData, ParquetStatisticsPolicy, RowGroupMetaData};
use units::number::to_u64;
use units::{InterfaceId, Timestamp};

use crate::bounds::Left;
use crate::chunks::Chunks;
use crate::columns::{Access, COLUMNS, Column, NO_SPAN, Presence, TIME_COLUMNS, Width, blank};
use crate::content::{Content, Source};
use crate::error::{Error, Result};
use crate::filter::{Filter, Needed, Trailer};
use crate::layout::GROUP_ROWS;
use crate::meta::{Interface, KEY, SegmentMeta};
use crate::narrow::Narrow;
use crate::{bounds, names, shape};

/// Rows decoded at a time: bounds the memory of a reading to about 1 MB beside the compressed file.
const BATCH_ROWS: usize = 1024;

/// Which columns to read; fields of columns left out are empty or zero.
#[derive(Clone, Copy, Debug)]
pub enum Columns<'a> {
    /// All columns.
    All,
    /// Those with these names, and the times. Unknown names are not looked for.
    Named(&'a [&'a str]),
}

impl<'a> Columns<'a> {
    /// Those that tell the rows of one session from others'.
    pub const OF_SESSION: [&'static str; 8] = [
        "proto",
        "orig_ip",
        "orig_port",
        "resp_ip",
        "resp_port",
        "vlan",
        "vlan_inner",
        "session_age_ns",
    ];

    /// Names of these columns and of `others`.
    pub fn and(&self, others: &[&'a str]) -> Vec<&'a str> {
        let own = COLUMNS.iter().filter(|column| self.contain(column)).map(|column| column.name);
        own.chain(others.iter().copied()).collect()
    }

    fn contain(&self, column: &Column) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => {
                names.contains(&column.name) || TIME_COLUMNS.contains(&column.name)
            }
        }
    }
}

/// What rows know of their source by their interface's number, sorted by that.
type Sources = Arc<[(InterfaceId, Arc<SourceNames>)]>;

/// A segment's file, its footer read. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Segment {
    source: Arc<Source>,
    /// Without one the file is in memory, and was verified as a whole.
    filter: Option<Filter>,
    footer: ArrowReaderMetadata,
    meta: SegmentMeta,
    /// Made when the first row asks.
    sources: OnceLock<Sources>,
    /// Of its columns.
    version: u16,
}

impl Segment {
    /// Reads the footer of a file in memory, which may be of any origin.
    pub fn open(bytes: Bytes) -> Result<Self> {
        let whole = bytes.clone();
        let source = Source::new(Box::new(bytes));
        let filter = Filter::read(&source)?;
        Self::new(source, filter, &whole)
    }

    /// Reads the footer of a file without reading the rest. `None` where the file has no whole
    /// filter, by whose checksums its parts could be verified.
    pub fn open_in_parts(content: Box<dyn Content>) -> Result<Option<Self>> {
        FilteredFile::open(content)?.map_or(Ok(None), FilteredFile::segment)
    }

    fn new(source: Source, filter: Option<Filter>, footer: &Bytes) -> Result<Self> {
        let options = ArrowReaderOptions::new()
            .with_skip_arrow_metadata(true)
            .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_column_stats_policy(ParquetStatisticsPolicy::skip_except(&bounds::leaves()));
        shape::check_footer(footer)?;
        let footer = ArrowReaderMetadata::load(footer, options)?;
        shape::check_metadata(footer.metadata(), source.size_bytes())?;
        let pairs = footer.metadata().file_metadata().key_value_metadata();
        let text = pairs
            .and_then(|pairs| pairs.iter().find(|pair| pair.key == KEY)?.value.as_deref())
            .ok_or(Error::Metadata { field: KEY })?;
        let meta = SegmentMeta::from_text(text)?;
        let version = SegmentMeta::version(text)?;
        let rows = footer.metadata().row_groups().iter().map(rows_of).sum();
        let parts = [meta.unindexed_packets, meta.unread_packets];
        let is_sound = parts.into_iter().all(|packets| packets <= COUNT_MAX);
        if !meta.summary(rows).is_in_range() || !is_sound {
            return Err(Error::Metadata { field: "range" });
        }
        let sources = OnceLock::new();
        Ok(Self { source: Arc::new(source), filter, footer, meta, sources, version })
    }

    /// Whether its rows say where their packets lie in a piece. Those of version 1 do not: they can
    /// be read, but nothing can be extracted by them.
    pub fn has_places(&self) -> bool {
        self.version >= 2
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
        self.source.size_bytes()
    }

    /// The file itself.
    pub fn file(&self) -> Result<Bytes> {
        self.source.read(0, usize::try_from(self.size_bytes()).unwrap_or(usize::MAX))
    }

    /// Bytes of it that were read so far.
    pub fn read_bytes(&self) -> u64 {
        self.source.read_bytes()
    }

    /// Number of rows.
    pub fn row_count(&self) -> u64 {
        self.parquet().row_groups().iter().map(rows_of).sum()
    }

    /// Numbers of the rows of a row group.
    pub fn numbers_of_group(&self, group: usize) -> Range<u64> {
        let group = self.groups().nth(group);
        group.map_or(0..0, |it| it.first_row..it.first_row + rows_of(it.metadata))
    }

    /// Calls `visit` with every row, and its number, whose packets may lie in `times`: first to
    /// last packet and the range overlap. Rows come in the order of their start; a break ends the
    /// reading.
    pub fn rows(
        &self,
        columns: Columns<'_>,
        times: &RangeInclusive<Timestamp>,
        visit: &mut dyn FnMut(u64, SessionRow) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut visit = in_times(times, visit);
        for group in self.groups().filter(|group| bounds::may_overlap(group.metadata, times)) {
            if self.all_of_group(&group, columns, &mut visit)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// As [`Self::rows`], but only rows that may have what is needed; those that have other ends
    /// than the hosts and ports are left out. The filter rules most row groups out; of the others
    /// the columns of addresses, ports and counters are read first, if they decide anything.
    pub fn rows_with(
        &self,
        needed: &Needed,
        columns: Columns<'_>,
        times: &RangeInclusive<Timestamp>,
        visit: &mut dyn FnMut(u64, SessionRow) -> ControlFlow<()>,
    ) -> Result<()> {
        for group in self.groups_with(needed, times)? {
            if self.rows_of_group_with((group, needed), columns, times, visit)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Numbers of the row groups that may have rows with what is needed in these times, ascending.
    pub fn groups_with(
        &self,
        needed: &Needed,
        times: &RangeInclusive<Timestamp>,
    ) -> Result<Vec<usize>> {
        let mut groups = match &self.filter {
            Some(filter) => filter.trailer.candidates(&self.source, needed)?,
            None => (0..self.parquet().num_row_groups()).collect(),
        };
        let may = |group: usize| {
            let group = self.parquet().row_groups().get(group);
            group.is_some_and(|group| {
                bounds::may_overlap(group, times) && bounds::left(group, &needed.sums) != Left::None
            })
        };
        groups.retain(|&group| may(group));
        Ok(groups)
    }

    /// As [`Self::rows_with`], of one row group.
    pub fn rows_of_group_with(
        &self,
        (group, needed): (usize, &Needed),
        columns: Columns<'_>,
        times: &RangeInclusive<Timestamp>,
        visit: &mut dyn FnMut(u64, SessionRow) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let Some(group) = self.groups().nth(group) else { return Ok(ControlFlow::Continue(())) };
        let left = bounds::left(group.metadata, &needed.sums);
        let places = match Narrow::of(needed, left) {
            Some(narrow) => self.places_with(&group, &narrow)?,
            None => None,
        };
        let mut visit = in_times(times, visit);
        match places {
            Some(places) => self.rows_in_places(&group, &places, columns, &mut visit),
            None => self.all_of_group(&group, columns, &mut visit),
        }
    }

    /// As [`Self::rows`], of one row group.
    pub fn rows_of_group(
        &self,
        group: usize,
        columns: Columns<'_>,
        times: &RangeInclusive<Timestamp>,
        visit: &mut dyn FnMut(u64, SessionRow) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut visit = in_times(times, visit);
        let group = self.groups().nth(group);
        group.map_or(Ok(()), |group| self.all_of_group(&group, columns, &mut visit).map(drop))
    }

    /// No row of a row group starts later; `None` where the file does not say.
    pub fn start_max(&self, group: usize) -> Option<Timestamp> {
        let group = self.parquet().row_groups().get(group)?;
        bounds::of(group, TIME_COLUMNS[0]).map(|(_, latest)| Timestamp(latest))
    }

    /// Visits all rows of a group.
    fn all_of_group(
        &self,
        group: &Group<'_>,
        columns: Columns<'_>,
        visit: &mut dyn FnMut(u64, SessionRow) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let mut row = group.first_row;
        let wanted = |column: &Column| columns.contain(column);
        for batch in self.reader((group.number, None), &wanted)?.build()? {
            let batch = batch?;
            group.check_end(row - group.first_row, &batch)?;
            for slice in self.decode(&batch, row, columns)? {
                if visit(row, slice).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                row += 1;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Calls `visit` with the rows that have these numbers, which ascend.
    pub fn rows_at(
        &self,
        numbers: &[u64],
        columns: Columns<'_>,
        visit: &mut dyn FnMut(u64, SessionRow) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut rest = numbers;
        for group in self.groups() {
            let end = group.first_row + rows_of(group.metadata);
            let (rows, others) = rest.split_at(rest.partition_point(|&row| row < end));
            rest = others;
            let rows: Vec<usize> = rows.iter().map(|row| to_usize(row - group.first_row)).collect();
            if self.rows_in_places(&group, &rows, columns, visit)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Where in the group the rows lie that are such; `None`: they are too many to be picked one by
    /// one.
    fn places_with(&self, group: &Group<'_>, narrow: &Narrow<'_>) -> Result<Option<Vec<usize>>> {
        let mut places = Vec::new();
        let mut first = 0;
        // These alone: the times of all rows would cost more.
        let names = narrow.columns();
        let wanted = |column: &Column| names.contains(&column.name);
        let reader = self.reader((group.number, None), &wanted)?;
        for batch in reader.with_batch_size(GROUP_ROWS).build()? {
            let batch = batch?;
            group.check_end(to_u64(first), &batch)?;
            let mut has = vec![true; batch.num_rows()];
            narrow.narrow(&batch, &mut has)?;
            places.extend((first..).zip(has).filter_map(|(place, has)| has.then_some(place)));
            first += batch.num_rows();
        }
        Ok((places.len() <= first / PICKED_ONE_OF).then_some(places))
    }

    /// Visits the rows at these places of a group.
    fn rows_in_places(
        &self,
        group: &Group<'_>,
        places: &[usize],
        columns: Columns<'_>,
        visit: &mut dyn FnMut(u64, SessionRow) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        if places.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let ranges = places.iter().map(|&place| place..place + 1);
        let total = to_usize(rows_of(group.metadata));
        let selection = RowSelection::from_consecutive_ranges(ranges, total);
        let wanted = |column: &Column| columns.contain(column);
        let reader = self.reader((group.number, Some(places)), &wanted)?;
        let mut places = places.iter();
        for batch in reader.with_row_selection(selection).build()? {
            let batch = batch?;
            let slices = self.decode(&batch, group.first_row, columns)?;
            for (slice, &place) in slices.into_iter().zip(&mut places) {
                if visit(group.first_row + to_u64(place), slice).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let mut next = 0;
        self.parquet().row_groups().iter().enumerate().map(move |(number, metadata)| {
            let first_row = next;
            next += rows_of(metadata);
            Group { number, first_row, metadata }
        })
    }

    /// A reader of one row group, or of some of its rows, by their places, alone.
    fn reader(
        &self,
        (group, places): (usize, Option<&[usize]>),
        wanted: &dyn Fn(&Column) -> bool,
    ) -> Result<ParquetRecordBatchReaderBuilder<Chunks>> {
        let schema = self.footer.schema();
        let roots = COLUMNS
            .iter()
            .filter(|column| wanted(column))
            .filter_map(|column| schema.index_of(column.name).ok());
        let mask = ProjectionMask::roots(self.footer.parquet_schema(), roots);
        let of = (self.parquet(), group, places);
        let chunks = Chunks::read(&self.source, self.filter.as_ref(), of, &mask)?;
        let footer = self.footer.clone();
        Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, footer)
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS))
    }

    /// The slices of a batch whose first row has the number `first_row`.
    fn decode(
        &self,
        batch: &RecordBatch,
        first_row: u64,
        columns: Columns<'_>,
    ) -> Result<Vec<SessionRow>> {
        let of_segment = SessionRow { epoch: self.meta.epoch, ..blank() };
        let mut slices = vec![of_segment; batch.num_rows()];
        for column in COLUMNS.iter().filter(|column| columns.contain(column)) {
            let name = column.name;
            let Some(array) = batch.column_by_name(name) else {
                if column.since > self.version {
                    continue;
                }
                return Err(Error::Column { column: name });
            };
            if let Some(at) = fill(&mut slices, column, array)? {
                let row = first_row + to_u64(at);
                return Err(Error::Value { column: name, row });
            }
            if name == INTERFACE {
                for slice in &mut slices {
                    slice.source = self.source_of(slice.interface);
                }
            }
        }
        Ok(slices)
    }

    /// What the segment calls an interface and its recording; `None` where it has no name for
    /// either.
    fn source_of(&self, interface: InterfaceId) -> Option<Arc<SourceNames>> {
        let sources = self.sources.get_or_init(|| sources(&self.meta));
        let place = sources.binary_search_by_key(&interface, |(number, _)| *number).ok()?;
        sources.get(place).map(|(_, names)| Arc::clone(names))
    }

    fn parquet(&self) -> &ParquetMetaData {
        self.footer.metadata()
    }
}

/// Where more rows than one of so many have what is needed, all are read.
const PICKED_ONE_OF: usize = 4;

/// The column by which rows know what their source is called.
const INTERFACE: &str = "interface";

/// The names of each interface. A forged file may describe one twice: the first counts.
fn sources(meta: &SegmentMeta) -> Sources {
    let mut sources = BTreeMap::new();
    for Interface { id, name, .. } in &meta.interfaces {
        let interface = (!name.is_empty()).then(|| name.clone());
        let names = SourceNames { interface, recording: meta.recording.clone() };
        sources.entry(*id).or_insert(names);
    }
    let named = sources.into_iter().filter(|(_, names)| *names != SourceNames::default());
    named.map(|(id, names)| (id, Arc::new(names))).collect()
}

/// A file with a filter, its trailer read and verified, its footer not yet: enough to rule the
/// segment out.
#[derive(Debug)]
pub(crate) struct FilteredFile {
    source: Source,
    trailer: Trailer,
}

impl FilteredFile {
    /// `None` where the file has no whole trailer.
    pub(crate) fn open(content: Box<dyn Content>) -> Result<Option<Self>> {
        let source = Source::new(content);
        let trailer = Trailer::read(&source)?;
        Ok(trailer.map(|trailer| Self { source, trailer }))
    }

    /// Whether it is the file of this segment.
    pub(crate) fn is_of(&self, volume: VolumeId, first: StripeId) -> bool {
        (self.trailer.volume, self.trailer.first) == (volume, first)
    }

    pub(crate) fn read_bytes(&self) -> u64 {
        self.source.read_bytes()
    }

    /// Whether a row may have what is needed.
    pub(crate) fn may_hold(&self, needed: &Needed) -> Result<bool> {
        Ok(needed.is_unfiltered() || !self.trailer.candidates(&self.source, needed)?.is_empty())
    }

    /// `None` where the rest of its end is not whole.
    pub(crate) fn segment(self) -> Result<Option<Segment>> {
        let Some(filter) = Filter::behind(self.trailer, &self.source)? else { return Ok(None) };
        let footer = filter.footer.clone();
        Segment::new(self.source, Some(filter), &footer).map(Some)
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

/// A row group, and where it lies.
#[derive(Clone, Copy)]
struct Group<'a> {
    number: usize,
    first_row: u64,
    metadata: &'a RowGroupMetaData,
}

impl Group<'_> {
    /// A damaged file's columns may have more rows than the footer says, and the numbers of those
    /// would be other rows'. `before` rows of the group came before the batch.
    fn check_end(&self, before: u64, batch: &RecordBatch) -> Result<()> {
        let is_within = before + to_u64(batch.num_rows()) <= rows_of(self.metadata);
        is_within.then_some(()).ok_or(Error::Metadata { field: "number of rows" })
    }
}

/// Shows only rows whose packets may lie in these times.
fn in_times(
    times: &RangeInclusive<Timestamp>,
    visit: &mut dyn FnMut(u64, SessionRow) -> ControlFlow<()>,
) -> impl FnMut(u64, SessionRow) -> ControlFlow<()> {
    move |row, slice| {
        if overlaps(&slice, times) { visit(row, slice) } else { ControlFlow::Continue(()) }
    }
}

fn overlaps(slice: &SessionRow, times: &RangeInclusive<Timestamp>) -> bool {
    slice.start <= *times.end() && slice.end >= *times.start()
}

fn to_usize(rows: u64) -> usize {
    usize::try_from(rows).expect("a row group fits memory")
}

fn rows_of(group: &RowGroupMetaData) -> u64 {
    u64::try_from(group.num_rows()).unwrap_or(0)
}

/// Sets one column; gives the place of the first impossible value, if any.
fn fill(slices: &mut [SessionRow], column: &Column, array: &ArrayRef) -> Result<Option<usize>> {
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
        Access::Address(_, set) => {
            let texts = array.as_string_opt::<i32>().ok_or(wrong)?;
            set_all(rows, texts.iter(), |slice, text| {
                set(slice, names::parse_address(text)?);
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
                // Names that are not there take no memory.
                if !texts.is_empty() {
                    get(slice).extend(texts.iter().flatten().map(str::to_owned));
                }
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
        Access::Pieces(presence, _, set) => {
            let lists = array.as_list_opt::<i32>().ok_or(wrong)?;
            set_all(rows, lists.iter(), |slice, list| set_pieces(slice, &list, (presence, set)))
        }
    })
}

/// Sets the values that are there, row by row; gives the place of the first that `set` refuses.
fn set_all<'a, T>(
    slices: impl Iterator<Item = &'a mut SessionRow>,
    values: impl Iterator<Item = Option<T>>,
    set: impl Fn(&mut SessionRow, T) -> Option<()>,
) -> Option<usize> {
    slices
        .zip(values)
        .position(|(slice, value)| value.is_some_and(|value| set(slice, value).is_none()))
}

fn values<T: ArrowPrimitiveType>(list: &ArrayRef) -> Option<&[T::Native]> {
    Some(list.as_primitive_opt::<T>()?.values())
}

type SetPiece = fn(&mut PieceSpan, i64) -> Option<()>;

/// The first list that has values makes the pieces, the others fill them: all of them, unless the
/// list may be left empty.
fn set_pieces(
    slice: &mut SessionRow,
    list: &ArrayRef,
    (presence, set): (Presence, SetPiece),
) -> Option<()> {
    let stored = values::<Int64Type>(list)?;
    if slice.pieces.is_empty() {
        slice.pieces.resize(stored.len(), NO_SPAN);
    }
    let may_be_empty = presence == Presence::UnlessZero && stored.is_empty();
    if !may_be_empty && stored.len() != slice.pieces.len() {
        return None;
    }
    slice.pieces.iter_mut().zip(stored).try_for_each(|(piece, &value)| set(piece, value))
}
