//! Rows that match, part by part in ring order.

use core::fmt;
use core::net::IpAddr;
use core::ops::{ControlFlow, RangeInclusive};
use std::collections::BTreeSet;

use format::head::StripeId;
use format::slice::Slice;
use index::{Columns, Segment};
use query::Query;
use units::Timestamp;
use wire::{Address, FiveTuple};

use crate::Error;
use crate::archive::{Archive, Part};
use crate::rebuild::{Stretch, rebuild};
use crate::walk::Notes;

/// So few rows are fetched one by one; more are read in one go.
const ROWS_FETCHED_MAX: usize = 4;

/// Number of a row in the volume: first stripe of its segment, place in that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RowId {
    pub(crate) segment: StripeId,
    pub(crate) row: u64,
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.segment, self.row)
    }
}

fn ip(address: &Address) -> Option<IpAddr> {
    match *address {
        Address::V4(ip) => Some(ip.into()),
        Address::V6(ip) => Some(ip.into()),
        Address::Mac(_) | Address::None => None,
    }
}

/// What all rows of a session share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Identity {
    tuple: FiveTuple,
    vlan: [Option<u16>; 2],
    start: Timestamp,
}

impl Identity {
    pub(crate) fn of(row: &Slice) -> Self {
        // Written later, the first rows of a session may have been seen from the other side.
        let (tuple, _) = row.tuple.canonical();
        Self { tuple, vlan: row.vlan, start: row.session_start }
    }
}

/// Which rows are wanted.
pub(crate) enum Wanted<'a> {
    Query(&'a Query),
    /// All rows of these sessions.
    Sessions(&'a BTreeSet<Identity>),
}

impl Wanted<'_> {
    /// Hosts that every wanted row has as an end.
    fn hosts(&self) -> Vec<IpAddr> {
        match self {
            Self::Query(query) => query.required_hosts(),
            Self::Sessions(sessions) => {
                let mut tuples = sessions.iter().map(|session| session.tuple);
                match (tuples.next(), tuples.next()) {
                    (Some(only), None) => [only.orig, only.resp].iter().filter_map(ip).collect(),
                    _ => Vec::new(),
                }
            }
        }
    }

    fn all(&self) -> bool {
        matches!(self, Self::Query(query) if **query == Query::all())
    }

    /// Columns to decide by.
    fn columns(&self) -> Vec<&'static str> {
        match self {
            Self::Query(query) => query.columns(),
            Self::Sessions(_) => {
                vec![
                    "proto",
                    "orig_ip",
                    "orig_port",
                    "resp_ip",
                    "resp_port",
                    "vlan",
                    "vlan_inner",
                    "session_age_ns",
                ]
            }
        }
    }

    fn accepts(&self, id: RowId, row: &Slice, by_id: bool) -> bool {
        match self {
            Self::Query(query) if by_id => query.matches(row, Some(&id.to_string())),
            Self::Query(query) => query.matches(row, None),
            Self::Sessions(sessions) => sessions.contains(&Identity::of(row)),
        }
    }
}

/// What a scan meets.
pub(crate) enum Step {
    /// The rows that follow are of this part.
    Part {
        first: StripeId,
        epoch: u32,
        /// No row of this part or a later one starts earlier, as far as directory and heads tell.
        time_min: Timestamp,
        /// An index has its rows, so that their ids are final.
        is_indexed: bool,
    },
    /// A row that is wanted.
    Row(RowId, Box<Slice>),
}

/// Receives steps.
pub(crate) type Visit<'v> =
    dyn FnMut(Step, &Archive, &mut Notes) -> Result<ControlFlow<()>, Error> + 'v;

/// One scan over the sessions of a volume.
pub(crate) struct Scan<'a> {
    pub(crate) archive: &'a mut Archive,
    pub(crate) wanted: Wanted<'a>,
    pub(crate) times: RangeInclusive<Timestamp>,
}

