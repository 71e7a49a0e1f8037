//! Datagrams that IP cut into fragments, put together for the names in them.
//!
//! Only names come of it: packets and bytes are counted as they came. A datagram is known by its
//! ends, its identification and, in IPv4, its protocol (RFC 791, RFC 8200 4.5). One whose fragments
//! overlap is dropped, and what comes of it later too (RFC 5722); a fragment that comes twice is
//! left out. So the order of the fragments decides nothing.
//!
//! Bounded: so many datagrams, bytes and parts; the oldest one is dropped. The work of a fragment
//! is a look at each datagram and a search among the parts of one.

use units::Timestamp;
use wire::{Address, Fragment, Part};

use crate::key::FRAGMENT_LIFE_NS;
use crate::record::Addressed;

/// Datagrams put together at a time.
const DATAGRAM_COUNT: usize = 64;

/// Bytes of all their parts.
const BYTES_MAX: usize = 1 << 20;

/// Parts of one datagram: 64 KiB take 119 packets of the least MTU that hosts must take, 576 bytes.
const PART_COUNT_MAX: usize = 128;

/// Bytes of one datagram (RFC 791 3.1).
const LEN_MAX: usize = (1 << 16) - 1;

/// Bytes of a part's place in a list that grows by doubling.
const PLACE_BYTES: usize = 2 * size_of::<(usize, Box<[u8]>)>();

/// Bytes that all of it takes at most: lists have at least four places, and a datagram that is
/// whole lies there twice.
pub(crate) const MEMORY_BYTES_MAX: usize =
    BYTES_MAX + DATAGRAM_COUNT * (size_of::<Datagram>() + 2 * PLACE_BYTES) + LEN_MAX;

/// What the fragments of one datagram have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label {
    pub(crate) id: u32,
    /// `None` in IPv6, where fragments may differ in it.
    pub(crate) protocol: Option<u8>,
    pub(crate) ends: (Address, Address),
}

/// A fragment on its way to its datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) label: Label,
    pub(crate) fragment: Fragment,
    pub(crate) part: Part<'a>,
    pub(crate) timestamp: Timestamp,
    /// Where the packet belongs.
    pub(crate) address: &'a Addressed,
}

/// A datagram that is whole.
#[derive(Debug)]
pub(crate) struct Whole {
    /// Number of the header that it begins with.
    pub(crate) protocol: u8,
    pub(crate) bytes: Vec<u8>,
    /// Where its first fragment belongs.
    pub(crate) address: Addressed,
}

#[derive(Debug)]
struct Datagram {
    label: Label,
    /// Counts up: the oldest has the smallest.
    number: u64,
    /// When its first packet came.
    seen: Timestamp,
    /// Of the fragment at its beginning.
    first: Option<(u8, Addressed)>,
    /// Where each begins, ascending; they do not overlap.
    parts: Vec<(usize, Box<[u8]>)>,
    /// Bytes of the parts.
    len: usize,
    /// Where the last fragment ends.
    end: Option<usize>,
    /// It cannot become whole.
    is_dropped: bool,
}

impl Datagram {
    /// Bytes taken of the space for all.
    fn held(&self) -> usize {
        self.len + self.parts.len() * PLACE_BYTES
    }

    /// Its fragments contradict each other, or will not all be there.
    fn drop_all(&mut self) {
        (self.parts, self.len, self.is_dropped) = (Vec::new(), 0, true);
    }

