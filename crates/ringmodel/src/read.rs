//! What a mount reads: which heads count, and the stripes of a slot. Writes nothing.
//!
//! A head counts in its place alone, in the shape that was in force at its sequence, and unless it
//! lies behind the newest epoch's begin and is of an older one: then its member wrote it in a
//! future that the others gave up. Pieces inside the gap of their member count as well: of a
//! stripe that was given up fewer than K pieces can come together, because a quorum leaves fewer
//! than K members outside. Two things need a head outside of gaps: data that a VOID contradicts,
//! and a member that is believed alone.

use crate::device::{Head, Member, Position, Row};
use crate::model::Geometry;
use crate::mutants::Mutant;
use crate::superblock::{Shape, Superblock};

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
    /// What the reader knows of the volume.
    pub(crate) known: &'a Superblock,
    pub(crate) mutant: Mutant,
}

impl<'a> View<'a> {
    pub(crate) fn each(self) -> impl Iterator<Item = (usize, &'a Member)> {
        let set = self.present;
        self.members.iter().enumerate().filter(move |(seat, _)| set >> seat & 1 == 1)
    }

    /// A head in its place, of the shape in force there.
    fn placed(self, (seat, member): (usize, &Member), slot: usize, row: usize) -> Option<Head> {
        let Row::Head(head) = member.visible[slot * self.geometry.rows + row] else { return None };
        let in_place = head.at.sequence % self.geometry.slots == slot && head.row == row;
        let here = in_place || self.mutant == Mutant::NoPlaceCheck;
        let shape = self.shape_at(head.at.sequence);
        let ours = head.columns == shape.columns() && seat < shape.members();
        (here && ours).then_some(head)
    }

    /// A head that counts.
    pub(crate) fn head_on(
        self,
        (seat, member): (usize, &Member),
        slot: usize,
        row: usize,
    ) -> Option<Head> {
        let head = self.placed((seat, member), slot, row)?;
        let abandoned =
            self.known.is_abandoned(&head) && self.mutant != Mutant::AbandonedHeadsCount;
        let refused = self.known.entries[seat].lacks(head.at.sequence)
            && self.mutant == Mutant::GapHeadsRefused;
        (!abandoned && !refused).then_some(head)
    }

    pub(crate) fn shape_at(self, sequence: usize) -> Shape {
        if self.mutant == Mutant::NewestShapeAlone {
            return self.known.shape();
        }
        self.known.shape_at(sequence)
    }

    pub(crate) fn heads(self, slot: usize, row: usize) -> impl Iterator<Item = Head> {
        self.each().filter_map(move |seat| self.head_on(seat, slot, row))
    }

    /// The newest sequence in the first row of a slot: one read for each member.
    pub(crate) fn probe(self, slot: usize) -> Option<usize> {
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

    /// This member holds a piece of the stripe that `head`, which counts, belongs to: whatever else
    /// the member lacks or made up.
    fn head_of(self, seat: (usize, &Member), head: &Head) -> bool {
        let slot = head.at.sequence % self.geometry.slots;
        let loose = self.mutant == Mutant::NoIdentity;
        self.placed(seat, slot, head.row).is_some_and(|own| {
            own.identity == head.identity || loose && own.at == head.at && own.kind == head.kind
        })
    }

    fn body_on(self, seat: (usize, &Member), head: &Head, row: usize) -> bool {
        let slot = head.at.sequence % self.geometry.slots;
        let loose = self.mutant == Mutant::NoIdentity;
        let found = seat.1.visible[slot * self.geometry.rows + head.row + row];
        self.head_of(seat, head)
            && match found {
                Row::Body { identity, row: at } => {
                    at == row && (loose || identity == head.identity)
                }
                _ => false,
            }
    }

    /// K members have its head, and each row can be had from K of them. Fewer heads may be of a
    /// past that only they have seen.
    fn whole(self, head: &Head) -> bool {
        let data = self.shape_at(head.at.sequence).data;
        let enough = |good: &dyn Fn((usize, &Member)) -> bool| {
            self.each().filter(|&m| good(m)).count() >= data
        };
        enough(&|member| self.head_of(member, head))
            && (head.kind.closes()
                || (1..=head.rows).all(|row| enough(&|member| self.body_on(member, head, row))))
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
                    && member.1.visible[slot * self.geometry.rows + head.row + row]
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

    /// Whole data before VOID, either before damaged data. What shows only inside gaps may have
    /// been voided by the others.
    fn rank(self, stripe: &Stripe) -> (usize, usize) {
        let slot = stripe.head.at.sequence % self.geometry.slots;
        let vouched = self.mutant == Mutant::GapHeadsRankEqual
            || self.each().any(|(seat, member)| {
                !self.known.entries[seat].lacks(stripe.head.at.sequence)
                    && self.head_on((seat, member), slot, stripe.head.row) == Some(stripe.head)
            });
        let rank = match (stripe.whole, stripe.head.kind.closes(), vouched) {
            (true, false, true) => 4,
            (true, true, true) if self.mutant == Mutant::VoidBeatsData => 4,
            (true, true, true) => 3,
            (true, false, false) => 2,
            (_, true, _) => 1,
            (false, false, _) => 0,
        };
        (rank, stripe.head.epoch)
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
    pub(crate) fn closing_is_exact(self, seat: (usize, &Member), head: &Head) -> bool {
        let slot = head.at.sequence % self.geometry.slots;
        let clear = (head.row + 1..self.geometry.rows).all(|row| {
            self.head_on(seat, slot, row)
                .is_none_or(|behind| behind.at.sequence != head.at.sequence)
        });
        let trailer =
            self.mutant == Mutant::TrailerNotRewritten || self.trailer_holds(seat.1, head);
        self.head_on(seat, slot, head.row) == Some(*head) && trailer && clear
    }
}
