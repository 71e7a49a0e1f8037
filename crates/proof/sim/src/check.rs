//! What a reader and a verification must say, by the reference model.

use std::collections::BTreeMap;

use core::iter::once;
use core::ops::ControlFlow;

use format::geometry::Geometry;
use format::head::{HEAD_BYTES, Kind, StripeId};
use units::{EachSequence, MemberId, Sequence};
use volume::{Error, Reader, Span, StripeInSlot};
use writer::{Damage, VerifyReport, verify};

use crate::content::{RowOf, packets_of};
use crate::counters::Counters;
use crate::disks::Disks;
use crate::pieces::Place;
use crate::truth::{Columns, Fact, Fate, Pending, Truth};

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Violation(pub(crate) String);

/// Nothing, or the promise that broke.
pub(crate) type Verdict<T = ()> = Result<T, Violation>;

pub(crate) fn broken<T>(what: String) -> Verdict<T> {
    Err(Violation(what))
}

/// Under which circumstances a reader looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    /// Members that it reads.
    pub(crate) readable: u32,
    /// Members of which nothing is certain.
    pub(crate) doubtful: u32,
    /// What is dead may come back: the doubtful members alone could hold it.
    pub(crate) may_revive: bool,
    /// Every damage was counted and no member missed anything: the loss must be exactly that.
    pub(crate) exact: bool,
}

/// What a reader showed of one column of a stripe.
#[derive(Clone, Debug)]
struct Shown {
    kind: Kind,
    bad_rows: Vec<u16>,
    cid: [u8; 32],
}

/// One look at the volume.
pub(crate) struct Look<'a> {
    pub(crate) truth: &'a mut Truth,
    pub(crate) reader: &'a Reader,
    pub(crate) disks: &'a Disks,
    pub(crate) scene: Scene,
    pub(crate) counters: &'a mut Counters,
    shown: BTreeMap<(StripeId, u8), Shown>,
}

impl<'a> Look<'a> {
    pub(crate) fn new(
        truth: &'a mut Truth,
        (reader, disks): (&'a Reader, &'a Disks),
        scene: Scene,
        counters: &'a mut Counters,
    ) -> Self {
        Self { truth, reader, disks, scene, counters, shown: BTreeMap::new() }
    }

    fn geometry(&self) -> Geometry {
        *self.reader.geometry()
    }

    /// Reads every slot that the reader offers, column by column: no wrong byte, nothing that was
    /// never written, nothing that was gone before, everything that must be there.
    pub(crate) fn read(&mut self) -> Verdict<Option<Span>> {
        let Some(span) = self.reader.span() else {
            let nothing = self.truth.acknowledged == StripeId::default();
            return if nothing { Ok(None) } else { broken("nothing is shown any more".to_owned()) };
        };
        if span.tail < self.truth.given_up {
            let given_up = self.truth.given_up;
            return broken(format!("EXPIRED: {} is shown, given up before {given_up}", span.tail));
        }
        let mut buffer = vec![0; self.reader.piece_bytes()];
        for sequence in (span.tail..=span.acknowledged.sequence).each() {
            for column in 0..self.geometry().data_columns {
                self.read_slot(sequence, column, &mut buffer)?;
            }
        }
        let above = self.shown.keys().map(|(id, _)| *id).max().filter(|id| *id > span.acknowledged);
        if let Some(id) = above {
            return broken(format!("{id} is shown, above {}", span.acknowledged));
        }
        self.check_kept(span)?;
        Ok(Some(span))
    }

    fn read_slot(&mut self, sequence: Sequence, column: u8, buffer: &mut [u8]) -> Verdict {
        let slot = match self.reader.slot(sequence, column, buffer) {
            Ok(slot) => slot,
            Err(Error::Overwritten(_) | Error::Damaged(_)) => return Ok(()),
            Err(error) => return broken(format!("slot {sequence}: {error}")),
        };
        for piece in slot.stripes {
            let stripe = &piece.head.stripe;
            let (id, kind) = (stripe.stripe, stripe.kind);
            if kind.closes_slot() {
                continue;
            }
            self.check_content(&piece, column, Reader::body(&piece.head, buffer))?;
            let first_row = Some(stripe.first_row);
            self.truth.facts.entry(id).and_modify(|fact| fact.first_row = first_row);
            self.counters.add("reads repaired", u64::from(piece.repaired));
            self.counters.add("reads behind damage", u64::from(piece.behind_damage));
            let (cid, bad_rows) = (piece.head.cid, piece.bad_rows);
            self.shown.insert((id, column), Shown { kind, bad_rows, cid });
        }
        Ok(())
    }

