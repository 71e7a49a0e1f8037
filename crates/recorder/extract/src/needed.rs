//! What a copy of a volume has to have, so that it answers for some times as the volume does.

use core::ops::RangeInclusive;

use completeness::Completeness;
use format::head::StripeId;
use units::{Sequence, Timestamp};
use volume::Reader;

use crate::Options;
use crate::archive::Archive;

/// Slots that hold packets of some times or their index, and what is known to be missing there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Needed {
    /// Sequences of slots with packets, oldest first; runs may touch each other.
    pub slots: Vec<RangeInclusive<Sequence>>,
    /// First parts of the indexes of these packets.
    pub indexes: Vec<StripeId>,
    /// What heads say of these times; damage is found by who reads the slots.
    pub completeness: Completeness,
}

/// Reads the heads and directories of an encrypted volume that an [`crate::extract`] of these times
/// reads first; no key is needed for that. Nothing that has expired is among what is needed, but
/// for what lies in one segment with what has not.
pub fn needed(
    reader: Reader,
    options: &Options,
    times: &RangeInclusive<Timestamp>,
    now: Timestamp,
) -> (Reader, Needed) {
    let mut archive = Archive::of_volume(reader, options, now);
    let mut completeness = Completeness {
        erased_through: archive.erased_through(times),
        expired_through: Some(archive.expired).filter(|expired| times.start() <= expired),
        ..Completeness::default()
    };
    completeness.expired_through = completeness.expired_through.filter(|at| *at > Timestamp::MIN);
    completeness.add_standing(&archive.standing(times));
    let from = (*times.start()).max(archive.expired.plus_nanos(1));
    let mut parts = archive.parts();
    parts.retain(|part| part.time_min <= *times.end() && part.time_max() >= from);
    let slots = parts.iter().map(|part| part.first.sequence..=part.last.sequence).collect();
    let indexes = parts.iter().filter_map(|part| Some(part.segment?.index)).collect();
    (archive.reader, Needed { slots, indexes, completeness })
}
