//! What a mount reads: heads, stripes of a slot, the newest head, the watermark. Writes nothing.

use std::ops::Range;

use crate::device::{Head, Member, Position, Row};
use crate::model::Geometry;
use crate::mutants::Mutant;

/// Slots to either side of an unreadable probe that are tried in its place.
const REACH: usize = 2;

/// A stripe found by a walk over its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stripe {
    pub(crate) head: Head,
    /// Every row can be read or computed.
    pub(crate) whole: bool,
}

/// How a walk over a slot ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The last row is used.
    Full,
    /// A VOID or EPOCH head closes the slot.
    Closed,
    /// The first sub above the watermark that is not whole, and the row it would start in.
    Missing { row: usize, sub: usize },
    /// Nothing readable behind a damaged acknowledged stripe.
    Lost,
}

#[derive(Clone, Debug)]
pub(crate) struct Walk {
    pub(crate) stripes: Vec<Stripe>,
    pub(crate) end: End,
    /// An acknowledged stripe was not whole.
    pub(crate) damaged: bool,
}

/// The members of a mount as it reads them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) geometry: &'a Geometry,
    pub(crate) members: &'a [Member],
    /// Bit set of the members read.
    pub(crate) present: usize,
    pub(crate) mutant: Mutant,
}

impl<'a> View<'a> {
    fn each(self) -> impl Iterator<Item = &'a Member> {
        let set = self.present;
        self.members.iter().enumerate().filter_map(move |(i, m)| (set >> i & 1 == 1).then_some(m))
    }

    pub(crate) fn head_on(self, member: &Member, slot: usize, row: usize) -> Option<Head> {
        let Row::Head(head) = member.visible[slot * self.geometry.rows + row] else { return None };
        let in_place = head.at.sequence % self.geometry.slots == slot && head.row == row;
        (in_place || self.mutant == Mutant::NoPlaceCheck).then_some(head)
    }

    pub(crate) fn heads(self, slot: usize, row: usize) -> impl Iterator<Item = Head> {
        self.each().filter_map(move |member| self.head_on(member, slot, row))
    }

    /// The newest sequence in the first row of a slot: one read for each member.
    fn probe(self, slot: usize) -> Option<usize> {
        self.heads(slot, 0).map(|head| head.at.sequence).max()
    }

    /// The newest sequence in any row of a slot: a later sub may have landed without the first.
    pub(crate) fn probe_rows(self, slot: usize) -> Option<usize> {
        if self.mutant == Mutant::FirstRowsOnly {
            return self.probe(slot);
        }
        (0..self.geometry.rows)
            .flat_map(|row| self.heads(slot, row))
            .map(|head| head.at.sequence)
            .max()
    }

    fn covered(self, at: Position, watermark: Position) -> bool {
        if self.mutant == Mutant::WatermarkBySequence {
            return at.sequence <= watermark.sequence;
        }
        at <= watermark
    }

    /// This member holds a piece of the stripe that `head` belongs to.
    fn head_of(self, member: &Member, head: &Head) -> bool {
        let slot = head.at.sequence % self.geometry.slots;
        let loose = self.mutant == Mutant::NoIdentity;
        self.head_on(member, slot, head.row).is_some_and(|own| {
            own.identity == head.identity || loose && own.at == head.at && own.kind == head.kind
        })
    }

    fn body_on(self, member: &Member, head: &Head, row: usize) -> bool {
        let slot = head.at.sequence % self.geometry.slots;
        let loose = self.mutant == Mutant::NoIdentity;
        let found = member.visible[slot * self.geometry.rows + head.row + row];
        self.head_of(member, head)
            && match found {
                Row::Body { identity, row: at } => {
                    at == row && (loose || identity == head.identity)
                }
                _ => false,
            }
    }

    fn whole(self, head: &Head) -> bool {
        if head.kind.closes() {
            return true;
        }
        let enough = |good: &dyn Fn(&&Member) -> bool| {
            self.each().filter(good).count() >= self.geometry.data
        };
        enough(&|member| self.head_of(member, head))
            && (1..=head.rows).all(|row| enough(&|member| self.body_on(member, head, row)))
    }

    /// The stripe `at` whose head is in `row`: whole data before VOID, either before damaged data.
    fn stripe(self, at: Position, row: usize, epoch: Option<usize>) -> Option<Stripe> {
        let slot = at.sequence % self.geometry.slots;
        let stale = self.mutant == Mutant::StaleSubAccepted && at.sub > 0;
        let mut best: Option<Stripe> = None;
        for head in self.heads(slot, row) {
            let continues = stale || self.continues(&head, epoch);
            let wanted = head.at == at || stale && head.at.sub == at.sub;
            if !wanted || !continues {
                continue;
            }
            let stripe = Stripe { head, whole: self.whole(&head) };
            if best.is_none_or(|best| self.rank(&stripe) > self.rank(&best)) {
                best = Some(stripe);
            }
        }
        best.map(|best| self.mixed(best))
    }

    /// Without identities pieces of two stripes pass for one; the result is neither.
    fn mixed(self, stripe: Stripe) -> Stripe {
        let head = stripe.head;
        let slot = head.at.sequence % self.geometry.slots;
        let foreign = |row: usize| {
            self.each().any(|member| {
                self.body_on(member, &head, row)
                    && member.visible[slot * self.geometry.rows + head.row + row]
                        != Row::Body { identity: head.identity, row }
            })
        };
        if self.mutant == Mutant::NoIdentity && (1..=head.rows).any(foreign) {
            return Stripe { head: Head { identity: 0, ..head }, ..stripe };
        }
        stripe
    }

    /// A slot holds data of one epoch; a later mount may close it, an earlier one not.
    fn continues(self, head: &Head, epoch: Option<usize>) -> bool {
        let unchecked = self.mutant == Mutant::FirstRowsOnly;
        epoch.is_none_or(|epoch| {
            unchecked || head.epoch == epoch || head.kind.closes() && head.epoch > epoch
        })
    }

    fn rank(self, stripe: &Stripe) -> (bool, bool, usize) {
        let data = !stripe.head.kind.closes();
        if self.mutant == Mutant::VoidBeatsData {
            return (stripe.whole, true, stripe.head.epoch);
        }
        (stripe.whole, data, stripe.head.epoch)
    }

    /// The first head of `sequence` behind `row` that continues after `sub`.
    fn next_head(self, from: Position, row: usize, epoch: Option<usize>) -> Option<(usize, usize)> {
        if self.mutant == Mutant::NoRowScan {
            return None;
        }
        let slot = from.sequence % self.geometry.slots;
        (row + 1..self.geometry.rows).find_map(|row| {
            let heads = self.heads(slot, row).filter(|head| {
                head.at.sequence == from.sequence
                    && head.at.sub > from.sub
                    && self.continues(head, epoch)
            });
            heads.map(|head| head.at.sub).max().map(|sub| (row, sub))
        })
    }

    /// The stripes of `sequence` in order. At or below the watermark a missing one is damage and
    /// is stepped over; above it the first that is not whole ends the slot.
    pub(crate) fn walk(self, sequence: usize, watermark: Position) -> Walk {
        let mut walk = Walk { stripes: Vec::new(), end: End::Full, damaged: false };
        let (mut row, mut sub, mut epoch) = (0, 0, None);
        while row < self.geometry.rows {
            let at = Position::new(sequence, sub);
            let covered = self.covered(at, watermark);
            match self.stripe(at, row, epoch) {
                Some(stripe) if stripe.whole || covered => {
                    walk.damaged |= !stripe.whole;
                    walk.stripes.push(stripe);
                    if stripe.head.kind.closes() {
                        walk.end = End::Closed;
                        return walk;
                    }
                    row += 1 + stripe.head.rows;
                    sub += 1;
                    epoch = Some(stripe.head.epoch);
                }
                _ if covered || self.mutant == Mutant::LaterSubAfterMissing => {
                    walk.damaged |= covered;
                    let Some((next_row, next_sub)) = self.next_head(at, row, epoch) else {
                        walk.end = if covered { End::Lost } else { End::Missing { row, sub } };
                        return walk;
                    };
                    let first_open = watermark.sub + 1;
                    let skipped = sequence == watermark.sequence && next_sub > first_open;
                    if skipped && self.mutant != Mutant::LaterSubAfterMissing {
                        walk.end = End::Missing { row: next_row, sub: first_open };
                        return walk;
                    }
                    (row, sub) = (next_row, next_sub);
                }
                _ => {
                    walk.end = End::Missing { row, sub };
                    return walk;
                }
            }
        }
        walk
    }

    /// The last row on this member carries the trailing length of this VOID.
    pub(crate) fn trailer_holds(self, member: &Member, head: &Head) -> bool {
        let rows = self.geometry.rows;
        let slot = head.at.sequence % self.geometry.slots;
        head.row + 1 == rows
            || member.visible[slot * rows + rows - 1] == Row::Trailer { void_row: head.row }
    }

    /// The slot is closed on this member, and no later sub of its sequence lies behind.
    pub(crate) fn closing_is_exact(self, member: &Member, head: &Head) -> bool {
        let slot = head.at.sequence % self.geometry.slots;
        let clear = (head.row + 1..self.geometry.rows).all(|row| {
            self.head_on(member, slot, row)
                .is_none_or(|behind| behind.at.sequence != head.at.sequence)
        });
        let trailer =
            self.mutant == Mutant::TrailerNotRewritten || self.trailer_holds(member, head);
        self.head_on(member, slot, head.row) == Some(*head) && trailer && clear
    }

    /// The newest sequence on the members: bisection over laps, the window, and where the two
    /// disagree the first rows of every slot. A volume no epoch joined has no log to miss.
    pub(crate) fn newest(self, joined: usize, reads: &mut Reads) -> Option<usize> {
        let near = self.geometry.window * 4;
        let anchor = (0..near).find_map(|slot| reads.count(self.probe(slot)).map(|s| (slot, s)));
        if anchor.is_none() && joined == 0 {
            return None;
        }
        let boundary =
            anchor.map(|(slot, sequence)| self.bisect(slot, sequence / self.geometry.slots, reads));
        let found = boundary.and_then(|boundary| self.in_window(boundary, reads));
        if let Some((sequence, distance)) = found
            && (distance <= self.geometry.window * 3
                || self.mutant == Mutant::UnreadableProbeTrusted)
        {
            return Some(sequence);
        }
        reads.full_scans += 1;
        let all = 0..self.geometry.slots;
        let newest = all.filter_map(|slot| reads.count(self.probe(slot))).max()?;
        self.in_window(newest % self.geometry.slots, reads).map(|(sequence, _)| sequence)
    }

    /// The last slot whose lap is not older than the anchor's, give or take the window. Where it
    /// cannot read it goes left, as a first lap needs; the window shows when that was wrong.
    fn bisect(self, anchor: usize, lap: usize, reads: &mut Reads) -> usize {
        let (mut low, mut high) = (anchor, self.geometry.slots);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            match self.nearest(middle, low..high, reads) {
                Some((slot, sequence)) if sequence / self.geometry.slots >= lap => low = slot,
                Some((slot, _)) => high = slot,
                None => high = middle,
            }
        }
        low
    }

    /// A readable slot next to `middle`, behind the first and before the end of `range`.
    fn nearest(
        self,
        middle: usize,
        range: Range<usize>,
        reads: &mut Reads,
    ) -> Option<(usize, usize)> {
        let reach = if self.mutant == Mutant::UnreadableProbeTrusted { 0 } else { REACH };
        (0..=reach).flat_map(|d| [middle + d, middle.saturating_sub(d)]).find_map(|slot| {
            let inside = slot > range.start && slot < range.end;
            inside.then(|| reads.count(self.probe(slot)).map(|s| (slot, s))).flatten()
        })
    }

    /// The newest sequence in all rows of the window around the boundary, and its distance from
    /// the window's begin. A crash leaves it at most W right of the boundary, at distance 3W; found
    /// further right, an unreadable probe has led the search astray.
    fn in_window(self, boundary: usize, reads: &mut Reads) -> Option<(usize, usize)> {
        let (slots, window) = (self.geometry.slots, self.geometry.window);
        let found = (0..=4 * window).filter_map(|distance| {
            let slot = (boundary + slots + distance - 2 * window) % slots;
            reads.count(self.probe_rows(slot)).map(|sequence| (sequence, distance))
        });
        found.max()
    }

    /// The highest epoch in the window up to `head`.
    pub(crate) fn newest_epoch(self, head: usize) -> usize {
        self.window_heads(head).map(|head| head.epoch).max().unwrap_or(0)
    }

    fn window_heads(self, head: usize) -> impl Iterator<Item = Head> {
        let first = head.saturating_sub(2 * self.geometry.window);
        (first..=head)
            .map(move |sequence| sequence % self.geometry.slots)
            .flat_map(move |slot| (0..self.geometry.rows).map(move |row| (slot, row)))
            .flat_map(move |(slot, row)| self.heads(slot, row))
    }

    /// The highest watermark in the window up to `head`, of epochs up to `epoch_max`.
    pub(crate) fn watermark(self, head: usize, epoch_max: usize) -> Position {
        self.window_heads(head)
            .filter(|head| head.epoch <= epoch_max)
            .map(|head| head.watermark)
            .max()
            .unwrap_or_default()
    }
}

/// What finding the head cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reads {
    pub(crate) probes: usize,
    pub(crate) full_scans: usize,
}

impl Reads {
    fn count(&mut self, found: Option<usize>) -> Option<usize> {
        self.probes += 1;
        found
    }
}
