//! Rows that match, part by part in ring order.

use core::ops::{ControlFlow, RangeInclusive};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::OnceLock;
use std::thread;

use format::directory::SegmentEntry;
use format::head::StripeId;
use format::slice::Slice;
use index::{Columns, LookUp, Needed, Segment, SegmentMeta};
use units::Timestamp;

use crate::Error;
use crate::archive::{Archive, Part};
use crate::identity::RowId;
use crate::rebuild::{Covered, Stretch, rebuild};
use crate::walk::{Flow, Notes};
use crate::wanted::Wanted;

/// So many rows of a segment are fetched ahead; more are read when they are handed out.
const ROWS_FETCHED_MAX: usize = 256;

/// Segments looked into before the first one's rows are handed out: one at first, so that a first
/// row comes soon, and twice as many each time up to this.
const PARTS_AHEAD: usize = 32;
/// Where so few are looked into at a time, their row groups are read one by one, when their turn
/// comes.
const FEW_PARTS: usize = 2;
/// Rows of a group that are read in full at first; the rest follows if it is wanted.
const ROWS_AT_FIRST: usize = 128;
/// Segments looked into at a time: more than there are processors, for they wait for the disk.
const THREADS: usize = 8;

/// What a scan meets.
pub(crate) enum Step {
    /// So many parts of so many are done.
    Progress { done: usize, of: usize },
    /// The rows that follow are of this part.
    Part {
        first: StripeId,
        epoch: u32,
        /// No row of this part or a later one starts earlier, as far as directory and heads tell.
        time_min: Timestamp,
        /// No row of what comes behind it starts earlier, or, from the newest on, later.
        behind: Timestamp,
        /// An index has its rows, so that their ids are final.
        is_indexed: bool,
        /// VLAN ids are part of its rows' keys.
        vlan_in_key: bool,
    },
    /// A row that is wanted.
    Row(RowId, Box<Slice>),
    /// No further row of this part starts before this time, or, from the newest on, after it. So
    /// many of its row groups are done, where one ends here.
    Bound { at: Timestamp, groups: Option<usize> },
    /// This part of the list is done.
    End { place: usize },
}

/// Receives steps.
pub(crate) type Visit<'v> =
    dyn FnMut(Step, &Archive, &mut Notes) -> Result<ControlFlow<()>, Error> + 'v;

/// What a look at a part's index gives.
enum Look {
    OutOfTime,
    /// Something of it may be wanted.
    Open(Box<Segment>),
    /// The session id that is wanted is of another segment.
    OfAnotherId,
    /// The filter of its group knows that no row is wanted.
    OfNoGroup,
    /// Its filter knows that no row is wanted; so many bytes were read for it.
    RuledOut(u64),
    /// There is none, or none that is whole in the cache.
    Absent,
    Found(Box<Found>),
}

/// The rows wanted of a segment.
struct Found {
    segment: Segment,
    /// Their numbers, ascending; `None` for all.
    matched: Option<Vec<u64>>,
    /// The rows themselves, where they are few.
    rows: Option<Vec<(u64, Slice)>>,
}

impl Found {
    fn unread(segment: Segment) -> Self {
        Self { segment, matched: None, rows: None }
    }
}

/// Where in a segment a reading goes on.
struct Next {
    /// How many groups are done.
    group: usize,
    /// The row that was handed out last.
    row: Option<u64>,
}

/// One scan over the sessions of a volume.
pub(crate) struct Scan<'a> {
    pub(crate) archive: &'a mut Archive,
    pub(crate) wanted: Wanted<'a>,
    /// Columns of the rows that are handed out.
    pub(crate) columns: Columns<'a>,
    pub(crate) times: RangeInclusive<Timestamp>,
    /// Rows without pieces in slots of these sequences need not be looked for.
    pub(crate) slots: Option<RangeInclusive<u64>>,
    pub(crate) way: Way,
}

/// In which order parts are gone over, and the rows of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Way {
    #[default]
    OldestFirst,
    NewestFirst,
}

impl Way {
    /// Row `other` comes behind row `one`.
    fn is_behind(self, one: u64, other: u64) -> bool {
        match self {
            Self::OldestFirst => other > one,
            Self::NewestFirst => other < one,
        }
    }
}

