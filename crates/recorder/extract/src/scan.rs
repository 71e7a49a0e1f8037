//! Rows that match, part by part in ring order.

use core::ops::{ControlFlow, RangeInclusive};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::OnceLock;
use std::thread;

use format::directory::SegmentEntry;
use format::head::StripeId;
use format::session_row::SessionRow;
use index::{Columns, Encoded, LookUp, Needed, Segment, SegmentMeta};
use indexer::{Around, Covered, Edges, SegmentsBefore};
use units::number::to_u64;
use units::{Epoch, Sequence, Timestamp};

use crate::Error;
use crate::archive::{Archive, Part};
use crate::identity::{Identity, RowId};
use crate::order::{Order, Placed, Rows, parts_before, parts_with, placed};
use crate::rebuild::{Stretch, rebuild};
use crate::walk::{Flow, Notes};
use crate::wanted::Wanted;

/// So many rows of a segment are fetched ahead; more are read when they are handed out. And where
/// few are asked for, its further row groups are looked into when they are needed.
const ROWS_FETCHED_MAX: usize = 256;
/// More are not few: a row group has hardly more.
const FEW_MAX: u64 = 1 << 12;

/// What a scan for sessions up to this limit is told of it.
pub(crate) fn few_of(limit: u64) -> Option<u64> {
    Some(limit).filter(|&limit| limit <= FEW_MAX)
}

/// Segments looked into at a time, before the rows of the first of them are handed out: at first
/// one, then twice as many as before, up to this, so that a first row does not wait for others.
const PARTS_AHEAD_MAX: usize = 32;
/// Segments looked into at a time: more than there are processors, for they wait for the disk.
const THREADS: usize = 8;

/// What a scan meets.
pub(crate) enum Step {
    /// So many parts of so many are done.
    Progress { done: usize, of: usize },
    /// The rows that follow are of this part.
    Part {
        /// Its first stripe. One without an index may come in several stretches.
        first: StripeId,
        /// Neither it nor a part that follows has stripes that an earlier one had: segments may
        /// overlap, and their rows name the same packets then.
        is_apart: bool,
        epoch: Epoch,
        /// No row of this part or of those that follow in the scan starts earlier, or, from the
        /// newest part back, ends later, as far as directory and heads say.
        edge: Timestamp,
        /// The same of the parts that follow, and of what is still to come of this one besides the
        /// rows that follow at once, which are in the order of their start.
        beyond: Timestamp,
        /// An index has its rows, so that their ids are final.
        is_indexed: bool,
        /// They come by their ids, and so do those of the part that follow: it can be read again
        /// from any row.
        is_by_id: bool,
        /// Rows up to this time may lack names that a row of it has, of the same session.
        reach: Timestamp,
        /// VLAN ids are part of its rows' keys.
        vlan_in_key: bool,
        rows: Rows,
    },
    /// A row that is wanted.
    Row(RowId, Box<SessionRow>),
    /// From the newest part back: the rows that follow are of an earlier row group of the part, and
    /// no row that is still to come starts later.
    Before(Timestamp),
}

/// Receives steps.
pub(crate) type Visit<'v> =
    dyn FnMut(Step, &Archive, &mut Notes) -> Result<ControlFlow<()>, Error> + 'v;

/// What a look at a part's index gives.
enum Look {
    OutOfTime,
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
    /// Of the rows.
    times: RangeInclusive<Timestamp>,
    /// The columns that decide.
    deciding: Vec<&'static str>,
    /// What they have, with the row groups that may have it.
    needed: Vec<(Needed, Vec<usize>)>,
    /// Row groups that were looked into, in the order of the scan.
    chosen: VecDeque<(usize, Chosen)>,
    /// Those behind them that may have wanted rows.
    rest: VecDeque<usize>,
    /// Rows that are not the last of their sessions, although they say so.
    gone_on: BTreeSet<u64>,
    /// Rows of the row groups that were looked into and are not counted yet.
    looked_at: u64,
}

impl Found {
    fn looked_into(&mut self, group: usize) {
        self.rest.pop_front();
        let rows = self.segment.numbers_of_group(group);
        self.looked_at += rows.end - rows.start;
    }
}

/// The rows wanted of a row group.
enum Chosen {
    /// All that lie in the times.
    All,
    /// Those with these numbers, ascending.
    Numbers(Vec<u64>),
    /// These.
    Rows(Vec<(u64, SessionRow)>),
}

