//! One member: rows with a volatile cache, superblock copies, and the ways a disk loses them.
//!
//! A row (4 KiB) is the unit of everything: each row of a write may be lost, land or be torn by
//! itself. A row's content carries what its checksum is seeded with, so a stale or misdirected row
//! compares unequal exactly where the real one would fail its check. `Row::Nothing` is a row that
//! validates as nothing: never written, wiped, torn or rotted.

use crate::rng::Rng;
use crate::superblock::Superblock;

/// Place of a stripe in the order of the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Position {
    pub(crate) sequence: usize,
    pub(crate) sub: usize,
}

impl Position {
    pub(crate) fn new(sequence: usize, sub: usize) -> Self {
        Self { sequence, sub }
    }

    /// Covers every sub of `sequence`.
    pub(crate) fn all_of(sequence: usize) -> Self {
        Self { sequence, sub: usize::from(u16::MAX) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// DATA and INDEX: a body with parity.
    Data,
    /// No body, the same head on every member.
    Heartbeat,
    /// Closes its slot: reaches to the slot's end, trailing length in the last row.
    Void,
    /// The first stripe of an epoch; closes its slot as VOID does.
    Epoch,
}

impl Kind {
    pub(crate) fn closes(self) -> bool {
        matches!(self, Self::Void | Self::Epoch)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) epoch: usize,
    pub(crate) at: Position,
    /// Row of this head in its slot.
    pub(crate) row: usize,
    /// Body rows behind the head.
    pub(crate) rows: usize,
    pub(crate) kind: Kind,
    /// Stands for the hash over the manifest: equal on all pieces of a stripe, on no other stripe.
    pub(crate) identity: u64,
    /// What was acknowledged when this stripe was submitted.
    pub(crate) watermark: Position,
    /// Echo of the geometry: K and P.
    pub(crate) columns: (usize, usize),
}

impl Head {
    /// The stripe's rows as they shall lie on a member, from the head's row on.
    pub(crate) fn content(&self) -> Vec<Row> {
        let body = (1..=self.rows).map(|row| match self.kind {
            Kind::Data => Row::Body { identity: self.identity, row },
            _ if row == self.rows => Row::Trailer { void_row: self.row },
            _ => Row::Nothing,
        });
        std::iter::once(Row::Head(*self)).chain(body).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Row {
    Nothing,
    Head(Head),
    Body { identity: u64, row: usize },
    Trailer { void_row: usize },
}

/// One request: consecutive rows. Its rows tear apart, and so do two requests.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) first: usize,
    pub(crate) rows: Vec<Row>,
    /// The stripe whose acknowledgement waits for this write; none waits for a resilver's.
    pub(crate) owner: Option<Position>,
}

pub(crate) const COPIES: usize = 4;

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) uuid: u64,
    pub(crate) visible: Vec<Row>,
    durable: Vec<Row>,
    /// Rows that landed since the last flush.
    dirty: Vec<usize>,
    pub(crate) in_flight: Vec<Write>,
    copies: [Option<Superblock>; COPIES],
    durable_copies: [Option<Superblock>; COPIES],
    pub(crate) present: bool,
    /// Loses and misdirects writes, rots, and lies about flushes.
    pub(crate) bad: bool,
}

impl Member {
    /// A member as `create` leaves it, or, without a superblock, a blank one.
    pub(crate) fn new(rows: usize, uuid: u64, superblock: Option<&Superblock>) -> Self {
        Self {
            uuid,
            visible: vec![Row::Nothing; rows],
            durable: vec![Row::Nothing; rows],
            dirty: Vec::new(),
            in_flight: Vec::new(),
            copies: [superblock.copied(); COPIES],
            durable_copies: [superblock.copied(); COPIES],
            present: true,
            bad: false,
        }
    }

    pub(crate) fn submit(&mut self, write: Write) {
        self.in_flight.push(write);
    }

    /// A write completes into the volatile cache.
    pub(crate) fn land(&mut self, write: &Write, rng: &mut Rng) {
        let mut first = write.first;
        if self.bad && rng.percent(6) {
            return;
        }
        if self.bad && rng.percent(4) {
            first = rng.below(self.visible.len());
        }
        for (index, row) in (first..self.visible.len()).zip(&write.rows) {
            self.visible[index] = *row;
            self.dirty.push(index);
        }
    }

    pub(crate) fn land_all(&mut self, rng: &mut Rng) {
        for write in std::mem::take(&mut self.in_flight) {
            self.land(&write, rng);
        }
    }

    pub(crate) fn flush(&mut self, rng: &mut Rng) {
        if self.bad && rng.percent(30) {
            return;
        }
        for index in self.dirty.drain(..) {
            self.durable[index] = self.visible[index];
        }
        self.durable_copies = self.copies;
    }

    /// As the worst power cut leaves it: what was not flushed is torn.
    pub(crate) fn tear_cache(&mut self) {
        for index in self.dirty.drain(..) {
            self.visible[index] = Row::Nothing;
        }
    }

    pub(crate) fn superblock(&self) -> Option<Superblock> {
        self.copies.iter().flatten().max_by_key(|copy| copy.generation).copied()
    }

    pub(crate) fn write_superblock(&mut self, copy: usize, superblock: &Superblock) {
        self.copies[copy] = Some(*superblock);
    }

    /// At most one copy rots between two mounts, which rewrite all four.
    pub(crate) fn rot_superblock(&mut self, copy: usize) {
        if self.copies.iter().any(|other| other.is_none() || *other != self.copies[0]) {
            return;
        }
        self.copies[copy] = None;
        self.durable_copies[copy] = None;
    }

    pub(crate) fn rot(&mut self, index: usize) {
        self.visible[index] = Row::Nothing;
        self.durable[index] = Row::Nothing;
    }

    /// The process dies; the cache stays readable.
    pub(crate) fn kill(&mut self, rng: &mut Rng) {
        for write in std::mem::take(&mut self.in_flight) {
            match rng.below(4) {
                0 => {}
                1 => self.land_part(&write, rng),
                _ => self.land(&write, rng),
            }
        }
    }

    fn land_part(&mut self, write: &Write, rng: &mut Rng) {
        for (index, row) in (write.first..self.visible.len()).zip(&write.rows) {
            if rng.percent(50) {
                self.visible[index] = *row;
                self.dirty.push(index);
            }
        }
    }

    /// The power fails: of what was not flushed each row is old, new or torn.
    pub(crate) fn power_cut(&mut self, rng: &mut Rng) {
        for write in std::mem::take(&mut self.in_flight) {
            for (index, row) in (write.first..self.visible.len()).zip(&write.rows) {
                self.visible[index] = *row;
                self.dirty.push(index);
            }
        }
        self.dirty.sort_unstable();
        self.dirty.dedup();
        let fate_of_all = rng.below(5);
        for index in std::mem::take(&mut self.dirty) {
            let fate = if fate_of_all < 2 { fate_of_all } else { rng.below(3) };
            self.durable[index] = match fate {
                0 => self.durable[index],
                1 => self.visible[index],
                _ => Row::Nothing,
            };
            self.visible[index] = self.durable[index];
        }
        for copy in 0..COPIES {
            if self.copies[copy] != self.durable_copies[copy] {
                // A lying member is bad enough without losing its identity.
                match rng.below(if self.bad { 2 } else { 3 }) {
                    0 => {}
                    1 => self.durable_copies[copy] = self.copies[copy],
                    _ => self.durable_copies[copy] = None,
                }
            }
        }
        self.copies = self.durable_copies;
    }
}
