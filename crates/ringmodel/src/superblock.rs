//! What every member knows of the volume: the joined epoch, who takes part in it, what each member
//! lacks, and the shapes that the ring's stripes have.

use crate::device::Head;

/// Most members of a modelled volume.
pub(crate) const SEATS: usize = 8;

/// `clean_from` of a member that takes no part.
pub(crate) const NEVER: usize = usize::MAX;

/// A member as the others know it: it lacks what was done to the sequences from `stale_from` up to,
/// not including, `clean_from`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) uuid: u64,
    pub(crate) stale_from: usize,
    pub(crate) clean_from: usize,
}

impl Entry {
    /// A seat that nobody has.
    pub(crate) const EMPTY: Self = Self { uuid: 0, stale_from: 0, clean_from: NEVER };

    pub(crate) fn is_whole(&self) -> bool {
        self.stale_from >= self.clean_from
    }

    pub(crate) fn lacks(&self, sequence: usize) -> bool {
        (self.stale_from..self.clean_from).contains(&sequence)
    }
}

/// Columns of the stripes from one sequence on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// The first sequence of this shape: its EPOCH stripe.
    pub(crate) first: usize,
    /// K: pieces needed to read a stripe.
    pub(crate) data: usize,
    /// P: pieces that may be missing.
    pub(crate) parity: usize,
}

impl Shape {
    pub(crate) fn members(&self) -> usize {
        self.data + self.parity
    }

    /// As heads repeat it.
    pub(crate) fn columns(&self) -> (usize, usize) {
        (self.data, self.parity)
    }
}

/// An epoch that no later mount can miss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Settled {
    pub(crate) epoch: usize,
    /// Sequence of its EPOCH stripe.
    pub(crate) start: usize,
    /// Bit set of its members.
    pub(crate) members: usize,
    /// Those of them whose seats were given to blank ones since.
    pub(crate) replaced: usize,
    /// K of its stripes.
    pub(crate) data: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Superblock {
    /// Counts the writes; the newest valid copy wins.
    pub(crate) generation: usize,
    pub(crate) prepared: usize,
    pub(crate) joined: usize,
    /// The last settled epoch before: what counts until this one is settled.
    pub(crate) previous: Settled,
    /// Sequence of the joined epoch's EPOCH stripe.
    pub(crate) start: usize,
    /// Bit set of the members of the joined epoch.
    pub(crate) members: usize,
    /// The newest first; a volume that never grew has one three times.
    pub(crate) shapes: [Shape; 3],
    pub(crate) entries: [Entry; SEATS],
}

impl Superblock {
    pub(crate) fn shape(&self) -> Shape {
        self.shapes[0]
    }

    /// What a blank member is given before it takes part.
    pub(crate) fn for_blank(mut self) -> Self {
        self.joined = 0;
        self
    }

    /// To be written over `old`.
    pub(crate) fn after(mut self, old: Option<&Self>) -> Self {
        self.generation = old.map_or(0, |old| old.generation);
        self
    }

    /// The shape in force at a sequence.
    pub(crate) fn shape_at(&self, sequence: usize) -> Shape {
        let in_force = self.shapes.iter().find(|shape| shape.first <= sequence);
        *in_force.unwrap_or(&self.shapes[self.shapes.len() - 1])
    }

    /// Bit set of the members that have a piece of a stripe.
    pub(crate) fn seats_at(&self, sequence: usize) -> usize {
        (1 << self.shape_at(sequence).members()) - 1
    }

    /// The joined epoch.
    pub(crate) fn newest(&self) -> Settled {
        let Self { joined: epoch, start, members, .. } = *self;
        Settled { epoch, start, members, replaced: 0, data: self.shape().data }
    }

    /// Bit set of every member.
    pub(crate) fn all(&self) -> usize {
        (1 << self.shape().members()) - 1
    }

    /// A head that no later epoch knows of: its place was given to others.
    pub(crate) fn is_abandoned(&self, head: &Head) -> bool {
        head.at.sequence >= self.start && head.epoch < self.joined
    }
}

/// The members of a bit set.
pub(crate) fn each(set: usize) -> impl Iterator<Item = usize> + Clone {
    (0..SEATS).filter(move |index| set >> index & 1 == 1)
}

pub(crate) fn size(set: usize) -> usize {
    usize::try_from(set.count_ones()).expect("a bit count fits")
}