impl Chosen {
    fn count(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Numbers(numbers) => numbers.len(),
            Self::Rows(rows) => rows.len(),
        }
    }
}

/// Stripes of which rows are made on the way.
struct Unindexed<'u> {
    /// Where they lie.
    part: &'u Part,
    /// From where sessions may go on.
    before: Option<SegmentsBefore>,
    /// Of these none are made.
    covered: &'u Covered,
    /// Those of the segment that has others.
    around: Option<&'u mut Around>,
}

/// What was handed out of a segment.
#[derive(Default)]
struct Handed {
    groups: BTreeSet<usize>,
    /// Of the next row group, the rows before this one.
    next: u64,
}

/// How many parts are looked into at a time: twice as many as before, but of a scan for few rows
/// not many more than it will need if rows go on as they have come.
struct Ahead {
    parts: usize,
    few: Option<u64>,
    /// As many rows were found. They may be of fewer sessions, so others are looked for behind
    /// them, in small steps at first.
    has_enough: bool,
}

impl Ahead {
    /// `rows` were found in `parts`.
    fn advance(&mut self, rows: u64, parts: usize) {
        self.parts = (2 * self.parts).min(PARTS_AHEAD_MAX);
        let Some(few) = self.few.filter(|_| rows > 0 && !self.has_enough) else { return };
        let needed = few.saturating_sub(rows).saturating_mul(to_u64(parts)).div_ceil(rows);
        self.parts = self.parts.min(usize::try_from(needed).unwrap_or(usize::MAX).max(1));
        self.has_enough = needed == 0;
    }
}

/// One scan over the sessions of a volume.
pub(crate) struct Scan<'a> {
    pub(crate) archive: &'a mut Archive,
    pub(crate) wanted: Wanted<'a>,
    /// Columns of the rows that are handed out.
    pub(crate) columns: Columns<'a>,
    pub(crate) times: RangeInclusive<Timestamp>,
    /// Rows without pieces in slots of these sequences need not be looked for.
    pub(crate) slots: Option<RangeInclusive<Sequence>>,
    /// Of the parts; within a part rows come by their start.
    pub(crate) order: Order,
    /// Parts before it were scanned before.
    pub(crate) begin: StripeId,
    /// The scan ends as soon as about so many rows are found, which are at most [`FEW_MAX`]: no
    /// more is looked into than is needed for them.
    pub(crate) few: Option<u64>,
}

impl<'a> Scan<'a> {
    /// Of the whole ring, from its oldest part on.
    pub(crate) fn new(
        archive: &'a mut Archive,
        wanted: Wanted<'a>,
        columns: Columns<'a>,
        times: RangeInclusive<Timestamp>,
    ) -> Self {
        let (order, begin) = (Order::OldestFirst, StripeId::default());
        Self { archive, wanted, columns, times, slots: None, order, begin, few: None }
    }

    /// The same in the order of time: segments that overlap wait for each other.
    pub(crate) fn by_time(self) -> Self {
        Self { order: Order::ByTime, ..self }
    }

