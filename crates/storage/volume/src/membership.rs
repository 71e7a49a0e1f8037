//! Which members a volume has, which of them are here, and what each may be believed.

use core::ops::Range;

use format::geometry::Geometry;
use format::head::HeadKey;
use format::superblock::{MemberEntry, Superblock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Epoch, MemberId, Sequence};

use crate::Error;

/// The members as their superblocks describe them.
///
/// A member is *fresh* when it joined the newest epoch that any of those at hand joined (or was
/// about to: see `quorum`): only fresh members say where the ring ends. Of what a member holds,
/// nothing counts inside its *gap*: the sequences it may have missed, or seen differently.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Membership {
    superblock: Superblock,
    /// By member: the superblock it carries, `None` where it is absent.
    superblocks: Vec<Option<Superblock>>,
    /// By member.
    fresh: Vec<bool>,
    /// Others may have gone on without knowing of the newest epoch: its JOIN was cut short, and
    /// nothing followed it. No reader was shown anything by it, and it proves nothing.
    is_unsettled: bool,
    /// The key of the heads is known.
    has_key: bool,
}

/// An epoch that surely came up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Its number; 0: none.
    pub epoch: Epoch,
    /// Sequence of its EPOCH stripe: what lies up to there is acknowledged.
    pub start: Sequence,
    /// Who joined it.
    pub members: u32,
}

/// A part of the ring, and how many members more may be lost without losing any of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Redundancy {
    /// First sequence.
    #[serde(rename = "first_sequence")]
    pub first: Sequence,
    /// Last sequence.
    #[serde(rename = "last_sequence")]
    pub last: Sequence,
    /// Members that may be lost; `None` where rows are missing already.
    #[serde(rename = "survives_members", skip_serializing_if = "Option::is_none")]
    pub spare_members: Option<u8>,
}

/// Who has a member's place in one epoch. What was read and computed for it holds for no other
/// device in that place, and not after another member came or went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seat {
    /// Number of the member.
    pub member: MemberId,
    /// Epoch in which the device has the place.
    pub epoch: Epoch,
    /// Id of the device.
    pub uuid: [u8; 16],
}

/// Whether the seat that a device says it has is its own in what all agree on.
///
/// # Errors
/// [`Error::GivenUp`], [`Error::ReplacedMember`]
pub fn check_own_seat(agreed: &Superblock, place: usize, own: &Superblock) -> Result<(), Error> {
    let known = agreed.members.get(own.member.place());
    if known.is_some_and(|known| known.uuid == own.own_uuid()) {
        return Ok(());
    }
    Err(Error::of_stranger(place, own.member, known))
}

impl Membership {
    /// Puts the superblocks of the members at hand together, in any order.
    ///
    /// # Errors
    /// [`Error::ForeignMember`], [`Error::ReplacedMember`], [`Error::GivenUp`] and
    /// [`Error::SameMember`] name places in `superblocks`.
    pub fn assemble(superblocks: Vec<Superblock>) -> Result<Self, Error> {
        let newest = superblocks
            .iter()
            .max_by_key(|superblock| superblock.newness())
            .ok_or(Error::NoMembers)?
            .clone();
        let mut membership = Self {
            superblocks: vec![None; newest.members.len()],
            fresh: vec![false; newest.members.len()],
            is_unsettled: false,
            superblock: newest,
            has_key: true,
        };
        for (place, superblock) in superblocks.into_iter().enumerate() {
            membership.place(place, superblock)?;
        }
        Ok(membership)
    }

    fn place(&mut self, place: usize, superblock: Superblock) -> Result<(), Error> {
        let number = superblock.member.place();
        if number >= superblock.members.len() {
            return Err(Error::IsSpare { place });
        }
        if superblock.volume_id != self.superblock.volume_id {
            return Err(Error::ForeignMember { place, volume_id: superblock.volume_id });
        }
        check_own_seat(&self.superblock, place, &superblock)?;
        let seat = self.superblocks.get_mut(number).expect("as many seats as members");
        if seat.is_some() {
            return Err(Error::SameMember { place, member: superblock.member });
        }
        *seat = Some(superblock);
        let member = MemberId(u8::try_from(number).expect("at most 24 members"));
        if self.has_joined(member) {
            self.trust(&[member]);
        }
        Ok(())
    }