    /// A stripe that is shown was handed to the writer, byte for byte.
    fn check_content(&mut self, piece: &StripeInSlot, column: u8, body: &[u8]) -> Verdict {
        let id = piece.head.stripe.stripe;
        let differs = match self.truth.facts.get(&id) {
            None => Some("was never written".to_owned()),
            Some(fact) => difference(fact, piece, column, body).or_else(|| {
                let is_dead = fact.fate == Fate::Dead;
                if is_dead && self.scene.may_revive {
                    self.counters.add("excused: a bad member revives what was gone", 1);
                }
                let revived = is_dead && !self.scene.may_revive;
                revived.then(|| "was gone and is there again".to_owned())
            }),
        };
        let Some(what) = differs else { return Ok(()) };
        // The stripe during whose submission the crash came may be there under any new number.
        let pending = self.truth.pending.map(Pending::into_fact);
        match pending.filter(|fact| difference(fact, piece, column, body).is_none()) {
            Some(fact) => {
                self.counters.add("in flight: seen under an unknown number", 1);
                self.truth.pending = None;
                self.truth.facts.insert(id, fact);
                Ok(())
            }
            None => broken(format!("WRONG BYTES: stripe {id}, column {column}: {what}")),
        }
    }

    /// What must stay is there, as far as the damage that was done lets it be.
    fn check_kept(&mut self, span: Span) -> Verdict {
        let first = StripeId { sequence: span.tail, sub: 0 };
        for (&id, fact) in self.truth.facts.range(first..=span.acknowledged) {
            if fact.fate == Fate::Kept && !self.is_reached(id) {
                self.counters.add("lost behind a stripe of its slot that is beyond parity", 1);
            } else if fact.fate == Fate::Kept {
                let lost = self.check_fact(id, fact)?;
                self.counters.add("rows lost beyond parity", lost);
            }
        }
        Ok(())
    }

    /// Whether a stripe is shown, or those before it in its slot are surely whole: a mount closes a
    /// slot behind the first stripe above the watermark that is not.
    fn is_reached(&self, id: StripeId) -> bool {
        let data = u32::from(self.geometry().data_columns);
        let is_whole = |(&id, fact): (&StripeId, &Fact)| {
            let mut parts = once(None).chain((0..fact.rows).map(Some));
            parts.all(|row| self.columns(id, fact, row).good.count_ones() >= data)
        };
        let before = self.truth.facts.range(StripeId { sub: 0, ..id }..id);
        let mut before = before.filter(|(_, fact)| fact.fate == Fate::Kept);
        self.scene.exact || self.shown.contains_key(&(id, 0)) || before.all(is_whole)
    }

    /// The columns that have a row of a stripe, or its heads, by what this look may read.
    fn columns(&self, id: StripeId, fact: &Fact, row: Option<u16>) -> Columns {
        let Scene { readable, doubtful, .. } = self.scene;
        fact.columns(&self.geometry(), (id.sequence, row), readable, doubtful)
    }

