//! Finding the newest head and the watermark among those heads that count.

use std::ops::Range;

use crate::device::{Head, Position};
use crate::mutants::Mutant;
use crate::read::View;

/// Slots to either side of an unreadable probe that are tried in its place.
const REACH: usize = 2;

impl View<'_> {
    /// The newest sequence on the members: bisection over laps, the window, and where the two
    /// disagree, or end before the newest epoch begins, the first rows of every slot. [What all
    /// members at hand lack looks like the end of the ring.] A volume no epoch joined has no log to
    /// miss.
    pub(crate) fn newest(self, reads: &mut Reads) -> Option<usize> {
        let near = self.geometry.window * 4;
        let anchor = (0..near).find_map(|slot| reads.count(self.probe(slot)).map(|s| (slot, s)));
        if anchor.is_none() && self.known.joined == 0 {
            return None;
        }
        let boundary =
            anchor.map(|(slot, sequence)| self.bisect(slot, sequence / self.geometry.slots, reads));
        let found = boundary.and_then(|boundary| self.in_window(boundary, reads));
        let behind_start = |sequence| {
            sequence >= self.known.start || self.mutant == Mutant::EndBeforeStartBelieved
        };
        if let Some((sequence, distance)) = found
            && behind_start(sequence)
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