    /// No superblock was found, and so no key: heads are believed by their place alone.
    pub(crate) fn without_key(self) -> Self {
        Self { has_key: false, ..self }
    }

    /// The key of the heads' MACs; `None` where all superblocks are lost.
    pub fn head_key(&self) -> Option<&HeadKey> {
        self.has_key.then_some(&self.superblock.head_key)
    }

    /// The newest superblock at hand: what all members agree on is taken from it.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Shape of the volume, as new stripes have it.
    pub fn geometry(&self) -> &Geometry {
        &self.superblock.geometry
    }

    /// Shape of the stripes of `sequence`: a volume that has grown holds older ones, too.
    pub fn geometry_at(&self, sequence: Sequence) -> Geometry {
        self.superblock.geometry_at(sequence)
    }

    /// Takes up members that the volume did not have, or has others in their place of: nothing they
    /// hold counts. `superblock` is what all agree on from now on.
    pub fn admit(&mut self, superblock: Superblock, newcomers: &[MemberId]) {
        let places = superblock.members.len();
        self.superblocks.resize(places, None);
        self.fresh.resize(places, false);
        for &member in newcomers {
            let own = Superblock {
                member,
                joined_epoch: Epoch::NONE,
                joined_start: Sequence(0),
                erased_before: Sequence(0),
                ..superblock.clone()
            };
            *self.superblocks.get_mut(member.place()).expect("a place for it") = Some(own);
            *self.fresh.get_mut(member.place()).expect("a place for it") = false;
        }
        self.superblock = superblock;
    }

    /// The superblock of one member; `None` when it is absent.
    pub fn of(&self, member: MemberId) -> Option<&Superblock> {
        self.superblocks.get(member.place())?.as_ref()
    }