    fn check_fact(&self, id: StripeId, fact: &Fact) -> Verdict<u64> {
        let geometry = self.geometry();
        let data = u32::from(geometry.data_columns);
        let exact = self.scene.exact;
        let heads = self.columns(id, fact, None);
        let mut lost = 0;
        let surely_shown = heads.good.count_ones() >= if exact { 1 } else { data };
        for column in 0..geometry.data_columns {
            let Some(shown) = self.shown.get(&(id, column)) else {
                if surely_shown {
                    return broken(format!("LOST: {id} was acknowledged and is gone ({fact:?})"));
                }
                lost += u64::from(fact.rows);
                continue;
            };
            if exact && heads.good == 0 {
                return broken(format!("{id} is shown without a readable head"));
            }
            for row in 0..fact.rows {
                let columns = self.columns(id, fact, Some(row));
                let own = 1 << column;
                let enough = columns.good.count_ones() >= data;
                let readable = enough || (surely_shown && columns.good & own != 0);
                let possible = u32::from(geometry.columns()) - columns.bad.count_ones() >= data;
                let is_bad = shown.bad_rows.contains(&row);
                if is_bad && readable {
                    return broken(format!("LOST: row {row} of {id}, column {column}: {fact:?}"));
                }
                if !is_bad && columns.bad & own != 0 && !possible {
                    return broken(format!(
                        "row {row} of {id}, column {column} is a guess: {fact:?}"
                    ));
                }
                lost += u64::from(is_bad);
            }
        }
        Ok(lost)
    }

    /// Everything that was damaged is reported, and nothing else.
    pub(crate) fn verify(&mut self) -> Verdict {
        let Some(span) = self.reader.span() else { return Ok(()) };
        let report = verify(self.reader, &mut |_, _| ControlFlow::Continue(()));
        let first_column = self.shown.iter().filter(|((_, column), _)| *column == 0);
        let count = |kind| first_column.clone().filter(|(_, shown)| shown.kind == kind).count();
        let counted = (count(Kind::Data), count(Kind::Index));
        let reported = (report.read.data_stripes, report.read.index_stripes);
        let as_numbers = |(data, index)| (u64::try_from(data).ok(), u64::try_from(index).ok());
        if as_numbers(counted) != (Some(reported.0), Some(reported.1)) {
            return broken(format!("{counted:?} stripes can be read, verify has {reported:?}"));
        }
        self.counters.add("verify: degraded stripes", report.degraded);
        for damage in &report.damage {
            self.check_report(damage)?;
        }
        self.check_all_reported(span, &report)
    }

    fn check_report(&mut self, damage: &Damage) -> Verdict {
        self.counters.add("verify: damage reported", 1);
        let id = damage.stripe;
        let kept = self.truth.facts.get(&id).filter(|fact| fact.fate == Fate::Kept);
        let slot_damage = self.truth.closing_damage.get(&id.sequence).copied().unwrap_or(0);
        let member = damage.member.map_or(0, MemberId::bit);
        let Scene { readable, doubtful, .. } = self.scene;
        let everybody = (1_u32 << self.geometry().columns()) - 1;
        let (why, excused) = match kept {
            None => {
                let stale = !self.truth.gaps.is_empty();
                let is_there = slot_damage | doubtful != 0;
                (
                    "verify: damage outside of what was kept",
                    is_there || readable != everybody || stale,
                )
            }
            Some(_) if member & doubtful != 0 => ("verify: damage on a bad member", true),
            Some(_) if member & !readable != 0 => ("verify: damage on an absent member", true),
            Some(fact) if damage.member.is_none() => {
                ("verify: no head is left", self.columns(id, fact, None).good == 0)
            }
            Some(fact) if fact.holders & member == 0 => (
                "verify: damage that a disk shows",
                self.on_disk(id, fact, member).as_ref() == Some(&damage.rows),
            ),
            Some(fact) => (
                "verify: damage that was done",
                damage.rows == expected_rows(fact, member) && is_damaged(fact, member),
            ),
        };
        if excused {
            self.counters.add(why, 1);
            return Ok(());
        }
        broken(format!("verify reports what was not damaged: {damage:?}; known: {kept:?}"))
    }

    /// What is wrong with the piece of a stripe on one member, by its disk, where it is not known
    /// what became of it. `None`: nothing.
    fn on_disk(&self, id: StripeId, fact: &Fact, member: u32) -> Option<Vec<u16>> {
        let member = u8::try_from(member.trailing_zeros()).expect("a member");
        let shown = self.shown.get(&(id, 0))?;
        let geometry = self.geometry();
        let place = Place {
            geometry: &geometry,
            key: &self.reader.superblock().head_key,
            id,
            cid: shown.cid,
            first_row: fact.first_row?,
            member,
        };
        place.damage(fact, self.disks.get(member))
    }

