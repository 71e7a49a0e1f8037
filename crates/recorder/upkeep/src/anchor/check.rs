//! Whether a volume is the one that anchors saw: rolled back, cut off, rewritten, or as it was.

use std::path::{Path, PathBuf};

use evidence::{Body, Listed};
use format::head::{StripeId, VolumeId};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use units::Sequence;
use units::number::to_u64;
use volume::{Reader, Span};

use super::goes_on;
use super::slots::{SlotState, Slots};
use crate::{Error, Progress};

/// Ranges of stripes that findings name; more than these become one with the last.
const RANGES_MAX: usize = 64;

/// An anchor, or a line of a witness file, as far as the volume is compared with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnchorToCheck {
    /// Of this volume.
    pub volume: VolumeId,
    /// Newest acknowledged stripe that it saw.
    pub newest: StripeId,
    /// What it lists, by stripe and column.
    pub records: Vec<Listed>,
    /// It has hashes of bodies, where stripes have one.
    pub contents: bool,
}

/// Stripes from one to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct StripeRange {
    /// The first.
    pub first: StripeId,
    /// The last.
    pub last: StripeId,
    /// Pieces of them that are listed.
    pub pieces: u64,
}

/// What can be said of a volume after an anchor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnchorVerdict {
    /// All that the anchor lists and the ring still holds is as it was.
    Same,
    /// It ends before the newest stripe that the anchor saw: an older image, or cut off.
    RolledBack,
    /// Stripes are others than those that the anchor saw.
    Rewritten,
    /// Nothing is another, but some of it cannot be read.
    Unreadable,
    /// The ring has passed all that the anchor lists, or it was given up on purpose.
    NothingLeft,
    /// It is another volume.
    OtherVolume,
}

/// A volume after an anchor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AnchorFindings {
    /// What can be said.
    pub verdict: AnchorVerdict,
    /// Oldest slot that the volume holds, and its newest acknowledged stripe; `None` where it holds
    /// nothing.
    #[serde(flatten, serialize_with = "ends")]
    pub held: Option<(Sequence, StripeId)>,
    /// Pieces that are as they were, of stripes from the first to the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same: Option<StripeRange>,
    /// Of those, with a hash of their body.
    pub same_contents: u64,
    /// The anchor has hashes of bodies.
    pub contents: bool,
    /// Stripes that are others than those listed.
    pub changed: Vec<StripeRange>,
    /// Of those, pieces whose head is as it was and whose body is not, with checksums that fit.
    pub changed_bodies: u64,
    /// Stripes that cannot be read.
    pub unreadable: Vec<StripeRange>,
    /// Stripes behind the volume's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<StripeRange>,
    /// Stripes that the ring has passed, or that were given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<StripeRange>,
    /// What lies in front of the oldest slot was given up for its age, not overwritten.
    #[serde(rename = "passed_by_age")]
    pub is_given_up: bool,
}

#[expect(clippy::ref_option, reason = "serde gives a reference")]
fn ends<S: Serializer>(held: &Option<(Sequence, StripeId)>, to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(None)?;
    if let Some((tail, end)) = held {
        map.serialize_entry("volume_tail", tail)?;
        map.serialize_entry("volume_end", end)?;
    }
    map.end()
}

/// Compares a volume with what anchors saw of it. May run beside a recorder.
///
/// # Errors
/// When the volume cannot be opened, or `progress` breaks off.
pub fn check_anchors(
    (path, members): (&Path, &[PathBuf]),
    anchors: &[AnchorToCheck],
    progress: Progress<'_>,
) -> Result<Vec<AnchorFindings>, Error> {
    let reader = crate::open(path, members)?;
    let mut slots = Slots::new(&reader);
    let counts = anchors.iter().map(|anchor| to_u64(by_slot(&anchor.records).count()));
    let total = slots.bytes(counts.sum());
    let mut done = 0;
    let check = |anchor: &AnchorToCheck| {
        let mut findings = Comparison::new(&reader, anchor);
        for listed in by_slot(&anchor.records) {
            findings.slot(&mut slots, listed);
            done += 1;
            goes_on(progress(slots.bytes(done), total))?;
        }
        Ok(findings.finish(anchor.newest))
    };
    anchors.iter().map(check).collect()
}

/// Records of one slot after the other.
fn by_slot(records: &[Listed]) -> impl Iterator<Item = &[Listed]> {
    records.chunk_by(|a, b| a.stripe.sequence == b.stripe.sequence)
}

/// Ranges that grow as pieces are added in the order of the ring.
#[derive(Default)]
struct Ranges(Vec<StripeRange>);

impl Ranges {
    /// `follows`: no piece of another kind lies between this one and the last.
    fn add(&mut self, stripe: StripeId, follows: bool) {
        let is_full = self.0.len() == RANGES_MAX;
        match self.0.last_mut() {
            Some(last) if follows || is_full || last.last == stripe => {
                last.last = stripe;
                last.pieces += 1;
            }
            _ => self.0.push(StripeRange { first: stripe, last: stripe, pieces: 1 }),
        }
    }

