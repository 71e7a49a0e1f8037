//! One writer at a time, also where no lock is shared: two names of one device, two hosts on one
//! disk.
//!
//! [`Claiming`] is how a volume is opened for writing: look, wait where another writer may live,
//! claim, wait, look again, and only then write anything else. [`Hold`] is what keeps it:
//! on each member the claim is compared and renewed, and a member whose last renewal is too long
//! ago is not written to before the next one has succeeded. Rules: docs/format.md, Claim.
//!
//! Why at most one writes: a writer sends nothing to a member later than a lease
//! ([`format::claim::lease_ns`]) after it has last seen its own claim there. Who takes over has put
//! its claim there and waits longer than that before it writes. The wait before is a courtesy to
//! those who are alive. Where none can be, the race of two openers is left: who has looked claims
//! within a shorter time ([`format::claim::race_ns`]), or waits the long time, and looks again that
//! much later; so of two, one sees the other.

mod claiming;
mod hold;

use format::claim::{Claimant, INTERVAL_MS};
use units::Sleep;

pub(crate) use claiming::Claiming;
#[cfg(test)]
pub(crate) use claiming::Next;
pub(crate) use hold::{Hold, Kept};

/// Who opens a volume for writing, and what it goes by: arguments, so that a simulation repeats.
#[derive(Clone)]
pub struct Opener<'a> {
    /// Clock by which the opener waits.
    pub clock: &'a dyn Sleep,
    /// How often it is going to renew its claim.
    pub interval_ms: u32,
    /// Random: another one for every opening.
    pub id: [u8; 16],
    /// Who claims the members.
    pub claimant: Claimant,
    /// Whether a claimant is known to be gone. Of one that may be alive its claim says more: it
    /// moves, but in a copy of the volume.
    pub is_gone: &'a (dyn Fn(&Claimant) -> bool + Sync),
}

impl<'a> Opener<'a> {
    /// An opener of disks that no other process can reach, as those of a simulation: the writer
    /// that claimed them before is gone.
    pub fn alone(clock: &'a dyn Sleep) -> Self {
        let (id, claimant) = ([0; 16], Claimant::default());
        Self { clock, interval_ms: INTERVAL_MS, id, claimant, is_gone: &|_| true }
    }
}

impl core::fmt::Debug for Opener<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Opener").field("claimant", &self.claimant).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