/// A part, and what is known of those around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    pub(crate) part: Part,
    /// No row of a later part starts earlier.
    pub(crate) later_min: Timestamp,
    /// No row of an earlier part starts later.
    pub(crate) earlier_max: Timestamp,
}

/// Where in a list of parts a scan begins and ends.
#[derive(Clone, Debug)]
pub(crate) struct Stretches {
    pub(crate) places: core::ops::Range<usize>,
    /// Row groups of the first part that are done.
    pub(crate) groups_done: usize,
}

/// What [`Scan::part`] is to do with a part.
#[derive(Clone, Copy)]
struct Turn<'l> {
    listed: &'l Listed,
    groups_done: usize,
}

impl Scan<'_> {
    /// Calls `visit` with every row wanted, in ring order and by start within a part.
    pub(crate) fn run(&mut self, notes: &mut Notes, visit: &mut Visit<'_>) -> Flow {
        let list = self.list();
        let all = Stretches { places: 0..list.len(), groups_done: 0 };
        self.over(&list, all, notes, visit)
    }

    /// All parts.
    pub(crate) fn list(&mut self) -> Vec<Listed> {
        let mut parts = self.archive.parts();
        if let Some(slots) = &self.slots {
            parts = parts_with(parts, slots);
        }
        listed(parts)
    }

    /// Calls `visit` with every row wanted of some parts of a list.
    pub(crate) fn over(
        &mut self,
        list: &[Listed],
        stretches: Stretches,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        let Stretches { places, mut groups_done } = stretches;
        let of = list.len();
        let ruled_out = self.ruled_out(notes);
        let mut places: VecDeque<usize> = match self.way {
            Way::OldestFirst => places.collect(),
            Way::NewestFirst => places.rev().collect(),
        };
        let mut ahead = 1;
        while let Some(&next) = places.front() {
            let done = if self.way == Way::OldestFirst { next } else { of - 1 - next };
            if visit(Step::Progress { done, of }, self.archive, notes)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let chunk: Vec<usize> = places.drain(..ahead.min(places.len())).collect();
            let parts = chunk.iter().filter_map(|&place| list.get(place));
            let parts: Vec<&Listed> = parts.collect();
            let is_eager = self.way == Way::OldestFirst && chunk.len() > FEW_PARTS;
            let looks = self.select_all(&parts, (&ruled_out, is_eager))?;
            for ((listed, look), place) in parts.iter().zip(looks).zip(chunk) {
                let turn = Turn { listed, groups_done: core::mem::take(&mut groups_done) };
                let flow = self.part(turn, look, notes, visit)?;
                if flow.is_break() || visit(Step::End { place }, self.archive, notes)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            ahead = (ahead * 2).min(PARTS_AHEAD);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn part(
        &mut self,
        turn: Turn<'_>,
        look: Look,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        let part = &turn.listed.part;
        let Some(entry) = part.segment else {
            let (stripes, times) = (part.first..=part.last, part.time_min..=Timestamp::MAX);
            if part.time_min > *self.times.end() || !self.wanted.may_be_of(&stripes, &times) {
                return Ok(ControlFlow::Continue(()));
            }
            return self.rebuilt(turn.listed, &Covered::default(), notes, visit);
        };
        let is_resumed = turn.groups_done > 0;
        notes.explain.segments += u64::from(!is_resumed);
        let found = match look {
            Look::OutOfTime => {
                notes.explain.pruned_by_time += 1;
                return Ok(ControlFlow::Continue(()));
            }
            Look::OfAnotherId => {
                notes.explain.pruned_by_id += 1;
                return Ok(ControlFlow::Continue(()));
            }
            Look::OfNoGroup => {
                notes.explain.pruned_by_group += 1;
                return Ok(ControlFlow::Continue(()));
            }
            Look::RuledOut(read_bytes) => {
                notes.explain.pruned_by_filter += 1;
                notes.explain.index_bytes += read_bytes;
                return Ok(ControlFlow::Continue(()));
            }
            Look::Absent => self.archive.reload(&entry)?.map(Found::unread),
            Look::Open(segment) => Some(Found::unread(*segment)),
            Look::Found(found) => Some(*found),
        };
        let Some(found) = found else {
            notes.explain.segments_rebuilt += 1;
            return self.rebuilt(turn.listed, &Covered::default(), notes, visit);
        };
        let meta = found.segment.meta();
        if !is_resumed {
            self.note_lacks(meta, notes);
        }
        let step = Step::Part {
            first: part.first,
            epoch: meta.epoch,
            time_min: part.time_min,
            behind: self.behind(turn.listed, !entry.summary.unindexed),
            is_indexed: true,
            vlan_in_key: meta.vlan_in_key,
        };
        if visit(step, self.archive, notes)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let (segment, flow) = self.segment(found, (&entry, turn.groups_done), notes, visit)?;
        if flow.is_break() || !entry.summary.unindexed {
            return Ok(flow);
        }
        self.left_out_of(&segment, turn.listed, notes, visit)
    }

    /// What rows that come behind a part, or one that is done as far as it is asked here, have.
    fn behind(&self, listed: &Listed, is_whole: bool) -> Timestamp {
        match self.way {
            Way::OldestFirst if is_whole => listed.later_min,
            Way::OldestFirst => listed.part.time_min,
            Way::NewestFirst if is_whole => listed.earlier_max,
            Way::NewestFirst => Timestamp::MAX,
        }
    }

    fn note_lacks(&self, meta: &SegmentMeta, notes: &mut Notes) {
        notes.completeness.add_gaps(&meta.gaps, *self.times.start(), *self.times.end());
        if meta.unread_packets > 0 && self.asks_for_names() {
            let unread = &mut notes.completeness.unread_packets;
            *unread = unread.saturating_add(meta.unread_packets);
        }
    }

    /// Rows of stripes that a segment's index left out.
    fn left_out_of(
        &mut self,
        segment: &Segment,
        listed: &Listed,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        let Some(entry) = listed.part.segment else { return Ok(ControlFlow::Continue(())) };
        // Every piece that was indexed has a row that names it.
        let left_out = segment.meta().left_out.clone();
        for left in &left_out {
            let packets = &mut notes.completeness.left_out_packets;
            *packets = packets.saturating_add(left.packets);
        }
        let indexed = match stripes_named(segment) {
            Err(Error::Index(error)) if error.is_of_file() => match self.archive.reload(&entry)? {
                Some(reloaded) => stripes_named(&reloaded)?,
                None => return Err(error.into()),
            },
            named => named?,
        };
        let has_rows = Covered { indexed, left_out };
        let part = Part { segment: None, ..listed.part };
        self.rebuilt(&Listed { part, ..*listed }, &has_rows, notes, visit)
    }

    /// Hands out the rows found. A file whose damage shows only now is given up for the INDEX
    /// stripes, and the rows go on where they stopped.
    fn segment(
        &mut self,
        mut found: Found,
        (entry, groups_done): (&SegmentEntry, usize),
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<(Segment, ControlFlow<()>), Error> {
        notes.explain.rows += if groups_done == 0 { found.segment.row_count() } else { 0 };
        let mut next = Next { group: groups_done, row: None };
        let mut flow = match found.rows.take() {
            Some(rows) => self.fetched(entry.summary.first, rows, notes, visit),
            None => self.read(&found, &mut next, notes, visit),
        };
        if let Err(Error::Index(error)) = &flow
            && error.is_of_file()
            && let Some(reloaded) = self.archive.reload(entry)?
        {
            notes.explain.index_bytes += found.segment.read_bytes();
            found.segment = reloaded;
            flow = self.read(&found, &mut next, notes, visit);
        }
        notes.explain.index_bytes += found.segment.read_bytes();
        Ok((found.segment, flow?))
    }

    fn fetched(
        &self,
        segment: StripeId,
        rows: Vec<(u64, Slice)>,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        for (row, slice) in rows {
            if self.step(RowId { segment, row }, slice, notes, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads the rows that matched, or all in time, from the place `next` on.
    fn read(
        &self,
        found: &Found,
        next: &mut Next,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        let first = found.segment.meta().first;
        let Some(matched) = &found.matched else {
            return self.by_groups(&found.segment, next, notes, visit);
        };
        let mut result = Ok(ControlFlow::Continue(()));
        found.segment.rows_at(matched, self.columns, &mut |row, slice| {
            if next.row.is_none_or(|done| row > done) {
                next.row = Some(row);
                result = self.step(RowId { segment: first, row }, slice, notes, visit);
            }
            match result {
                Ok(flow) => flow,
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        result
    }

    /// Reads the row groups of a segment one after the other, each when those before are handed
    /// out.
    fn by_groups(
        &self,
        segment: &Segment,
        next: &mut Next,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        while next.group < segment.group_count() {
            let group = match self.way {
                Way::OldestFirst => next.group,
                Way::NewestFirst => segment.group_count() - 1 - next.group,
            };
            if self.one_group(&segment.group(group), next, notes, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn one_group(
        &self,
        group: &Segment,
        next: &mut Next,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        let mut chosen: Vec<(u64, Option<Slice>)> = if self.wanted.all() {
            let mut all = Vec::new();
            group.rows(self.columns, &self.times, &mut |row, slice| {
                all.push((row, Some(slice)));
                ControlFlow::Continue(())
            })?;
            all
        } else {
            self.chosen(group)?.into_iter().collect()
        };
        if self.way == Way::NewestFirst {
            chosen.reverse();
        }
        chosen.retain(|(row, _)| next.row.is_none_or(|done| self.way.is_behind(done, *row)));
        let mut last = None;
        let first_count = chosen.len().min(ROWS_AT_FIRST);
        let (at_first, rest) = chosen.split_at_mut(first_count);
        for run in [at_first, rest] {
            self.fetch(group, run)?;
            for (row, slice) in run.iter_mut() {
                let Some(slice) = slice.take() else { continue };
                (next.row, last) = (Some(*row), Some(slice.start));
                let id = RowId { segment: group.meta().first, row: *row };
                if self.step(id, slice, notes, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if let Some(at) = last {
                let step = Step::Bound { at, groups: None };
                if visit(step, self.archive, notes)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        next.group += 1;
        last.map_or(Ok(ControlFlow::Continue(())), |at| {
            visit(Step::Bound { at, groups: Some(next.group) }, self.archive, notes)
        })
    }

    /// Reads the rows of a run that are not read yet.
    fn fetch(&self, segment: &Segment, run: &mut [(u64, Option<Slice>)]) -> Result<(), Error> {
        let mut unread: BTreeMap<u64, &mut Option<Slice>> = BTreeMap::new();
        unread.extend(run.iter_mut().filter(|(_, it)| it.is_none()).map(|(row, it)| (*row, it)));
        let numbers = Vec::from_iter(unread.keys().copied());
        segment.rows_at(&numbers, self.columns, &mut |row, slice| {
            if let Some(place) = unread.get_mut(&row) {
                **place = Some(slice);
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    fn step(&self, id: RowId, slice: Slice, notes: &mut Notes, visit: &mut Visit<'_>) -> Flow {
        if self.archive.catalog.shows(&slice).is_none() {
            return Ok(ControlFlow::Continue(()));
        }
        if slice.end <= self.archive.expired {
            notes.completeness.withhold(self.archive.expired, (slice.start, slice.end));
            return Ok(ControlFlow::Continue(()));
        }
        notes.explain.rows_matched += 1;
        visit(Step::Row(id, Box::new(slice)), self.archive, notes)
    }

    /// Looks into the segments of `parts`, several at a time; with `is_eager` rows are chosen, too.
    fn select_all(
        &self,
        parts: &[&Listed],
        (ruled_out, is_eager): (&BTreeSet<StripeId>, bool),
    ) -> Result<Vec<Look>, Error> {
        let looks: Vec<OnceLock<Look>> = parts.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((part, look)) = {
                let at = next.fetch_add(1, Ordering::Relaxed);
                parts.get(at).zip(looks.get(at))
            } {
                look.get_or_init(|| self.look(&part.part, (ruled_out, is_eager)));
            }
        };
        thread::scope(|scope| {
            for _ in 1..THREADS.min(parts.len()) {
                let builder = thread::Builder::new().name("select".to_owned());
                builder.spawn_scoped(scope, work).map_err(Error::Thread)?;
            }
            work();
            Ok::<(), Error>(())
        })?;
        Ok(looks.into_iter().map(|look| look.into_inner().unwrap_or(Look::Absent)).collect())
    }

    /// Rows are chosen by what is found in payload.
    fn asks_for_names(&self) -> bool {
        self.wanted.columns().into_iter().any(index::is_name)
    }

    /// The segments that filters over groups of them know to have nothing that is wanted.
    fn ruled_out(&self, notes: &mut Notes) -> BTreeSet<StripeId> {
        let index::RuledOut { segments, read_bytes } =
            self.archive.catalog.rule_out(&self.wanted.needed_by_most());
        notes.explain.index_bytes += read_bytes;
        segments
    }

    fn look(&self, part: &Part, (ruled_out, is_eager): (&BTreeSet<StripeId>, bool)) -> Look {
        let Some(entry) = part.segment else { return Look::Absent };
        let summary = &entry.summary;
        if summary.time_min > *self.times.end() || summary.time_max < *self.times.start() {
            return Look::OutOfTime;
        }
        if matches!(self.wanted, Wanted::Nothing) && !summary.gaps && !summary.unindexed {
            return Look::RuledOut(0);
        }
        // What is missing from a segment counts whatever its rows are.
        let lacks_names = summary.unread && self.asks_for_names();
        let is_whole = !summary.gaps && !summary.unindexed && !lacks_names;
        let times = summary.time_min..=summary.time_max;
        if is_whole && !self.wanted.may_be_of(&(summary.first..=summary.first), &times) {
            return Look::OfAnotherId;
        }
        let is_ruled_out = ruled_out.contains(&summary.first) && !self.wanted.wants_known(&times);
        if is_whole && is_ruled_out {
            return Look::OfNoGroup;
        }
        let needed = if is_whole { self.wanted.needed(&times) } else { vec![Needed::default()] };
        let mut read_bytes = 0;
        for needed in &needed {
            match self.archive.catalog.look_up(&entry, self.archive.cache.as_ref(), needed) {
                LookUp::Absent => return Look::Absent,
                LookUp::RuledOut(bytes) => read_bytes += bytes,
                LookUp::Found(segment) if !is_eager => return Look::Open(segment),
                LookUp::Found(segment) => {
                    let found = self.selected(*segment);
                    return found.map_or(Look::Absent, |found| Look::Found(Box::new(found)));
                }
            }
        }
        Look::RuledOut(read_bytes)
    }

    /// The rows wanted of a segment, by the columns that decide it; the rows themselves where they
    /// are few.
    fn selected(&self, segment: Segment) -> Result<Found, Error> {
        if self.wanted.all() {
            return Ok(Found { segment, matched: None, rows: None });
        }
        if matches!(self.wanted, Wanted::Nothing) {
            return Ok(Found { segment, matched: Some(Vec::new()), rows: None });
        }
        let mut chosen = self.chosen(&segment)?.into_iter().collect::<Vec<_>>();
        let matched = chosen.iter().map(|(row, _)| *row).collect();
        let is_fetched = chosen.iter().all(|(_, slice)| slice.is_some());
        if !is_fetched && chosen.len() > ROWS_FETCHED_MAX {
            return Ok(Found { segment, matched: Some(matched), rows: None });
        }
        self.fetch(&segment, &mut chosen)?;
        let rows = chosen.into_iter().filter_map(|(row, slice)| Some((row, slice?))).collect();
        Ok(Found { segment, matched: Some(matched), rows: Some(rows) })
    }

    /// The rows wanted of a segment by the columns that decide it; the rows themselves where
    /// nothing more of them is to be read.
    fn chosen(&self, segment: &Segment) -> Result<BTreeMap<u64, Option<Slice>>, Error> {
        let mut chosen = BTreeMap::new();
        if matches!(self.wanted, Wanted::Nothing) {
            return Ok(chosen);
        }
        let columns = self.wanted.columns();
        let by_id = columns.contains(&"session_id");
        let meta = segment.meta();
        let first = meta.first;
        let needed = self.wanted.needed(&(meta.time_min..=meta.time_max));
        // Few rows have the hosts, so all there is to know of them is read at once.
        let at_once = needed.iter().all(|needed| !needed.hosts.is_empty());
        let columns = if at_once { self.columns.and(&columns) } else { columns };
        let columns = Columns::Named(&columns);
        let mut fetched = 0;
        for needed in &needed {
            segment.rows_with(needed, columns, &self.times, &mut |row, slice| {
                if self.wanted.accepts(RowId { segment: first, row }, &slice, by_id) {
                    let is_all = at_once && fetched < ROWS_FETCHED_MAX;
                    let is_enough = is_all || !self.wanted.wants_all_of(&slice);
                    fetched += usize::from(is_all);
                    chosen.insert(row, is_enough.then_some(slice));
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(chosen)
    }

    /// Rows of stripes without an index, from their packets. The index of a known segment is stored
    /// again.
    fn rebuilt(
        &mut self,
        listed: &Listed,
        covered: &Covered,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let (part, behind) = (&listed.part, self.behind(listed, false));
        let (from, to) = (*self.times.start(), *self.times.end());
        let damage = notes.completeness.damage.len();
        let mut encoded = None;
        let (archive, wanted) = (&*self.archive, &self.wanted);
        let by_id = wanted.columns().contains(&"session_id");
        let flow = rebuild(archive, part, covered, notes, &mut |stretch: Stretch, notes| {
            let is_whole =
                part.first.sequence >= archive.tail() && notes.completeness.damage.len() == damage;
            let is_one = stretch.is_whole;
            if part.segment.is_some() && is_whole && is_one {
                encoded = Some(stretch.encoded);
            } else {
                let unindexed = &mut notes.completeness.unindexed_packets;
                *unindexed = unindexed.saturating_add(stretch.packets);
            }
            notes.completeness.add_gaps(&stretch.gaps, from, to);
            let first = stretch.first;
            let step = Step::Part {
                first,
                epoch: stretch.epoch,
                time_min: part.time_min,
                behind,
                is_indexed: part.segment.is_some() && is_one,
                vlan_in_key: archive.vlan_in_key,
            };
            if visit(step, archive, notes)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            for (slice, row) in stretch.rows.into_iter().zip(0..) {
                let id = RowId { segment: first, row };
                let in_range = slice.start <= to && slice.end >= from;
                if in_range && wanted.accepts(id, &slice, by_id) {
                    if slice.end <= archive.expired {
                        notes.completeness.withhold(archive.expired, (slice.start, slice.end));
                        continue;
                    }
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

/// Parts with what is known of those around them.
fn listed(parts: Vec<Part>) -> Vec<Listed> {
    let (mut latest, mut earliest) = (Timestamp::MIN, Timestamp::MAX);
    let mut list = Vec::with_capacity(parts.len());
    for part in parts {
        list.push(Listed { part, later_min: Timestamp::MAX, earlier_max: latest });
        latest = latest.max(part.time_max);
    }
    for listed in list.iter_mut().rev() {
        listed.later_min = earliest;
        earliest = earliest.min(listed.part.time_min);
        listed.part.time_min = earliest;
    }
    list
}

/// The parts whose rows may have pieces in some slots: those that lie there, and the next segment,
/// for rows may name pieces of the one before theirs.
fn parts_with(parts: Vec<Part>, slots: &RangeInclusive<u64>) -> Vec<Part> {
    let is_behind = |part: &Part| part.first.sequence > *slots.end();
    let next = parts.iter().position(|part| part.segment.is_some() && is_behind(part));
    let until = next.map_or(parts.len(), |next| next + 1);
    let parts = parts.into_iter().take(until);
    parts.filter(|part| part.last.sequence >= *slots.start()).collect()
}

/// The stripes that rows of the segment name.
fn stripes_named(segment: &Segment) -> Result<BTreeSet<StripeId>, Error> {
    let mut stripes = BTreeSet::new();
    let columns = Columns::Named(&["piece_sequences", "piece_subs", "piece_columns"]);
    segment.rows(columns, &(Timestamp::MIN..=Timestamp::MAX), &mut |_, slice| {
        let pieces = slice.pieces.iter().map(|span| span.piece);
        stripes.extend(pieces.map(|piece| StripeId { sequence: piece.sequence, sub: piece.sub }));
        ControlFlow::Continue(())
    })?;
    Ok(stripes)
}
