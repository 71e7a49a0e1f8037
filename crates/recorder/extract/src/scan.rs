//! Rows that match, part by part in ring order.

use core::ops::{ControlFlow, RangeInclusive};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::thread;

use format::directory::SegmentEntry;
use format::head::StripeId;
use format::session_row::SessionRow;
use index::{Columns, LookUp, Needed, Segment};
use query::{Query, Required};
use units::Timestamp;

use crate::Error;
use crate::archive::{Archive, Part};
use crate::candidates::{Candidates, Question};
use crate::identity::{Identity, RowId};
use crate::known::{Alive, Known};
use crate::order::{Order, Placed, parts_before, parts_with, placed};
use crate::rebuild::{Covered, Stretch, rebuild};
use crate::walk::{Flow, Notes};
use crate::windows::Windows;

/// So many rows of a segment are fetched ahead; more are read when they are handed out.
const ROWS_FETCHED_MAX: usize = 256;

/// Segments looked into at a time, before the rows of the first of them are handed out: at first
/// one, then twice as many as before, up to this, so that a first row does not wait for others.
const PARTS_AHEAD_MAX: usize = 32;
/// Segments looked into at a time: more than there are processors, for they wait for the disk.
const THREADS: usize = 8;

/// The column that says whether further rows follow.
pub(crate) const CONTINUES: &str = "continues";
/// The column that says whether packets are still there: without it no row is shown.
pub(crate) const PIECES: &str = "piece_sequences";

