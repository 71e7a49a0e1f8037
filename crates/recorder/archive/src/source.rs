//! What is archived: the closed parts of a volume.

use core::ops::ControlFlow;

use completeness::Completeness;
use extract::{ClosedPart, ClosedParts, Lag, OpenSessions, PartReport};
use format::head::{StripeId, VolumeId};
use found::Found;
use units::{Clock, Timestamp};

use crate::Error;

/// A part of the ring that is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Its first stripe.
    pub first: StripeId,
    /// Its last stripe.
    pub last: StripeId,
    /// No packet is earlier, as far as is known.
    pub time_min: Timestamp,
}

/// A volume, looked at again and again.
pub trait Source {
    /// Looks at it as it is now.
    fn look(&mut self) -> Result<(), Error>;

    /// Which volume it is.
    fn volume(&self) -> VolumeId;

    /// No recorder runs.
    fn is_over(&self) -> bool;

    /// What is not known of it where no recorder runs, besides what its parts say.
    fn doubts(&self) -> Completeness;

    /// The last stripe behind `read` that is overwritten, if any is.
    fn lost_behind(&self, read: StripeId) -> Option<StripeId>;

    /// The newest stripe that is durable.
    fn newest(&self) -> Option<StripeId>;

    /// What distinguishes a stripe from every other one that was ever written under its number;
    /// `None` where it is not held, or was erased.
    fn mark(&self, stripe: StripeId) -> Option<String>;

    /// How far behind the newest stripe one is that was read.
    fn lag(&self, read: Option<StripeId>) -> Lag;

    /// The closed parts behind a stripe, in the order of the ring.
    fn parts(&mut self, read: Option<StripeId>) -> Vec<Bounds>;

    /// Reads one of those that [`Self::parts`] gave last, by its place.
    fn read(
        &mut self,
        place: usize,
        open: &mut OpenSessions,
        take: &mut dyn FnMut(&Found) -> ControlFlow<()>,
    ) -> Result<PartReport, Error>;
}

/// A volume on its members.
pub struct VolumeSource<'a> {
    options: extract::Options,
    clock: &'a dyn Clock,
    opened: ClosedParts,
    parts: Vec<ClosedPart>,
}

impl core::fmt::Debug for VolumeSource<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("VolumeSource").field("opened", &self.opened).finish_non_exhaustive()
    }
}

impl<'a> VolumeSource<'a> {
    /// Opens it.
    pub fn open(options: extract::Options, clock: &'a dyn Clock) -> Result<Self, Error> {
        let opened = ClosedParts::open(&options, clock)?;
        Ok(Self { options, clock, opened, parts: Vec::new() })
    }

    /// Its packets and its index are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.opened.is_encrypted()
    }
}

impl Source for VolumeSource<'_> {
    fn look(&mut self) -> Result<(), Error> {
        self.opened = ClosedParts::open(&self.options, self.clock)?;
        self.parts = Vec::new();
        Ok(())
    }

    fn volume(&self) -> VolumeId {
        self.opened.volume()
    }

    fn is_over(&self) -> bool {
        self.opened.is_over()
    }

    fn doubts(&self) -> Completeness {
        self.opened.doubts()
    }

    fn lost_behind(&self, read: StripeId) -> Option<StripeId> {
        self.opened.lost_behind(read)
    }

    fn newest(&self) -> Option<StripeId> {
        self.opened.newest()
    }

    fn mark(&self, stripe: StripeId) -> Option<String> {
        self.opened.mark(stripe).map(|mark| units::hex(&mark))
    }

    fn lag(&self, read: Option<StripeId>) -> Lag {
        self.opened.lag(read)
    }

    fn parts(&mut self, read: Option<StripeId>) -> Vec<Bounds> {
        self.parts = self.opened.behind(read);
        let bounds = |part: &ClosedPart| Bounds {
            first: part.first(),
            last: part.last(),
            time_min: part.time_min(),
        };
        self.parts.iter().map(bounds).collect()
    }

    fn read(
        &mut self,
        place: usize,
        open: &mut OpenSessions,
        take: &mut dyn FnMut(&Found) -> ControlFlow<()>,
    ) -> Result<PartReport, Error> {
        let part = self.parts.get(place).expect("the caller names one of these parts");
        Ok(self.opened.read(part, open, take)?)
    }
}