    /// Calls `visit` with every row wanted, part by part, and by start within a part.
    pub(crate) fn run(&mut self, notes: &mut Notes, visit: &mut Visit<'_>) -> Flow {
        let mut parts = self.archive.parts();
        if let Some(slots) = &self.slots {
            parts = parts_with(parts, slots);
        }
        let parts = placed(parts, self.order);
        let of = parts.len();
        let parts = parts.get(parts_before(&parts, self.begin)..).unwrap_or_default();
        let ruled_out = self.ruled_out(notes);
        let (mut rest, few) = (parts, self.few);
        let mut ahead = Ahead { parts: 1, few, has_enough: false };
        let rows_before = notes.explain.rows_matched;
        while !rest.is_empty() {
            let done = of - rest.len();
            if visit(Step::Progress { done, of }, self.archive, notes)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let (next, behind) = rest.split_at(ahead.parts.min(rest.len()));
            rest = behind;
            let looks = self.select_all(next, &ruled_out)?;
            for (placed, look) in next.iter().zip(looks) {
                if self.part(placed, look, notes, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            ahead.advance(notes.explain.rows_matched - rows_before, parts.len() - rest.len());
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Calls `visit` with every row wanted of one part.
    pub(crate) fn run_part(
        &mut self,
        part: &Part,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        let (edge, beyond) = (part.time_min, part.time_min);
        let before = Timestamp::MIN;
        let rows = Rows::default();
        let placed = Placed { part: *part, edge, beyond, is_apart: false, before, rows };
        let look = self.look(&placed, &BTreeSet::new());
        self.part(&placed, look, notes, visit)
    }

    fn part(
        &mut self,
        placed: &Placed,
        look: Look,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        let &Placed { ref part, edge, beyond, is_apart, before, rows } = placed;
        let Some(entry) = part.segment else {
            let (stripes, times) = (part.first..=part.last, part.time_min..=Timestamp::MAX);
            if part.time_min > *self.times.end() || !self.wanted.may_be_of(&stripes, &times) {
                return Ok(ControlFlow::Continue(()));
            }
            return self.rebuilt_whole(placed, notes, visit);
        };
        notes.explain.segments += 1;
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
            Look::Absent => match self.archive.reload(&entry)? {
                Some(segment) => Some(self.selected(segment, self.times_of(placed))?),
                None => None,
            },
            Look::Found(found) => Some(*found),
        };
        let Some(mut found) = found else {
            return self.rebuilt_whole(placed, notes, visit);
        };
        let meta = found.segment.meta();
        self.note(meta, notes);
        let has_rest = entry.summary.unindexed;
        let step = Step::Part {
            first: part.first,
            is_apart: is_apart && !has_rest,
            epoch: meta.epoch,
            edge,
            beyond: if has_rest { edge } else { beyond },
            is_indexed: true,
            is_by_id: !has_rest,
            reach: if has_rest { Timestamp::MAX } else { before },
            vlan_in_key: meta.vlan_in_key,
            rows,
        };
        if has_rest {
            let flow = self.rebuilt_rest(placed, (&mut found, &entry), notes, visit)?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        if visit(step, self.archive, notes)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.segment(found, (&entry, beyond), notes, visit)
    }

    /// What a segment says of itself.
    fn note(&self, meta: &SegmentMeta, notes: &mut Notes) {
        notes.met.add_segment(meta);
        notes.completeness.add_gaps(&meta.gaps, *self.times.start(), *self.times.end());
        if meta.unread_packets > 0 && self.asks_for_names() {
            let unread = &mut notes.completeness.unread_packets;
            *unread = unread.saturating_add(meta.unread_packets);
        }
    }

    /// Rows of a part of which no index is left: with sessions that go on from those before.
    fn rebuilt_whole(&mut self, placed: &Placed, notes: &mut Notes, visit: &mut Visit<'_>) -> Flow {
        let part = &placed.part;
        notes.explain.segments_rebuilt += u64::from(part.segment.is_some());
        let before = self.archive.before(part);
        let covered = &Covered::default();
        let unindexed = Unindexed { part, before, covered, around: None };
        self.rebuilt(unindexed, placed, notes, visit)
    }

    /// Rows of what a segment has none of: of the sessions that it has other rows of.
    fn rebuilt_rest(
        &mut self,
        placed: &Placed,
        (found, entry): (&mut Found, &SegmentEntry),
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        for left in &found.segment.meta().left_out {
            let packets = &mut notes.completeness.left_out_packets;
            *packets = packets.saturating_add(left.packets);
        }
        let mut around = match Around::of(&found.segment) {
            Err(error) if error.is_of_file() => match self.archive.reload(entry)? {
                Some(reloaded) => Around::of(&reloaded)?,
                None => return Err(error.into()),
            },
            around => around?,
        };
        let (next, catalog) = (self.archive.catalog.behind(entry), &self.archive.catalog);
        let is_rowless = |it: &SegmentEntry| it.summary.sessions == 0 && it.summary.unindexed;
        around.set_edges(Edges {
            first: catalog.in_front(entry).filter(is_rowless).map(|_| entry.summary.time_min),
            last: next.filter(is_rowless).map(|_| entry.summary.time_max),
        });
        if let Some(next) = next.and_then(|next| self.archive.segment(&next).ok()?) {
            around.look_behind(&next)?;
        }
        let part = &Part { segment: None, ..placed.part };
        let mut before = self.archive.before(part);
        if let (Some(before), Ok(file)) = (&mut before, found.segment.file()) {
            before.files.insert(0, file.into());
        }
        let covered = &core::mem::take(&mut around.covered);
        let unindexed = Unindexed { part, before, covered, around: Some(&mut around) };
        let flow = self.rebuilt(unindexed, placed, notes, visit)?;
        found.gone_on = around.gone_on;
        Ok(flow)
    }

    /// Hands out the rows found. A file whose damage shows only now is given up for the INDEX
    /// stripes, and the rows go on where they stopped.
    fn segment(
        &mut self,
        mut found: Found,
        (entry, beyond): (&SegmentEntry, Timestamp),
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        let mut handed = Handed::default();
        // Rows of what the segment left out may have any time.
        let beyond = Some(beyond).filter(|_| !entry.summary.unindexed);
        let mut flow = self.read(&mut found, (&mut handed, beyond), notes, visit);
        if let Err(Error::Index(error)) = &flow
            && error.is_of_file()
            && let Some(reloaded) = self.archive.reload(entry)?
        {
            notes.explain.index_bytes += found.segment.read_bytes();
            let gone_on = core::mem::take(&mut found.gone_on);
            found = Found { gone_on, ..self.selected(reloaded, found.times)? };
            flow = self.read(&mut found, (&mut handed, beyond), notes, visit);
        }
        notes.explain.index_bytes += found.segment.read_bytes();
        flow
    }

    /// Reads the rows that matched, or all in time, row group by row group, but for those that were
    /// handed out.
    fn read(
        &self,
        found: &mut Found,
        (handed, beyond): (&mut Handed, Option<Timestamp>),
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        while let Some((group, chosen)) = self.next_chosen(found)? {
            notes.explain.rows += core::mem::take(&mut found.looked_at);
            if handed.groups.contains(&group) {
                continue;
            }
            if self.read_group(found, (group, chosen, &mut handed.next), notes, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            handed.groups.insert(group);
            handed.next = 0;
            let is_last = found.chosen.is_empty() && found.rest.is_empty();
            if self.order == Order::NewestFirst && !is_last {
                let latest = latest_start(found, beyond).unwrap_or(Timestamp::MAX);
                if visit(Step::Before(latest), self.archive, notes)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn read_group(
        &self,
        Found { segment, times, gone_on, .. }: &Found,
        (group, chosen, next): (usize, Chosen, &mut u64),
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        let first = segment.meta().first;
        let mut result = Ok(ControlFlow::Continue(()));
        let mut step = |row, mut slice: SessionRow| {
            slice.continues |= gone_on.contains(&row);
            if row >= *next {
                *next = row + 1;
                result = self.step(RowId { segment: first, row }, slice, notes, visit);
            }
            match result {
                Ok(flow) => flow,
                Err(_) => ControlFlow::Break(()),
            }
        };
        match chosen {
            Chosen::All => segment.rows_of_group(group, self.columns, times, &mut step)?,
            Chosen::Numbers(matched) => segment.rows_at(&matched, self.columns, &mut step)?,
            Chosen::Rows(rows) => {
                for (row, slice) in rows {
                    if step(row, slice).is_break() {
                        break;
                    }
                }
            }
        }
        result
    }

    fn step(&self, id: RowId, slice: SessionRow, notes: &mut Notes, visit: &mut Visit<'_>) -> Flow {
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

    /// Looks into the segments of `parts`, several at a time.
    fn select_all(
        &self,
        parts: &[Placed],
        ruled_out: &BTreeSet<StripeId>,
    ) -> Result<Vec<Look>, Error> {
        let looks: Vec<OnceLock<Look>> = parts.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((part, look)) = {
                let at = next.fetch_add(1, Ordering::Relaxed);
                parts.get(at).zip(looks.get(at))
            } {
                look.get_or_init(|| self.look(part, ruled_out));
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

    /// The times of the rows that are wanted of a part. A name is in all rows that are made behind
    /// the first one that has it. Those that the indexer had no time for are made last, and where
    /// the clock was set back later rows have earlier times.
    fn times_of(&self, placed: &Placed) -> RangeInclusive<Timestamp> {
        let from = *self.times.start();
        let is_rest = placed.part.segment.is_some_and(|entry| entry.summary.unindexed);
        let is_behind = placed.part.time_max().max(placed.before) >= from;
        let wants_earlier = self.wanted.is_for_names() && (is_rest || is_behind);
        let from = if wants_earlier { Timestamp::MIN } else { from };
        from..=*self.times.end()
    }

    fn look(&self, placed: &Placed, ruled_out: &BTreeSet<StripeId>) -> Look {
        let Some(entry) = placed.part.segment else { return Look::Absent };
        let summary = &entry.summary;
        let times = self.times_of(placed);
        if summary.time_min > *times.end() || summary.time_max < *times.start() {
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
                LookUp::Found(segment) => {
                    let found = self.selected(*segment, self.times_of(placed));
                    return found.map_or(Look::Absent, |found| Look::Found(Box::new(found)));
                }
            }
        }
        Look::RuledOut(read_bytes)
    }

    /// The rows wanted of a segment, by the columns that decide it; the rows themselves where they
    /// are few.
    fn selected(&self, segment: Segment, times: RangeInclusive<Timestamp>) -> Result<Found, Error> {
        let meta = segment.meta();
        let has_rest = meta.unindexed_packets > 0;
        let mut needed = Vec::new();
        if !matches!(self.wanted, Wanted::Nothing) {
            for mut one in self.wanted.needed(&(meta.time_min..=meta.time_max)) {
                if has_rest {
                    // Of a session that has but one row here some may still be made.
                    one.sums.clear();
                }
                let groups = segment.groups_with(&one, &times)?;
                needed.push((one, groups));
            }
        }
        let numbers = |group| self.wanted.numbers(meta.first, segment.numbers_of_group(group));
        let has_wanted = |group: &usize| numbers(*group).is_none_or(|rows| !rows.is_empty());
        let groups = needed.iter().flat_map(|(_, groups)| groups).copied();
        let groups: BTreeSet<usize> = groups.filter(has_wanted).collect();
        let mut rest = VecDeque::from_iter(groups);
        if self.order == Order::NewestFirst {
            rest.make_contiguous().reverse();
        }
        let deciding = self.wanted.columns();
        let (chosen, gone_on, looked_at) = (VecDeque::new(), BTreeSet::new(), 0);
        let mut found =
            Found { segment, times, deciding, needed, chosen, rest, gone_on, looked_at };
        // Which rows are the last ones is known when those are made that it does not have.
        if self.wanted.all() || has_rest {
            return Ok(found);
        }
        let mut count = 0;
        while let Some(&group) = found.rest.front() {
            if self.few.is_some() && count >= ROWS_FETCHED_MAX {
                break;
            }
            let chosen = self.chosen(&found, group, count)?;
            count += chosen.count();
            found.looked_into(group);
            found.chosen.push_back((group, chosen));
        }
        Ok(found)
    }

    /// The next row group, looked into now where it was not before.
    fn next_chosen(&self, found: &mut Found) -> Result<Option<(usize, Chosen)>, Error> {
        if let Some(next) = found.chosen.pop_front() {
            return Ok(Some(next));
        }
        let Some(&group) = found.rest.front() else { return Ok(None) };
        let all = self.wanted.all();
        let chosen = if all { Chosen::All } else { self.chosen(found, group, usize::MAX)? };
        found.looked_into(group);
        Ok(Some((group, chosen)))
    }

    /// The rows wanted of a row group, of a segment of which `count` are chosen.
    fn chosen(&self, found: &Found, group: usize, count: usize) -> Result<Chosen, Error> {
        let Found { segment, times, deciding, needed, gone_on, .. } = found;
        let by_id = deciding.contains(&"session_id");
        // Few rows have the hosts, so all there is to know of them is read at once.
        let at_once = needed.iter().all(|(needed, _)| !needed.hosts.is_empty());
        let whole = at_once.then(|| self.columns.and(deciding));
        let columns = Columns::Named(whole.as_deref().unwrap_or(deciding));
        let first = segment.meta().first;
        let numbers = self.wanted.numbers(first, segment.numbers_of_group(group));
        let is_known = numbers.is_some();
        let (mut matched, mut fetched) =
            (BTreeSet::from_iter(numbers.unwrap_or_default()), BTreeMap::new());
        for (needed, _) in needed.iter().filter(|(_, groups)| groups.contains(&group) && !is_known)
        {
            let mut visit = |row, mut slice: SessionRow| {
                slice.continues |= gone_on.contains(&row);
                if self.wanted.accepts(RowId { segment: first, row }, &slice, by_id) {
                    matched.insert(row);
                    if at_once && fetched.len().saturating_add(count) < ROWS_FETCHED_MAX {
                        fetched.insert(row, slice);
                    }
                }
                ControlFlow::Continue(())
            };
            segment.rows_of_group_with((group, needed), columns, times, &mut visit).map(drop)?;
        }
        if fetched.len() == matched.len() {
            return Ok(Chosen::Rows(Vec::from_iter(fetched)));
        }
        let matched = Vec::from_iter(matched);
        if matched.len().saturating_add(count) > ROWS_FETCHED_MAX {
            return Ok(Chosen::Numbers(matched));
        }
        let mut rows = Vec::new();
        segment.rows_at(&matched, self.columns, &mut |row, slice| {
            rows.push((row, slice));
            ControlFlow::Continue(())
        })?;
        Ok(Chosen::Rows(rows))
    }

    /// Rows of stripes without an index, from their packets. The index of a known segment is stored
    /// again.
    fn rebuilt(
        &mut self,
        Unindexed { part, before, covered, mut around }: Unindexed<'_>,
        &Placed { edge, is_apart, rows: part_rows, .. }: &Placed,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let (from, to) = (*self.times.start(), *self.times.end());
        let first_end = if self.wanted.is_for_names() { Timestamp::MIN } else { from };
        let damage = notes.completeness.damage.len();
        let (mut encoded, mut split) = (None, BTreeSet::new());
        let (archive, wanted) = (&*self.archive, &self.wanted);
        let by_id = wanted.columns().contains(&"session_id");
        let flow =
            rebuild(archive, (part, before), covered, notes, &mut |stretch: Stretch, notes| {
                let (mut rows, is_one) = (stretch.rows, stretch.is_whole);
                if let Some(around) = &mut around {
                    around.unite(&mut rows);
                }
                let is_whole = part.first.sequence >= archive.tail()
                    && notes.completeness.damage.len() == damage;
                if part.segment.is_some() && is_whole && is_one {
                    encoded = Some(stretch.encoded);
                } else {
                    let unindexed = &mut notes.completeness.unindexed_packets;
                    *unindexed = unindexed.saturating_add(stretch.packets);
                }
                notes.completeness.add_gaps(&stretch.gaps, from, to);
                notes.met.add_rows(&rows);
                let step = Step::Part {
                    first: part.first,
                    is_apart,
                    epoch: stretch.epoch,
                    edge,
                    beyond: edge,
                    is_indexed: part.segment.is_some() && is_one,
                    is_by_id: part.segment.is_some() && is_one,
                    reach: if around.is_some() { Timestamp::MAX } else { Timestamp::MIN },
                    vlan_in_key: archive.vlan_in_key,
                    rows: part_rows,
                };
                if visit(step, archive, notes)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                for (slice, row) in rows.into_iter().zip(0..) {
                    let id = RowId { segment: stretch.first, row };
                    let in_range = slice.start <= to && slice.end >= first_end;
                    let is_split = around.as_ref().is_some_and(|around| around.is_split(&slice));
                    if in_range && is_split && wanted.may_want(id, &slice) {
                        split.insert(Identity::of(&slice));
                    }
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
        notes.completeness.split_sessions += to_u64(split.len());
        if let (Some(encoded), Some(entry)) = (encoded, part.segment) {
            self.store(&encoded, &entry);
        }
        Ok(flow)
    }

    /// The index of a known segment was made again.
    fn store(&mut self, encoded: &Encoded, entry: &SegmentEntry) {
        let place = (entry.index.sequence > Sequence(0)).then_some((entry.index, entry.parts));
        let (catalog, cache) = (&mut self.archive.catalog, self.archive.cache.as_ref());
        catalog.store(encoded.entry(place), &encoded.parquet, cache);
    }
}

/// No row that is still to come of these, or is of parts that end at `beyond`, starts later, where
/// that is known.
fn latest_start(found: &Found, beyond: Option<Timestamp>) -> Option<Timestamp> {
    let chosen = found.chosen.iter().map(|(group, _)| group);
    let mut groups = chosen.chain(&found.rest);
    groups.try_fold(beyond?, |latest, &group| Some(latest.max(found.segment.start_max(group)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_parts_are_looked_into_as_few_rows_will_need() {
        let steps = |few, rows_of: fn(usize) -> u64| {
            let mut ahead = Ahead { parts: 1, few, has_enough: false };
            let mut done = 0;
            let mut step = || {
                done += ahead.parts;
                ahead.advance(rows_of(done), done);
                ahead.parts
            };
            (0..8).map(|_| step()).collect::<Vec<_>>()
        };
        assert_eq!(steps(None, |_| 1000), [2, 4, 8, 16, 32, 32, 32, 32]);
        assert_eq!(steps(Some(100), |_| 0), [2, 4, 8, 16, 32, 32, 32, 32]);
        // One in each part: behind the hundredth it begins anew.
        assert_eq!(steps(Some(100), to_u64), [2, 4, 8, 16, 32, 32, 5, 1]);
        assert_eq!(steps(Some(5), |_| 9), [1, 2, 4, 8, 16, 32, 32, 32]);
    }
}