/// Which rows are wanted.
pub(crate) enum Wanted<'a> {
    /// Those that match by themselves.
    Query(&'a Query),
    /// Those that a look at sessions of several rows is for.
    Look(Question<'a>),
    /// All rows of sessions that may match.
    Candidates(&'a Candidates<'a>),
    /// The same without a first look, from the newest part back.
    Backwards(Question<'a>),
    /// All rows of these sessions.
    Sessions(&'a Known),
    /// These rows.
    Rows(&'a BTreeSet<RowId>),
    /// Rows with packets in these stretches of time.
    Windows(&'a Windows),
    /// No row: what segments and stripes say of themselves is enough.
    Nothing,
}

/// What wanted rows have, as far as indexes say who has it.
fn needed_by(query: &Query, with_rare: bool) -> Needed {
    let mut needed = Needed::default();
    for required in query.required() {
        match required {
            Required::Host(host) => needed.hosts.push(host),
            Required::Name(name) if with_rare => needed.names.push(name),
            Required::CommunityId(id) if with_rare => needed.community_ids.push(id),
            Required::Ports(first, last) => needed.ports.push(first..=last),
            _ => {}
        }
    }
    needed
}

/// What all rows of each of these sessions have; nothing where they are many.
fn shared_by(alive: Alive) -> Vec<Needed> {
    match alive {
        Alive::Many => vec![Needed::default()],
        Alive::These(sessions) => sessions.iter().map(Identity::needed).collect(),
    }
}

/// Whether a query names no session id, or one of a segment in these stripes: an id has the first
/// stripe of its own.
fn may_name(question: Question<'_>, stripes: &RangeInclusive<StripeId>) -> bool {
    question.named.is_none_or(|named| stripes.contains(&named.segment))
}

impl Wanted<'_> {
    /// What wanted rows in these times have: each row all of one of these.
    fn needed(&self, times: &RangeInclusive<Timestamp>) -> Vec<Needed> {
        match self {
            Self::Query(query) => vec![needed_by(query, true)],
            Self::Look(look) | Self::Backwards(look) => {
                vec![needed_by(look.query, look.is_by_rare)]
            }
            Self::Candidates(candidates) => {
                let mut needed = Vec::new();
                let alive = candidates.known.alive_in(times);
                if candidates.wants_others(times) {
                    let Question { query, is_by_rare, .. } = candidates.question;
                    let with_rare = is_by_rare && !matches!(alive, Alive::Many);
                    needed.push(needed_by(query, with_rare));
                    if !with_rare {
                        return needed;
                    }
                }
                needed.extend(shared_by(alive));
                needed
            }
            Self::Sessions(known) => shared_by(known.alive_in(times)),
            Self::Nothing | Self::Rows(_) | Self::Windows(_) => vec![Needed::default()],
        }
    }

    /// What every wanted row has, but for those of sessions that are known.
    fn needed_by_most(&self) -> Needed {
        match self {
            Self::Query(query) => needed_by(query, true),
            Self::Look(look) | Self::Backwards(look) => needed_by(look.query, look.is_by_rare),
            Self::Candidates(Candidates { question, .. }) => {
                needed_by(question.query, question.is_by_rare)
            }
            _ => Needed::default(),
        }
    }

    /// In these times sessions are wanted besides what most rows have.
    fn wants_known(&self, times: &RangeInclusive<Timestamp>) -> bool {
        match self {
            Self::Candidates(candidates) => !candidates.known.alive_in(times).is_none(),
            _ => false,
        }
    }

    /// Whether the segment or stretch of these stripes and times may have wanted rows.
    fn may_be_of(
        &self,
        stripes: &RangeInclusive<StripeId>,
        times: &RangeInclusive<Timestamp>,
    ) -> bool {
        match self {
            Self::Query(query) => may_name(Question::new(query), stripes),
            Self::Look(look) | Self::Backwards(look) => may_name(*look, stripes),
            Self::Candidates(candidates) => {
                !candidates.known.alive_in(times).is_none()
                    || (candidates.wants_others(times) && may_name(candidates.question, stripes))
            }
            Self::Rows(rows) => {
                let row = |&segment, row| RowId { segment, row };
                rows.range(row(stripes.start(), 0)..=row(stripes.end(), u64::MAX)).next().is_some()
            }
            Self::Sessions(known) => !known.alive_in(times).is_none(),
            Self::Windows(_) | Self::Nothing => true,
        }
    }

    fn all(&self) -> bool {
        match self {
            Self::Query(query) => **query == Query::all(),
            Self::Candidates(Candidates { question, .. }) | Self::Backwards(question) => {
                *question.query == Query::all()
            }
            _ => false,
        }
    }

    /// Columns to decide by.
    fn columns(&self) -> Vec<&'static str> {
        let of_sessions =
            |query: &Query| [&query.columns()[..], &Identity::COLUMNS, &[CONTINUES]].concat();
        match self {
            Self::Query(query) => query.columns(),
            Self::Look(look) | Self::Backwards(look) => of_sessions(look.query),
            Self::Candidates(candidates) => of_sessions(candidates.question.query),
            Self::Sessions(_) => Identity::COLUMNS.to_vec(),
            Self::Rows(_) | Self::Windows(_) => vec!["proto"],
            Self::Nothing => Vec::new(),
        }
    }

    fn accepts(&self, id: RowId, row: &SessionRow, by_id: bool) -> bool {
        match self {
            Self::Query(query) if by_id => query.matches(row, &[id.to_string()]),
            Self::Query(query) => query.matches(row, &[]),
            Self::Look(look) => look.looks_for(id, row, by_id),
            Self::Candidates(candidates) => candidates.accepts(id, row, by_id),
            Self::Backwards(question) => question.accepts(id, row, by_id),
            Self::Sessions(known) => known.contains(&Identity::of(row)),
            Self::Rows(rows) => rows.contains(&id),
            Self::Windows(windows) => windows.overlaps(row.start, row.end),
            Self::Nothing => false,
        }
    }
}

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
        epoch: u32,
        /// No row of this part or of those that follow in the scan starts earlier, or, from the
        /// newest part back, ends later, as far as directory and heads say.
        edge: Timestamp,
        /// The same of the parts that follow, and of what is still to come of this one besides the
        /// rows that follow at once, which are in the order of their start.
        beyond: Timestamp,
        /// An index has its rows, so that their ids are final.
        is_indexed: bool,
        /// VLAN ids are part of its rows' keys.
        vlan_in_key: bool,
    },
    /// A row that is wanted.
    Row(RowId, Box<SessionRow>),
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
    /// Their numbers, ascending; `None` for all.
    matched: Option<Vec<u64>>,
    /// The rows themselves, where they are few.
    rows: Option<Vec<(u64, SessionRow)>>,
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
    /// Of the parts; within a part rows come by their start.
    pub(crate) order: Order,
    /// Parts before it were scanned before.
    pub(crate) begin: StripeId,
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
        Self { archive, wanted, columns, times, slots: None, order, begin }
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
        let (mut rest, mut ahead) = (parts, 1);
        while !rest.is_empty() {
            let done = of - rest.len();
            if visit(Step::Progress { done, of }, self.archive, notes)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let (next, behind) = rest.split_at(ahead.min(rest.len()));
            (rest, ahead) = (behind, (2 * ahead).min(PARTS_AHEAD_MAX));
            let looks = self.select_all(next, &ruled_out)?;
            for (placed, look) in next.iter().zip(looks) {
                if self.part(placed, look, notes, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
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
        let look = self.look(part, &BTreeSet::new());
        self.part(&Placed { part: *part, edge, beyond, is_apart: false }, look, notes, visit)
    }

    fn part(
        &mut self,
        placed: &Placed,
        look: Look,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        let &Placed { ref part, edge, beyond, is_apart } = placed;
        let Some(entry) = part.segment else {
            let (stripes, times) = (part.first..=part.last, part.time_min..=Timestamp::MAX);
            if part.time_min > *self.times.end() || !self.wanted.may_be_of(&stripes, &times) {
                return Ok(ControlFlow::Continue(()));
            }
            return self.rebuilt((part, edge, is_apart), &Covered::default(), notes, visit);
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
                Some(segment) => Some(self.selected(segment)?),
                None => None,
            },
            Look::Found(found) => Some(*found),
        };
        let Some(found) = found else {
            notes.explain.segments_rebuilt += 1;
            return self.rebuilt((part, edge, is_apart), &Covered::default(), notes, visit);
        };
        let meta = found.segment.meta();
        notes.met.add_segment(meta);
        notes.completeness.add_gaps(&meta.gaps, *self.times.start(), *self.times.end());
        if meta.unread_packets > 0 && self.asks_for_names() {
            let unread = &mut notes.completeness.unread_packets;
            *unread = unread.saturating_add(meta.unread_packets);
        }
        let step = Step::Part {
            first: part.first,
            is_apart,
            epoch: meta.epoch,
            edge,
            // Rows of what it left out are made behind its own.
            beyond: if entry.summary.unindexed { edge } else { beyond },
            is_indexed: true,
            vlan_in_key: meta.vlan_in_key,
        };
        if visit(step, self.archive, notes)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let (segment, flow) = self.segment(found, &entry, notes, visit)?;
        if flow.is_break() || !entry.summary.unindexed {
            return Ok(flow);
        }
        let has_rows = self.covered(&segment, &entry, notes)?;
        self.rebuilt((&Part { segment: None, ..*part }, edge, false), &has_rows, notes, visit)
    }

    /// The stripes of a segment that have rows, or shall have none.
    fn covered(
        &mut self,
        segment: &Segment,
        entry: &SegmentEntry,
        notes: &mut Notes,
    ) -> Result<Covered, Error> {
        // Every piece that was indexed has a row that names it.
        let left_out = segment.meta().left_out.clone();
        for left in &left_out {
            let packets = &mut notes.completeness.left_out_packets;
            *packets = packets.saturating_add(left.packets);
        }
        let indexed = match stripes_named(segment) {
            Err(Error::Index(error)) if error.is_of_file() => match self.archive.reload(entry)? {
                Some(reloaded) => stripes_named(&reloaded)?,
                None => return Err(error.into()),
            },
            named => named?,
        };
        Ok(Covered { indexed, left_out })
    }

    /// Hands out the rows found. A file whose damage shows only now is given up for the INDEX
    /// stripes, and the rows go on where they stopped.
    fn segment(
        &mut self,
        mut found: Found,
        entry: &SegmentEntry,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<(Segment, ControlFlow<()>), Error> {
        notes.explain.rows += found.segment.row_count();
        let mut next = 0;
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
        rows: Vec<(u64, SessionRow)>,
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

    /// Reads the rows that matched, or all in time, from row `next` on.
    fn read(
        &self,
        found: &Found,
        next: &mut u64,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Flow {
        let Found { segment, matched, .. } = found;
        let first = segment.meta().first;
        let mut result = Ok(ControlFlow::Continue(()));
        let mut step = |row, slice| {
            if row >= *next {
                *next = row + 1;
                result = self.step(RowId { segment: first, row }, slice, notes, visit);
            }
            match result {
                Ok(flow) => flow,
                Err(_) => ControlFlow::Break(()),
            }
        };
        match matched {
            Some(matched) => segment.rows_at(matched, self.columns, &mut step)?,
            None => segment.rows(self.columns, &self.times, &mut step)?,
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
            while let Some((Placed { part, .. }, look)) = {
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

    fn look(&self, part: &Part, ruled_out: &BTreeSet<StripeId>) -> Look {
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
        let columns = self.wanted.columns();
        let by_id = columns.contains(&"session_id");
        let first = segment.meta().first;
        let meta = segment.meta();
        let needed = self.wanted.needed(&(meta.time_min..=meta.time_max));
        // Few rows have the hosts, so all there is to know of them is read at once.
        let at_once = needed.iter().all(|needed| !needed.hosts.is_empty());
        let columns = if at_once { self.columns.and(&columns) } else { columns };
        let columns = Columns::Named(&columns);
        let (mut matched, mut fetched) = (BTreeSet::new(), BTreeMap::new());
        for needed in &needed {
            segment.rows_with(needed, columns, &self.times, &mut |row, slice| {
                if self.wanted.accepts(RowId { segment: first, row }, &slice, by_id) {
                    matched.insert(row);
                    if at_once && fetched.len() < ROWS_FETCHED_MAX {
                        fetched.insert(row, slice);
                    }
                }
                ControlFlow::Continue(())
            })?;
        }
        let matched = Vec::from_iter(matched);
        let is_fetched = fetched.len() == matched.len();
        let mut rows = is_fetched.then(|| Vec::from_iter(fetched));
        if rows.is_none() && matched.len() <= ROWS_FETCHED_MAX {
            let fetched = rows.insert(Vec::new());
            segment.rows_at(&matched, self.columns, &mut |row, slice| {
                fetched.push((row, slice));
                ControlFlow::Continue(())
            })?;
        }
        Ok(Found { segment, matched: Some(matched), rows })
    }

    /// Rows of stripes without an index, from their packets. The index of a known segment is stored
    /// again.
    fn rebuilt(
        &mut self,
        (part, edge, is_apart): (&Part, Timestamp, bool),
        covered: &Covered,
        notes: &mut Notes,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Error> {
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
            notes.met.add_rows(&stretch.rows);
            let first = stretch.first;
            let step = Step::Part {
                first: part.first,
                is_apart,
                epoch: stretch.epoch,
                edge,
                beyond: edge,
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