    fn check_all_reported(&self, span: Span, report: &VerifyReport) -> Verdict {
        let first = StripeId { sequence: span.tail, sub: 0 };
        let mut reported: BTreeMap<StripeId, u32> = BTreeMap::new();
        for damage in &report.damage {
            let members = damage.member.map_or(u32::MAX, MemberId::bit);
            *reported.entry(damage.stripe).or_default() |= members;
        }
        for (&id, fact) in self.truth.facts.range(first..=span.acknowledged) {
            let is_shown = self.shown.contains_key(&(id, 0));
            if fact.fate != Fate::Kept || !is_shown {
                continue;
            }
            for member in MemberId::first(self.geometry().columns()) {
                let bit = member.bit();
                let is_read = self.scene.readable & !self.scene.doubtful & bit != 0;
                let is_whole = self.reader.membership().is_whole_at(member, id.sequence);
                let is_reported = reported.get(&id).is_some_and(|members| members & bit != 0);
                if !is_read || !is_whole || is_reported {
                    continue;
                }
                let is_damaged = if fact.holders & bit != 0 {
                    is_damaged(fact, bit)
                } else {
                    self.on_disk(id, fact, bit).is_some()
                };
                if is_damaged {
                    return broken(format!("verify does not name {id} on {member}: {fact:?}"));
                }
            }
        }
        Ok(())
    }

    /// Stripes that were in flight: those shown stay from now on, on the members in `present`; the
    /// others are gone.
    pub(crate) fn settle(&mut self, present: u32) {
        let data = self.geometry().data_columns;
        let holders = present & self.truth.deciders & self.truth.joined;
        for (&id, fact) in &mut self.truth.facts {
            if fact.fate != Fate::InFlight {
                continue;
            }
            let shown = (0..data).filter(|&column| self.shown.contains_key(&(id, column))).count();
            if shown == usize::from(data) {
                // A piece that never arrived is computed by the mount, unless it counts the stripe
                // as acknowledged already.
                (fact.fate, fact.holders) = (Fate::Kept, holders & !damaged_on(fact));
                self.counters.add("in flight: kept by a mount", 1);
            } else {
                fact.fate = Fate::Dead;
                self.counters.add("in flight: gone after a mount", 1);
            }
        }
    }
}

/// What `piece` holds that `fact` does not.
fn difference(fact: &Fact, piece: &StripeInSlot, column: u8, body: &[u8]) -> Option<String> {
    let stripe = &piece.head.stripe;
    if (stripe.kind, stripe.rows) != (fact.kind, fact.rows) {
        return Some(format!("{:?} of {} rows, not {fact:?}", stripe.kind, stripe.rows));
    }
    let whole = piece.bad_rows.is_empty();
    let is_encrypted = piece.head.stripe.key_id.is_some();
    let counted = if is_encrypted { 0 } else { packets_of(fact.kind, fact.rows) };
    if whole && piece.head.piece.packets != counted {
        return Some(format!("its head counts {} packets", piece.head.piece.packets));
    }
    let mut expected = [0; HEAD_BYTES];
    let rows = (0..fact.rows).zip(body.chunks_exact(HEAD_BYTES));
    let mut good = rows.filter(|(row, _)| !piece.bad_rows.contains(row));
    good.find_map(|(row, bytes)| {
        RowOf { kind: fact.kind, mark: fact.mark, column, row, rows: fact.rows }
            .fill(&mut expected);
        (*bytes != expected).then(|| format!("row {row} holds something else"))
    })
}

pub(crate) fn is_damaged(fact: &Fact, member: u32) -> bool {
    damaged_on(fact) & member != 0
}

/// Members on which something of it was damaged.
fn damaged_on(fact: &Fact) -> u32 {
    fact.bad_rows.iter().fold(fact.bad_heads, |bits, rows| bits | rows)
}

/// Rows that a verification names of the piece on `member`; none where the head is gone.
fn expected_rows(fact: &Fact, member: u32) -> Vec<u16> {
    if fact.bad_heads & member != 0 {
        return Vec::new();
    }
    let rows = (0..).zip(&fact.bad_rows).filter(|(_, members)| **members & member != 0);
    rows.map(|(row, _)| row).collect()
}