impl Scan<'_> {
    /// Calls `visit` with every row wanted, in ring order and by start within a part.
    pub(crate) fn run(
        &mut self,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let parts = self.archive.parts();
        let mut earliest = Timestamp::MAX;
        let mut mins: Vec<Timestamp> = parts
            .iter()
            .rev()
            .map(|part| {
                earliest = earliest.min(part.time_min);
                earliest
            })
            .collect();
        mins.reverse();
        for (part, time_min) in parts.into_iter().zip(mins) {
            if self.part(&Part { time_min, ..part }, notes, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn part(
        &mut self,
        part: &Part,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let Some(entry) = part.segment else {
            return self.rebuilt(part, &BTreeSet::new(), notes, visit);
        };
        let summary = &entry.summary;
        notes.explain.segments += 1;
        if summary.time_min > *self.times.end() || summary.time_max < *self.times.start() {
            notes.explain.segments_pruned += 1;
            return Ok(ControlFlow::Continue(()));
        }
        let Some(segment) = self.archive.segment(&entry)? else {
            notes.explain.segments_rebuilt += 1;
            return self.rebuilt(part, &BTreeSet::new(), notes, visit);
        };
        let meta = segment.meta();
        notes.completeness.add_gaps(&meta.gaps, *self.times.start(), *self.times.end());
        let step = Step::Part {
            first: part.first,
            epoch: meta.epoch,
            time_min: part.time_min,
            is_indexed: true,
        };
        if visit(step, self.archive, notes)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let flow = self.segment(&segment, notes, visit)?;
        if flow.is_break() || !summary.unindexed {
            return Ok(flow);
        }
        // Every piece that was indexed has a row that names it.
        let indexed = stripes_named(&segment)?;
        self.rebuilt(&Part { segment: None, ..*part }, &indexed, notes, visit)
    }

    fn segment(
        &self,
        segment: &Segment,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        notes.explain.rows += segment.row_count();
        notes.explain.index_bytes += segment.size_bytes();
        let first = segment.meta().first;
        let mut step = |row, slice: Slice, notes: &mut Notes| {
            if self.archive.catalog.shows(&slice).is_none() {
                return Ok(ControlFlow::Continue(()));
            }
            notes.explain.rows_matched += 1;
            visit(Step::Row(RowId { segment: first, row }, Box::new(slice)), self.archive, notes)
        };
        let mut matched = Vec::new();
        if !self.wanted.all() {
            self.select(segment, &mut matched)?;
            if matched.len() <= ROWS_FETCHED_MAX {
                for row in matched {
                    if let Some(slice) = segment.row(row)?
                        && step(row, slice, notes)?.is_break()
                    {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                return Ok(ControlFlow::Continue(()));
            }
        }
        let mut next = matched.into_iter().peekable();
        let mut result = Ok(ControlFlow::Continue(()));
        segment.rows(Columns::All, &self.times, &mut |row, slice| {
            if self.wanted.all() || next.next_if_eq(&row).is_some() {
                result = step(row, slice, notes);
            }
            match result {
                Ok(flow) => flow,
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        result
    }

    /// The numbers of the rows wanted, by the columns that decide it.
    fn select(&self, segment: &Segment, matched: &mut Vec<u64>) -> Result<(), Error> {
        let columns = self.wanted.columns();
        let by_id = columns.contains(&"session_id");
        let first = segment.meta().first;
        let (hosts, columns) = (self.wanted.hosts(), Columns::Named(&columns));
        segment.rows_of_hosts(&hosts, columns, &self.times, &mut |row, slice| {
            if self.wanted.accepts(RowId { segment: first, row }, &slice, by_id) {
                matched.push(row);
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    /// Rows of stripes without an index, from their packets. The index of a known segment is stored
    /// again.
    fn rebuilt(
        &mut self,
        part: &Part,
        indexed: &BTreeSet<StripeId>,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let (from, to) = (*self.times.start(), *self.times.end());
        let damage = notes.completeness.damage.len();
        let mut encoded = None;
        let (archive, wanted) = (&*self.archive, &self.wanted);
        let by_id = wanted.columns().contains(&"session_id");
        let flow = rebuild(archive, part, indexed, notes, &mut |stretch: Stretch, notes| {
            let is_whole =
                part.first.sequence >= archive.tail() && notes.completeness.damage.len() == damage;
            if part.segment.is_some() && is_whole {
                encoded = Some(stretch.encode(archive, part)?);
            } else {
                notes.completeness.unindexed_packets += stretch.packets;
            }
            notes.completeness.add_gaps(&stretch.gaps, from, to);
            let first = stretch.first;
            let step = Step::Part {
                first,
                epoch: stretch.epoch,
                time_min: part.time_min,
                is_indexed: part.segment.is_some(),
            };
            if visit(step, archive, notes)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            for (slice, row) in stretch.rows.into_iter().zip(0..) {
                let id = RowId { segment: first, row };
                let in_range = slice.start <= to && slice.end >= from;
                if in_range && wanted.accepts(id, &slice, by_id) {
                    notes.explain.rows_matched += 1;
                    if visit(Step::Row(id, Box::new(slice)), archive, notes)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if let (Some(encoded), Some(entry)) = (encoded, part.segment) {
            let place = (entry.index.sequence > 0).then_some((entry.index, entry.parts));
            let (catalog, cache) = (&mut self.archive.catalog, self.archive.cache.as_ref());
            catalog.store(encoded.entry(place), &encoded.parquet, cache);
        }
        Ok(flow)
    }
}

/// The stripes that rows of the segment name.
fn stripes_named(segment: &Segment) -> Result<BTreeSet<StripeId>, Error> {
    let mut stripes = BTreeSet::new();
    let columns = Columns::Named(&["piece_sequences", "piece_subs", "piece_columns"]);
    segment.rows(columns, &(Timestamp::MIN..=Timestamp::MAX), &mut |_, slice| {
        let pieces = slice.pieces.iter();
        stripes.extend(pieces.map(|piece| StripeId { sequence: piece.sequence, sub: piece.sub }));
        ControlFlow::Continue(())
    })?;
    Ok(stripes)
}