    /// Takes a part; true when nothing is missing any more.
    fn add(&mut self, piece: &Piece<'_>) -> bool {
        let Fragment { offset, more, .. } = piece.fragment;
        let (start, bytes) = (usize::from(offset), piece.part.bytes);
        let end = start + bytes.len();
        if self.is_dropped || bytes.is_empty() && piece.part.is_whole {
            return false;
        }
        let at = self.parts.partition_point(|(other, _)| *other < start);
        let next = self.parts.get(at);
        if next.is_some_and(|(other, part)| *other == start && **part == *bytes) {
            return false;
        }
        let before = at.checked_sub(1).and_then(|before| self.parts.get(before));
        let overlaps = before.is_some_and(|(other, part)| other + part.len() > start)
            || next.is_some_and(|(other, _)| *other < end);
        // Only the last fragment's length is none of words of eight bytes.
        let is_odd = more && !bytes.len().is_multiple_of(8);
        let is_beyond = self.end.is_some_and(|last| end > last || !more)
            || !more && next.is_some()
            || end > LEN_MAX;
        let is_full = self.parts.len() == PART_COUNT_MAX;
        if !piece.part.is_whole || overlaps || is_odd || is_beyond || is_full {
            self.drop_all();
            return false;
        }
        self.parts.insert(at, (start, bytes.into()));
        self.len += bytes.len();
        if !more {
            self.end = Some(end);
        }
        if start == 0 {
            self.first = Some((piece.part.protocol, *piece.address));
        }
        // The parts do not overlap, and none lies beyond the end.
        self.end == Some(self.len)
    }
}

/// The datagrams that are being put together. It takes no memory before the first fragment.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    datagrams: Vec<Datagram>,
    /// Bytes taken of [`BYTES_MAX`].
    held: usize,
    /// Datagrams begun.
    begun: u64,
    /// Datagrams given up, while more of them might have come, because there was no space.
    pub(crate) refused: u64,
}

impl Reassembly {
    /// Takes a fragment; the datagram if it is whole.
    pub(crate) fn take(&mut self, piece: &Piece<'_>) -> Option<Whole> {
        let wanted = piece.part.bytes.len() + PLACE_BYTES;
        while self.held + wanted > BYTES_MAX && !self.datagrams.is_empty() {
            self.give_up_oldest(piece.timestamp);
        }
        let at = self.place(piece);
        let datagram = self.datagrams.get_mut(at).expect("it was placed there");
        let before = datagram.held();
        let is_whole = datagram.add(piece);
        self.held = self.held - before + datagram.held();
        if !is_whole {
            return None;
        }
        let datagram = self.remove(at);
        let (protocol, address) = datagram.first?;
        let mut bytes = Vec::with_capacity(datagram.len);
        datagram.parts.iter().for_each(|(_, part)| bytes.extend_from_slice(part));
        Some(Whole { protocol, bytes, address })
    }

    /// Forgets all datagrams.
    pub(crate) fn clear(&mut self) {
        (self.datagrams, self.held) = (Vec::new(), 0);
    }

    /// The place of a fragment's datagram, which may be a new one.
    fn place(&mut self, piece: &Piece<'_>) -> usize {
        let is_it = |datagram: &Datagram| datagram.label == piece.label;
        if let Some(at) = self.datagrams.iter().position(is_it) {
            let datagram = self.datagrams.get(at).expect("it was found there");
            if !is_over(datagram, piece.timestamp) {
                return at;
            }
            self.remove(at);
        }
        if self.datagrams.capacity() == 0 {
            self.datagrams.reserve_exact(DATAGRAM_COUNT);
        }
        if self.datagrams.len() == DATAGRAM_COUNT {
            self.give_up_oldest(piece.timestamp);
        }
        self.begun += 1;
        self.datagrams.push(Datagram {
            label: piece.label,
            number: self.begun,
            seen: piece.timestamp,
            first: None,
            parts: Vec::new(),
            len: 0,
            end: None,
            is_dropped: false,
        });
        self.datagrams.len() - 1
    }

    fn give_up_oldest(&mut self, now: Timestamp) {
        let numbers = self.datagrams.iter().enumerate();
        let oldest = numbers.min_by_key(|(_, datagram)| datagram.number).map(|(at, _)| at);
        let datagram = self.remove(oldest.expect("there are datagrams"));
        let is_loss = !datagram.is_dropped && !is_over(&datagram, now);
        self.refused = self.refused.saturating_add(u64::from(is_loss));
    }

    fn remove(&mut self, at: usize) -> Datagram {
        let datagram = self.datagrams.swap_remove(at);
        self.held -= datagram.held();
        datagram
    }
}

/// Whether no more of a datagram is to be expected.
fn is_over(datagram: &Datagram, now: Timestamp) -> bool {
    now.since(datagram.seen).unsigned_abs() > FRAGMENT_LIFE_NS.unsigned_abs()
}

#[cfg(test)]
mod tests;
