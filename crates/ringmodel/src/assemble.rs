//! Who is at hand, whether they suffice, and whose heads say where the ring ends.
//!
//! Quorum: max(K, M - K + 1) of the M members of the newest joined epoch, or every member there is.
//! More than half of M follows. [M - K + 1: a writer may go on with K members alone, and those that
//! it left must not be enough to go on without them.]
//!
//! The operator may say that some are gone for good, without a future that those at hand do not
//! know: they are not counted then, and the mount empties their seats. One that comes back all the
//! same is a stranger. [K of them, outside of what voided a stripe, bring it back whole.]
//!
//! A JOIN may be cut short. An epoch is settled once no quorum of the one before can be had without
//! somebody who joined it, or something was written in it. Until then nothing was shown in it: the
//! mount needs a quorum of the epoch before, too, and judges again what the cut one had decided.
//! [{0, 1, 2} take 3 back, and 0 alone has joined: {0, 3} and {1, 2} both go on.] All members of an
//! epoch in which nothing was written are as good, joined or not.

use crate::model::{Sim, Stop};
use crate::mutants::Mutant;
use crate::superblock::{Settled, Superblock, each, size};

/// Which members a mount may work with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assembly {
    /// Bit set: present, with a superblock, and known to the others.
    pub(crate) present: usize,
    /// Bit set: those whose heads say where the log ends.
    pub(crate) trusted: usize,
    /// The newest superblock.
    pub(crate) known: Superblock,
    /// The newest epoch that can be relied on.
    pub(crate) settled: Settled,
}

impl Sim<'_> {
    /// The newest superblock among the members of a set, and those of the set that it names.
    pub(crate) fn newest_of(&self, set: usize) -> Option<(Superblock, usize)> {
        let superblocks = each(set).filter_map(|seat| Some((seat, self.superblock_of(seat)?)));
        let newest = superblocks.clone().map(|(_, own)| own);
        let known = newest.max_by_key(|own| (own.joined, own.generation))?;
        let named = superblocks
            .filter(|(seat, _)| known.all() >> seat & 1 == 1)
            .filter(|(seat, _)| {
                let uuid = self.members[*seat].uuid;
                known.entries[*seat].uuid == uuid || self.mutant == Mutant::ReplacedMemberAccepted
            })
            .fold(0, |set, (seat, _)| set | 1 << seat);
        Some((known, named))
    }

    pub(crate) fn superblock_of(&self, seat: usize) -> Option<Superblock> {
        self.members.get(seat)?.superblock()
    }

    pub(crate) fn at_hand(&self) -> usize {
        let present = self.members.iter().enumerate().filter(|(_, member)| member.present);
        present.fold(0, |set, (seat, _)| set | 1 << seat)
    }

    pub(crate) fn assemble(&self) -> Result<Assembly, Stop> {
        let newest = self.newest_of(self.at_hand());
        if newest.is_none() && self.members.len() == 1 && self.at_hand() == 1 {
            return Err(Stop::Violation("no superblock on the only member".to_owned()));
        }
        let (known, present) = newest.ok_or(Stop::Refused)?;
        // A seat that was never filled keeps nobody waiting.
        let filled = each(known.all()).filter(|&seat| known.entries[seat].uuid != 0);
        let all = filled.fold(0, |set, seat| set | 1 << seat);
        // Nobody's word makes up for pieces that there is no member for.
        let gone = if self.mutant == Mutant::GoneCountAsHere { self.gone } else { 0 };
        let all = all & !gone == present;
        let entitled = present & known.members;
        let quorum = self.quorum(&known.newest(), self.gone);
        let fresh = each(present)
            .filter(|&seat| self.superblock_of(seat).is_some_and(|own| own.joined == known.joined))
            .fold(0, |set, seat| set | 1 << seat);
        let (used, before) = (self.epoch_used(fresh, &known), known.previous);
        let joined = size(fresh) >= quorum;
        let witnesses = before.members & !before.replaced;
        let unaware = size(before.members & !(fresh & witnesses) & !self.gone);
        let settled = used || unaware < self.quorum(&before, self.gone);
        let before_too = settled
            || self.mutant == Mutant::NewestQuorumAlone
            || size(present & witnesses) >= self.quorum(&before, self.gone);
        if !all && (size(entitled) < quorum || used && !joined || !before_too) {
            return Err(Stop::Refused);
        }
        let trusted = match self.mutant {
            Mutant::StaleMembersTrusted | Mutant::NoEpochNumber => present,
            Mutant::JoinersAlone if joined => fresh,
            _ if used => fresh,
            _ => entitled,
        };
        let settled = if settled { known.newest() } else { before };
        Ok(Assembly { present, trusted, known, settled })
    }

    /// Members needed of an epoch. Those of `gone` are neither waited for nor counted.
    pub(crate) fn quorum(&self, epoch: &Settled, gone: usize) -> usize {
        let (data, members) = (epoch.data, size(epoch.members & !gone));
        if epoch.epoch == 0 {
            // Nothing was ever recorded: a volume begins with all that it was created with.
            return members.max(data);
        }
        match self.mutant {
            Mutant::NoQuorum | Mutant::NoEpochNumber => 0,
            Mutant::QuorumOfData => data,
            Mutant::QuorumOfMajority => data.max(members / 2 + 1),
            _ => data.max((members + 1).saturating_sub(data)),
        }
    }

    /// A stripe of the joined epoch lies behind its EPOCH stripe: the JOIN was complete.
    fn epoch_used(&self, set: usize, known: &Superblock) -> bool {
        let (view, start) = (self.view_by(known, set), known.start);
        (start + 1..=start + self.geometry.window + 1).any(|sequence| {
            (0..self.geometry.rows).any(|row| {
                view.heads(sequence % self.geometry.slots, row)
                    .any(|head| head.epoch == known.joined && head.at.sequence > start)
            })
        })
    }
}