    /// Numbers of the members at hand, ascending.
    pub fn present(&self) -> impl Iterator<Item = MemberId> + Clone + '_ {
        self.numbers().filter(|&member| self.of(member).is_some())
    }

    /// Whether no device belongs in the member's seat: no writer waits for it.
    pub fn is_vacant(&self, member: MemberId) -> bool {
        self.superblock.members.get(member.place()).is_some_and(MemberEntry::is_vacant)
    }

    /// Members that have a device, which is not at hand, ascending.
    pub fn absent(&self) -> impl Iterator<Item = MemberId> + Clone + '_ {
        self.numbers().filter(|&member| self.of(member).is_none() && !self.is_vacant(member))
    }

    /// Numbers of all members, ascending.
    pub fn numbers(&self) -> impl Iterator<Item = MemberId> + Clone + use<> {
        let count = u8::try_from(self.superblock.members.len()).expect("at most 24 members");
        MemberId::first(count)
    }

    /// Whether the member joined the newest epoch that any of those at hand joined.
    pub fn has_joined(&self, member: MemberId) -> bool {
        self.of(member).is_some_and(|own| own.joined_epoch == self.superblock.joined_epoch)
    }

    /// Whether the member has a say where the ring ends.
    pub fn is_fresh(&self, member: MemberId) -> bool {
        self.fresh.get(member.place()) == Some(&true)
    }

    /// The sequences of which a member counts for nothing: it took no part in what was done to
    /// them, and what it holds there may be of a future that the others abandoned. Empty when it is
    /// whole.
    ///
    /// One that the others count as theirs, but that does not know it, has lost its newest past (a
    /// snapshot was put back, a lying cache lost its power): it counts up to the last epoch that it
    /// remembers.
    pub fn gap(&self, member: MemberId) -> Range<Sequence> {
        let Some(entry) = self.superblock.members.get(member.place()) else {
            return Sequence(0)..Sequence::MAX;
        };
        let was_whole = entry.stale_from >= entry.clean_from;
        match self.of(member) {
            Some(own) if was_whole && !self.is_fresh(member) => own.joined_start..Sequence::MAX,
            _ => entry.stale_from..entry.clean_from,
        }
    }

    /// Whether the member is at hand and holds every piece of the stripes of `sequence` that it
    /// should, as far as the others know.
    pub fn is_whole_at(&self, member: MemberId, sequence: Sequence) -> bool {
        self.of(member).is_some() && !self.gap(member).contains(&sequence)
    }

    /// What the `sequences` have when a member is taken away, or as they are; cut where a member's
    /// gap begins or ends, or the shape changed.
    pub fn redundancy(
        &self,
        sequences: Range<Sequence>,
        taken: Option<MemberId>,
    ) -> Vec<Redundancy> {
        let gaps = self.numbers().map(|member| self.gap(member));
        let shapes = self.superblock.earlier.iter().map(|shape| shape.until);
        let mut cuts: Vec<Sequence> =
            gaps.flat_map(|gap| [gap.start, gap.end]).chain(shapes).collect();
        cuts.extend([sequences.start, sequences.end]);
        cuts.retain(|cut| (sequences.start..=sequences.end).contains(cut));
        cuts.sort_unstable();
        cuts.dedup();
        let mut parts: Vec<Redundancy> = Vec::new();
        for (&first, &next) in cuts.iter().zip(cuts.iter().skip(1)) {
            let geometry = self.geometry_at(first);
            let is_missing = |&it: &MemberId| !self.is_whole_at(it, first) || taken == Some(it);
            let missing = MemberId::first(geometry.columns()).filter(is_missing);
            let missing = u8::try_from(missing.count()).expect("at most 24");
            let spare_members = geometry.parity_columns.checked_sub(missing);
            match parts.last_mut() {
                Some(before) if before.spare_members == spare_members => before.last = next - 1,
                _ => parts.push(Redundancy { first, last: next - 1, spare_members }),
            }
        }
        parts
    }

    /// Whether the member came to the volume with the newest epoch, blank: it knows nothing of what
    /// its place held before.
    pub(crate) fn is_newcomer(&self, member: MemberId) -> bool {
        let entry = self.superblock.members.get(member.place());
        let came = (Sequence(0), self.superblock.joined_start);
        entry.is_some_and(|entry| (entry.stale_from, entry.clean_from) == came)
    }

    /// The newest epoch that a mount has prepared, as far as the members at hand know.
    pub(crate) fn prepared_epoch(&self) -> Epoch {
        let prepared = self.superblocks.iter().flatten().map(|own| own.prepared_epoch);
        prepared.max().unwrap_or_default()
    }

    /// Takes the newest epoch for one that has shown nothing.
    pub(crate) fn unsettle(&mut self) {
        self.is_unsettled = true;
    }

    /// The newest epoch that surely came up.
    pub fn settled(&self) -> Settled {
        let own = &self.superblock;
        if self.is_unsettled {
            let (epoch, start) = (own.previous_epoch, own.previous_start);
            Settled { epoch, start, members: own.previous_members }
        } else {
            let (epoch, start) = (own.joined_epoch, own.joined_start);
            Settled { epoch, start, members: own.joined_members }
        }
    }

    /// Members of the newest epoch, by its superblock, whether they are at hand or not.
    pub(crate) fn of_newest_epoch(&self) -> impl Iterator<Item = MemberId> + Clone + '_ {
        self.of_bits(self.superblock.joined_members)
    }

    /// The same for bits of a superblock: bit m stands for member m.
    pub(crate) fn of_bits(&self, bits: u32) -> impl Iterator<Item = MemberId> + Clone + '_ {
        self.numbers().filter(move |&member| bits & (member.bit()) != 0)
    }

    /// Gives the members a say.
    pub(crate) fn trust(&mut self, members: &[MemberId]) {
        for &member in members {
            *self.fresh.get_mut(member.place()).expect("as many as members") = true;
        }
    }

    /// The place of a member that takes part, as long as no member comes or goes.
    pub fn seat(&self, member: MemberId) -> Option<Seat> {
        self.of(member)?;
        let (epoch, uuid) = (self.superblock.joined_epoch, self.uuid(member)?);
        Some(Seat { member, epoch, uuid })
    }

    /// Identity of a member.
    pub(crate) fn uuid(&self, member: MemberId) -> Option<[u8; 16]> {
        self.superblock.members.get(member.place()).map(|entry| entry.uuid)
    }
}