    fn hull(self) -> Option<StripeRange> {
        let (first, last) = (self.0.first()?.first, self.0.last()?.last);
        Some(StripeRange { first, last, pieces: self.0.iter().map(|it| it.pieces).sum() })
    }
}

/// What became of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Same,
    Changed,
    Unreadable,
    Passed,
    Missing,
}

struct Comparison {
    is_same_volume: bool,
    span: Option<Span>,
    is_given_up: bool,
    last: Option<Fate>,
    same: Ranges,
    same_contents: u64,
    contents: bool,
    changed: Ranges,
    changed_bodies: u64,
    unreadable: Ranges,
    passed: Ranges,
    missing: Ranges,
}

impl Comparison {
    fn new(reader: &Reader, anchor: &AnchorToCheck) -> Self {
        let (superblock, span) = (reader.superblock(), reader.span());
        let given_up = superblock.given_up_before;
        Self {
            is_same_volume: superblock.volume_id == anchor.volume,
            span,
            is_given_up: span.map_or(given_up > Sequence(0), |span| given_up >= span.tail),
            last: None,
            same: Ranges::default(),
            same_contents: 0,
            contents: anchor.contents,
            changed: Ranges::default(),
            changed_bodies: 0,
            unreadable: Ranges::default(),
            passed: Ranges::default(),
            missing: Ranges::default(),
        }
    }

    /// Compares what an anchor lists of one slot.
    fn slot(&mut self, slots: &mut Slots<'_>, listed: &[Listed]) {
        let Some(sequence) = listed.first().map(|listed| listed.stripe.sequence) else { return };
        if !self.is_same_volume {
            return;
        }
        let all = |this: &mut Self, fate| listed.iter().for_each(|it| this.note(it, fate));
        match self.span {
            None => return all(self, Fate::Missing),
            Some(span) if sequence > span.acknowledged.sequence => {
                return all(self, Fate::Missing);
            }
            Some(span) if sequence < span.tail => return all(self, Fate::Passed),
            Some(_) => {}
        }
        let contents = listed.iter().any(|it| matches!(it.body, Body::Hash(_)));
        let (found, state) = slots.read(sequence, contents);
        for it in listed {
            let place = |other: &Listed| (other.stripe, other.column) == (it.stripe, it.column);
            let now = found.iter().map(|found| &found.listed).find(|other| place(other));
            let is_behind = self.span.is_some_and(|span| it.stripe > span.acknowledged);
            let fate = match (now, state) {
                _ if is_behind => Fate::Missing,
                (_, SlotState::Overwritten) => Fate::Passed,
                (Some(now), _) => self.compare(it, now),
                (None, SlotState::Damaged) => Fate::Unreadable,
                // The slot is whole, and has no such stripe.
                (None, SlotState::Read) => Fate::Changed,
            };
            self.note(it, fate);
        }
    }

    fn compare(&mut self, then: &Listed, now: &Listed) -> Fate {
        if then.cid != now.cid {
            return Fate::Changed;
        }
        match (then.body, now.body) {
            (Body::Hash(then), Body::Hash(now)) if then == now => {
                self.same_contents += 1;
                Fate::Same
            }
            (Body::Hash(_), Body::Unreadable) => Fate::Unreadable,
            (Body::Hash(_), _) => {
                self.changed_bodies += 1;
                Fate::Changed
            }
            _ => Fate::Same,
        }
    }

    fn note(&mut self, listed: &Listed, fate: Fate) {
        let follows = self.last == Some(fate);
        let ranges = match fate {
            Fate::Same => &mut self.same,
            Fate::Changed => &mut self.changed,
            Fate::Unreadable => &mut self.unreadable,
            Fate::Passed => &mut self.passed,
            Fate::Missing => &mut self.missing,
        };
        ranges.add(listed.stripe, follows);
        self.last = Some(fate);
    }

    fn finish(self, newest: StripeId) -> AnchorFindings {
        let end = self.span.map(|span| span.acknowledged);
        let is_rolled_back = end.is_none_or(|end| end < newest) || !self.missing.0.is_empty();
        let verdict = if !self.is_same_volume {
            AnchorVerdict::OtherVolume
        } else if is_rolled_back {
            AnchorVerdict::RolledBack
        } else if !self.changed.0.is_empty() {
            AnchorVerdict::Rewritten
        } else if !self.unreadable.0.is_empty() {
            AnchorVerdict::Unreadable
        } else if self.same.0.is_empty() {
            AnchorVerdict::NothingLeft
        } else {
            AnchorVerdict::Same
        };
        AnchorFindings {
            verdict,
            held: self.span.map(|span| (span.tail, span.acknowledged)),
            is_given_up: self.is_given_up,
            same: self.same.hull(),
            same_contents: self.same_contents,
            contents: self.contents,
            changed: self.changed.0,
            changed_bodies: self.changed_bodies,
            unreadable: self.unreadable.0,
            passed: self.passed.hull(),
            missing: self.missing.hull(),
        }
    }
}
