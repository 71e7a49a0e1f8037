//! What the statistics of a row group say of its rows: it is not read where they rule them out.
//!
//! Counters add up over the rows of a session, so their bounds rule out only rows that are whole
//! sessions. Bounds of what tells these from others say whether a row group has others. Files of
//! earlier versions have bounds of the times alone: what is not known rules nothing out.

use core::ops::RangeInclusive;

use format::kind::Kind;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnPath;
use units::Timestamp;

use crate::columns::{Access, COLUMNS, Column, PART_COLUMNS, TIME_COLUMNS, Width};
use crate::filter::Sum;

/// Whether files have bounds of a column: of times, of what counts, and of what tells rows that are
/// whole sessions from others. Other columns have nearly all of their values in every row group.
pub(crate) fn are_stored(column: &Column) -> bool {
    let counts = matches!(column.kind, Kind::Count | Kind::Bytes)
        && matches!(column.access, Access::Number(Width::Wide, ..))
        && !column.is_of_payload;
    counts || TIME_COLUMNS.contains(&column.name) || PART_COLUMNS.contains(&column.name)
}

/// Places of the columns whose bounds are of use: every column is one leaf.
pub(crate) fn leaves() -> Vec<usize> {
    let places = COLUMNS.iter().enumerate().filter(|(_, column)| are_stored(column));
    places.map(|(place, _)| place).collect()
}

/// The rows of a group that may be of sessions with certain sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    None,
    /// Those of sessions that have other rows.
    Parts,
    Any,
}

/// Which rows of a group may be of sessions that have all of these sums.
pub(crate) fn left(group: &RowGroupMetaData, sums: &[Sum]) -> Left {
    let is_less = |&(columns, least): &Sum| {
        let add = |sum: u64, name: &&str| Some(sum.saturating_add(most(group, name)?));
        columns.iter().try_fold(0, add).is_some_and(|sum| sum < least)
    };
    if !sums.iter().any(is_less) {
        Left::Any
    } else if has_parts(group) {
        Left::Parts
    } else {
        Left::None
    }
}

/// Whether a row may be one of several of its session.
fn has_parts(group: &RowGroupMetaData) -> bool {
    let [age, continues] = PART_COLUMNS;
    let goes_on = match statistics(group, continues) {
        Some(Statistics::Boolean(bounds)) => bounds.max_opt().is_none_or(|most| *most),
        _ => true,
    };
    goes_on || of(group, age).is_none_or(|(_, most)| most > 0)
}

/// No value of a counter or of the durations is larger.
fn most(group: &RowGroupMetaData, column: &str) -> Option<u64> {
    // A negative number is one that was too large, or a time that ran backwards.
    of(group, column).map(|(least, most)| match (u64::try_from(least), u64::try_from(most)) {
        (Ok(_), Ok(most)) => most,
        _ => u64::MAX,
    })
}

/// Whether a row of the group can overlap `times`, by the bounds of its starts and durations.
pub(crate) fn may_overlap(group: &RowGroupMetaData, times: &RangeInclusive<Timestamp>) -> bool {
    let [start, duration] = TIME_COLUMNS.map(|name| of(group, name));
    let (Some((start_min, start_max)), Some((duration_min, duration_max))) = (start, duration)
    else {
        return true;
    };
    // A duration that wrapped says nothing about the end.
    let end_max = if duration_min < 0 { i64::MAX } else { start_max.saturating_add(duration_max) };
    start_min <= times.end().0 && end_max >= times.start().0
}

/// The least and the greatest value of a column.
pub(crate) fn of(group: &RowGroupMetaData, column: &str) -> Option<(i64, i64)> {
    match statistics(group, column) {
        Some(Statistics::Int64(bounds)) => Some((*bounds.min_opt()?, *bounds.max_opt()?)),
        _ => None,
    }
}

fn statistics<'g>(group: &'g RowGroupMetaData, column: &str) -> Option<&'g Statistics> {
    let is_it = |path: &ColumnPath| matches!(path.parts(), [name] if name == column);
    group.columns().iter().find(|chunk| is_it(chunk.column_path()))?.statistics()
}

#[cfg(test)]
mod tests;
